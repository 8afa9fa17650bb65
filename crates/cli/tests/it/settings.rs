//! Settings: where they come from, and the file.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::sandbox;

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let sandbox = sandbox().with_env("BATCH_MAX_ACTIVITIES", "500").with_env("PORT", "80");
    let file = sandbox.workspace().join("workflow-server.toml");
    fs::write(&file, "# mine\nserver_name = \"ours\"\nlog_level = \"debug\"\n").unwrap();
    let shown = sandbox.run(&["config", "show", "--json", "--log-level", "error"]);
    assert!(shown.status.success(), "{}", err(&shown));
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["file"], file.display().to_string());
    let row = |key: &str| {
        let row = shown["settings"].as_array().unwrap().iter().find(|row| row["key"] == key).unwrap();
        (row["value"].clone(), row["origin"].clone(), row["used"].clone())
    };
    let line = json!({"kind": "file", "path": file.display().to_string(), "line": 2});
    assert_eq!(row("server_name"), (json!("ours"), line, json!(true)));
    assert_eq!(row("log_level"), (json!("error"), json!({"kind": "flag", "name": "--log-level"}), json!(true)));
    let variable = |name: &str| json!({"kind": "environment", "name": name});
    assert_eq!(row("batch_max_activities"), (json!("100"), variable("BATCH_MAX_ACTIVITIES"), json!(true)));
    assert_eq!(row("port"), (json!("80"), variable("PORT"), json!(false)));
    assert_eq!(row("bundle_chars_per_token"), (json!("4"), json!({"kind": "default"}), json!(true)));
    let table = sandbox.run(&["config", "show"]);
    for part in ["file line 2", "flag --workspace", "env BATCH_MAX_ACTIVITIES", "env PORT, unused", "default"] {
        assert!(out(&table).contains(part), "{part}: {}", out(&table));
    }
}

#[test]
fn nothing_secret_is_shown() {
    let sandbox = sandbox();
    sandbox.run(&["call", "start_session", "workflow_id=mini", "planning_slug=alpha"]);
    let key = fs::read(sandbox.home().join(".workflow-server/secret")).unwrap();
    let hex = key.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    for arguments in [&["config", "show"][..], &["config", "show", "--json"]] {
        let shown = sandbox.run(arguments);
        assert!(shown.status.success() && !out(&shown).contains(&hex[..16]));
        assert!(!shown.stdout.windows(8).any(|window| window == &key[..8]));
    }
}

#[test]
fn init_writes_a_file_that_changes_nothing_and_never_overwrites() {
    let sandbox = sandbox();
    let before = sandbox.run(&["config", "show", "--json"]);
    let file = sandbox.workspace().join("workflow-server.toml");
    let written = sandbox.run(&["config", "init"]);
    assert_eq!(out(&written), format!("wrote {}\n", file.display()));
    let settings = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap()["settings"].clone();
    assert_eq!(settings(&sandbox.run(&["config", "show", "--json"])), settings(&before));
    fs::write(&file, "broken = \n").unwrap();
    let again = sandbox.run(&["config", "init"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(err(&again).contains("--force"), "{}", err(&again));
    assert_eq!(fs::read_to_string(&file).unwrap(), "broken = \n");
    assert!(sandbox.run(&["config", "init", "--force"]).status.success());
    assert!(fs::read_to_string(&file).unwrap().contains("#checkpoint_min_response_ms = 3000"));
}

#[test]
fn a_file_that_cannot_be_understood_stops_every_command() {
    let sandbox = sandbox();
    let file = sandbox.workspace().join("workflow-server.toml");
    for (text, problem) in [
        ("\nlog_levle = \"info\"\n", "workflow-server.toml:2: `log_levle` is not known; did you mean `log_level`?"),
        ("with_bundled = \"yes\"\n", "workflow-server.toml:1: `with_bundled` wants true or false"),
        ("log_level = \"loud\"\n", "workflow-server.toml:1: log_level: \"loud\""),
        ("log_level\n", "workflow-server.toml:1: "),
    ] {
        fs::write(&file, text).unwrap();
        for arguments in [&["list"][..], &["serve"], &["config", "show"], &["call", "discover"]] {
            let output = sandbox.run(arguments);
            assert_eq!((output.status.code(), out(&output)), (Some(2), ""), "{arguments:?}");
            assert!(err(&output).contains(problem), "{}", err(&output));
        }
    }
    let output = sandbox.run(&["list", "--config", "none.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("none.toml"), "{}", err(&output));
}

#[test]
fn the_server_goes_by_the_file() {
    let sandbox = sandbox();
    fs::write(sandbox.workspace().join("workflow-server.toml"), "server_name = \"ours\"\n").unwrap();
    assert_eq!(sandbox.connect().call("health_check", json!({})).json()["server"], "ours");
}
