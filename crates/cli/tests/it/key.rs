//! `key show`, `key rotate`.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::sandbox;

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn report(sandbox: &Sandbox) -> Value {
    serde_json::from_slice(&sandbox.run(&["key", "show", "--json"]).stdout).unwrap()
}

/// The key is never in what is printed, in any spelling that somebody could use.
fn assert_untold(key: &[u8], output: &Output) {
    let hex: String = key.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    for stream in [&output.stdout, &output.stderr] {
        assert!(!stream.windows(8).any(|part| key.windows(8).any(|secret| secret == part)));
        assert!(!String::from_utf8_lossy(stream).to_lowercase().contains(&hex[..16]));
    }
}

#[test]
fn the_key_is_shown_without_the_key_and_none_is_made() {
    let sandbox = sandbox();
    let path = sandbox.home().join(".workflow-server/secret");
    let none = sandbox.run(&["key", "show"]);
    assert!(none.status.success() && out(&none).contains("no key yet"), "{}", out(&none));
    assert!(!path.exists());
    let refused = sandbox.run(&["key", "rotate", "--yes"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("KEY_MISSING") && !path.exists(), "{}", err(&refused));

    sandbox.connect().call("start_session", json!({"workflow_id": "mini", "planning_slug": "alpha"})).ok();
    let key = fs::read(&path).unwrap();
    let shown = sandbox.run(&["key", "show"]);
    assert_untold(&key, &shown);
    let told = report(&sandbox);
    let id = told["current"]["key_id"].as_str().unwrap();
    assert_eq!(id.len(), 8);
    for part in [id, path.to_str().unwrap(), "only its owner may read it"] {
        assert!(out(&shown).contains(part), "{part} is not in {}", out(&shown));
    }
    assert_eq!((&told["previous"], &told["current"]["problem"]), (&json!([]), &Value::Null));
}

#[cfg(unix)]
#[test]
fn an_open_key_is_told() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = sandbox();
    sandbox.connect().call("start_session", json!({"workflow_id": "mini", "planning_slug": "alpha"})).ok();
    let path = sandbox.home().join(".workflow-server/secret");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let shown = sandbox.run(&["key", "show"]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(out(&shown).contains("not safe") && out(&shown).contains("chmod 600"), "{}", out(&shown));
    let allowed = sandbox.run(&["key", "show", "--allow-open-key"]);
    assert!(allowed.status.success() && out(&allowed).contains("allowed as it is"), "{}", out(&allowed));
}

#[test]
fn a_rotated_key_keeps_sessions_and_running_servers_going() {
    let sandbox = sandbox();
    let mut running = sandbox.connect();
    let index = running.call("start_session", json!({"workflow_id": "mini", "planning_slug": "alpha"})).json();
    let index = index["session_index"].as_str().unwrap().to_owned();
    let path = sandbox.home().join(".workflow-server/secret");
    let before = fs::read(&path).unwrap();
    let asked = sandbox.run(&["key", "rotate"]);
    assert_eq!(asked.status.code(), Some(1), "without a terminal it needs --yes");
    assert!(err(&asked).contains("--yes") && out(&asked).contains("secret.prev."), "{}", err(&asked));
    assert_eq!(fs::read(&path).unwrap(), before);

    let old = report(&sandbox)["current"]["key_id"].as_str().unwrap().to_owned();
    let rotated = sandbox.run(&["key", "rotate", "--yes"]);
    assert!(rotated.status.success(), "{}", err(&rotated));
    assert_untold(&before, &rotated);
    assert_ne!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read(path.with_file_name(format!("secret.prev.{old}"))).unwrap(), before);
    let told = report(&sandbox);
    assert_eq!((&told["previous"][0]["key_id"], &told["sessions_needing_previous"]), (&json!(old), &json!(1)));
    assert!(out(&sandbox.run(&["key", "show"])).contains("still need a previous key: 1"));

    // A server that ran all the time seals with the new key, and a fresh one needs the old key no more.
    let entered = running.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    assert!(!entered.is_error, "{}", entered.text);
    assert_eq!(report(&sandbox)["sessions_needing_previous"], 0);
    fs::remove_file(path.with_file_name(format!("secret.prev.{old}"))).unwrap();
    let verified = sandbox.run(&["session", "verify", "alpha"]);
    assert!(verified.status.success() && !out(&verified).contains("W_KEY_PREVIOUS"), "{}", out(&verified));
    assert_eq!(running.call("get_workflow_status", json!({"session_index": index})).json()["status"], "active");
}

/// The key is the machine's, not the workspace's.
#[test]
fn the_key_is_shown_where_no_workspace_is() {
    let sandbox = sandbox();
    sandbox.run(&["call", "start_session"]);
    let dir = tempfile::tempdir().unwrap();
    let output = sandbox.command(["key", "show", "--json"]).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(shown["current"]["key_id"].is_string(), "{shown}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is made there");
}
