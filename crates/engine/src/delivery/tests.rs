//! Deliveries end to end, through the tools: layout, markers, bundling, accounting.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{
    SEPARATOR, chars,
    world::{World, corpus},
};
use crate::{Refusal, Rendered, Settings, ledger::content_hash, state::ContextMode};

const ROOT: &str = "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nContract of alpha.\n\n## Inputs\n\n\
    ### project\n\nWhich project it is about.\n\n## Outputs\n\n### journal\n\nWhat happened.\n\n## Rules\n\n\
    ### be-brief\n\nWrite short sentences.\n";

/// A technique of alpha with an input, an output and a protocol of about `size` characters.
fn technique(name: &str, size: usize) -> String {
    format!(
        "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nDoes {name}.\n\n## Inputs\n\n### main_subject\n\nWhat \
         {name} is about.\n\n## Outputs\n\n### {name}_result\n\nWhat came out.\n\n#### artifact\n\n`{name}.md`\n\n\
         ## Protocol\n\n- {}\n\n## Rules\n\n### {name}-rule\n\nKeep to {name}.\n",
        "word ".repeat(size / 5).trim()
    )
}

fn activity(id: &str, rest: &str) -> String {
    format!("id: {id}\nversion: 1.0.0\nname: {id}\n{rest}")
}

fn steps(list: &[(&str, &str)]) -> String {
    let steps: String = list
        .iter()
        .map(|(id, technique)| format!("  - kind: technique\n    id: {id}\n    technique: {technique}\n"))
        .collect();
    format!("steps:\n{steps}")
}

const MANIFEST: &str = "id: alpha\nversion: 1.0.0\ntitle: Alpha\ndescription: For tests\ninitialActivity: first\n\
    rules:\n  workflow: [orchestrate]\n  activity: [work]\n  universal: [be kind]\n\
    techniques:\n  workflow: [plan]\n  activity: [shared]\n\
    variables:\n  - { name: main_subject, type: string, description: What it is about, defaultValue: tea }\n";

/// Alpha with these activities (file stem and text) and a few techniques and resources.
fn files(activities: &[(&str, String)]) -> Vec<(String, String)> {
    let mut files = vec![
        ("alpha/workflow.yaml".to_owned(), MANIFEST.to_owned()),
        ("alpha/techniques/TECHNIQUE.md".to_owned(), ROOT.to_owned()),
        (
            "alpha/resources/guide.md".to_owned(),
            "---\nname: guide\nversion: 2.1.0\n---\n\n# Guide\n\nRead it.\n\n## Part\n\nOf it.\n".to_owned(),
        ),
        ("alpha/resources/notes.md".to_owned(), "---\nname: notes\n---\n\n# Notes\n\n😀 ▼\n".to_owned()),
    ];
    for (name, size) in [("plan", 40), ("shared", 60), ("small", 100), ("other", 120), ("large", 5000)] {
        files.push((format!("alpha/techniques/{name}.md"), technique(name, size)));
    }
    for (stem, text) in activities {
        files.push((format!("alpha/activities/{stem}.yaml"), text.clone()));
    }
    files
}

fn alpha(activities: &[(&str, String)]) -> World {
    World::new(&corpus(&files(activities)), "alpha")
}

const ROUTE: &str = "transitions:\n  - to: second\n    isDefault: true\n";

/// Two activities with a route, one without.
pub(super) fn walk() -> World {
    alpha(&[
        ("01-first", activity("first", &(steps(&[("a", "small"), ("b", "other")]) + ROUTE))),
        ("02-second", activity("second", &(steps(&[("c", "small"), ("d", "large")]) + ROUTE))),
        ("03-third", activity("third", &steps(&[("e", "other")]))),
        ("04-fourth", activity("fourth", &(steps(&[("f", "small")]) + ROUTE))),
    ])
}

impl World {
    fn get_activity(&mut self, more: &Value) -> Answer {
        let mut args = json!({"context_tokens": 200_000});
        args.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        Answer::of(self.answer("get_activity", &args))
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        let events = self.session().history.iter().filter(|event| event.kind() == kind);
        events.map(|event| Value::Object(event.0.clone())).collect()
    }
}

/// A text answer taken apart.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) meta: Map<String, Value>,
    pub(super) above: Value,
    pub(super) below: Value,
}

impl Answer {
    pub(super) fn of(rendered: Rendered) -> Self {
        let meta = rendered.meta.unwrap_or_default();
        let text = rendered.text;
        let (above, below) = match text.split_once(SEPARATOR) {
            Some((above, below)) => (above.to_owned(), below.to_owned()),
            None => (String::new(), text.clone()),
        };
        let below = below.split("\nvalidation:\n").next().unwrap_or_default().to_owned();
        Self { above: parsed(&above), below: parsed(&below), text, meta }
    }

    pub(super) fn steps(&self) -> Vec<&str> {
        self.above["step_techniques"].as_object().into_iter().flatten().map(|(id, _)| id.as_str()).collect()
    }

    pub(super) fn step(&self, id: &str) -> &Value {
        &self.above["step_techniques"][id]
    }

    fn warnings(&self) -> Vec<&str> {
        self.meta["validation"]["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// A text that is one YAML document without a problem.
pub(super) fn parsed(text: &str) -> Value {
    let document = workflow_yaml::parse(text);
    assert!(!document.has_errors(), "{:?} in\n{text}", document.problems);
    document.root.to_value()
}

/// The text without the blocks that count in no size.
pub(super) fn counted(text: &str) -> u64 {
    let mut end = text.len();
    for block in ["\nvalidation:\n", "\nbatch:\n"] {
        end = text[..end].rfind(block).unwrap_or(end);
    }
    chars(&text[..end])
}

pub(super) fn is_marker(value: &Value) -> bool {
    value["delivery"] == "unchanged"
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

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
    assert_eq!(answer.above["content_hashes"], json!({"rules": hash(&answer.above["rules"])}));
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
fn reference_delivery_replaces_what_the_scope_holds() {
    let mut world = walk();
    world.enter("first");
    let full = world.get_activity(&json!({"agent_id": "w"}));
    let again = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
    assert_eq!(keys(&again.above)[..2], ["bundle_mode", "bundle_note"]);
    assert!(again.above["bundle_note"].as_str().unwrap().contains("bundle: full"));
    assert!(is_marker(&again.above["techniques"]["shared"]) && is_marker(&again.above["rules"]));
    assert!(is_marker(&again.below["activity_rules"]));
    assert_eq!(again.above["rules"]["content_hash"], full.above["content_hashes"]["rules"]);
    assert_eq!(keys(again.step("a")), ["marker", "delivery", "content_hash"]);
    assert_eq!(again.step("a")["content_hash"], full.step("a")["content_hash"]);
    assert_eq!(again.meta["activity_rules"], json!(["work", "be kind"]), "_meta keeps the list");
    assert_eq!(again.meta["dispatch"], "resume");
    assert_eq!(again.below["id"], "first", "the body is never replaced");
    let forced = world.get_activity(&json!({"agent_id": "w", "bundle": "full"}));
    assert_eq!(forced.above, full.above);
}

#[test]
fn shared_blocks_of_a_new_technique_collapse_within_a_response_too() {
    let mut world = walk();
    world.enter("first");
    let answer = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
    assert!(!is_marker(&answer.step("a")["inherited_inputs"]));
    let block = &answer.step("b")["inherited_inputs"];
    assert!(is_marker(block));
    assert_eq!(block["content_hash"], answer.step("a")["inherited_inputs"]["content_hash"]);
    assert!(!is_marker(&answer.step("b")["rules"]), "the rules of the two differ");
}

#[test]
fn trap_02_15_t12_both_copies_of_one_technique_stay_known() {
    let binding = |id: &str, value: &str| {
        format!(
            "  - kind: technique\n    id: {id}\n    technique:\n      name: small\n      inputs: {{ main_subject: {value} }}\n"
        )
    };
    let list = format!("steps:\n{}{}{ROUTE}", binding("a", "\"one thing\""), binding("b", "\"another thing\""));
    let mut world = alpha(&[("01-first", activity("first", &list))]);
    world.enter("first");
    let full = world.get_activity(&json!({"agent_id": "w"}));
    assert_ne!(full.step("a")["content_hash"], full.step("b")["content_hash"]);
    for _ in 0..2 {
        let again = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
        for id in ["a", "b"] {
            assert!(is_marker(again.step(id)), "{id}");
            assert_eq!(again.step(id)["content_hash"], full.step(id)["content_hash"]);
        }
    }
}

#[test]
fn trap_02_15_t13_a_stop_is_a_stop_although_a_marker_is_free() {
    let list = steps(&[("a", "small"), ("b", "large"), ("c", "other")]);
    let mut world = alpha(&[("01-first", activity("first", &(list + ROUTE)))]);
    *world.settings() = Settings { bundle_headroom_fraction: 1.0, chars_per_token: 1.0, ..Settings::default() };
    world.enter("first");
    world.answer("get_technique", &json!({"step_id": "c", "agent_id": "w"}));
    let held = world.get_activity(&json!({"agent_id": "w", "bundle": "reference", "context_tokens": 100_000}));
    assert!(is_marker(held.step("c")), "held, when nothing stops in front of it");
    world.enter("first");
    world.answer("get_technique", &json!({"step_id": "c", "agent_id": "v"}));
    let stopped = world.get_activity(&json!({"agent_id": "v", "bundle": "reference", "context_tokens": 3000}));
    assert_eq!(stopped.steps(), ["a"]);
    assert_eq!(stopped.meta["bundled_steps"], json!(["a"]));
}

#[test]
fn trap_02_15_t14_the_cap_skips_and_the_budget_stops() {
    let list = steps(&[("a", "small"), ("b", "large"), ("c", "other")]) + ROUTE;
    let capped = format!("bundleTechniques: {{ maxChars: 3000 }}\n{list}");
    let none = format!("bundleTechniques: {{ maxChars: 0 }}\n{list}");
    let mut world = alpha(&[
        ("01-capped", activity("capped", &capped)),
        ("02-plain", activity("plain", &list)),
        ("03-none", activity("none", &none)),
    ]);
    *world.settings() = Settings { bundle_headroom_fraction: 1.0, chars_per_token: 1.0, ..Settings::default() };
    world.enter("capped");
    assert_eq!(world.get_activity(&json!({"context_tokens": 100_000})).steps(), ["a", "c"]);
    world.enter("plain");
    assert_eq!(world.get_activity(&json!({"context_tokens": 3000})).steps(), ["a"]);
    assert_eq!(world.get_activity(&json!({"context_tokens": 100_000})).steps(), ["a", "b", "c"]);
    world.enter("none");
    let none = world.get_activity(&json!({}));
    assert_eq!(none.above["step_techniques"], Value::Null);
    assert!(!none.meta.contains_key("bundled_steps"));
}

#[test]
fn trap_02_15_t15_a_gate_on_a_loop_keeps_its_body_lazy() {
    let looped = |id: &str, gate: &str, step: &str| {
        format!(
            "  - kind: loop\n    id: {id}\n    loopType: forEach\n    variable: item\n    over: items\n{gate}    steps:\n      \
             - kind: technique\n        id: {step}\n        technique: small\n"
        )
    };
    let gated = "  - kind: technique\n    id: own-gate\n    when: main_subject\n    technique: other\n";
    let list = format!(
        "steps:\n{}{}{gated}{ROUTE}",
        looped("maybe", "    when: main_subject\n", "inside-gated"),
        looped("each", "", "inside-open")
    );
    let mut world = alpha(&[("01-first", activity("first", &list))]);
    world.enter("first");
    assert_eq!(world.get_activity(&json!({})).steps(), ["inside-open"]);
}

#[test]
fn trap_02_15_t16_equal_step_ids_are_told_apart() {
    let list = format!(
        "{}  - kind: loop\n    id: each\n    loopType: forEach\n    variable: item\n    over: items\n    steps:\n      \
         - kind: technique\n        id: record\n        technique: other\n{ROUTE}",
        steps(&[("record", "small")])
    );
    let mut world = alpha(&[("01-first", activity("first", &list))]);
    world.enter("first");
    let answer = world.get_activity(&json!({"agent_id": "w"}));
    assert_eq!(answer.steps(), ["record", "record~2"]);
    assert_eq!(answer.meta["bundled_steps"], json!(["record", "record~2"]));
    assert_eq!(answer.step("record")["marker"], "▼ STEP record · technique small");
    assert_eq!(answer.step("record~2")["marker"], "▼ STEP record~2 · technique other");
    let bundled = world.events("technique_bundled");
    assert_eq!([&bundled[0]["data"]["stepId"], &bundled[1]["data"]["stepId"]], ["record", "record~2"]);
    for (asked, technique, step) in
        [("record", "small", "record"), ("record~1", "small", "record"), ("record~2", "other", "record~2")]
    {
        let fetched = world.answer("get_technique", &json!({"step_id": asked, "agent_id": "w"}));
        assert!(fetched.text.contains(&format!("\ntechnique_id: {technique}\n")), "{asked}: {}", fetched.text);
        assert_eq!(world.events("technique_fetched").last().unwrap()["data"]["stepId"], step);
    }
    assert_eq!(world.events("step_started").len(), 2, "once per activity, step and agent");
}

#[test]
fn trap_02_15_t23_a_scope_is_not_the_session() {
    let mut world = walk();
    world.enter("first");
    world.get_activity(&json!({"agent_id": "one"}));
    let other = world.get_activity(&json!({"agent_id": "two", "bundle": "reference"}));
    assert!(!other.above.to_string().contains("\"shared\":{\"delivery\""));
    assert!(!is_marker(&other.above["rules"]) && !is_marker(other.step("a")));
    for (activity, tokens) in [("first", 1), ("second", 1), ("third", 1), ("fourth", 1)] {
        world.enter(activity);
        let own = world.get_activity(&json!({"context_tokens": tokens}));
        assert_eq!(own.meta["batch"]["may_continue"], true, "the session's agent is unbounded");
    }
}

#[test]
fn trap_02_15_t25_what_is_held_is_served_after_the_bound() {
    let mut world = walk();
    for activity in ["first", "second", "third"] {
        world.enter(activity);
        let answer = world.get_activity(&json!({"agent_id": "w"}));
        assert_eq!(answer.meta["batch"]["may_continue"], activity != "third");
    }
    world.enter("second");
    assert_eq!(world.get_activity(&json!({"agent_id": "w"})).below["id"], "second");
    world.enter("fourth");
    let seq = world.session().seq;
    let refused = world.get_activity(&json!({"agent_id": "w"}));
    assert!(refused.text.starts_with("status: refused\ncode: BATCH_FULL\nlimit: activity_cap\n"));
    assert_eq!(
        keys(&refused.below),
        [
            "status",
            "code",
            "limit",
            "session_index",
            "activity",
            "agent_id",
            "activities",
            "max_activities",
            "delivered_chars",
            "budget_chars",
            "message"
        ]
    );
    assert_eq!(keys(&refused.meta["refusal"]), keys(&refused.below)[1..10]);
    assert_eq!(refused.meta["batch"]["may_continue"], false);
    assert_eq!(refused.below["activities"], 3);
    assert!(refused.below["message"].as_str().unwrap().contains("new agent_id"));
    assert_eq!(world.session().seq, seq + 1);
    world.get_activity(&json!({"agent_id": "w"}));
    assert_eq!(world.session().seq, seq + 1, "a repeated refusal changes nothing");
    assert_eq!(world.events("batch_refused").len(), 1);
    assert_eq!(
        keys(&world.events("batch_refused")[0]["data"]),
        ["agentId", "limit", "activities", "chars", "maxActivities", "budgetChars"]
    );
    world.settings().batch_max_activities = 100.0;
    let other = world.get_activity(&json!({"agent_id": "w", "context_tokens": 10}));
    assert_eq!(other.below["limit"], "delivery_budget");
    assert_eq!(world.events("batch_refused").len(), 2);
    assert_eq!(world.get_activity(&json!({"agent_id": "fresh"})).below["id"], "fourth");
}

#[test]
fn trap_02_15_t26_a_first_arrival_by_technique_announces_a_scope() {
    let mut world = walk();
    world.enter("first");
    world.answer("get_technique", &json!({"step_id": "a", "agent_id": "w"}));
    let arrived = world.events("activity_dispatched");
    assert_eq!(arrived[0]["data"], json!({"agentId": "w", "dispatch": "fresh"}));
    world.settings().batch_headroom_fraction = 0.0;
    let first = world.get_activity(&json!({"agent_id": "w"}));
    assert_eq!((&first.meta["dispatch"], &first.meta["batch"]["activities"]), (&json!("resume"), &json!(1)));
    assert!(world.events("activity_redelivered").is_empty());
    let other = world.get_activity(&json!({"agent_id": "v"}));
    assert_eq!(other.meta["dispatch"], "fresh");
    let redelivered = world.events("activity_redelivered");
    assert_eq!(keys(&redelivered[0]["data"]), ["agentId", "priorAgentId", "chars"]);
    assert_eq!(redelivered[0]["data"]["priorAgentId"], "w");
}

#[test]
fn an_announcement_is_no_prior_delivery() {
    let mut world = walk();
    world.enter("first");
    world.answer("get_resource", &json!({"resource_id": "guide", "agent_id": "orchestrator"}));
    world.get_activity(&json!({"agent_id": "w"}));
    assert!(world.events("activity_redelivered").is_empty(), "Q-12: only sized events count");
}

#[test]
fn trap_02_15_t27_the_sentinel_is_no_batch() {
    let mut world = walk();
    world.enter("first");
    world.get_activity(&json!({"agent_id": "w"}));
    let boundary = json!({"activity_id": "second", "agent_id": "w", "context_tokens": 200_000});
    let moved = world.answer("next_activity", &boundary).meta.unwrap();
    assert_eq!((&moved["batch"]["activities"], &moved["batch"]["may_continue"]), (&json!(1), &json!(true)));
    let end = json!({"activity_id": "__terminal__", "agent_id": "w", "context_tokens": 200_000});
    let ended = world.answer("next_activity", &end);
    assert!(!ended.meta.unwrap().contains_key("batch") && !ended.text.contains("\"batch\""));
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
fn trap_02_15_t30_the_session_index_is_part_of_a_resource_hash() {
    let hashes: Vec<HashMap<String, String>> = ["ABCDE2", "ABCDE3"]
        .into_iter()
        .map(|index| {
            let mut world = walk();
            world.session_mut().session_index = index.to_owned();
            for id in ["guide", "guide#part"] {
                world.answer("get_resource", &json!({"resource_id": id}));
            }
            let agent = world.session().agent_id.clone();
            world.session().delivered_content[&agent].clone().into_iter().collect()
        })
        .collect();
    for key in ["resource:guide", "resource:guide#part"] {
        assert_ne!(hashes[0][key], hashes[1][key]);
    }
    assert_ne!(hashes[0]["resource:guide"], hashes[0]["resource:guide#part"]);
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
fn a_technique_is_answered_in_full_or_by_its_hash() {
    let mut world = walk();
    world.enter("first");
    let full = world.answer("get_technique", &json!({"step_id": "a"}));
    assert!(full.text.starts_with("session_index: "));
    let (header, body) = full.text.split_once("\n\n").unwrap();
    assert!(header.ends_with("\ntechnique_id: small"));
    let body = parsed(body);
    assert_eq!(keys(&body).last(), Some(&"content_hash"));
    assert_eq!(world.session().current_technique, "small");
    assert_eq!(
        keys(&world.events("technique_fetched")[0]["data"]),
        ["techniqueId", "stepId", "agentId", "chars", "delivery"]
    );
    assert_eq!(world.events("step_started")[0]["data"], json!({"stepId": "a", "agentId": world.session().agent_id}));
    let again = world.answer("get_technique", &json!({"step_id": "a"}));
    assert_eq!(again.text, full.text, "a fresh session is sent everything");
    let stub = world.answer("get_technique", &json!({"step_id": "a", "bundle": "reference"}));
    let (header, marker) = stub.text.split_once("\n\n").unwrap();
    assert!(!header.contains("technique_id"));
    assert_eq!(keys(&parsed(marker)), ["id", "delivery", "content_hash", "note"]);
    assert_eq!(parsed(marker)["content_hash"], body["content_hash"]);
    assert_eq!(stub.meta.unwrap()["delivery"], "unchanged");
    let forced = world.answer("get_technique", &json!({"step_id": "a", "bundle": "reference", "full": true}));
    assert_eq!(forced.text, full.text);
    world.session_mut().context_mode = Some(ContextMode::Persistent);
    let sent = |world: &mut World, args: &Value| {
        world.answer("get_technique", args).meta.unwrap_or_default().contains_key("delivery")
    };
    assert!(sent(&mut world, &json!({"step_id": "a"})));
    assert!(!sent(&mut world, &json!({"step_id": "a", "bundle": "full"})));
}

#[test]
fn a_technique_is_selected_by_step_activity_or_workflow() {
    let list = "techniques: [other]\n".to_owned()
        + &steps(&[("a", "small"), ("gone", "nowhere")])
        + "  - kind: action\n    id: mark\n"
        + ROUTE;
    let mut world = alpha(&[("01-first", activity("first", &list)), ("02-bare", activity("bare", ROUTE))]);
    let id = |rendered: Rendered| {
        let line = rendered.text.lines().nth(1).unwrap_or_default().to_owned();
        line.strip_prefix("technique_id: ").unwrap_or_default().to_owned()
    };
    assert_eq!(id(world.answer("get_technique", &json!({}))), "plan");
    assert_eq!(world.events("technique_fetched")[0].get("activity"), None);
    let code = |result: Refusal| result.code;
    assert_eq!(code(world.refusal("get_technique", &json!({"step_id": "a"}))), "NO_CURRENT_ACTIVITY");
    assert_eq!(code(world.refusal("get_activity", &json!({"context_tokens": 1}))), "NO_CURRENT_ACTIVITY");
    world.enter("first");
    assert_eq!(id(world.answer("get_technique", &json!({}))), "other");
    assert_eq!(id(world.answer("get_technique", &json!({"activity_id": "first", "step_id": "a"}))), "small");
    let missing = world.refusal("get_technique", &json!({"step_id": "x"}));
    assert_eq!(missing.code, "STEP_NOT_FOUND");
    assert_eq!(missing.details["step_ids"], json!(["a", "gone", "mark"]));
    assert_eq!(code(world.refusal("get_technique", &json!({"step_id": "mark"}))), "STEP_HAS_NO_TECHNIQUE");
    assert_eq!(code(world.refusal("get_technique", &json!({"step_id": "gone"}))), "TECHNIQUE_NOT_FOUND");
    let moved = world.refusal("get_technique", &json!({"activity_id": "second"}));
    assert_eq!((moved.code, &moved.details["current_activity"]), ("ACTIVITY_MOVED", &json!("first")));
    let answer = world.get_activity(&json!({}));
    assert_eq!(answer.steps(), ["a"]);
    assert!(
        answer.warnings().iter().any(|text| text.contains("'gone'") && text.contains("'nowhere'")),
        "{:?}",
        answer.warnings()
    );
    assert!(answer.text.contains("\n\nvalidation:\n- \""));
    world.enter("bare");
    assert_eq!(code(world.refusal("get_technique", &json!({}))), "NO_ACTIVITY_TECHNIQUE");
    world.enter("__terminal__");
    for (tool, args) in [("get_technique", json!({})), ("get_activity", json!({"context_tokens": 1}))] {
        assert_eq!(code(world.refusal(tool, &args)), "SESSION_TERMINAL", "{tool}");
    }
    assert!(world.answer("get_resource", &json!({"resource_id": "guide"})).text.contains("Read it."));
}

#[test]
fn a_resource_is_full_unless_the_call_itself_refers_back() {
    let mut world = walk();
    world.session_mut().context_mode = Some(ContextMode::Persistent);
    let full = world.answer("get_resource", &json!({"resource_id": "guide"}));
    let index = world.session().session_index.clone();
    assert_eq!(
        full.text,
        format!(
            "resource_id: guide\nid: guide\nversion: 2.1.0\nsession_index: {index}\n\n# Guide\n\nRead it.\n\n## Part\n\nOf it."
        )
    );
    assert_eq!(world.answer("get_resource", &json!({"resource_id": "guide"})).text, full.text);
    let stub = world.answer("get_resource", &json!({"resource_id": "guide", "bundle": "reference"}));
    let (header, marker) = stub.text.split_once("\n\n").unwrap();
    assert_eq!(header, format!("session_index: {index}"));
    assert_eq!(keys(&parsed(marker)), ["resource_id", "delivery", "content_hash", "note"]);
    assert_eq!(stub.meta.unwrap()["delivery"], "unchanged");
    let forced = world.answer("get_resource", &json!({"resource_id": "guide", "bundle": "reference", "full": true}));
    assert_eq!(forced.text, full.text);
    let section = world.answer("get_resource", &json!({"resource_id": "alpha/guide.md#part", "bundle": "reference"}));
    assert!(section.text.ends_with("\n\n## Part\n\nOf it."));
    assert_eq!(keys(&world.events("resource_fetched")[0]["data"]), ["resourceId", "agentId", "chars", "delivery"]);
    for (id, code) in [
        ("missing", "RESOURCE_NOT_FOUND"),
        ("guide#nope", "SECTION_NOT_FOUND"),
        ("../guide", "RESOURCE_ID_INVALID"),
        ("alpha/../../x", "RESOURCE_ID_INVALID"),
    ] {
        assert_eq!(world.refusal("get_resource", &json!({"resource_id": id})).code, code, "{id}");
    }
}

#[test]
fn warnings_end_the_text_and_count_in_no_size() {
    let mut world = walk();
    world.session_mut().workflow_version = "0.9.0".to_owned();
    let resource = world.answer("get_resource", &json!({"resource_id": "guide"}));
    assert!(resource.text.contains("Of it.\n<!-- end of resource -->\n\nvalidation:\n- \""));
    let body = resource.text.split("\n<!-- end").next().unwrap();
    assert_eq!(world.events("resource_fetched")[0]["data"]["chars"], chars(body));
    world.enter("first");
    let answer = world.get_activity(&json!({"agent_id": "w"}));
    assert_eq!(world.events("activity_dispatched").last().unwrap()["data"]["chars"], counted(&answer.text));
    assert!(counted(&answer.text) < chars(&answer.text));
}

#[test]
fn the_session_agent_is_told_once_others_work_here() {
    let mut world = walk();
    world.enter("first");
    assert_eq!(world.get_activity(&json!({})).warnings(), Vec::<&str>::new());
    assert_eq!(world.get_activity(&json!({"agent_id": "w"})).warnings(), Vec::<&str>::new());
    let answer = world.get_activity(&json!({}));
    assert!(answer.warnings()[0].contains("agent_id"));
    assert_eq!(answer.meta["warnings_detail"][0]["code"], "W_AGENT_ID_OMITTED");
}

#[test]
fn the_events_of_an_activity_stand_in_order() {
    let mut world = walk();
    world.enter("first");
    world.get_activity(&json!({"agent_id": "v"}));
    let before = world.session().history.len();
    let answer = world.get_activity(&json!({"agent_id": "w"}));
    let kinds: Vec<&str> = world.session().history[before..].iter().map(crate::state::Event::kind).collect();
    assert_eq!(
        kinds,
        [
            "activity_dispatched",
            "activity_redelivered",
            "technique_bundled",
            "step_started",
            "technique_bundled",
            "step_started"
        ]
    );
    let bundled = &world.events("technique_bundled")[2];
    assert_eq!(keys(&bundled["data"]), ["techniqueId", "stepId", "agentId", "chars", "delivery"]);
    assert_eq!(bundled["data"]["chars"], chars(&workflow_yaml::to_string(answer.step("a"))));
    let again = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
    let last = world.events("technique_bundled").pop().unwrap();
    assert_eq!(last["data"]["delivery"], "unchanged");
    assert_eq!(last["data"]["chars"], chars(&workflow_yaml::to_string(again.step("b"))));
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
