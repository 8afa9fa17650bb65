//! The commands of the command line.

use std::process::{Output, Stdio};

use serde_json::Value;

use crate::sandbox;

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn help_teaches_and_version_tells() {
    let sandbox = sandbox();
    let help = sandbox.run(&["--help"]);
    assert!(help.status.success());
    for part in ["Examples:", "workflow-server list", "session", "Exit codes"] {
        assert!(out(&help).contains(part), "{part}");
    }
    assert!(!out(&help).contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(out(&sandbox.run(&["--version"])), format!("workflow-server {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_is_unknown_is_refused_with_a_suggestion() {
    let sandbox = sandbox();
    for (arguments, suggestion) in [
        (vec!["--workspaces", "/w"], "--workspace"),
        (vec!["lst"], "list"),
        (vec!["serve", "--log-levle", "info"], "--log-level"),
        (vec!["session", "adop"], "adopt"),
    ] {
        let output = sandbox.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).contains(suggestion), "{}", err(&output));
        assert!(out(&output).is_empty());
    }
    let sandbox = sandbox.with_env("CHECKPOINT_MIN_RESPONSE_MS", "soon");
    let output = sandbox.run(&["list"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("CHECKPOINT_MIN_RESPONSE_MS") && err(&output).contains("soon"), "{}", err(&output));
}

#[test]
fn workflows_are_listed() {
    let sandbox = sandbox();
    let listed = sandbox.run(&["list", "--json"]);
    assert!(listed.status.success(), "{}", err(&listed));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|workflow| workflow["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["child", "mini"]);
    assert_eq!(listed[1]["status"], "ok", "{listed}");
    let table = out(&sandbox.run(&["list"]));
    assert!(table.contains("mini") && table.contains("1.0.0") && table.contains("Mini"), "{table}");
}

#[test]
fn a_broken_definition_is_named_and_takes_nothing_down() {
    let sandbox = sandbox();
    let broken = sandbox.workflows().join("mini/activities/02-ship.yaml");
    std::fs::write(&broken, "id: ship\nsteps: [\n").unwrap();
    let shown = sandbox.run(&["show", "mini"]);
    assert!(shown.status.success(), "{}", err(&shown));
    assert!(err(&shown).contains("02-ship.yaml:"), "{}", err(&shown));
    assert!(out(&shown).contains("id: plan"));
    let listed: Value = serde_json::from_slice(&sandbox.run(&["list", "--json"]).stdout).unwrap();
    assert_eq!(listed[1]["status"], "degraded", "{listed}");
}

#[test]
fn definitions_are_shown() {
    let sandbox = sandbox();
    let workflow = out(&sandbox.run(&["show", "mini"]));
    assert!(workflow.contains("id: mini") && workflow.contains("initialActivity: plan"), "{workflow}");
    let activity = out(&sandbox.run(&["show", "mini/plan"]));
    assert!(activity.contains("technique: greet"), "{activity}");
    for what in ["none", "mini/none"] {
        let output = sandbox.run(&["show", what]);
        assert_eq!(output.status.code(), Some(1), "{what}");
        assert!(err(&output).contains("mini") && out(&output).is_empty(), "{}", err(&output));
    }
}

#[test]
fn the_bundled_workflows_are_there_without_any_directory() {
    let sandbox = sandbox();
    let list =
        |arguments: &[&str]| out(&sandbox.command(arguments.iter().copied()).stdin(Stdio::null()).output().unwrap());
    let table = list(&["list"]);
    assert!(table.contains("quick-tour") && table.contains("bundled"), "{table}");
    let both = list(&["list", "--workflow-dir", &sandbox.workflows().display().to_string(), "--with-bundled"]);
    assert!(both.contains("quick-tour") && both.contains("mini"), "{both}");
    let only = list(&["list", "--workflow-dir", &sandbox.workflows().display().to_string()]);
    assert!(!only.contains("quick-tour") && only.contains("mini"), "{only}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let sandbox = sandbox();
    let mut command = sandbox.command(["show".to_owned(), "mini".to_owned()].into_iter().chain(sandbox.places()));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).is_empty(), "{}", err(&output));
}
