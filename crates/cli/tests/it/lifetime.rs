//! How the process ends, and that nothing is left half done.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use testkit::Client;

use crate::{binary, sandbox};

#[test]
fn the_end_of_stdin_ends_the_process() {
    let sandbox = sandbox();
    let (status, took, rest) = sandbox.connect().finish();
    assert!(status.success() && rest.is_empty());
    // A generous bound for a loaded machine; the rule is one second.
    assert!(took < Duration::from_secs(5), "{took:?}");
    let (status, _, rest) = sandbox.start().finish();
    assert!(status.success() && rest.is_empty(), "before any handshake");
}

#[test]
fn calls_in_flight_are_finished() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let arguments = json!({"workflow_id": "mini", "planning_slug": "last"});
    let id = client.post("tools/call", json!({"name": "start_session", "arguments": arguments}));
    client.send_raw(b"{nope\n");
    let (status, _, rest) = client.finish();
    assert!(status.success());
    assert!(rest.iter().any(|answer| answer["id"] == id && answer["result"]["isError"] == false), "{rest:?}");
    assert!(rest.iter().any(|answer| answer["error"]["code"] == -32700), "{rest:?}");
    assert!(sandbox.folder("last").join("session.json").is_file());
}

#[test]
fn a_last_line_needs_no_line_end() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    client.send_raw(br#"{"jsonrpc":"2.0","id":77,"method":"ping"}"#);
    let (status, _, rest) = client.finish();
    assert!(status.success());
    assert_eq!(rest, [json!({"jsonrpc": "2.0", "id": 77, "result": {}})]);
}

#[cfg(unix)]
#[test]
fn a_closed_stdout_ends_the_process() {
    let sandbox = sandbox();
    let mut command = sandbox.command(sandbox.places());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    std::io::Write::write_all(&mut stdin, &[line.as_slice(), b"\n"].concat()).unwrap();
    // Its stdin stays open, so only the closed output can end it.
    let status = child.wait().unwrap();
    drop(stdin);
    assert!(status.success(), "{status}");
}

#[cfg(unix)]
#[test]
fn a_closed_stdout_ends_a_process_that_waits() {
    let sandbox = sandbox();
    let mut command = sandbox.command(sandbox.places());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    drop(child.stdout.take());
    // Nothing is asked, so nothing is written that could fail.
    let status = child.wait().unwrap();
    drop(stdin);
    assert!(status.success(), "{status}");
}

#[cfg(unix)]
#[test]
fn a_dead_parent_ends_the_process() {
    let sandbox = sandbox();
    let mut shell = sandbox.shell("exec 3<&0; \"$@\" <&3 3<&- & wait");
    shell.arg("sh").arg(binary()).args(sandbox.places());
    let mut client = Client::spawn(shell);
    client.initialize("2025-06-18");
    // The shell is the server's parent; the pipes stay open in this process.
    client.kill_only();
    let rest = client.drain();
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn a_workspace_is_needed_and_a_git_work_tree_will_do() {
    let sandbox = sandbox();
    // The temporary directory may lie in a work tree; the root does not.
    let output = sandbox.command(["serve"]).current_dir("/").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--workspace"));
    std::fs::create_dir(sandbox.path().join(".git")).unwrap();
    let mut client = Client::spawn(sandbox.command::<&str>([]));
    client.initialize("2025-06-18");
    let started = client.call("start_session", json!({"planning_slug": "here", "repo": "acme/app"})).json();
    let expected = sandbox.path().join(".engineering/artifacts/planning/here");
    assert_eq!(started["planning_folder_path"], expected.display().to_string());
    assert!(client.log().contains("the enclosing git work tree"));
}
