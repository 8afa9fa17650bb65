use serde_json::Map;

use super::*;
use crate::Composed;
use crate::fixture::{activity, corpus, manifest, technique, workflow};

/// Two activities of `w` with these steps; `variables` are declared; every technique of the test exists.
fn corpus_of(first: &str, second: &str, variables: &[&str], more: &[(&str, &str)]) -> std::sync::Arc<Corpus> {
    let declared: Vec<String> = variables.iter().map(|name| format!("  - {{name: {name}, type: string}}\n")).collect();
    let declared = declared.concat();
    let head = if variables.is_empty() { String::new() } else { format!("variables:\n{declared}") };
    let manifest = manifest("w", &head);
    let (first, second) = (activity("first", first), activity("second", second));
    let files: Vec<(String, String)> =
        more.iter().map(|(name, sections)| (format!("w/techniques/{name}.md"), technique(sections))).collect();
    let mut all: Vec<(&str, &str)> = vec![
        ("w/workflow.yaml", &manifest),
        ("w/activities/01-first.yaml", &first),
        ("w/activities/02-second.yaml", &second),
    ];
    all.extend(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    corpus(&all)
}

#[track_caller]
fn step(corpus: &Corpus, activity: &str, id: &str) -> std::sync::Arc<Composed> {
    let w = workflow(corpus, "w");
    let activity = w.activity(activity).unwrap();
    let step = activity.find_step(id).unwrap();
    corpus.step_technique(&w, activity, &step).unwrap_or_else(|error| panic!("{error}"))
}

/// What a step says of one entry, in any of its four lists.
fn note(composed: &Composed, member: &str, id: &str) -> Option<String> {
    let entries = |key: &str| -> Vec<Map<String, Value>> {
        let value = composed.value.get(key).cloned().unwrap_or_default();
        let list = value.get("items").cloned().unwrap_or(value);
        list.as_array().into_iter().flatten().filter_map(|item| item.as_object().cloned()).collect()
    };
    let lists = ["inputs", "inherited_inputs", "outputs", "inherited_outputs"];
    let found = lists.iter().flat_map(|key| entries(key)).find(|item| item["id"] == id)?;
    found.get(member)?.as_str().map(str::to_owned)
}

#[track_caller]
fn check_source(composed: &Composed, id: &str, expected: &str) {
    assert_eq!(note(composed, "source", id).as_deref(), Some(expected), "{id}");
}

const MAKER: (&str, &str) = ("maker", "## Outputs\n### made\nx\n### result\nx\n");

/// The example of spec 02 §8.4.
#[test]
fn every_kind_of_source() {
    let inputs = "## Inputs\n### made\nx\n### tok\nx\n### tmpl\nx\n### num\nx\n### word\nx\n### renamed\nx\n### declared_var\nx\n\
                  ### soon_var\nx\n### later\nx\n### model_id\nx\n### filled\nx\n#### default\n`1`\n### maybe\n*(optional)* x\n\
                  ### missing\nx\n### bound\nx\n## Outputs\n### remap_me\nx\n### plain\nx\n";
    let corpus = corpus_of(
        "steps: [{id: make, kind: technique, technique: maker}]\n",
        "steps:\n  - id: classify\n    kind: technique\n    technique:\n      name: user\n      inputs: {tok: '{made}', tmpl: '{declared_var}/x-{ghost}', num: 3, \
         word: fast, renamed: made, bound: '{ghost}'}\n      outputs: {remap_me: landed}\n  - id: after\n    kind: action\n    \
         actions: [{action: set, target: soon_var}, {action: set, target: later}]\n",
        &["declared_var", "soon_var"],
        &[MAKER, ("user", inputs)],
    );
    let classify = step(&corpus, "second", "classify");
    let made = "output of step 'make' (activity 'first')";
    let set = "set by step 'after' (activity 'second')";
    check_source(&classify, "made", made);
    check_source(&classify, "tok", &format!("step-binding: {made}"));
    check_source(&classify, "tmpl", r#"step-binding template "{declared_var}/x-{ghost}", no producer for '{ghost}'"#);
    check_source(&classify, "num", "step-binding literal 3");
    check_source(&classify, "word", r#"step-binding literal "fast""#);
    check_source(&classify, "renamed", &format!("step-binding: {made}"));
    check_source(&classify, "declared_var", "workflow variable 'declared_var' (declared)");
    check_source(
        &classify,
        "soon_var",
        &format!("workflow variable 'soon_var' (declared; {set}, produced later in the workflow)"),
    );
    check_source(&classify, "later", &format!("{set}, produced later in the workflow"));
    check_source(&classify, "model_id", "ambient context 'model_id'");
    check_source(&classify, "filled", "declared default of the input");
    check_source(&classify, "maybe", "optional input, nothing in the workflow sets it");
    check_source(&classify, "missing", "UNRESOLVED: nothing in the workflow gives 'missing' a value");
    check_source(&classify, "bound", "UNRESOLVED: nothing in the workflow gives 'ghost' a value");
    assert_eq!(note(&classify, "destination", "remap_me").as_deref(), Some("lands as session variable 'landed'"));
    assert_eq!(note(&classify, "destination", "plain"), None);
    let texts: Vec<&str> = classify.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[0].starts_with("Input 'tmpl' of technique 'user' is UNRESOLVED at step 'classify': "));
    assert!(classify.warnings.iter().all(|warning| warning.code == "W_INPUT_UNRESOLVED"));
    let members: Vec<&String> = classify.value.keys().take(4).collect();
    assert_eq!(members, ["id", "version", "capability", "provenance_note"]);
    let cited = classify.value["provenance_note"].as_str().unwrap();
    for part in ["step-manifest `output`", "JSON object keyed by output id", "shown only on a remapped output", "§7.5"]
    {
        assert!(cited.contains(part), "{part}");
    }
}

#[test]
fn producers_of_all_kinds() {
    let corpus = corpus_of(
        "steps:\n  - id: gate\n    kind: checkpoint\n    message: m\n    options:\n      - {id: y, label: Y, effect: {setVariable: \
         {chosen: 1}}}\n  - id: each\n    kind: loop\n    loopType: forEach\n    variable: item\n    over: items\n    steps:\n      \
         - {id: use, kind: technique, technique: user}\n  - id: with\n    kind: technique\n    technique: maker\n    actions: [{action: set, target: noted}]\n",
        "steps: [{id: use, kind: technique, technique: user}]\n",
        &[],
        &[MAKER, ("user", "## Inputs\n### chosen\nx\n### item\nx\n### noted\nx\n### made\nx\n")],
    );
    let inside = step(&corpus, "first", "use");
    check_source(&inside, "chosen", "set by checkpoint 'gate' (activity 'first')");
    check_source(&inside, "item", "bound by loop 'each' (activity 'first')");
    check_source(&inside, "noted", "set by step 'with' (activity 'first'), produced later in the workflow");
    let after = step(&corpus, "second", "use");
    check_source(&after, "noted", "set by step 'with' (activity 'first')");
    check_source(&after, "made", "output of step 'with' (activity 'first')");
}

/// Trap T-17: a name that only the step itself produces is produced later.
#[test]
fn trap_02_15_t17_self_producer() {
    let corpus = corpus_of(
        "steps: [{id: s, kind: technique, technique: log}]\n",
        "",
        &[],
        &[("log", "## Inputs\n### log\nx\n## Outputs\n### log\nx\n")],
    );
    let s = step(&corpus, "first", "s");
    check_source(&s, "log", "output of step 's' (activity 'first'), produced later in the workflow");
    assert_eq!(s.warnings, []);
}

/// Trap T-18: a bare string is a literal, or a rename when it names something; never unresolved.
#[test]
fn trap_02_15_t18_bare_string() {
    let steps = "steps:\n  - id: s\n    kind: technique\n    technique: {name: user, inputs: {mode: fast_mode}}\n";
    let user = ("user", "## Inputs\n### mode\nx\n");
    let literal = step(&corpus_of(steps, "", &[], &[user]), "first", "s");
    check_source(&literal, "mode", r#"step-binding literal "fast_mode""#);
    assert_eq!(literal.warnings, []);
    let rename = step(&corpus_of(steps, "", &["fast_mode"], &[user]), "first", "s");
    check_source(&rename, "mode", "step-binding: workflow variable 'fast_mode' (declared)");
}

/// Trap T-19: a template with an unknown token warns, a whole unknown token is unresolved; an inherited input is
/// annotated without a warning.
#[test]
fn trap_02_15_t19_template_warning() {
    let steps = "steps:\n  - id: s\n    kind: technique\n    technique: {name: user, inputs: {a: '{known_var}-{ghost}', b: '{ghost}', c: '{ghost}'}}\n";
    let corpus = corpus_of(
        steps,
        "",
        &["known_var"],
        &[("user", "## Inputs\n### a\nx\n### b\nx\n"), ("TECHNIQUE", "## Inputs\n### c\nx\n")],
    );
    let s = step(&corpus, "first", "s");
    check_source(&s, "a", r#"step-binding template "{known_var}-{ghost}", no producer for '{ghost}'"#);
    check_source(&s, "b", "UNRESOLVED: nothing in the workflow gives 'ghost' a value");
    check_source(&s, "c", "UNRESOLVED: nothing in the workflow gives 'ghost' a value");
    assert_eq!(s.warnings.len(), 2);
}

/// Trap T-20: inherited entries from ordinary scope stay without a source.
#[test]
fn trap_02_15_t20_quiet_inherited_inputs() {
    let corpus = corpus_of(
        "steps:\n  - {id: make, kind: technique, technique: maker}\n  - id: s\n    kind: technique\n    technique: {name: user, inputs: {bound: 1}}\n  - {id: end, kind: technique, technique: closer}\n",
        "",
        &["declared_var"],
        &[
            MAKER,
            ("user", ""),
            ("closer", "## Outputs\n### late\nx\n"),
            (
                "TECHNIQUE",
                "## Inputs\n### made\nx\n### declared_var\nx\n### model_id\nx\n### nowhere\nx\n### bound\nx\n### late\nx\n",
            ),
        ],
    );
    let s = step(&corpus, "first", "s");
    for quiet in ["made", "declared_var", "model_id", "nowhere"] {
        assert_eq!(note(&s, "source", quiet), None, "{quiet}");
    }
    check_source(&s, "bound", "step-binding literal 1");
    check_source(&s, "late", "output of step 'end' (activity 'first'), produced later in the workflow");
    assert_eq!(s.warnings, []);
    let notes = |key: &str| s.value.get(key).map(|block| block["note"].as_str().unwrap().contains("`source`"));
    assert_eq!(notes("inherited_inputs"), Some(true));
}

/// Trap T-21: a remapped output is produced under its new name only.
#[test]
fn trap_02_15_t21_remap_of_an_output() {
    let corpus = corpus_of(
        "steps:\n  - id: make\n    kind: technique\n    technique: {name: maker, outputs: {result: verdict}}\n  - {id: s, kind: technique, technique: user}\n",
        "",
        &[],
        &[MAKER, ("user", "## Inputs\n### result\nx\n### verdict\nx\n")],
    );
    let s = step(&corpus, "first", "s");
    check_source(&s, "verdict", "output of step 'make' (activity 'first'), remapped from output 'result'");
    check_source(&s, "result", "UNRESOLVED: nothing in the workflow gives 'result' a value");
}

/// Trap T-22: the marker counts with text after the word.
#[test]
fn trap_02_15_t22_optional_marker() {
    for yes in
        ["*(optional, default x)* text", "(optional) x", "**(Optional)** x", "_(optional — if y)_", "  *(OPTIONAL)*"]
    {
        assert!(is_optional(yes), "{yes}");
    }
    for no in ["optional", "(optionally) x", "***(optional)*** x", "(optional", "x (optional)", "(opt)", "", "*"] {
        assert!(!is_optional(no), "{no}");
    }
}

#[test]
fn tokens_are_identifiers() {
    assert_eq!(tokens("{a}-{b.c}-{a}-{_d}-{$e}-{f"), ["a", "_d"]);
}
