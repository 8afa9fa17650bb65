//! Batches, dispatches, events and recorded sizes.

use serde_json::json;

use super::{
    answer::{counted, keys},
    sample::walk,
};
use crate::delivery::chars;

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
