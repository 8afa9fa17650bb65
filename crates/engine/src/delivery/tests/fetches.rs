//! `get_technique` and `get_resource`.

use serde_json::{Value, json};

use super::{
    answer::{keys, parsed},
    sample::{ROUTE, activity, alpha, steps, walk},
    world::World,
};
use crate::{Refusal, Rendered, state::ContextMode};

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
