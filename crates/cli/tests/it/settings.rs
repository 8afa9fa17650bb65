//! Settings: where they come from, and the file.

use std::fs;
use std::process::{Output, Stdio};

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

/// Nothing is begun in a directory that nobody meant.
#[test]
fn a_workspace_that_was_named_has_to_be_there() {
    let sandbox = sandbox();
    let base = sandbox.path();
    fs::write(base.join("file"), "").unwrap();
    fs::write(base.join("ours.toml"), "\nworkspace = \"none\"\n").unwrap();
    let file = base.join("ours.toml").display().to_string();
    let missing = format!("{} does not exist", base.join("none").display());
    let no_directory = format!("{} is no directory", base.join("file").display());
    for (flags, variable, parts) in [
        (&["--workspace", "none"][..], None, ["--workspace: \"none\" cannot be used: ".to_owned(), missing.clone()]),
        (&["--workspace", "file"], None, ["--workspace: \"file\"".to_owned(), no_directory]),
        (&[], Some("none"), ["WORKFLOW_WORKSPACE: \"none\"".to_owned(), missing.clone()]),
        (&["--config", "ours.toml"], None, [format!("{file}:2: workspace: \"none\""), missing]),
    ] {
        let run = |arguments: &[&str]| {
            let mut command = sandbox.command([arguments, flags].concat());
            command.envs(variable.map(|value| ("WORKFLOW_WORKSPACE", value))).stdin(Stdio::null()).output().unwrap()
        };
        for arguments in [
            &["serve"][..],
            &[],
            &["list"],
            &["list", "--sessions"],
            &["show", "quick-tour"],
            &["call", "discover"],
            &["call", "start_session", "planning_slug=alpha"],
            &["session", "list"],
            &["session", "gc", "--yes"],
            &["session", "adopt", "alpha", "--yes"],
            &["key", "show"],
            &["key", "rotate", "--yes"],
        ] {
            let output = run(arguments);
            assert_eq!((output.status.code(), out(&output)), (Some(2), ""), "{arguments:?} {flags:?}");
            for part in parts.iter().map(String::as_str).chain(["error: ", "git work tree"]) {
                assert!(err(&output).contains(part), "{arguments:?}: {part} is not in {}", err(&output));
            }
        }
        assert!(!base.join("none").exists() && fs::read_dir(sandbox.home()).unwrap().count() == 0, "nothing is made");
        // These tell where it was named, or need none.
        for arguments in [&["config", "show"][..], &["--help"], &["serve", "--help"], &["--version"]] {
            assert!(run(arguments).status.success(), "{arguments:?}");
        }
    }
    let output = sandbox.command(["config", "init", "--workspace=none"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    // Only the directory itself has to be there.
    let mut client = sandbox.connect();
    assert!(!sandbox.workspace().join(".engineering").exists());
    client.call("start_session", json!({"workflow_id": "mini", "planning_slug": "alpha"})).ok();
}

/// Whatever keeps a workspace from being looked at, it is the workspace that is named, and who named it.
#[cfg(unix)]
#[test]
fn a_workspace_that_cannot_be_looked_at_is_named_as_such() {
    let sandbox = sandbox();
    let base = sandbox.path();
    std::os::unix::fs::symlink("loop", base.join("loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", base.join("dangling")).unwrap();
    fs::write(base.join("file"), "").unwrap();
    let long = "n".repeat(300);
    for workspace in ["loop", "loop/below", "dangling", "file/below", long.as_str()] {
        for (flags, variable, by) in
            [(vec!["--workspace", workspace], None, "--workspace"), (vec![], Some(workspace), "WORKFLOW_WORKSPACE")]
        {
            let run = |arguments: &[&str]| {
                let mut command = sandbox.command([arguments, &flags].concat());
                command.envs(variable.map(|value| ("WORKFLOW_WORKSPACE", value))).stdin(Stdio::null()).output().unwrap()
            };
            for arguments in [&["serve"][..], &["list"], &["session", "list"], &["config", "init"]] {
                let output = run(arguments);
                let start = format!("error: {by}: {workspace:?} cannot be used: {}", base.join(workspace).display());
                assert_eq!((output.status.code(), out(&output)), (Some(2), ""), "{arguments:?} {workspace}");
                assert!(err(&output).starts_with(&start), "{arguments:?}: {}", err(&output));
                assert!(!err(&output).contains("workflow-server.toml"), "{arguments:?}: {}", err(&output));
            }
            assert!(run(&["config", "show"]).status.success(), "{workspace}");
        }
    }
}

/// What shows definitions refuses a directory that is not there; a server waits for it and tells its agents.
#[test]
fn a_workflow_directory_that_was_named_has_to_be_there() {
    let sandbox = sandbox();
    let workspace = format!("--workspace={}", sandbox.workspace().display());
    let flag = format!("--workflow-dir={}", sandbox.path().join("none").display());
    let run = |arguments: &[&str]| {
        sandbox.command([arguments, &[&workspace, &flag, "--with-bundled"]].concat()).output().unwrap()
    };
    for arguments in [&["list"][..], &["list", "--json"], &["show", "quick-tour"], &["show", "none"]] {
        let output = run(arguments);
        assert_eq!((output.status.code(), out(&output)), (Some(2), ""), "{arguments:?}");
        let missing = format!("--workflow-dir: there is no directory {}", sandbox.path().join("none").display());
        assert!(err(&output).contains(&missing), "{}", err(&output));
    }
    let output = run(&["call", "list_workflows"]);
    assert!(output.status.success() && out(&output).contains("quick-tour"), "{}", err(&output));
    assert!(out(&output).contains("none"), "{}", out(&output));
    assert!(run(&["session", "list"]).status.success());
    let mut client = testkit::Client::spawn(sandbox.command([&workspace, &flag]));
    client.initialize("2025-06-18");
    assert!(client.call("list_workflows", json!({})).ok().contains("none"));
    assert!(client.log().contains("--workflow-dir: there is no directory"));
    testkit::write_corpus(&sandbox.path().join("none"), testkit::MINI);
    assert!(client.call("list_workflows", json!({})).ok().contains("mini"));
}
