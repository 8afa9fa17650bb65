//! The real binary, killed at any moment and run many times at once. Bounded; `WORKFLOW_TEST_LONG` makes it long.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "functions that tests call may do what tests may")]

mod document;
mod kill;
mod many;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use testkit::Sandbox;

fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_workflow-server"))
}

/// The first number, or the second when there is time.
fn bounded(short: usize, long: usize) -> usize {
    if std::env::var_os("WORKFLOW_TEST_LONG").is_some() { long } else { short }
}

fn usage(index: &str, label: &str) -> Value {
    let arguments = json!({"session_index": index, "activity": label, "usage": {"input_tokens": 1}, "basis": "delta"});
    json!({"name": "record_usage", "arguments": arguments})
}

/// Whether an answer of a tool is a success.
fn is_success(answer: &Value) -> bool {
    answer["result"]["isError"] == false
}

/// Labels of all usage rows in a session's file.
fn kept(folder: &Path) -> BTreeSet<String> {
    let state: Value = serde_json::from_slice(&std::fs::read(folder.join("session.json")).unwrap()).unwrap();
    let rows = state["history"].as_array().unwrap().iter().filter(|event| event["type"] == "activity_usage");
    let labels: Vec<String> = rows.map(|event| event["activity"].as_str().unwrap().to_owned()).collect();
    let set: BTreeSet<String> = labels.iter().cloned().collect();
    assert_eq!(set.len(), labels.len(), "a call counted twice");
    set
}
