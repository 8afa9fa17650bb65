use serde_json::{Value, json};

use crate::fixture::{corpus, manifest};

const FRAGMENTS: &str = "fragments:\n  checkpoints:\n    ask:\n      options:\n        - {id: y, label: \"Yes\"}\n      message: \"Sure: really?\"\n      condition: {type: simple, variable: x, operator: exists}\n      defaultOption: y\n    note:\n      message: |\n        First.\n\n        Second.\n      options: [{id: y, label: Y, description: \"two\\nlines\\n\"}]\n";
const HEAD: &str = "id: brew\nversion: 1.0.0\nname: Brew\n";
/// The fragment `ask` as a map in block style, at column 4.
const ASK: &str = "condition:\n      type: simple\n      variable: x\n      operator: exists\n    message: \"Sure: really?\"\n    defaultOption: y\n    options:\n      - id: y\n        label: Yes\n";

/// The body of the activity `brew` with this text.
#[track_caller]
fn body_of(text: &str) -> String {
    let files = [("tea/workflow.yaml", &*manifest("tea", FRAGMENTS)), ("tea/activities/01-brew.yaml", text)];
    let workflow = corpus(&files).workflow("tea").unwrap_or_else(|error| panic!("{error}"));
    assert!(workflow.load_errors.is_empty(), "{:?}", workflow.load_errors);
    workflow.activities[0].body.clone()
}

/// A file of the common head and these lines is served as the head and those lines.
#[track_caller]
fn check(lines: &str, expected: &str) {
    let body = body_of(&format!("{HEAD}{lines}"));
    assert_eq!(body.strip_prefix(HEAD), Some(expected), "{body}");
}

#[test]
fn derived_ids_become_the_first_member() {
    check(
        "steps:\n  - technique: g::op\n    kind: technique\n",
        "steps:\n  - id: op\n    technique: g::op\n    kind: technique\n",
    );
    check(
        "steps:\n  - kind: technique\n    technique: g/op # why\n",
        "steps:\n  - id: op\n    kind: technique\n    technique: g/op # why\n",
    );
    check("steps:\n  - {kind: technique, technique: op}\n", "steps:\n  - {id: op, kind: technique, technique: op}\n");
    check(
        "steps:\n  - # before\n    kind: technique\n    technique:\n      name: g::op\n",
        "steps:\n  - # before\n    id: op\n    kind: technique\n    technique:\n      name: g::op\n",
    );
    check(
        "steps:\n- kind: technique\n  id: ''\n  technique: g::op\n",
        "steps:\n- kind: technique\n  id: op\n  technique: g::op\n",
    );
    check(
        "steps:\n  - technique: g::op\n    id: own\n    kind: technique\n",
        "steps:\n  - technique: g::op\n    id: own\n    kind: technique\n",
    );
    check(
        "steps: [{kind: loop, id: l, loopType: while, steps: [{kind: technique, technique: 'a::b, c'}]}]\n",
        "steps: [{kind: loop, id: l, loopType: while, steps: [{id: \"b, c\", kind: technique, technique: 'a::b, c'}]}]\n",
    );
    check(
        "steps:\n  - kind: technique\n    technique: \"true\"\n",
        "steps:\n  - id: \"true\"\n    kind: technique\n    technique: \"true\"\n",
    );
}

#[test]
fn fragments_take_the_place_of_the_reference() {
    check(
        "steps:\n  - kind: checkpoint\n    id: c\n    ref: ask\n    when: x\n",
        &format!("steps:\n  - kind: checkpoint\n    id: c\n    {ASK}    when: x\n"),
    );
    check(
        "steps:\n  - ref: ask\n    kind: checkpoint\n    id: c\n",
        &format!("steps:\n  - {ASK}    kind: checkpoint\n    id: c\n"),
    );
    check(
        "steps:\n  - kind: checkpoint\n    id: c\n    ref: 'tea::ask'   # asked twice\n",
        &format!("steps:\n  - kind: checkpoint\n    id: c\n    {}", ASK.replacen('\n', "   # asked twice\n", 1)),
    );
    check(
        "steps:\n  - kind: checkpoint\n    id: c\n    ref: note # why\n# end\n",
        "steps:\n  - kind: checkpoint\n    id: c\n    message: | # why\n      First.\n\n      Second.\n    options:\n      - id: y\n        label: Y\n        description: |\n          two\n          lines\n# end\n",
    );
    check(
        "steps: [{kind: checkpoint, id: c, ref: ask, when: x}]\n",
        "steps: [{kind: checkpoint, id: c, condition: {\"type\":\"simple\",\"variable\":\"x\",\"operator\":\"exists\"}, message: \"Sure: really?\", defaultOption: \"y\", options: [{\"id\":\"y\",\"label\":\"Yes\"}], when: x}]\n",
    );
}

#[test]
fn only_the_content_is_served() {
    let plain = format!("{HEAD}# note\ndescription: d\n");
    let check = |text: &str| assert_eq!(body_of(text), plain, "{text:?}");
    check(&plain);
    check(&format!("\u{feff}{plain}"));
    check(&plain.replace('\n', "\r\n"));
    check(&format!("%YAML 1.2\n---\n{plain}...\n"));
    check(&format!("--- \n{plain}\n\n"));
    check(plain.trim_end());
    let commented = format!("# first\n{plain}# last\n");
    assert_eq!(body_of(&commented), commented);
    assert_eq!(body_of(&format!("---   # first\n{plain}# last")), commented);
}

#[test]
fn other_layouts_are_written_anew() {
    let flow = "{id: brew, version: 1.0.0, name: Brew, steps: [{kind: technique, technique: g::op}]}";
    let written =
        "id: brew\nversion: 1.0.0\nname: Brew\nsteps:\n  - id: op\n    kind: technique\n    technique: g::op\n";
    assert_eq!(body_of(flow), written);
    let indented =
        "  id: brew\n  version: 1.0.0\n  name: Brew\n  steps:\n    - kind: technique\n      technique: g::op\n";
    assert_eq!(body_of(indented), written);
    // A block scalar that keeps blank lines cannot end with exactly one newline.
    let kept = body_of(&format!("{HEAD}description: |+\n  a\n\n\n"));
    assert_eq!(
        workflow_yaml::parse(&kept).root.get("description").map(workflow_yaml::Node::to_value),
        Some(json!("a\n\n\n"))
    );
    assert!(kept.ends_with('\n') && kept.starts_with("id: brew\n"));
}

#[test]
fn shared_steps_are_edited_where_they_are_written() {
    let lines = "steps:\n  - &one\n    kind: technique\n    technique: g::op\n  - kind: loop\n    id: l\n    loopType: while\n    steps: [*one]\n";
    let body = body_of(&format!("{HEAD}{lines}"));
    let value = workflow_yaml::parse(&body).root.to_value();
    let step = json!({"id": "op", "kind": "technique", "technique": "g::op"});
    assert_eq!(value["steps"][0], step);
    assert_eq!(value["steps"][1]["steps"], Value::Array(vec![step]));
    assert_eq!(body.matches("id: op").count(), 1, "{body}");
}
