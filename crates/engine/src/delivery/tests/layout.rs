//! What the texts of `get_workflow` and `get_activity` look like.

use serde_json::{Value, json};

use super::{
    answer::{Answer, keys},
    sample::{ROUTE, activity, alpha, files, steps, technique, walk},
    world::{World, corpus},
};
use crate::{delivery::SEPARATOR, ledger::content_hash, state::ContextMode};

#[test]
fn an_activity_is_laid_out_in_order() {
    let rest = "description: Two steps\nsteps:\n  - kind: technique\n    technique: small\n  - kind: action\n    id: mark\n\
        \x20 - kind: checkpoint\n    id: ask\n    message: Go on?\n    defaultOption: y\n    autoAdvanceMs: 5000\n    \
        options:\n      - { id: y, label: Yes }\n      - { id: n, label: No }\n";
    let mut world = alpha(&[("01-first", activity("first", rest))]);
    world.enter("first");
    let answer = world.get_activity(&json!({"agent_id": "w"}));
    assert_eq!(
        keys(&answer.above),
        ["techniques", "rules", "step_techniques", "step_techniques_note", "content_hashes"],
        "{}",
        answer.text
    );
    assert_eq!(
        keys(&answer.below),
        [
            "session_index",
            "artifact_prefix",
            "activity_rules",
            "content_hashes",
            "enforcement_notes",
            "id",
            "version",
            "name",
            "description",
            "steps",
            "artifacts",
            "next",
            "batch"
        ]
    );
    assert_eq!(answer.below["activity_rules"], json!(["work", "be kind"]));
    assert_eq!(keys(&answer.below["enforcement_notes"]), ["actions", "auto_advance"]);
    assert_eq!(answer.below["artifacts"], json!([{"id": "small_result", "name": "small.md"}]));
    assert_eq!(answer.below["next"], "when done, call next_activity {activity_id: \"__terminal__\"}");
    assert!(
        answer.text.contains("\n\nnext: 'when done, call next_activity {activity_id: \"__terminal__\"}'\n\nbatch:\n")
    );
    assert_eq!(answer.below["steps"][0]["id"], "small");
    assert_eq!(
        answer.meta.keys().collect::<Vec<_>>(),
        [
            "session_index",
            "validation",
            "artifact_prefix",
            "artifacts",
            "activity_rules",
            "dispatch",
            "batch",
            "bundled_steps",
            "enforcement_notes"
        ]
    );
    assert_eq!(answer.meta["dispatch"], "fresh");
    assert_eq!(answer.meta["bundled_steps"], json!(["small"]));
    assert_eq!(answer.below["batch"], answer.meta["batch"]);
    let note = answer.above["step_techniques_note"].as_str().unwrap();
    assert!(note.contains("get_technique { step_id }") && note.contains("▶ step"));
    let entry = answer.step("small");
    assert_eq!(entry["marker"], "▼ STEP small · technique small");
    assert_eq!(
        keys(entry),
        [
            "marker",
            "id",
            "version",
            "capability",
            "provenance_note",
            "inputs",
            "inherited_inputs",
            "protocol",
            "outputs",
            "inherited_outputs",
            "rules",
            "content_hashes",
            "content_hash"
        ]
    );
    assert_eq!(keys(&entry["inherited_inputs"]), ["note", "items", "content_hash"]);
}

#[test]
fn what_an_activity_does_not_have_is_left_out() {
    let mut world = walk();
    world.enter("first");
    let answer = world.get_activity(&json!({}));
    assert_eq!(answer.below["next"], Value::Null);
    assert_eq!(answer.below["enforcement_notes"], Value::Null);
    assert!(!answer.meta.contains_key("enforcement_notes") && !answer.text.contains("bundle_mode"));
    world.enter("third");
    assert!(world.get_activity(&json!({})).text.contains("\nnext: "));
}

#[test]
fn hashes_name_what_they_stand_beside() {
    let mut world = walk();
    world.enter("first");
    let answer = world.get_activity(&json!({}));
    let without = |value: &Value| {
        let mut value = value.clone();
        for name in ["marker", "content_hash", "content_hashes"] {
            value.as_object_mut().unwrap().shift_remove(name);
        }
        value
    };
    let hash = |value: &Value| Value::from(content_hash(&workflow_yaml::to_string(value)));
    let shared = &answer.above["techniques"]["shared"];
    assert_eq!(shared["content_hash"], hash(&without(shared)));
    let rules = answer.above["rules"].as_array().unwrap();
    assert_eq!(rules.iter().map(|rule| &rule[0]).collect::<Vec<_>>(), ["shared::shared-rule", "alpha::be-brief"]);
    let hashes = json!({"rules": hash(&rules.clone().into()), "rules/shared": hash(&json!([rules[0]]))});
    assert_eq!(answer.above["content_hashes"], hashes, "a marker for one short rule would be longer than the rule");
    assert_eq!(answer.below["content_hashes"], json!({"activity_rules": hash(&answer.below["activity_rules"])}));
    let entry = answer.step("a");
    let inherited = &entry["inherited_inputs"];
    assert_eq!(inherited["content_hash"], hash(&json!({"inherited_inputs": without(inherited)})));
    assert_eq!(entry["content_hashes"], json!({"rules": hash(&json!({"rules": entry["rules"]}))}));
    let mut whole = without(entry);
    for name in ["inherited_inputs", "inherited_outputs"] {
        whole[name] = without(&whole[name]);
    }
    assert_eq!(entry["content_hash"], hash(&whole));
}

#[test]
fn trap_02_15_t28_an_activity_is_found_by_its_id() {
    let mut world = alpha(&[("03-foo", activity("bar", &(steps(&[("a", "small")]) + ROUTE)))]);
    world.enter("bar");
    let answer = world.get_activity(&json!({}));
    assert_eq!((&answer.below["id"], &answer.meta["artifact_prefix"]), (&json!("bar"), &json!("03")));
}

#[test]
fn trap_02_15_t29_three_newlines_stand_in_front_of_the_dashes() {
    let mut world = walk();
    let workflow = world.answer("get_workflow", &json!({})).text;
    world.enter("first");
    for text in [workflow, world.get_activity(&json!({})).text] {
        let (above, below) = text.split_once(SEPARATOR).unwrap();
        assert!(above.ends_with('\n') && !above.ends_with("\n\n") && !below.starts_with('\n'));
        assert!(text.contains("\n\n\n---\n\n"));
    }
}

#[test]
fn a_workflow_is_its_bundle_and_its_summary() {
    let mut world = walk();
    let answer = Answer::of(world.answer("get_workflow", &json!({})));
    assert_eq!(keys(&answer.above), ["techniques", "rules", "content_hashes"]);
    assert_eq!(answer.above["techniques"]["plan"]["content_hash"], Value::Null);
    assert_eq!(
        keys(&answer.below),
        [
            "id",
            "version",
            "title",
            "description",
            "rules",
            "variables",
            "initialActivity",
            "activities",
            "session_index",
            "planning_folder_path"
        ]
    );
    assert_eq!(answer.below["rules"], json!(["orchestrate", "be kind"]));
    assert_eq!(
        answer.below["activities"][0],
        json!({"id": "first", "name": "first", "required": true, "artifactPrefix": "01"})
    );
    assert_eq!(answer.below["variables"][0]["required"], false);
    let again = Answer::of(world.answer("get_workflow", &json!({})));
    assert_eq!(again.above, answer.above, "a fresh session is sent everything");
    world.session_mut().context_mode = Some(ContextMode::Persistent);
    let held = Answer::of(world.answer("get_workflow", &json!({})));
    assert_eq!(keys(&held.above), ["delivery", "content_hash", "note"]);
    assert_eq!(held.above["content_hash"], answer.above["content_hashes"]["workflow_bundle"]);
    assert_eq!(held.below, answer.below);
    let history = &world.session().history;
    assert!(history.iter().all(|event| !event.kind().contains("fetched")), "no event");
}

#[test]
fn a_workflow_without_techniques_is_served() {
    let files = [
        ("bare/workflow.yaml", "id: bare\nversion: 1.0.0\ntitle: Bare\n"),
        ("bare/activities/01-only.yaml", "id: only\nversion: 1.0.0\nname: Only\nsteps: []\n"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let mut world = World::new(&corpus(&files), "bare");
    let answer = world.answer("get_workflow", &json!({}));
    assert!(answer.text.starts_with("{}\n\n\n---\n\n"), "{}", answer.text);
    assert_eq!(
        Answer::of(answer).below["activities"],
        json!([{"id": "only", "name": "Only", "required": true, "artifactPrefix": "01"}])
    );
}

#[test]
fn a_body_that_would_break_the_whole_is_written_anew() {
    for text in [
        "{ id: first, version: 1.0.0, name: First, steps: [] }\n",
        "  id: first\n  version: 1.0.0\n  name: First\n  steps: []\n",
        "# note\nid: first\nversion: 1.0.0\nname: First\nsteps: []\n",
    ] {
        let mut world = alpha(&[("01-first", text.to_owned())]);
        world.enter("first");
        let answer = world.get_activity(&json!({}));
        assert_eq!((&answer.below["id"], &answer.below["name"]), (&json!("first"), &json!("First")), "{text}");
        assert_eq!(answer.below["batch"], answer.meta["batch"]);
    }
}

#[test]
fn a_rule_inside_a_protocol_does_not_part_the_text() {
    let ruled = technique("ruled", 40).replace("\n\n## Rules", "\n\n---\n\nBehind the line.\n\n## Rules");
    let list = steps(&[("a", "ruled")]) + ROUTE;
    let mut files = files(&[("01-first", activity("first", &list))]);
    files.push(("alpha/techniques/ruled.md".to_owned(), ruled));
    let mut world = World::new(&corpus(&files), "alpha");
    world.enter("first");
    let answer = world.get_activity(&json!({}));
    assert_eq!(answer.below["id"], "first");
    assert!(answer.step("a").to_string().contains("---\\n\\nBehind the line."), "{}", answer.text);
}
