use serde_json::{Value, json};

use crate::fixture::{activity, corpora, corpus, key, manifest, technique, workflow};
use crate::{Composed, Corpus, Scope};

use std::sync::Arc;

/// Owned files, for [`load`].
type Files = Vec<(&'static str, String)>;

fn load(files: &Files) -> Arc<Corpus> {
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    corpus(&borrowed)
}

#[track_caller]
fn get(corpus: &Corpus, executing: &str, reference: &str) -> Arc<Composed> {
    let executing = key(executing);
    let scope = Scope { executing: &executing, activity: None };
    corpus.technique(reference, &scope).unwrap_or_else(|error| panic!("{error}"))
}

fn reason(corpus: &Corpus, executing: &str, reference: &str) -> String {
    let executing = key(executing);
    corpus.technique(reference, &Scope { executing: &executing, activity: None }).unwrap_err().reason
}

fn ids(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(|item| item["id"].as_str()).collect()
}

fn own(composed: &Composed, side: &str) -> Vec<String> {
    composed.value.get(side).map(ids).unwrap_or_default().into_iter().map(str::to_owned).collect()
}

fn inherited(composed: &Composed, side: &str) -> Vec<String> {
    let block = composed.value.get(&format!("inherited_{side}"));
    block.map(|block| ids(&block["items"])).unwrap_or_default().into_iter().map(str::to_owned).collect()
}

fn rules(composed: &Composed) -> Vec<&str> {
    let rules = composed.value.get("rules").and_then(Value::as_object);
    rules.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Title (or `-`) and steps of each block.
fn protocol(composed: &Composed) -> Vec<String> {
    let blocks = composed.value.get("protocol").and_then(Value::as_array);
    let line = |block: &Value| {
        let steps: Vec<&str> = block["steps"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("{} {}", block["title"].as_str().unwrap_or("-"), steps.join(","))
    };
    blocks.into_iter().flatten().map(line).collect()
}

/// The files of spec 01 §8.6.
pub(crate) fn worked_example() -> Files {
    vec![
        ("w/workflow.yaml", manifest("w", "")),
        (
            "w/techniques/TECHNIQUE.md",
            technique(
                "## Inputs\n### root_in\nr\n## Protocol\n### Initial\n- ri\n### Final\n- rf\n## Rules\n### root-rule\nR\n",
            ),
        ),
        (
            "w/techniques/g/TECHNIQUE.md",
            technique(
                "## Inputs\n### g_in\ng\n## Protocol\n### 1. Initial\n- gi\n### Other\n- go\n## Rules\n### g-rule\nG\n",
            ),
        ),
        ("w/techniques/g/op.md", technique("## Protocol\n- do\n")),
        ("meta/workflow.yaml", manifest("meta", "")),
        ("meta/techniques/t.md", technique("## Protocol\n- t\n## Rules\n### r\nr\n### k-a\na\n### k-b\nb\n")),
    ]
}

#[test]
fn worked_example_01_8_6_single_loads() {
    let corpus = load(&worked_example());
    let op = get(&corpus, "w", "g::op");
    assert_eq!(own(&op, "inputs"), Vec::<String>::new());
    assert_eq!(inherited(&op, "inputs"), ["root_in", "g_in"]);
    assert_eq!(rules(&op), ["root-rule", "g-rule"]);
    assert_eq!(protocol(&op), ["1. Initial ri", "2. Initial gi", "3. do", "4. Final rf"]);
    let group = get(&corpus, "w", "g");
    assert_eq!(own(&group, "inputs"), ["g_in"]);
    assert_eq!(inherited(&group, "inputs"), ["root_in"]);
    assert_eq!(protocol(&group), ["1. Initial ri", "2. Initial gi", "3. Other go", "4. Final rf"]);
    let members: Vec<&String> = op.value.keys().collect();
    assert_eq!(members, ["id", "version", "capability", "inherited_inputs", "protocol", "rules"]);
    assert_eq!(op.value["id"], json!("op"));
}

/// Trap 27: `1. Initial` is `Initial`, in any case of letters; other blocks of an ancestor stay there.
#[test]
fn trap_01_14_27_numbered_initial() {
    let corpus = load(&vec![
        (
            "w/techniques/TECHNIQUE.md",
            technique("## Protocol\n### 3. INITIAL\n- a\n### Private\n- p\n### 9. final\n- z\n"),
        ),
        ("w/techniques/x.md", technique("## Protocol\n- own\n")),
    ]);
    assert_eq!(protocol(&get(&corpus, "w", "x")), ["1. INITIAL a", "2. own", "3. final z"]);
}

#[test]
fn nothing_is_numbered_without_a_wrapping_block() {
    let corpus = load(&vec![
        ("w/techniques/TECHNIQUE.md", technique("## Protocol\n### Setup\n- a\n")),
        ("w/techniques/x.md", technique("## Protocol\n### 1. Ask\n- own\n### Go\n- b\n")),
    ]);
    assert_eq!(protocol(&get(&corpus, "w", "x")), ["Ask own", "Go b"]);
}

/// Trap T-1: the flat file is the technique and the container; the folder still holds operations.
#[test]
fn trap_02_15_t01_flat_shadows_folder() {
    let corpus = load(&vec![
        ("w/techniques/x.md", technique("## Inputs\n### flat\nf\n")),
        ("w/techniques/x/TECHNIQUE.md", technique("## Inputs\n### folder\nf\n")),
        ("w/techniques/x/op.md", technique("## Inputs\n### own\nf\n")),
    ]);
    assert_eq!(own(&get(&corpus, "w", "x"), "inputs"), ["flat"]);
    let op = get(&corpus, "w", "x::op");
    assert_eq!((own(&op, "inputs"), inherited(&op, "inputs")), (vec!["own".to_owned()], vec!["flat".to_owned()]));
}

/// Trap T-2: a group with the name of a workflow is reached only through its own workflow's prefix.
#[test]
fn trap_02_15_t02_prefix_swallow() {
    let corpus = load(&vec![
        ("alpha/techniques/prism/scan.md", technique("## Inputs\n### local\nx\n")),
        ("prism/techniques/other.md", technique("")),
        ("meta/techniques/prism/scan.md", technique("")),
    ]);
    assert!(reason(&corpus, "alpha", "prism::scan").contains("prism/techniques/scan.md"));
    assert_eq!(own(&get(&corpus, "alpha", "alpha::prism::scan"), "inputs"), ["local"]);
}

/// Trap T-3: a prefix looks in its workflow only.
#[test]
fn trap_02_15_t03_no_fallback_after_a_prefix() {
    let corpus = load(&vec![("alpha/techniques/a.md", technique("")), ("meta/techniques/shared.md", technique(""))]);
    assert_eq!(get(&corpus, "alpha", "shared").resolved.workflow.id, "meta");
    assert!(reason(&corpus, "alpha", "alpha::shared").contains("no such file: alpha/techniques/shared.md"));
}

/// Traps T-4 and 01 §14 trap 18: an operation named like its group has the group's contract (FIX-33).
#[test]
fn trap_02_15_t04_same_name_operation() {
    let corpus = load(&vec![
        ("w/techniques/intake/TECHNIQUE.md", technique("## Inputs\n### g\nx\n## Rules\n### r\nx\n")),
        ("w/techniques/intake/intake.md", technique("## Inputs\n### o\nx\n")),
    ]);
    let executing = key("w");
    let scope = Scope { executing: &executing, activity: Some("intake") };
    let op = corpus.technique("intake", &scope).unwrap();
    assert_eq!(op.resolved.id, "intake::intake");
    assert_eq!((own(&op, "inputs"), inherited(&op, "inputs")), (vec!["o".to_owned()], vec!["g".to_owned()]));
    assert_eq!(rules(&op), ["r"]);
}

/// Trap 18 of 01 §14 is T-4 of 02 §15.
#[test]
fn trap_01_14_18_same_named_op() {
    trap_02_15_t04_same_name_operation();
}

/// Traps T-5 and 01 §14 trap 17: the activity's group goes first, for references written as one word only.
#[test]
fn trap_02_15_t05_shorthand_is_per_activity() {
    let corpus = load(&vec![
        ("w/techniques/prepare/plan.md", technique("")),
        ("w/techniques/plan.md", technique("")),
        ("w/techniques/prepare/g/op.md", technique("")),
        ("meta/techniques/late/plan.md", technique("")),
    ]);
    let executing = key("w");
    let resolve = |activity: &str, reference: &str| {
        corpus.resolve(reference, &Scope { executing: &executing, activity: Some(activity) }).map(|found| found.id)
    };
    assert_eq!(resolve("prepare", "plan").unwrap(), "prepare::plan");
    assert_eq!(resolve("other", "plan").unwrap(), "plan");
    assert_eq!(resolve("late", "plan").unwrap(), "late::plan");
    assert!(resolve("prepare", "g/op").is_err());
    assert_eq!(resolve("other", "prepare/plan").unwrap(), "prepare::plan");
}

/// Trap 17 of 01 §14.
#[test]
fn trap_01_14_17_activity_group_shorthand_first() {
    let corpus = load(&vec![
        ("w/techniques/research/TECHNIQUE.md", technique("")),
        ("w/techniques/research/research.md", technique("")),
    ]);
    let executing = key("w");
    let with = corpus.resolve("research", &Scope { executing: &executing, activity: Some("research") }).unwrap();
    assert_eq!(
        (with.id.as_str(), with.file.path.as_str()),
        ("research::research", "w/techniques/research/research.md")
    );
    let without = corpus.resolve("research", &Scope { executing: &executing, activity: None }).unwrap();
    assert_eq!(without.file.path, "w/techniques/research/TECHNIQUE.md");
}

/// Trap T-6: a sub-container is addressable; the file goes first.
#[test]
fn trap_02_15_t06_sub_container() {
    let mut files = vec![
        ("meta/techniques/util/TECHNIQUE.md", technique("## Rules\n### deep\nx\n### top\ny\n")),
        ("meta/techniques/util/deep/TECHNIQUE.md", technique("## Rules\n### d\nx\n")),
        ("meta/techniques/util/deep/leaf.md", technique("")),
    ];
    let corpus = load(&files);
    let deep = get(&corpus, "w", "util::deep");
    assert_eq!(deep.resolved.file.path, "meta/techniques/util/deep/TECHNIQUE.md");
    assert_eq!(rules(&deep), ["deep", "top", "d"]);
    let leaf = get(&corpus, "w", "util::deep::leaf");
    assert_eq!((rules(&leaf), &leaf.value["id"]), (vec!["deep", "top", "d"], &json!("deep/leaf")));
    files.push(("meta/techniques/util/deep.md", technique("")));
    assert_eq!(get(&load(&files), "w", "util::deep").resolved.file.path, "meta/techniques/util/deep.md");
}

/// Trap 34 of 01 §14: a slash is `::`, with a prefix, with the fallback to `meta`, and without the shorthand.
#[test]
fn trap_01_14_34_slash_references() {
    let corpus = load(&vec![
        ("prism/techniques/x/y.md", technique("")),
        ("meta/techniques/g/op.md", technique("")),
        ("w/techniques/a/g/op.md", technique("")),
    ]);
    let executing = key("w");
    let scope = Scope { executing: &executing, activity: Some("a") };
    let file = |reference: &str| {
        let found = corpus.resolve(reference, &scope).unwrap();
        (found.id, found.file.path)
    };
    assert_eq!(file("prism/x/y"), ("prism::x::y".to_owned(), "prism/techniques/x/y.md".to_owned()));
    assert_eq!(file("g/op"), ("g::op".to_owned(), "meta/techniques/g/op.md".to_owned()));
}

/// Trap T-7: an override takes the place of what it overrides.
#[test]
fn trap_02_15_t07_order_after_override() {
    let corpus = load(&vec![
        ("w/techniques/TECHNIQUE.md", technique("## Inputs\n### root_in\nr\n### a\nr\n")),
        ("w/techniques/x.md", technique("## Inputs\n### b\no\n### a\no\n")),
    ]);
    let x = get(&corpus, "w", "x");
    assert_eq!(
        (own(&x, "inputs"), inherited(&x, "inputs")),
        (vec!["a".into(), "b".into()], vec!["root_in".to_owned()])
    );
}

/// Trap T-8: nothing of the overridden entry is left.
#[test]
fn trap_02_15_t08_override_is_whole() {
    let corpus = load(&vec![
        ("w/techniques/TECHNIQUE.md", technique("## Inputs\n### x\nroot\n#### default\n`1`\n#### part\np\n")),
        ("w/techniques/t.md", technique("## Inputs\n### x\nown\n")),
    ]);
    assert_eq!(get(&corpus, "w", "t").value["inputs"], json!([{"id": "x", "description": "own"}]));
}

/// Trap T-9: an own Final is an ordinary block.
#[test]
fn trap_02_15_t09_own_final_block() {
    let corpus = load(&vec![("w/techniques/t.md", technique("## Protocol\n### Final\n- f\n### Next\n- n\n"))]);
    assert_eq!(protocol(&get(&corpus, "w", "t")), ["Final f", "Next n"]);
}

/// Trap T-10: root outside, group inside.
#[test]
fn trap_02_15_t10_two_initials() {
    let both = |name: &str| technique(&format!("## Protocol\n### Initial\n- {name}i\n### Final\n- {name}f\n"));
    let corpus = load(&vec![
        ("w/techniques/TECHNIQUE.md", both("r")),
        ("w/techniques/g/TECHNIQUE.md", both("g")),
        ("w/techniques/g/op.md", technique("## Protocol\n### Own\n- o\n")),
    ]);
    let blocks = protocol(&get(&corpus, "w", "g::op"));
    assert_eq!(blocks, ["1. Initial ri", "2. Initial gi", "3. Own o", "4. Final gf", "5. Final rf"]);
}

/// D-1: the groups come from where the file lives, the one root from the executing or the named workflow.
#[test]
fn one_root_and_the_groups_of_the_file() {
    let contract = |name: &str| technique(&format!("## Inputs\n### {name}\nx\n"));
    let corpus = load(&vec![
        ("alpha/techniques/TECHNIQUE.md", contract("alpha_root")),
        ("alpha/techniques/util/TECHNIQUE.md", contract("alpha_util")),
        ("meta/techniques/TECHNIQUE.md", contract("meta_root")),
        ("meta/techniques/util/TECHNIQUE.md", contract("meta_util")),
        ("meta/techniques/util/op.md", technique("")),
        ("meta/techniques/solo.md", technique("")),
    ]);
    assert_eq!(inherited(&get(&corpus, "alpha", "util::op"), "inputs"), ["alpha_root", "meta_util"]);
    assert_eq!(inherited(&get(&corpus, "alpha", "meta::util::op"), "inputs"), ["meta_root", "meta_util"]);
    assert_eq!(inherited(&get(&corpus, "alpha", "solo"), "inputs"), ["alpha_root"]);
    assert_eq!(inherited(&get(&corpus, "alpha", "meta/solo"), "inputs"), ["meta_root"]);
    assert_eq!(inherited(&get(&corpus, "meta", "util::op"), "inputs"), ["meta_root", "meta_util"]);
}

#[test]
fn meta_and_prefixes_across_roots() {
    let contract = |name: &str| technique(&format!("## Inputs\n### {name}\nx\n"));
    let (near, far, local) = (contract("near"), contract("far"), technique(""));
    let corpus = corpora(&[
        &[("a/techniques/x.md", &local), ("p/techniques/t.md", &near)],
        &[("b/techniques/x.md", &local), ("p/techniques/t.md", &far), ("meta/techniques/m.md", &far)],
    ]);
    let from = |root: usize, reference: &str| {
        let executing = crate::WorkflowKey { root, id: "x".to_owned() };
        own(&corpus.technique(reference, &Scope { executing: &executing, activity: None }).unwrap(), "inputs")
    };
    assert_eq!(from(0, "p::t"), ["near"]);
    assert_eq!(from(1, "p::t"), ["far"]);
    assert_eq!(from(0, "m"), ["far"]);
    assert_eq!(from(0, "meta::m"), ["far"]);
}

#[test]
fn malformed_files_fall_through_and_say_so() {
    let bad = "---\nmetadata:\n  version: 1.0.0\n---\n## Capability\n";
    let corpus = load(&vec![
        ("w/techniques/x.md", bad.to_owned()),
        ("w/techniques/y.md", bad.to_owned()),
        ("w/techniques/TECHNIQUE.md", bad.to_owned()),
        ("meta/techniques/x.md", technique("")),
    ]);
    let x = get(&corpus, "w", "x");
    assert_eq!(x.resolved.workflow.id, "meta");
    let texts: Vec<&str> = x.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].contains("w/techniques/x.md:5:1 technique.capability"), "{texts:?}");
    assert!(texts[1].contains("w/techniques/TECHNIQUE.md:5:1"), "{texts:?}");
    assert!(reason(&corpus, "w", "y").contains("w/techniques/y.md:5:1 technique.capability"));
    assert!(reason(&corpus, "w", "z").contains("meta/techniques/z.md"));
    assert!(reason(&corpus, "w", "TECHNIQUE").contains("contract"));
    assert!(reason(&corpus, "w", "a::..::b").contains("not a name"));
}

#[test]
fn links_are_qualified_for_another_workflow() {
    let text = "## Rules\n### r\n[a](../resources/log.md#x) [b](log) [c](log#x) [d](meta/other) [e](nope) [f](../resources/gone.md)\n";
    let corpus = load(&vec![
        ("meta/techniques/t.md", technique(text)),
        ("meta/resources/log.md", "# X\n".to_owned()),
        ("w/techniques/TECHNIQUE.md", technique("## Rules\n### s\n[g](../resources/own.md)\n")),
        ("w/resources/own.md", "x".to_owned()),
    ]);
    let t = get(&corpus, "w", "t");
    let rule = |name: &str| t.value["rules"][name].as_str().unwrap().to_owned();
    assert_eq!(rule("r"), "[a](meta/log#x) [b](meta/log) [c](meta/log#x) [d](meta/other) [e](nope) [f](meta/gone)");
    assert_eq!(rule("s"), "[g](own)");
    assert_eq!(t.resources, ["own", "meta/log#x", "meta/log", "meta/gone"]);
    assert_eq!(t.dangling.len(), 1);
    assert!(t.dangling[0].message.contains("meta/gone"));
    let at_home = get(&corpus, "meta", "t");
    assert!(at_home.value["rules"]["r"].as_str().unwrap().starts_with("[a](log#x) [b](log)"));
}

/// Trap 15: a borrowed activity's references stand in the lender.
#[test]
fn trap_01_14_15_bare_refs_in_a_borrowed_activity() {
    let corpus = load(&vec![
        ("lender/workflow.yaml", manifest("lender", "")),
        (
            "lender/activities/01-work.yaml",
            activity("work", "steps:\n  - {id: s, kind: technique, technique: t}\ntechniques: [t]\n"),
        ),
        ("lender/techniques/TECHNIQUE.md", technique("## Rules\n### lender-root\nx\n")),
        (
            "lender/techniques/t.md",
            technique("## Rules\n### lender-t\n[l](../resources/l.md)\n## Outputs\n### o\n#### artifact\n`a.md`\n"),
        ),
        ("lender/resources/l.md", "x".to_owned()),
        ("w/workflow.yaml", manifest("w", "activities: [lender/01-work.yaml]\ntechniques:\n  activity: [t]\n")),
        ("w/techniques/TECHNIQUE.md", technique("## Rules\n### w-root\nx\n")),
        ("w/techniques/t.md", technique("## Rules\n### w-t\nx\n")),
    ]);
    let w = workflow(&corpus, "w");
    let work = w.activity("work").unwrap();
    let step = work.find_step("s").unwrap();
    let composed = corpus.step_technique(&w, work, &step).unwrap();
    assert_eq!(rules(&composed), ["lender-root", "lender-t"]);
    assert_eq!(composed.value["rules"]["lender-t"], json!("[l](lender/l)"));
    assert_eq!(composed.dangling, []);
    assert_eq!(corpus.artifacts(work).len(), 1);
    let bundle = corpus.activity_bundle(&w, work);
    let keys: Vec<&str> = bundle.techniques.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["t", "lender/t"]);
    let names: Vec<&str> = bundle.rules.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["t::w-t", "t::lender-t", "lender::lender-root", "w::w-root"]);
}

/// Trap 16: resources have no fallback to `meta`.
#[test]
fn trap_01_14_16_no_meta_fallback_for_resources() {
    let corpus = load(&vec![
        ("tea/workflow.yaml", manifest("tea", "")),
        ("tea/resources/writing.md", "own".to_owned()),
        ("meta/workflow.yaml", manifest("meta", "")),
        (
            "meta/resources/writing-register.md",
            "---\nname: writing-register\nversion: 1.0.0\n---\n# A\n\ntext\n".to_owned(),
        ),
        ("tea/resources/file.md", "---\nname: other-name\n---\nx".to_owned()),
    ]);
    let tea = workflow(&corpus, "tea");
    let missing = corpus.resource(&tea, "writing-register").unwrap_err().to_string();
    assert!(missing.starts_with("Resource not found: writing-register in workflow tea"), "{missing}");
    assert!(missing.contains("meta/writing-register") && missing.contains("close to it: writing"), "{missing}");
    let served = corpus.resource(&tea, "meta/writing-register.md#a").unwrap();
    assert_eq!(
        (served.id.as_str(), served.version.as_deref(), served.content.as_str()),
        ("writing-register", Some("1.0.0"), "# A\n\ntext")
    );
    assert_eq!(corpus.resource(&tea, "other-name").unwrap().content, "x");
    let section = corpus.resource(&tea, "meta/writing-register#b").unwrap_err().to_string();
    assert!(section.contains("#b") && section.contains("available: #a"), "{section}");
    assert!(corpus.resource(&tea, "../x").is_err());
    assert!(corpus.resource(&tea, "nowhere/x").unwrap_err().to_string().contains("no workflow `nowhere`"));
}
