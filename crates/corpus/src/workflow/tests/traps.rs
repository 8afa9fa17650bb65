//! The traps of spec 01 §14 that concern loading.

use serde_json::{Value, json};

use super::{brew, check_activity, found, refused, show, tea};
use crate::fixture::{activity, corpus, manifest};
use crate::{StepKind, WorkflowError};

#[test]
fn trap_01_14_07_a_boolean_gate_excludes_the_activity() {
    let workflow = brew("steps:\n  - {kind: action, id: a, when: true}\n");
    assert_eq!(found(&workflow), ["activity.schema 5:33 steps.0.when"]);
    assert!(workflow.activity("brew").is_none());
}

#[test]
fn trap_01_14_08_yes_is_a_string_and_true_is_redundant_on_a_step() {
    check_activity("required: yes\n", &["activity.schema 4:11 required"]);
    check_activity("required: true\n", &[]);
    check_activity("steps:\n  - {kind: action, id: a, required: true}\n", &["activity.schema 5:37 steps.0.required"]);
    let workflow = brew("steps:\n  - {kind: action, id: a, required: false}\n");
    assert!(!workflow.activity("brew").expect("it loads").steps[0].required);
    let help = brew("required: yes\n").diagnostics[0].help.clone();
    assert_eq!(help.as_deref(), Some("in YAML 1.2 only true and false are booleans"));
}

#[test]
fn trap_01_14_09_a_number_is_no_version() {
    let files = [("tea/workflow.yaml", "id: tea\nversion: 1.0\ntitle: Tea\n")];
    let Err(WorkflowError::Invalid { issues, .. }) = corpus(&files).workflow("tea") else { panic!("it is refused") };
    assert_eq!(issues.iter().map(show).collect::<Vec<_>>(), ["manifest.schema 2:10 version"]);
    assert_eq!(tea(&[("tea/workflow.yaml", &manifest("tea", ""))]).version, "1.0.0");
}

#[test]
fn trap_01_14_10_duplicate_keys_kill_the_file_and_merge_keys_are_plain() {
    let workflow = brew("description: a\ndescription: b\n");
    assert_eq!(workflow.load_errors[0].code, "activity.parse");
    let workflow = brew("outcome: &list [a]\n<<: {description: b}\n");
    assert_eq!(found(&workflow), ["activity.schema 5:1 <<"]);
}

#[test]
fn trap_01_14_11_the_order_of_numbers_is_textual() {
    let workflow = tea(&[
        ("tea/workflow.yaml", &manifest("tea", "")),
        ("tea/activities/9-a.yaml", &activity("a", "")),
        ("tea/activities/10-b.yaml", &activity("b", "")),
        ("tea/activities/02-c.yaml", &activity("c", "")),
        ("tea/activities/2-d.yaml", &activity("d", "")),
    ]);
    let ids: Vec<&str> = workflow.activities.iter().map(|activity| activity.id.as_str()).collect();
    assert_eq!(ids, ["c", "b", "d", "a"]);
}

#[test]
fn trap_01_14_12_the_directory_names_the_workflow() {
    let corpus = corpus(&[("tea/workflow.yaml", &manifest("coffee", ""))]);
    assert_eq!(corpus.list().workflows[0].id, "tea");
    let workflow = corpus.workflow("tea").expect("it loads");
    assert_eq!((workflow.id(), workflow.declared_id.as_str()), ("tea", "coffee"));
    assert_eq!(found(&workflow), ["manifest.id-mismatch 1:5 id"]);
    assert!(corpus.workflow("coffee").is_err());
}

#[test]
fn trap_01_14_22_step_ids_are_unique_per_scope() {
    let lines = "steps:\n  - {kind: action, id: record}\n  - kind: loop\n    id: each\n    loopType: forEach\n    when: x\n    steps:\n      - {kind: action, id: record}\n      - {kind: technique, technique: g::record}\n";
    let workflow = brew(lines);
    assert_eq!(found(&workflow), ["step.duplicate-id 12:38 steps.1.steps.1.id"]);
    assert!(workflow.diagnostics[0].message.contains("the loop `each`"), "{}", workflow.diagnostics[0].message);
    let workflow = brew(&lines.replace("      - {kind: technique, technique: g::record}\n", ""));
    let activity = workflow.activity("brew").expect("it loads");
    let flat = activity.flat_steps();
    let shown: Vec<_> =
        flat.iter().map(|flat| (flat.qualified_id.as_str(), flat.top_level, flat.gated, flat.parent)).collect();
    assert_eq!(shown, [("record", true, false, None), ("each", true, true, None), ("record~2", false, true, Some(1))]);
    assert!(activity.find_step("record").expect("the first").top_level);
    assert!(activity.find_step("record~1").expect("the first").top_level);
    assert!(!activity.find_step("record~2").expect("the second").top_level);
    assert!(activity.find_step("record~3").is_none());
}

#[test]
fn trap_01_14_23_templated_checkpoints_match_by_base() {
    let gate =
        |id: &str| format!("  - {{kind: checkpoint, id: \"{id}\", message: m, options: [{{id: a, label: A}}]}}\n");
    let workflow = brew(&format!("steps:\n{}{}{}", gate("gate#{round}"), gate("plain"), gate("gate#7")));
    let activity = workflow.activity("brew").expect("it loads");
    let matched = |yielded: &str| activity.checkpoint(yielded).map(|(step, _)| step.id.clone());
    assert_eq!(matched("gate#3").as_deref(), Some("gate#{round}"));
    assert_eq!(matched("gate#7").as_deref(), Some("gate#7"));
    assert_eq!(matched("gate").as_deref(), Some("gate#{round}"));
    assert_eq!(matched("plain#x").as_deref(), Some("plain"));
    assert_eq!(matched("pla"), None);
}

#[test]
fn trap_01_14_24_ref_is_an_ordinary_input_name() {
    let workflow =
        brew("steps:\n  - kind: technique\n    technique:\n      name: g::op\n      inputs:\n        ref: main\n");
    assert_eq!(found(&workflow), Vec::<String>::new());
    let activity = workflow.activity("brew").expect("it loads");
    let StepKind::Technique { binding, .. } = &activity.steps[0].kind else { panic!("a technique step") };
    assert_eq!(binding.inputs.get("ref"), Some(&json!("main")));
    assert!(activity.body.contains("        ref: main\n"), "{}", activity.body);
}

#[test]
fn trap_01_14_30_presence_of_a_default_decides() {
    let lines =
        "variables:\n  - {name: with_null, type: string, defaultValue: }\n  - {name: without_any, type: string}\n";
    let workflow = tea(&[("tea/workflow.yaml", &manifest("tea", lines))]);
    assert_eq!(workflow.variable("with_null").expect("declared").default, Some(Value::Null));
    assert_eq!(workflow.variable("without_any").expect("declared").default, None);
    let bag = serde_json::Map::from_iter([("with_null".to_owned(), Value::Null)]);
    let holds = |operator: &str, value: Option<Value>| {
        let (variable, operator) = ("with_null".to_owned(), operator.to_owned());
        crate::Condition::Simple { variable, operator, value }.holds(&bag)
    };
    assert!(!holds("exists", None) && holds("==", Some(Value::Null)));
}

#[test]
fn trap_01_14_31_a_listed_local_activity_is_loaded_once() {
    let workflow = tea(&[
        ("tea/workflow.yaml", &manifest("tea", "activities: [01-brew.yaml, tea/01-brew.yaml]\n")),
        ("tea/activities/01-brew.yaml", &activity("brew", "")),
    ]);
    assert_eq!(workflow.activities.len(), 1);
    assert_eq!(found(&workflow), Vec::<String>::new());
}

#[test]
fn trap_01_14_32_an_empty_list_of_activities_needs_files() {
    assert_eq!(refused("activities: []\n"), ["manifest.schema 4:13 activities"]);
    assert!(tea(&[("tea/workflow.yaml", &manifest("tea", ""))]).activities.is_empty());
    let filled = tea(&[
        ("tea/workflow.yaml", &manifest("tea", "activities: []\n")),
        ("tea/activities/01-brew.yaml", &activity("brew", "")),
    ]);
    assert_eq!(filled.activities.len(), 1);
}

#[test]
fn trap_01_14_33_option_ids_and_labels_are_strings() {
    let step =
        |id: &str| format!("steps:\n  - {{kind: checkpoint, id: c, message: m, options: [{{id: {id}, label: L}}]}}\n");
    check_activity(&step("yes"), &[]);
    check_activity(&step("1"), &["activity.schema 5:58 steps.0.options.0.id"]);
    check_activity(&step("true"), &["activity.schema 5:58 steps.0.options.0.id"]);
}

#[test]
fn trap_01_14_34_slash_references_derive_the_last_segment() {
    let workflow =
        brew("steps:\n  - {kind: technique, technique: prism/x/y}\n  - {kind: technique, technique: g/op}\n");
    let ids: Vec<&str> = workflow.activities[0].steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["y", "op"]);
}

#[test]
fn trap_01_14_36_a_dropped_key_is_still_delivered() {
    let lines = "decisions:\n  - id: d\n    name: D\n    branches:\n      - {id: a, label: A, when: x > 1}\n      - {id: b, label: B}\n";
    let workflow = brew(lines);
    assert_eq!(found(&workflow), ["workflow.unknown-key 8:27 decisions.0.branches.0.when"]);
    let activity = workflow.activity("brew").expect("it loads");
    assert!(activity.decisions[0].branches[0].condition.is_none());
    assert!(activity.body.contains("when: x > 1"));
}

#[test]
fn trap_01_14_37_one_index_by_the_own_id() {
    let workflow = tea(&[
        ("tea/workflow.yaml", &manifest("tea", "")),
        ("tea/activities/03-mismatch.yaml", &activity("real", "")),
        ("tea/activities/04-bad.yaml", "id: other\n"),
    ]);
    assert!(workflow.activity("real").is_some_and(|activity| activity.body.starts_with("id: real\n")));
    assert!(workflow.activity("mismatch").is_none());
    assert_eq!(found(&workflow)[0], "activity.id-mismatch 1:5 id");
    assert_eq!(workflow.load_errors[0].activity_id, "bad");
}
