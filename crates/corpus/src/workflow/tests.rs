use std::sync::Arc;

use serde_json::Value;

use crate::fixture::{activity, corpora, corpus, manifest, real_corpora};
use crate::{Library, Root, Severity, Status, StepKind, Workflow, WorkflowError};

mod traps;

/// Loads the workflow `tea` of these files.
fn tea(files: &[(&str, &str)]) -> Workflow {
    let loaded = corpus(files).workflow("tea");
    Workflow::clone(&loaded.unwrap_or_else(|error| panic!("{error}")))
}

/// `code line:column path` of every diagnostic of a workflow.
fn found(workflow: &Workflow) -> Vec<String> {
    workflow.diagnostics.iter().map(show).collect()
}

fn show(diagnostic: &crate::Diagnostic) -> String {
    let place = |number: Option<usize>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    format!(
        "{} {}:{} {}",
        diagnostic.code,
        place(diagnostic.line),
        place(diagnostic.column),
        diagnostic.path.as_deref().unwrap_or("-")
    )
}

/// A workflow `tea` with one activity `brew` that has these lines.
fn brew(more: &str) -> Workflow {
    tea(&[("tea/workflow.yaml", &manifest("tea", "")), ("tea/activities/01-brew.yaml", &activity("brew", more))])
}

#[test]
fn real_corpora_load() {
    for path in real_corpora() {
        let library = Library::new(vec![Root::Directory { path: path.clone(), label: "real".to_owned() }], None);
        let corpus = library.snapshot();
        assert!(Arc::ptr_eq(&corpus, &library.snapshot()), "nothing changed between two snapshots");
        let mut kinds = [0; 4];
        for id in corpus.workflow_ids().iter().map(String::as_str).chain([crate::META]) {
            let workflow = corpus.workflow(id).unwrap_or_else(|error| panic!("{id}: {error}"));
            for diagnostic in &workflow.diagnostics {
                println!("{id}: {diagnostic}");
                assert_ne!(diagnostic.severity, Severity::Error, "{diagnostic}");
            }
            assert!(workflow.load_errors.is_empty(), "{:?}", workflow.load_errors);
            assert!(!workflow.activities.is_empty(), "{id} has activities");
            for activity in &workflow.activities {
                let document = workflow_yaml::parse(&activity.body);
                assert!(!document.has_errors(), "{id}/{}: {:?}", activity.id, document.problems);
                assert_eq!(document.root.get("id").and_then(|id| id.as_str()), Some(activity.id.as_str()));
                for flat in activity.flat_steps() {
                    assert!(!flat.step.id.is_empty());
                    let by_id = activity.find_step(&flat.qualified_id).expect("every step is found again");
                    assert!(std::ptr::eq(by_id.step, flat.step));
                    kinds[match flat.step.kind {
                        StepKind::Technique { .. } => 0,
                        StepKind::Action { .. } => 1,
                        StepKind::Checkpoint(_) => 2,
                        StepKind::Loop(_) => 3,
                    }] += 1;
                }
            }
        }
        println!("{}: technique, action, checkpoint, loop steps: {kinds:?}", path.display());
        for listed in corpus.list().workflows {
            println!("{} {} {} {}", listed.id, listed.status, listed.errors, listed.warnings);
        }
    }
}

#[test]
fn body_of_real_activities_keeps_the_file() {
    for path in real_corpora() {
        let library = Library::new(vec![Root::Directory { path: path.clone(), label: "real".to_owned() }], None);
        let corpus = library.snapshot();
        let mut edited = 0;
        for key in corpus.workflow_keys() {
            let workflow = corpus.workflow_at(&key).unwrap_or_else(|error| panic!("{error}"));
            for activity in &workflow.activities {
                let file = activity.file.as_ref().and_then(|id| corpus.file(id.root, &id.path)).expect("it has a file");
                let without_refs = |text: &str| -> Vec<String> {
                    text.lines().filter(|line| !line.trim_start().starts_with("ref: ")).map(str::to_owned).collect()
                };
                let body: Vec<String> = activity.body.lines().map(str::to_owned).collect();
                edited += usize::from(activity.body != file.text);
                let mut rest = body.iter();
                for line in without_refs(&file.text) {
                    assert!(rest.any(|kept| *kept == line), "{}: the line `{line}` is kept", file.id.path);
                }
            }
        }
        println!("{}: {edited} bodies differ from their file", path.display());
        assert!(edited > 0);
    }
}

/// Diagnostics of a workflow whose one activity `brew` has these lines.
#[track_caller]
fn check_activity(more: &str, expected: &[&str]) {
    assert_eq!(found(&brew(more)), expected, "{more}");
}

/// Issues of a workflow whose manifest has these lines and that must not load.
fn refused(more: &str) -> Vec<String> {
    match corpus(&[("tea/workflow.yaml", &manifest("tea", more))]).workflow("tea") {
        Err(WorkflowError::Invalid { issues, .. }) => issues.iter().map(show).collect(),
        other => panic!("{more}: {other:?}"),
    }
}

#[test]
fn shapes_of_activities_are_checked_with_places() {
    check_activity("steps: []\n", &[]);
    check_activity("colour: red\n", &["activity.schema 4:1 colour"]);
    check_activity("steps:\n  - id: x\n", &["activity.schema 5:5 steps.0.kind"]);
    check_activity("steps:\n  - kind: tecnique\n    id: x\n", &["activity.schema 5:11 steps.0.kind"]);
    check_activity("steps:\n  - {kind: action, id: x, name: X}\n", &["activity.schema 5:27 steps.0.name"]);
    check_activity("steps:\n  - kind: action\n", &["step.id-missing 5:5 steps.0.id"]);
    check_activity("steps:\n  - {kind: action, id: ''}\n", &["step.id-missing 5:24 steps.0.id"]);
    check_activity("steps:\n  - {kind: action, id: a, required: true}\n", &["activity.schema 5:37 steps.0.required"]);
    check_activity("steps:\n  - {kind: checkpoint, id: c}\n", &["checkpoint.body-missing 5:5 steps.0"]);
    check_activity("bundleTechniques: {maxChars: -1}\n", &["activity.schema 4:30 bundleTechniques.maxChars"]);
    check_activity(
        "transitions:\n  - {too: x}\n",
        &["activity.schema 5:5 transitions.0.to", "workflow.unknown-key 5:6 transitions.0.too"],
    );
    check_activity(
        "decisions:\n  - id: d\n    name: D\n    branches: [{id: a, label: A}]\n",
        &["activity.schema 7:15 decisions.0.branches"],
    );
}

#[test]
fn all_problems_of_a_file_are_collected() {
    let workflow = brew("colour: red\nsteps:\n  - kind: action\n  - {kind: loop, id: l, steps: [{kind: nothing}]}\n");
    assert_eq!(
        found(&workflow),
        [
            "activity.schema 4:1 colour",
            "step.id-missing 6:5 steps.0.id",
            "activity.schema 7:5 steps.1.loopType",
            "activity.schema 7:40 steps.1.steps.0.kind",
        ]
    );
    let [error] = workflow.load_errors.as_slice() else { panic!("{:?}", workflow.load_errors) };
    assert_eq!((error.file.as_str(), error.line, error.column), ("tea/activities/01-brew.yaml", 4, 1));
    assert_eq!((error.code.as_str(), error.activity_id.as_str()), ("activity.schema", "brew"));
    assert_eq!(error.error.matches("; ").count(), 3, "{}", error.error);
    assert!(workflow.activity("brew").is_none());
    assert!(workflow.load_error("brew").is_some());
}

#[test]
fn unknown_keys_name_the_nearest() {
    let workflow = tea(&[("tea/workflow.yaml", &manifest("tea", "titel: Tee\nvariabels: []\nmodes: []\n"))]);
    let help: Vec<&str> = workflow.diagnostics.iter().filter_map(|found| found.help.as_deref()).collect();
    assert_eq!(help[..2], ["did you mean `title`?", "did you mean `variables`?"]);
    assert!(help[2].starts_with("known keys: $schema, id, version"), "{}", help[2]);
    assert_eq!(found(&workflow)[0], "workflow.unknown-key 4:1 titel");
}

#[test]
fn core_bundles_are_known_in_meta_only() {
    let core = "techniques:\n  core: {workflow: [a], activity: [b]}\n";
    let of_tea = tea(&[("tea/workflow.yaml", &manifest("tea", core))]);
    assert_eq!(found(&of_tea), ["workflow.unknown-key 5:3 techniques.core"]);
    assert!(of_tea.core.is_none());
    let meta = corpus(&[("meta/workflow.yaml", &manifest("meta", core))]).workflow("meta").expect("it loads");
    assert!(meta.diagnostics.is_empty());
    assert_eq!(meta.core.as_ref().map(|core| core.activity.clone()), Some(vec!["b".to_owned()]));
}

#[test]
fn variables_are_declared_in_full() {
    let lines = "variables:\n  - {name: cup_count, type: number, defaultValue: many}\n  - {type: string, name: cup_count, extra: 1}\n  - {name: order_list, type: array, defaultValue: \"{other_list}\"}\n";
    let workflow = tea(&[("tea/workflow.yaml", &manifest("tea", lines))]);
    assert_eq!(
        found(&workflow),
        [
            "variable.default-type 5:51 variables.0.defaultValue",
            "variable.duplicate 6:26 variables.1.name",
            "workflow.unknown-key 6:37 variables.1.extra",
        ]
    );
    let declaration = Value::Object(workflow.variables[1].declaration.clone()).to_string();
    assert_eq!(declaration, r#"{"name":"cup_count","type":"string","required":false}"#);
    assert_eq!(refused("variables: [{name: cups, type: number}]\n"), ["variable.name 4:20 variables.0.name"]);
}

#[test]
fn checkpoint_options_are_checked_but_exclude_nothing() {
    let step = |more: &str| {
        format!(
            "steps:\n  - kind: checkpoint\n    id: c\n    message: m\n    options: [{{id: a, label: A}}, {{id: a, label: B}}]\n{more}"
        )
    };
    let workflow = brew(&step("    autoAdvanceMs: 5\n"));
    assert_eq!(
        found(&workflow),
        ["checkpoint.option 8:39 steps.0.options.1.id", "checkpoint.option 9:20 steps.0.autoAdvanceMs"]
    );
    assert!(workflow.activity("brew").is_some());
    let workflow = brew(&step("    defaultOption: b\n"));
    assert_eq!(found(&workflow)[1], "checkpoint.option 9:20 steps.0.defaultOption");
}

#[test]
fn gates_are_read_with_their_place_in_the_file() {
    #[track_caller]
    fn check(when: &str, expected: &[&str]) {
        let workflow = brew(&format!("steps:\n  - kind: action\n    id: a\n    when: {when}\n"));
        assert_eq!(found(&workflow), expected, "{when}");
        assert!(workflow.activity("brew").is_some(), "it is a warning");
    }
    check("a == 1 && b", &[]);
    check("a == 1.5", &["when.syntax 7:17 steps.0.when"]);
    check("'a == 1.5'", &["when.syntax 7:18 steps.0.when"]);
    check("\"a \\x3d= 1.5\"", &["when.syntax 7:11 steps.0.when"]);
    check("a || b && c", &["when.mixed 7:18 steps.0.when"]);
    check("(a && b || c)", &["when.mixed 7:19 steps.0.when"]);
}

#[test]
fn routes_must_lead_somewhere() {
    let lines = "transitions: [{to: brwe}, {to: __terminal__}, {to: brew}]\nsteps:\n  - kind: checkpoint\n    id: c\n    message: m\n    options: [{id: a, label: A, effect: {transitionTo: far, skipActivities: [gone]}}]\n";
    let workflow = brew(lines);
    assert_eq!(
        found(&workflow),
        [
            "transition.target 4:20 transitions.0.to",
            "transition.target 9:56 steps.0.options.0.effect.transitionTo",
            "transition.target 9:78 steps.0.options.0.effect.skipActivities.0",
        ]
    );
    assert_eq!(workflow.diagnostics[0].help.as_deref(), Some("did you mean `brew`?"));
    let activity = workflow.activity("brew").expect("it loads");
    assert_eq!(activity.targets(), ["brwe", "__terminal__", "brew", "far"]);
    assert_eq!(activity.transition_entries()[3].condition.as_deref(), Some("checkpoint:c:a"));
    assert!(activity.has_route() && activity.own_route_to_itself());
    let initial = tea(&[("tea/workflow.yaml", &manifest("tea", "initialActivity: gone\n"))]);
    assert_eq!(found(&initial), ["transition.target 4:18 initialActivity"]);
    assert!(!brew("").activity("brew").expect("it loads").has_route());
}

#[test]
fn rule_fragments_take_the_place_of_their_references() {
    let lines = "fragments: {rules: {one: A, two: [B, C]}}\nrules:\n  workflow: [first, {ref: two}, {ref: tea::one}, {ref: polite}, {ref: meta::polite}, {ref: gone}, {ref: a::b::c}]\n";
    let meta = manifest("meta", "fragments: {rules: {polite: P}}\n");
    let workflow = tea(&[("tea/workflow.yaml", &manifest("tea", lines)), ("meta/workflow.yaml", &meta)]);
    assert_eq!(workflow.rules.workflow, ["first", "B", "C", "A", "P", "P"]);
    assert_eq!(
        found(&workflow),
        ["fragment.unresolved 6:92 rules.workflow.5.ref", "fragment.malformed 6:105 rules.workflow.6.ref"]
    );
    let listed = corpus(&[("tea/workflow.yaml", &manifest("tea", lines))]).list();
    assert_eq!(listed.workflows[0].status, Status::Degraded);
}

#[test]
fn checkpoint_fragments_are_materialised_or_exclude() {
    #[track_caller]
    fn check(step: &str, expected: &[&str]) -> Workflow {
        let fragments = "fragments:\n  checkpoints:\n    ask:\n      message: Sure?\n      options: [{id: y, label: Y}]\n      condition: {type: simple, variable: x, operator: exists}\n";
        let lines = format!("steps:\n  - {{kind: checkpoint, id: c, {step}}}\n");
        let workflow = tea(&[
            ("tea/workflow.yaml", &manifest("tea", fragments)),
            ("tea/activities/01-brew.yaml", &activity("brew", &lines)),
        ]);
        assert_eq!(found(&workflow), expected, "{step}");
        workflow
    }
    let workflow = check("ref: ask, when: x, replay: session", &[]);
    let step = &workflow.activity("brew").expect("it loads").steps[0];
    assert_eq!(step.condition.as_ref().map(crate::Condition::text).as_deref(), Some("x exists"));
    let StepKind::Checkpoint(checkpoint) = &step.kind else { panic!("{step:?}") };
    assert_eq!((checkpoint.message.as_str(), checkpoint.replay), ("Sure?", crate::Replay::Session));
    check("ref: ask, blocking: true", &["checkpoint.ref-conflict 5:41 steps.0.blocking"]);
    check("ref: gone", &["fragment.unresolved 5:36 steps.0.ref"]);
    check("ref: 'tea::'", &["fragment.malformed 5:36 steps.0.ref"]);
    let twice = "ref: ask, condition: {type: simple, variable: x, operator: exists}";
    let workflow = check(twice, &["checkpoint.condition-twice 5:41 steps.0.condition"]);
    assert_eq!(workflow.load_errors[0].activity_id, "brew");
}

#[test]
fn activities_are_borrowed_from_other_workflows() {
    let lines = "activities:\n  - 01-brew.yaml\n  - cafe/02-serve.yaml\n  - cafe/activities/02-serve.yaml\n  - cafe/patterns/01-extra.yml\n  - cafe/03-gone.yaml\n  - ../secret.yaml\n  - cafe/04-bad.yaml\n  - id: inline-one\n    version: 1.0.0\n    name: Inline\n    steps: [{kind: technique, technique: a::b}]\n  - {id: broken, version: 1.0.0, name: B, colour: red}\n";
    let workflow = tea(&[
        ("tea/workflow.yaml", &manifest("tea", lines)),
        ("tea/activities/01-brew.yaml", &activity("brew", "")),
        ("cafe/workflow.yaml", &manifest("cafe", "")),
        ("cafe/activities/02-serve.yaml", &activity("serve", "transitions: [{to: brew, colour: red}]\n")),
        ("cafe/activities/patterns/01-extra.yml", &activity("extra", "")),
        ("cafe/activities/04-bad.yaml", "a: [\n"),
        ("secret.yaml", ""),
    ]);
    let ids: Vec<&str> = workflow.activities.iter().map(|activity| activity.id.as_str()).collect();
    assert_eq!(ids, ["brew", "serve", "extra", "inline-one"]);
    let serve = workflow.activity("serve").expect("it is borrowed");
    assert_eq!((serve.source.id.as_str(), serve.artifact_prefix.as_deref()), ("cafe", Some("02")));
    let inline = workflow.activity("inline-one").expect("it is written in the manifest");
    assert_eq!((inline.steps[0].id.as_str(), inline.artifact_prefix.as_deref()), ("b", None));
    assert!(inline.body.contains("- id: b\n"), "{}", inline.body);
    let errors: Vec<(&str, usize, usize, &str)> = workflow
        .load_errors
        .iter()
        .map(|error| (error.file.as_str(), error.line, error.column, error.code.as_str()))
        .collect();
    assert_eq!(
        errors,
        [
            ("cafe/03-gone.yaml", 9, 5, "activity.borrow-unresolved"),
            ("../secret.yaml", 10, 5, "activity.borrow-unresolved"),
            ("cafe/04-bad.yaml", 1, 4, "activity.parse"),
            ("tea/workflow.yaml", 16, 43, "activity.schema"),
        ]
    );
    assert!(
        !found(&workflow).iter().any(|found| found.contains("unknown-key")),
        "that is the lender's: {:?}",
        found(&workflow)
    );
}

#[test]
fn file_names_decide_what_is_loaded() {
    let workflow = tea(&[
        ("tea/workflow.yaml", &manifest("tea", "activitiesDir: parts/\n")),
        ("tea/parts/01-brew.yml", &activity("brew", "")),
        ("tea/parts/02-other.yaml", &activity("brew", "")),
        ("tea/parts/intake.yaml", &activity("intake", "")),
        ("tea/parts/README.md", "text"),
        ("tea/parts/deeper/03-deep.yaml", &activity("deep", "")),
        ("tea/parts/04-folder.yaml/x.md", ""),
        ("tea/activities/01-unused.yaml", &activity("unused", "")),
    ]);
    let ids: Vec<&str> = workflow.activities.iter().map(|activity| activity.id.as_str()).collect();
    assert_eq!(ids, ["brew"]);
    assert_eq!(
        found(&workflow),
        [
            "activity.parse 1:1 -",
            "activity.filename 1:1 -",
            "activity.id-mismatch 1:5 id",
            "activity.duplicate-id 1:5 id",
        ]
    );
    assert_eq!(workflow.load_errors[1].activity_id, "other");
    assert_eq!(refused("activitiesDir: ../other\n"), ["manifest.schema 4:16 activitiesDir"]);
}

#[test]
fn answers_of_two_checkpoints_may_share_a_key() {
    let lines =
        |id: &str| format!("steps: [{{kind: checkpoint, id: {id}, message: m, options: [{{id: a, label: A}}]}}]\n");
    let workflow = tea(&[
        ("tea/workflow.yaml", &manifest("tea", "")),
        ("tea/activities/01-a.yaml", &activity("a", &lines("b-c"))),
        ("tea/activities/02-a-b.yaml", &activity("a-b", &lines("c"))),
    ]);
    assert_eq!(found(&workflow), ["checkpoint.key-collision 1:1 -"]);
}

#[test]
fn listing_says_what_can_be_started() {
    let good = manifest("odd", "tags: [a, b]\n");
    let list = corpora(&[
        &[
            ("tea/workflow.yaml", &good),
            ("both/workflow.yaml", &manifest("both", "")),
            ("both/workflow.yml", "nonsense"),
            ("bad/workflow.yaml", "a: [\n"),
            ("numbers/workflow.yml", "id: n\nversion: 1.0\ntitle: N\n"),
            ("broken/workflow.yaml", &manifest("broken", "modes: []\nrules: [x]\n")),
            ("meta/workflow.yaml", &manifest("meta", "")),
            ("old.yml", &manifest("old", "")),
            ("docs/readme.md", ""),
            (".hidden/workflow.yaml", &manifest("hidden", "")),
        ],
        &[
            ("tea/workflow.yaml", &manifest("tea", "")),
            ("zeta/workflow.yaml", &manifest("zeta", "activities: [gone.yaml]\n")),
        ],
    ])
    .list();
    let items: Vec<String> = list
        .workflows
        .iter()
        .map(|item| {
            format!("{} {} {} {} {:?} {}", item.id, item.status, item.errors, item.warnings, item.tags, item.source)
        })
        .collect();
    assert_eq!(
        items,
        [
            "both ok 0 0 [] root 0",
            "broken broken 1 1 [] root 0",
            "old ok 0 0 [] root 0",
            "tea ok 0 1 [\"a\", \"b\"] root 0",
            "zeta degraded 1 0 [] root 1",
        ]
    );
    let errors: Vec<String> = list
        .load_errors
        .iter()
        .map(|error| format!("{} {}:{} {}", error.file, error.line, error.column, error.code))
        .collect();
    assert_eq!(errors, ["bad/workflow.yaml 1:4 manifest.parse", "numbers/workflow.yml 2:10 manifest.schema"]);
}

#[test]
fn ids_stay_inside_the_corpus() {
    let corpus = corpus(&[("tea/workflow.yaml", &manifest("tea", ""))]);
    for id in ["", ".", "..", "../tea", "tea/..", "a\\b", ".git", "a\0"] {
        assert!(matches!(corpus.workflow(id), Err(WorkflowError::InvalidId { .. })), "{id:?}");
    }
    let error = corpus.workflow("coffee").expect_err("there is none");
    assert_eq!(error.to_string(), "Workflow not found: coffee (available: tea)");
    let refused = crate::fixture::corpus(&[("tea/workflow.yaml", "id: tea\nversion: 1\n")]).workflow("tea");
    let text = refused.expect_err("it is invalid").to_string();
    assert!(
        text.starts_with("Workflow validation failed for tea: title: the key `title` is missing, version: "),
        "{text}"
    );
}

#[test]
fn a_legacy_file_has_its_activities_beside_it() {
    let corpus = corpus(&[
        ("old.yml", &manifest("old", "initialActivity: brew\n")),
        ("activities/01-brew.yaml", &activity("brew", "")),
        ("both.yaml", "nonsense"),
        ("both/workflow.yml", &manifest("both", "")),
    ]);
    let workflow = corpus.workflow("old").expect("it loads");
    assert_eq!((workflow.id(), found(&workflow)), ("old", Vec::new()));
    assert_eq!(workflow.activities[0].artifact_prefix.as_deref(), Some("01"));
    assert!(corpus.workflow("both").expect("the directory wins").diagnostics.is_empty());
}

#[test]
fn whole_numbers_may_be_written_with_a_fraction_of_zero() {
    let lines = |number: &str| format!("bundleTechniques: {{maxChars: {number}}}\n");
    assert_eq!(brew(&lines("1.0e3")).activities[0].bundle_max_chars, Some(1000));
    assert_eq!(brew(&lines("0")).activities[0].bundle_max_chars, Some(0));
    check_activity(&lines("1.5"), &["activity.schema 4:30 bundleTechniques.maxChars"]);
}

#[test]
fn real_activities_survive_the_loss_of_their_step_ids() {
    for path in real_corpora() {
        let library = Library::new(vec![Root::Directory { path: path.clone(), label: "real".to_owned() }], None);
        let original = library.snapshot();
        let mut loaded = 0;
        for key in original.workflow_keys() {
            let folder = format!("{}/activities", key.id);
            for file in original.files_below(key.root, &folder).filter(|file| !file.name().starts_with("README")) {
                let mut lines: Vec<&str> = Vec::new();
                for line in file.text.lines() {
                    let of_technique = lines.last().is_some_and(|last| last.trim_start() == "- kind: technique");
                    if !(of_technique && line.trim_start().starts_with("id: ")) {
                        lines.push(line);
                    }
                }
                let text = format!("{}\n", lines.join("\n"));
                let damaged = tea(&[("tea/workflow.yaml", &manifest("tea", "")), ("tea/activities/01-x.yaml", &text)]);
                // Two steps may derive the same id, and fragments are not there.
                let Some(activity) = damaged.activities.first() else { continue };
                loaded += 1;
                // The first key of a step moves to the line below its id.
                let plain = |line: &str| line.trim_start().trim_start_matches("- ").to_owned();
                let mut rest = activity.body.lines();
                let kept = lines.iter().all(|line| rest.any(|kept| plain(kept) == plain(line)));
                assert!(kept, "{}: every line is kept", file.id.path);
                let root = workflow_yaml::parse(&activity.body).root;
                let steps = root.get("steps").and_then(|steps| steps.as_sequence()).unwrap_or_default();
                for (step, node) in activity.steps.iter().zip(steps) {
                    assert_eq!(node.get("id").and_then(|id| id.as_str()), Some(step.id.as_str()), "{}", file.id.path);
                }
            }
        }
        println!("{}: {loaded} activities without step ids", path.display());
        assert!(loaded > 20);
    }
}

proptest::proptest! {
    /// Damaged files never stop the loader, and what is served always reads as YAML.
    #[test]
    fn damaged_activities_load_or_are_excluded(at in 0_usize..400, length in 0_usize..30, put in "[-:{}\\[\\]#&*!|>'\"%\\n\\t a-c]{0,6}") {
        let text = "id: brew\nversion: 1.0.0\nname: Brew\nsteps:\n  - kind: technique\n    technique: {name: g::op, inputs: {a: 1}}\n  - ref: ask # c\n    kind: checkpoint\n    id: c#{x}\n  - kind: loop\n    id: l\n    loopType: forEach\n    when: \"a && (b || c == 'd')\"\n    steps:\n      - {kind: technique, technique: a/b}\ntransitions:\n  - {to: brew, condition: {type: not, condition: {type: simple, variable: a, operator: exists}}}\n";
        let (from, to) = (at.min(text.len()), (at + length).min(text.len()));
        let damaged = format!("{}{put}{}", &text[..from], &text[to..]);
        let fragments = "fragments: {checkpoints: {ask: {message: \"a: b\", options: [{id: y, label: Y}]}}}\n";
        let workflow = tea(&[("tea/workflow.yaml", &manifest("tea", fragments)), ("tea/activities/01-brew.yaml", &damaged)]);
        proptest::prop_assert_eq!(workflow.activities.len() + workflow.load_errors.len(), 1);
        for activity in &workflow.activities {
            let document = workflow_yaml::parse(&activity.body);
            proptest::prop_assert!(!document.has_errors(), "{}", activity.body);
            proptest::prop_assert!(activity.body.ends_with('\n') && !activity.body.ends_with("\n\n"));
            let ids = document.root.get("steps").and_then(|steps| steps.as_sequence()).unwrap_or_default().len();
            proptest::prop_assert_eq!(ids, activity.steps.len());
        }
    }

    /// No expression stops the parser, and positions lie inside the text.
    #[test]
    fn any_gate_is_read(text in "[a-c.!&|=<>()'\"0-9 -]{0,24}") {
        if let Err(error) = crate::when::parse(&text) {
            proptest::prop_assert!(error.offset <= text.chars().count());
        }
        crate::when::mixes_operators(&text);
    }
}
