//! The dialogues of spec 03 Appendix C, with the parameters of either generation.

use serde_json::{Value, json};
use testkit::Client;

use crate::sandbox;

/// The names in which the generations differ.
struct Dialect {
    start: Value,
    resume: Value,
    by_handle: bool,
}

fn walk(dialect: &Dialect) {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let started = client.call("start_session", dialect.start.clone()).json();
    let index = started["session_index"].as_str().unwrap().to_owned();
    assert_eq!(started["resumed"], false);
    assert_eq!(started["planning_slug"], "2026-07-13-alpha");
    assert!(sandbox.folder("2026-07-13-alpha").join("session.json").is_file());
    let resumed = client.call("start_session", dialect.resume.clone()).json();
    assert_eq!((&resumed["session_index"], &resumed["resumed"]), (&json!(index), &json!(true)));

    let entered = client.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    assert_eq!(entered.json()["activity_id"], "plan");
    assert_eq!(entered.json()["name"], "Plan");
    assert!(entered.meta["trace_token"].is_string(), "{}", entered.meta);
    let activity =
        client.call("get_activity", json!({"session_index": index, "context_tokens": 200_000, "agent_id": "w1"}));
    assert!(activity.ok().contains("id: confirm"), "{}", activity.text);
    let technique = json!({"session_index": index, "step_id": "say-hello", "agent_id": "w1"});
    assert!(client.call("get_technique", technique).ok().contains("Says hello."));

    let yielded = client.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"})).json();
    assert_eq!((&yielded["status"], &yielded["session_index"]), (&json!("yielded"), &json!(index)));
    let handle = yielded["checkpoint_handle"].as_str().unwrap().to_owned();
    let address =
        if dialect.by_handle { json!({"checkpoint_handle": handle}) } else { json!({"session_index": index}) };
    let blocked = client.call("next_activity", json!({"session_index": index, "activity_id": "ship"}));
    assert_eq!(blocked.code(), "CHECKPOINT_ACTIVE");

    let shown = client.call("present_checkpoint", address.clone());
    let other = if dialect.by_handle { json!({"session_index": index}) } else { json!({"checkpoint_handle": handle}) };
    assert!(shown.ok().contains("Shall we go on?"), "{}", shown.text);
    assert_eq!(untimed(shown.ok()), untimed(client.call("present_checkpoint", other).ok()));

    let answer = with(&address, "option_id", "go");
    let first = client.call("respond_checkpoint", answer.clone()).json();
    assert_eq!((&first["resolved"], &first["resolved_option"]), (&json!(true), &json!("go")));
    assert_eq!(first["effect"]["setVariable"]["plan_approved"], true, "{first}");
    let again = client.call("respond_checkpoint", answer).json();
    assert_eq!(again["already_done"], true);
    let resume = if dialect.by_handle {
        json!({"session_index": index, "checkpoint_handle": handle})
    } else {
        json!({"session_index": index})
    };
    let resumed = client.call("resume_checkpoint", resume).json();
    assert_eq!((&resumed["status"], &resumed["resolved_option"]), (&json!("resumed"), &json!("go")));

    let shipped = client.call(
        "next_activity",
        json!({
            "session_index": index, "activity_id": "ship", "transition_condition": "plan_approved == true",
            "step_manifest": [{"step_id": "say-hello", "output": {"greeting": "hi"}}, {"step_id": "confirm", "output": "go"}],
            "variables_changed": {"walk_mode": "fast"}, "agent_id": "w1"
        }),
    );
    assert_eq!(shipped.meta["validation"]["status"], "valid", "{}", shipped.text);
    let report = json!([{"step_id": "send", "output": "done"}]);
    let ended = client
        .call("next_activity", json!({"session_index": index, "activity_id": "__terminal__", "step_manifest": report}));
    assert_eq!(ended.json()["name"], "Workflow Complete");
    finished(&mut client, &index);
}

fn finished(client: &mut Client, index: &str) {
    let status = client.call("get_workflow_status", json!({"session_index": index})).json();
    assert_eq!(status["status"], "completed");
    assert_eq!(status["completed_activities"], json!(["plan", "ship"]));
    assert_eq!(status["variables"], json!({"plan_approved": true, "walk_mode": "fast"}));
    let trace = client.call("get_trace", json!({"session_index": index})).json();
    let names: Vec<&str> =
        trace["events"].as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap()).collect();
    for expected in ["start_session", "next_activity", "get_activity", "yield_checkpoint", "respond_checkpoint"] {
        assert!(names.contains(&expected), "{expected} is not in {names:?}");
    }
}

/// Without the lines that count seconds.
fn untimed(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("seconds_until")).collect()
}

fn with(arguments: &Value, name: &str, value: &str) -> Value {
    let mut arguments = arguments.clone();
    arguments[name] = value.into();
    arguments
}

#[test]
fn the_dialogue_of_the_seed() {
    walk(&Dialect {
        start: json!({"agent_id": "orchestrator", "workflow_id": "mini", "planning_slug": "2026-07-13-alpha"}),
        resume: json!({"agent_id": "orchestrator", "planning_slug": "2026-07-13-alpha"}),
        by_handle: true,
    });
}

#[test]
fn the_dialogue_of_the_newer_generation() {
    walk(&Dialect {
        start: json!({"workflow_id": "mini", "planning_folder": "/any/where/2026-07-13-alpha"}),
        resume: json!({"workflow_id": "mini", "planning_folder": "/other/place/2026-07-13-alpha"}),
        by_handle: false,
    });
}

#[test]
fn a_parent_hears_of_the_end_of_its_child() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let parent = client.call("start_session", json!({"workflow_id": "mini", "planning_slug": "family"})).json();
    let parent = parent["session_index"].as_str().unwrap().to_owned();
    client.call("next_activity", json!({"session_index": parent, "activity_id": "plan"})).ok();
    let dispatched = client.call("dispatch_child", json!({"session_index": parent, "workflow_id": "child"}));
    let child = dispatched.json()["session_index"].as_str().unwrap().to_owned();
    assert_eq!(dispatched.meta["session_index"], json!(child), "trap 29: the child's");
    client.call("next_activity", json!({"session_index": child, "activity_id": "only"})).ok();
    client.call("next_activity", json!({"session_index": child, "activity_id": "__terminal__"})).ok();
    let children = client.call("inspect_session", json!({"session_index": parent, "view": "children"})).json();
    assert!(children.to_string().contains("completed"), "{children}");
}

#[test]
fn a_bare_index_in_the_handle_is_taken_with_a_warning() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let started = client.call("start_session", json!({"workflow_id": "mini", "planning_slug": "bare"})).json();
    let index = started["session_index"].clone();
    client.call("next_activity", json!({"session_index": index, "activity_id": "plan"})).ok();
    client.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"})).ok();
    let answer = client.call("respond_checkpoint", json!({"checkpoint_handle": index, "option_id": "go"}));
    assert!(answer.json()["validation"][0].as_str().unwrap().contains("checkpoint_handle"), "{}", answer.text);
    assert_eq!(answer.meta["warnings_detail"][0]["code"], "W_HANDLE_WAS_INDEX");
}

#[test]
fn a_cancelled_call_is_not_answered_and_the_next_one_is() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let id = client.post("tools/call", json!({"name": "health_check", "arguments": {}}));
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "test"}}),
    );
    assert_eq!(client.request("ping", json!({})).result(), json!({}));
    assert_eq!(client.call("health_check", json!({})).json()["status"], "healthy");
}
