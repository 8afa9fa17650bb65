//! What the process shows to nobody: secrets in its log, an open port; and that a flood does not disturb it.

use std::fs;

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::sandbox;

/// A word for every place that takes free text.
const WORDS: [&str; 9] = [
    "hunter2 in a request",
    "hunter2 in a variable",
    "hunter2 in a output",
    "hunter2 in a outcome",
    "hunter2 in a message",
    "hunter2 in a label",
    "hunter2 in a usage",
    "hunter2 in a condition",
    "hunter2 in a token",
];

/// Walks a session with secrets in every call; answers the log, and the handle and seal that were made.
fn walked(sandbox: &Sandbox, level: &str) -> (String, String, String) {
    let [request, variable, output, outcome, message, label, usage, condition, token] = WORDS;
    let mut arguments = sandbox.places();
    arguments.push(format!("--log-level={level}"));
    let mut client = testkit::Client::spawn(sandbox.command(arguments));
    client.initialize("2025-06-18");
    let started = client
        .call("start_session", json!({"workflow_id": "mini", "planning_slug": "a", "user_request": request}))
        .json();
    let index = started["session_index"].as_str().unwrap().to_owned();
    let status = client.call("get_workflow_status", json!({"session_index": index})).json();
    let workflow = client.call("get_workflow", json!({"session_index": index}));
    assert!(!workflow.is_error && status.is_object());
    let initial = "plan";
    for more in [json!({}), json!({"agent_id": ""}), json!({"nonsense": "hunter2 in a variable"})] {
        let mut arguments = json!({
            "session_index": index, "activity_id": initial, "transition_condition": condition,
            "variables_changed": {"api_key": variable, "nested": {"password": [variable]}},
            "step_manifest": [{"step_id": "s", "output": output}],
            "activity_manifest": [{"activity_id": "x", "outcome": outcome}]
        });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.call("next_activity", arguments);
    }
    let options = json!([{"id": "yes", "label": label}, {"id": "no", "label": "No"}]);
    let asked = json!({"session_index": index, "checkpoint_id": "own", "message": message, "options": options});
    let handle = client.call("yield_checkpoint", asked).json()["checkpoint_handle"].as_str().unwrap().to_owned();
    let forged = handle.replace("cp1.", "cp1.A");
    for arguments in [
        json!({"checkpoint_handle": forged, "option_id": "yes"}),
        json!({"checkpoint_handle": handle, "option_id": message}),
        json!({"checkpoint_handle": handle, "option_id": {"text": message}}),
        json!({"checkpoint_handle": handle, "option_id": "yes"}),
        json!({"checkpoint_handle": handle, "option_id": "no"}),
    ] {
        client.call("respond_checkpoint", arguments);
    }
    client.call(
        "record_usage",
        json!({"session_index": index, "activity": initial, "usage": {"note": usage}, "basis": "measured"}),
    );
    client.call("get_trace", json!({"session_index": index, "trace_tokens": [token]}));
    let seal = fs::read_to_string(sandbox.folder("a").join(".session-token")).unwrap();
    // A state that does not fit its seal: the refusal is logged, the seal is not.
    fs::write(sandbox.folder("a").join("session.json"), "{}").unwrap();
    assert!(client.call("get_workflow_status", json!({"session_index": index})).is_error);
    client.send_raw(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":\"{token}\"}}\n").as_bytes(),
    );
    client.send_raw(format!("{{{token}\n").as_bytes());
    client.close();
    client.drain();
    (client.log(), handle, seal)
}

/// At the level that is meant for use, and at those for finding defects.
#[test]
fn hazard_h23_no_secret_is_logged() {
    for level in ["info", "debug", "trace"] {
        let sandbox = sandbox();
        let (log, handle, seal) = walked(&sandbox, level);
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let audits = lines.iter().filter(|line| line["type"] == "audit").count();
        assert!(audits >= 10, "{audits}: {log}");
        for word in WORDS {
            assert!(!log.contains(word), "{level}: {word} in {log}");
        }
        assert!(!log.contains(&handle[12..]), "{level}: the handle is in {log}");
        let (_, mac) = seal.rsplit_once('.').unwrap();
        assert!(!log.contains(mac), "{level}: the seal is in {log}");
        let key = fs::read(sandbox.home().join(".workflow-server/secret")).unwrap();
        let hex = key.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let list = key.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
        assert!(!log.contains(&hex) && !log.contains(&list), "{level}: the key is in {log}");
    }
}

/// There is nothing to authenticate at: the server talks over its own pipes and opens no socket.
#[cfg(target_os = "linux")]
#[test]
fn hazard_h15_no_port_is_open() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    assert!(!client.call("health_check", json!({})).is_error);
    let mut looked = 0;
    for entry in fs::read_dir(format!("/proc/{}/fd", client.id())).unwrap() {
        let Ok(target) = fs::read_link(entry.unwrap().path()) else { continue };
        assert!(!target.to_string_lossy().starts_with("socket:"), "{}", target.display());
        looked += 1;
    }
    assert!(looked >= 3, "{looked}");
}

/// More calls than are taken at once, with large answers, among lines that are none and calls that are given up.
#[test]
fn hazard_h14_a_flood_is_answered_call_by_call() {
    let sandbox = sandbox();
    let big = format!("---\nname: big\n---\n\n# Big\n\n{}\n", "All work and no play. ".repeat(5000));
    fs::write(sandbox.workflows().join("mini/resources/big.md"), big).unwrap();
    let mut client = sandbox.connect();
    let started = client.call("start_session", json!({"workflow_id": "mini", "planning_slug": "a"})).json();
    let index = started["session_index"].as_str().unwrap().to_owned();
    let mut open = std::collections::BTreeSet::new();
    let mut given_up = std::collections::BTreeSet::new();
    for nth in 0..200 {
        let (tool, arguments) = match nth % 4 {
            0 => ("get_resource", json!({"session_index": index, "resource_id": "big"})),
            1 => ("get_workflow", json!({"session_index": index})),
            2 => ("list_workflows", json!({})),
            _ => ("next_activity", json!({"session_index": index, "activity_id": "plan", "step_manifest": nth})),
        };
        let id = client.post("tools/call", json!({"name": tool, "arguments": arguments}));
        open.insert(id);
        match nth % 10 {
            3 => client.send_raw(b"\n \r\n"),
            5 => client.send_raw(b"{broken\n"),
            7 => {
                client
                    .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
                given_up.insert(id);
            }
            _ => {}
        }
    }
    let mut errors = 0;
    let mut take = |answer: &Value, open: &mut std::collections::BTreeSet<u64>| match answer["id"].as_u64() {
        Some(id) => assert!(open.remove(&id), "answered twice: {id}"),
        None => errors += usize::from(answer["error"]["code"] == -32700),
    };
    // What was given up may have been answered before that was known, and is not answered otherwise.
    while !open.is_subset(&given_up) {
        take(&client.receive(), &mut open);
    }
    client.close();
    for answer in client.drain() {
        take(&answer, &mut open);
    }
    assert_eq!(errors, 20);
    let mut again = sandbox.connect();
    assert_eq!(again.call("get_workflow_status", json!({"session_index": index})).json()["session_index"], *index);
}
