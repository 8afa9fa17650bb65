//! A fresh process goes on where another one stopped.

use serde_json::{Value, json};
use testkit::{Client, Sandbox};

use crate::sandbox;

/// What may differ between two processes.
fn settled(mut status: Value) -> Value {
    if let Some(members) = status.as_object_mut() {
        for name in ["uptime_seconds", "timestamp", "already_done"] {
            members.remove(name);
        }
    }
    status
}

fn state(client: &mut Client, index: &str) -> (Value, Value) {
    let status = client.call("get_workflow_status", json!({"session_index": index})).json();
    let trace = client.call("inspect_session", json!({"session_index": index, "view": "history"})).json();
    (settled(status), trace)
}

fn walk_to_the_gate(client: &mut Client, arguments: Value) -> (String, String) {
    let started = client.call("start_session", arguments).json();
    let index = started["session_index"].as_str().unwrap().to_owned();
    let slug = started["planning_slug"].as_str().unwrap().to_owned();
    let first = if started["workflow"]["id"] == "meta" { "discover-session" } else { "plan" };
    client.call("next_activity", json!({"session_index": index, "activity_id": first})).ok();
    client.call("get_activity", json!({"session_index": index, "context_tokens": 200_000})).ok();
    (index, slug)
}

#[track_caller]
fn check(sandbox: &Sandbox, before: &(Value, Value), index: &str, resume: Option<Value>) {
    let mut client = sandbox.connect();
    if let Some(arguments) = resume {
        let resumed = client.call("start_session", arguments).json();
        assert_eq!((&resumed["session_index"], &resumed["resumed"]), (&json!(index), &json!(true)));
    }
    assert_eq!(&state(&mut client, index), before);
    if before.0["status"] == "blocked" {
        return;
    }
    let trace = client.call("get_trace", json!({"session_index": index})).json();
    assert!(trace["event_count"].as_u64().unwrap() >= 3, "the trace is shared: {trace}");
}

#[test]
fn a_session_is_resumed_by_slug_and_by_index() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let (index, slug) =
        walk_to_the_gate(&mut client, json!({"workflow_id": "mini", "planning_slug": "2026-07-13-alpha"}));
    let yielded = client.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"})).json();
    let before = state(&mut client, &index);
    assert_eq!(before.0["status"], "blocked");
    client.kill();
    check(&sandbox, &before, &index, Some(json!({"planning_slug": slug})));
    check(&sandbox, &before, &index, None);
    let mut client = sandbox.connect();
    let handle = yielded["checkpoint_handle"].clone();
    let answer = client.call("respond_checkpoint", json!({"checkpoint_handle": handle, "option_id": "go"})).json();
    assert_eq!(answer["resolved_option"], "go");
    // The answer was lost with the process that gave it; the same call again is recognised.
    client.kill();
    let again =
        sandbox.connect().call("respond_checkpoint", json!({"checkpoint_handle": handle, "option_id": "go"})).json();
    assert_eq!(again["already_done"], true);
}

#[test]
fn a_transient_session_is_resumed_by_its_minted_slug() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let (index, slug) = walk_to_the_gate(&mut client, json!({"agent_id": "meta-orchestrator"}));
    assert!(slug.starts_with("transition-"), "{slug}");
    let before = state(&mut client, &index);
    client.kill();
    check(&sandbox, &before, &index, Some(json!({"planning_slug": slug})));
    check(&sandbox, &before, &index, None);
}

#[test]
fn two_processes_lose_nothing() {
    let sandbox = sandbox();
    let mut clients = [sandbox.connect(), sandbox.connect()];
    let started = clients[0].call("start_session", json!({"workflow_id": "mini", "planning_slug": "race"})).json();
    let index = started["session_index"].as_str().unwrap().to_owned();
    let mut posted = Vec::new();
    for round in 0..10 {
        for (number, client) in clients.iter_mut().enumerate() {
            let usage = json!({
                "session_index": index, "activity": format!("a{number}-{round}"), "usage": {"input_tokens": 1}, "basis": "delta"
            });
            posted.push((number, client.post("tools/call", json!({"name": "record_usage", "arguments": usage}))));
        }
    }
    // Answers of one client come in any order, so all are read before they are counted.
    let mut kept = 0;
    for client in &mut clients {
        for _ in 0..10 {
            let answer = client.receive();
            kept += usize::from(answer["result"]["isError"] == false);
        }
    }
    assert_eq!(kept, posted.len());
    let history = clients[1].call("inspect_session", json!({"session_index": index, "view": "history"})).json();
    assert_eq!(history["byType"]["activity_usage"], 20, "{history}");
}
