//! The commands of the command line.

use std::fs;
use std::path::Path;
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
    assert!(out(&help).contains("see in a few seconds"), "the demo takes no longer");
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
    assert_eq!(shown.status.code(), Some(1), "{}", err(&shown));
    assert!(err(&shown).contains("02-ship.yaml:"), "{}", err(&shown));
    assert!(out(&shown).contains("plan  Plan") && out(&shown).contains("ship  does not load: "), "{}", out(&shown));
    assert!(out(&shown).contains("─▷ ship  when plan_approved == true  ✗ does not load\n"), "{}", out(&shown));
    let listed: Value = serde_json::from_slice(&sandbox.run(&["list", "--json"]).stdout).unwrap();
    assert_eq!(listed[1]["status"], "degraded", "{listed}");
    let table = sandbox.run(&["list"]);
    assert!(out(&table).contains("degraded, 1 error "), "{}", out(&table));
    assert!(err(&table).contains("`workflow-server show mini`"), "{}", err(&table));
}

/// `list` and `show` agree: whatever it is that has an error, the exit code says so, and what can be shown is shown.
#[test]
fn the_exit_code_of_show_tells_whether_there_are_errors() {
    let (plan, ship, greet) =
        ("mini/activities/01-plan.yaml", "mini/activities/02-ship.yaml", "mini/techniques/greet.md");
    for (file, from, to, status) in [
        (plan, "name: Plan", "name: Plan", "ok"),
        (greet, "## Capability", "## Remarks\n\nNone.\n\n## Capability", "ok"),
        (plan, "name: Plan", "nome: Plan", "degraded"),
        (ship, "steps:", "steps: [", "degraded"),
        (greet, "## Capability", "## Capabilities", "degraded"),
        ("mini/workflow.yaml", "initialActivity: plan", "initialActivity: none", "degraded"),
        ("mini/workflow.yaml", "initialActivity: plan", "initialActivity: [", "broken"),
        ("mini/workflow.yaml", "title: Mini", "title: a: b", "broken"),
    ] {
        let sandbox = sandbox();
        let path = sandbox.workflows().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
        let listed: Value = serde_json::from_slice(&sandbox.run(&["list", "--json"]).stdout).unwrap();
        assert_eq!((&listed[1]["id"], &listed[1]["status"]), (&"mini".into(), &status.into()), "{to}");
        for arguments in
            [&["show", "mini"][..], &["show", "mini", "--yaml"], &["show", "child"], &["show", "mini/plan"]]
        {
            let shown = sandbox.run(arguments);
            let code = i32::from(status != "ok" && arguments[1] != "child");
            assert_eq!(shown.status.code(), Some(code), "{to}: {arguments:?}: {}", err(&shown));
            assert_eq!(err(&shown).contains("error: "), code == 1, "{to}: {arguments:?}: {}", err(&shown));
            if arguments[1] == "mini" {
                assert_eq!(out(&shown).is_empty(), status == "broken", "{to}: {arguments:?}: {}", out(&shown));
            }
        }
    }
}

/// What has no readable heading is in the list all the same, at its place.
#[test]
fn a_workflow_that_cannot_be_listed_has_a_row() {
    let sandbox = sandbox();
    let manifest = sandbox.workflows().join("child/workflow.yaml");
    std::fs::write(&manifest, "title: a: b\n").unwrap();
    let table = sandbox.run(&["list"]);
    assert!(table.status.success(), "{}", err(&table));
    let rows: Vec<Vec<String>> =
        out(&table).lines().map(|row| row.split_whitespace().map(str::to_owned).collect()).collect();
    assert_eq!(rows[0], ["child", "does", "not", "load"], "{}", out(&table));
    assert_eq!((rows.len(), rows[1][..3].join(" ")), (2, "mini 1.0.0 ok".to_owned()), "{}", out(&table));
    assert!(out(&table).lines().all(|line| line.trim_end() == line), "{}", out(&table));
    let told = err(&table);
    assert!(told.contains("child/workflow.yaml:1:") && told.contains("`workflow-server show child`"), "{told}");
    let listed = sandbox.run(&["list", "--json"]);
    assert!(listed.status.success() && err(&listed).contains("child/workflow.yaml:1:"), "{}", err(&listed));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let expected = serde_json::json!({
        "id": "child", "title": null, "version": null, "tags": [],
        "status": "broken", "errors": 1, "warnings": 0, "source": null,
    });
    assert_eq!((&listed[0], &listed[1]["id"]), (&expected, &"mini".into()), "{listed}");
    std::fs::remove_dir_all(sandbox.workflows().join("mini")).unwrap();
    assert_eq!(out(&sandbox.run(&["list"])).trim_end(), "child    does not load");
}

#[test]
fn a_mistake_in_a_definition_is_shown_with_what_to_do() {
    let sandbox = sandbox();
    let (activity, manifest) =
        (sandbox.workflows().join("mini/activities/01-plan.yaml"), sandbox.workflows().join("mini/workflow.yaml"));
    let replace = |file: &std::path::Path, from: &str, to: &str| {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(file, text.replace(from, to)).unwrap();
    };
    replace(&activity, "transitions:", "transition:");
    let shown = sandbox.run(&["show", "mini"]);
    assert!(err(&shown).contains("unknown key `transition` ["), "{}", err(&shown));
    assert!(err(&shown).contains("\n  did you mean `transitions`?"), "{}", err(&shown));
    let shown = sandbox.run(&["show", "mini/plan"]);
    assert_eq!(err(&shown).matches("unknown key").count(), 1, "{}", err(&shown));
    replace(&manifest, "title:", "title: a:");
    let shown = sandbox.run(&["show", "mini"]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(err(&shown).contains("mini/workflow.yaml:"), "{}", err(&shown));
    assert!(err(&shown).contains("\n  put a value that contains `: ` in quotes"), "{}", err(&shown));
    assert!(err(&sandbox.run(&["list"])).contains("`workflow-server show mini`"));
}

/// Whatever file is named, and wherever somebody stands, the path can be opened as it is printed.
#[cfg(unix)]
#[test]
fn the_files_that_are_named_can_be_opened() {
    let sandbox = sandbox();
    let workflows = [sandbox.workspace().join(".workflows"), sandbox.home().join(".config/workflow-server/workflows")];
    for (root, prefix) in workflows.iter().zip(["near", "far"]) {
        testkit::write_corpus(root, testkit::MINI);
        let [broken, degraded, unlisted] = ["broken", "degraded", "unlisted"].map(|name| format!("{prefix}-{name}"));
        for (id, file, from, to) in [
            (&degraded, "activities/02-ship.yaml", "steps:", "steps: ["),
            (&degraded, "techniques/greet.md", "## Capability", "## Capabilities"),
            (&broken, "workflow.yaml", "initialActivity: plan", "initialActivity: ["),
            (&unlisted, "workflow.yaml", "title: Mini", "title: a: b"),
        ] {
            if !root.join(id).exists() {
                testkit::copy_tree(&root.join("mini"), &root.join(id));
                let manifest = std::fs::read_to_string(root.join(id).join("workflow.yaml")).unwrap();
                let manifest = manifest.replace("id: mini", &format!("id: {id}"));
                std::fs::write(root.join(id).join("workflow.yaml"), manifest).unwrap();
            }
            let path = root.join(id).join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{text}");
            std::fs::write(path, text.replace(from, to)).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", root.join(format!("{prefix}-gone.yaml"))).unwrap();
    }
    let workspace = format!("--workspace={}", sandbox.workspace().display());
    let mut seen = std::collections::BTreeSet::new();
    for cwd in [sandbox.path(), sandbox.workspace(), workflows[0].join("near-degraded"), sandbox.home(), "/".into()] {
        let commands = ["near", "far"].map(|prefix| ["broken", "degraded"].map(|name| format!("{prefix}-{name}")));
        let mut commands: Vec<Vec<&str>> = commands.as_flattened().iter().map(|id| vec!["show", id]).collect();
        commands.extend([vec!["list"], vec!["show", "near-degraded/ship"]]);
        for arguments in commands {
            let mut command = sandbox.command(arguments.iter().copied().chain([workspace.as_str()]));
            let output = command.current_dir(&cwd).stdin(Stdio::null()).output().unwrap();
            let told = err(&output);
            let places = told.lines().filter(|line| line.starts_with("error: ") || line.starts_with("warning: "));
            let mut named = 0;
            for line in places.filter(|line| line.contains(".yaml") || line.contains(".md")) {
                let words = line.split_once(": ").unwrap().1.trim_start_matches("ship does not load: ");
                let path = std::path::Path::new(words.split(':').next().unwrap());
                assert!(cwd.join(path).symlink_metadata().is_ok(), "{arguments:?} in {}: {line}", cwd.display());
                let below = cwd.join(path).starts_with(&cwd);
                assert_eq!(path.is_relative(), below, "{arguments:?} in {}: {line}", cwd.display());
                seen.insert(cwd.join(path));
                named += 1;
            }
            assert!(named > 0, "{arguments:?}: {told}");
            if arguments == ["show", "far-degraded"] {
                let graph = out(&output);
                let place = graph.split_once("does not load: ").unwrap().1.split(':').next().unwrap();
                assert!(cwd.join(place).is_file(), "{graph}");
            }
        }
    }
    let names: Vec<_> = seen.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    for name in ["02-ship.yaml", "greet.md", "01-plan.yaml", "workflow.yaml", "near-gone.yaml", "far-gone.yaml"] {
        assert!(names.contains(&name), "{name} is not among {seen:?}");
    }
}

#[test]
fn definitions_are_shown() {
    let sandbox = sandbox();
    let workflow = out(&sandbox.run(&["show", "mini", "--yaml"]));
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
fn a_workflow_is_shown_as_a_graph() {
    let sandbox = sandbox();
    let shown = sandbox.run(&["show", "mini"]);
    let expected = "\
Mini  mini 1.0.0
Two activities and a question.
from SANDBOX · tags test · 1 rule

 ▶ plan  Plan  (begins here)
 │   2 steps: 1 technique, 1 checkpoint
 │   ◆ confirm: go / stop
 ├─▷ ship  when plan_approved == true
 └─▷ plan  otherwise  ↺ once more

 ● ship  Ship
 │   1 step: 1 action
 └─▷ the end

Variables
  walk_mode      string   = \"slow\"
  plan_approved  boolean
";
    assert_eq!(out(&shown).replace(&sandbox.workflows().display().to_string(), "SANDBOX"), expected);
    assert!(err(&shown).is_empty());
    let plan = sandbox.workflows().join("mini/activities/01-plan.yaml");
    let text = std::fs::read_to_string(&plan).unwrap().replace("to: ship", "to: nowhere");
    std::fs::write(&plan, text).unwrap();
    let shown = out(&sandbox.run(&["show", "mini"]));
    assert!(shown.contains("nowhere  when plan_approved == true  ✗ no such activity"), "{shown}");
    let tour = out(&sandbox.run(&["show", "quick-tour", "--with-bundled"]));
    assert!(tour.contains("look-back    when choose-pace is answered short"), "{tour}");
    let nodes = tour.lines().filter(|line| line.starts_with([' ']) && line[1..].starts_with(['▶', '●']));
    let nodes: Vec<&str> = nodes.map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(nodes, ["look-around", "visit-stops", "send-postcard", "look-back", "wrap-up"]);
    assert!(tour.contains("↳ child workflow postcard") && tour.lines().all(|line| line.trim_end() == line), "{tour}");
}

#[test]
fn the_bundled_workflows_are_there_without_any_directory() {
    let sandbox = sandbox();
    // Not below the temporary directory, which may lie in a work tree with workflows of its own.
    let list = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments.iter().copied());
        out(&command.current_dir("/").stdin(Stdio::null()).output().unwrap())
    };
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

/// Starts a session and answers its index.
fn session(sandbox: &testkit::Sandbox, slug: &str) -> String {
    let arguments = serde_json::json!({"workflow_id": "mini", "planning_slug": slug});
    sandbox.connect().call("start_session", arguments).json()["session_index"].as_str().unwrap().to_owned()
}

#[test]
fn sessions_are_listed_and_verified() {
    let sandbox = sandbox();
    assert!(err(&sandbox.run(&["session", "list"])).contains("no sessions"));
    let index = session(&sandbox, "alpha");
    for arguments in [["session", "list"].as_slice(), &["list", "--sessions"]] {
        let table = out(&sandbox.run(arguments));
        assert!(table.contains(&index) && table.contains("alpha") && table.contains("active"), "{table}");
    }
    let listed: Value = serde_json::from_slice(&sandbox.run(&["session", "list", "--json"]).stdout).unwrap();
    assert_eq!(listed[0]["session_index"], Value::from(index.as_str()));
    assert!(sandbox.run(&["session", "verify"]).status.success());
    let verified = sandbox.run(&["session", "verify", "alpha"]);
    assert!(verified.status.success() && out(&verified).contains(&index), "{}", out(&verified));
    std::fs::write(sandbox.folder("alpha").join("session.json"), "{}").unwrap();
    let verified = sandbox.run(&["session", "verify"]);
    assert_eq!(verified.status.code(), Some(1));
    assert!(out(&verified).contains("SEAL_MISMATCH"), "{}", out(&verified));
}

/// A session is found by its folder however the path is written, and only if it is one of this workspace.
#[cfg(unix)]
#[test]
fn a_session_is_named_by_any_path_of_its_folder() {
    let sandbox = sandbox();
    let index = session(&sandbox, "alpha");
    let planning = sandbox.folder("");
    fs::create_dir(planning.join("deep")).unwrap();
    let copy = sandbox.path().join("copy");
    testkit::copy_tree(&sandbox.folder("alpha"), &copy);
    std::os::unix::fs::symlink(&copy, sandbox.workspace().join("link")).unwrap();
    std::os::unix::fs::symlink(sandbox.folder("alpha"), sandbox.workspace().join("near")).unwrap();
    let run = |cwd: &Path, arguments: &[&str]| {
        let places = sandbox.places();
        let mut command = sandbox.command(arguments.iter().copied().chain(places.iter().map(String::as_str)));
        command.current_dir(cwd).stdin(Stdio::null()).output().unwrap()
    };
    let (workspace, folder) = (sandbox.workspace(), sandbox.folder("alpha"));
    let shown = out(&run(&workspace, &["session", "show", "alpha"]));
    let printed = shown.lines().find_map(|line| line.strip_prefix("folder")).unwrap().trim();
    assert_eq!(printed, ".engineering/artifacts/planning/alpha");
    let absolute = folder.display().to_string();
    let commands: [&[&str]; 5] = [
        &["session", "show"],
        &["session", "verify"],
        &["session", "release"],
        &["session", "export", "--json", "--output=-"],
        &["session", "adopt"],
    ];
    for (cwd, path) in [
        (&workspace, printed.to_owned()),
        (&workspace, format!("{printed}/")),
        (&workspace, format!("./{printed}")),
        (&workspace, format!("./{printed}//")),
        (&workspace, ".engineering/./artifacts//planning/../planning/alpha".to_owned()),
        (&workspace, "alpha/".to_owned()),
        (&workspace, "./near".to_owned()),
        (&workspace, absolute.clone()),
        (&workspace, format!("{absolute}/")),
        (&workspace, format!("{absolute}/.")),
        (&planning, "alpha".to_owned()),
        (&planning, "alpha/".to_owned()),
        (&planning, "./alpha".to_owned()),
        (&folder, ".".to_owned()),
        (&folder, "./".to_owned()),
        (&folder, "../alpha/".to_owned()),
    ] {
        for command in commands {
            let output = run(cwd, &[command, &[path.as_str()]].concat());
            let told = format!("{command:?} {path} in {}: {}{}", cwd.display(), out(&output), err(&output));
            match command[1] {
                "release" => assert!(err(&output).contains("no checkpoint"), "{told}"),
                _ => assert!(output.status.success() && out(&output).contains(&index), "{told}"),
            }
        }
    }
    for (cwd, path) in [
        (&workspace, "../copy"),
        (&workspace, "./link"),
        (&workspace, "link/"),
        (&sandbox.path(), "./copy"),
        (&copy, "."),
        (&workspace, "."),
        (&workspace, "./alpha"),
        (&workspace, "/"),
        (&planning, "deep/"),
        (&planning, "deep/../../x"),
        (&planning, "."),
        (&planning, ".."),
    ] {
        for command in commands {
            let output = run(cwd, &[command, &[path]].concat());
            let told = format!("{command:?} {path} in {}: {}{}", cwd.display(), out(&output), err(&output));
            assert!(output.status.code() == Some(1) && !out(&output).contains(&index), "{told}");
        }
    }
}

/// Whatever keeps a session from opening, the list says which command tells more, and that command does.
#[test]
fn a_session_that_does_not_open_is_listed_with_what_to_do_next() {
    let sandbox = sandbox();
    for slug in ["changed", "good", "renamed", "torn", "twice"] {
        session(&sandbox, slug);
    }
    assert_eq!(err(&sandbox.run(&["session", "list"])), "", "nothing to say about sessions that open");
    let folder = |slug: &str| sandbox.folder(slug);
    std::fs::write(folder("changed").join("session.json"), "{}").unwrap();
    std::fs::rename(folder("renamed"), folder("another")).unwrap();
    std::fs::remove_file(folder("torn").join(".session-token")).unwrap();
    testkit::copy_tree(&folder("twice"), &folder("below/twice"));
    std::fs::create_dir(folder("old")).unwrap();
    std::fs::write(folder("old").join("workflow-state.json"), "{}").unwrap();
    for arguments in [["session", "list"].as_slice(), &["list", "--sessions"]] {
        let output = sandbox.run(arguments);
        assert!(output.status.success(), "{}", err(&output));
        let told = err(&output);
        let lines: Vec<(&str, &str)> =
            told.lines().filter_map(|line| line.strip_prefix("`workflow-server session ")?.split_once('`')).collect();
        assert_eq!(lines.len(), told.lines().count(), "{told}");
        let commands: Vec<&str> = lines.iter().map(|(command, _)| *command).collect();
        assert_eq!(commands, ["verify another", "verify", "verify changed", "migrate old", "verify torn"]);
        for (command, what) in lines.into_iter().filter(|(command, _)| command.starts_with("verify")) {
            assert_eq!(what, " says what is wrong and what to do");
            let words: Vec<&str> = std::iter::once("session").chain(command.split(' ')).collect();
            let verified = sandbox.run(&words);
            assert_eq!(verified.status.code(), Some(1), "{command}");
            let said = out(&verified);
            assert!(said.contains("SEAL_M") && said.contains("workflow-server session adopt"), "{command}: {said}");
        }
    }
}

/// Spec 03 §14 trap 1: the index of a renamed folder stays, and the folder opens after it was adopted.
#[test]
fn a_renamed_folder_is_adopted() {
    let sandbox = sandbox();
    let index = session(&sandbox, "alpha");
    std::fs::rename(sandbox.folder("alpha"), sandbox.folder("beta")).unwrap();
    let arguments = serde_json::json!({"session_index": index});
    let refused = sandbox.connect().call("get_workflow_status", arguments.clone());
    assert_eq!(refused.code(), "SEAL_MISMATCH");
    assert!(refused.text.contains("workflow-server session adopt"), "{}", refused.text);
    let asked = sandbox.run(&["session", "adopt", "beta"]);
    assert_eq!(asked.status.code(), Some(1), "without a terminal it needs --yes");
    assert!(out(&asked).contains("folder") && err(&asked).contains("--yes"), "{}", err(&asked));
    let adopted = sandbox.run(&["session", "adopt", "beta", "--yes"]);
    assert!(adopted.status.success() && out(&adopted).contains(&index), "{}{}", out(&adopted), err(&adopted));
    assert_eq!(sandbox.connect().call("get_workflow_status", arguments).json()["status"], "active");
    assert!(out(&sandbox.run(&["session", "adopt", "beta", "--yes"])).contains("nothing to do"));
}

#[test]
fn a_session_goes_to_the_form_of_the_original_and_comes_back() {
    let sandbox = sandbox();
    let index = session(&sandbox, "alpha");
    let original = sandbox.run(&["session", "migrate", "alpha", "--to", "original"]);
    assert!(original.status.success() && out(&original).contains(&index), "{}", err(&original));
    let seal = std::fs::read_to_string(sandbox.folder("alpha").join(".session-token")).unwrap();
    assert!(seal.len() == 64 && seal.bytes().all(|byte| byte.is_ascii_hexdigit()), "{seal}");
    let migrated = sandbox.run(&["session", "migrate", "alpha"]);
    assert!(migrated.status.success() && out(&migrated).contains("nothing to do"), "{}", err(&migrated));
    let missing = sandbox.run(&["session", "migrate", "none"]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn transient_sessions_are_collected_on_request() {
    let sandbox = sandbox();
    let started = sandbox.connect().call("start_session", serde_json::json!({})).json();
    let slug = started["planning_slug"].as_str().unwrap();
    session(&sandbox, "alpha");
    let kept = sandbox.run(&["session", "gc"]);
    assert!(kept.status.success());
    assert!(out(&kept).contains(slug) && out(&kept).contains("stays"), "{}", out(&kept));
    assert!(err(&kept).contains("--older-than"), "{}", err(&kept));
    let would = sandbox.run(&["session", "gc", "--older-than", "0s", "--dry-run"]);
    assert!(
        would.status.success() && out(&would).contains("goes") && out(&would).contains("last used"),
        "{}",
        out(&would)
    );
    let asked = sandbox.run(&["session", "gc", "--older-than", "0s"]);
    assert_eq!(asked.status.code(), Some(1), "without a terminal it needs --yes");
    assert!(err(&asked).contains("--yes") && out(&asked).contains("goes"), "{}", err(&asked));
    let removed = sandbox.run(&["session", "gc", "--older-than", "0s", "--yes"]);
    assert!(removed.status.success() && out(&removed).contains("removed 1 of 1"), "{}", out(&removed));
    assert!(err(&sandbox.run(&["session", "gc"])).contains("nothing to remove"));
    assert!(sandbox.run(&["session", "verify", "alpha"]).status.success(), "planning folders are not touched");
    let output = sandbox.run(&["session", "gc", "--older-than", "soon"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("30d"), "{}", err(&output));
}

/// Spec 03 §6.5: a change of the definition does not wedge a session, and no gate that can be answered is released.
#[test]
fn a_gate_without_its_checkpoint_is_released() {
    let sandbox = sandbox();
    let index = session(&sandbox, "alpha");
    let mut client = sandbox.connect();
    let at = |name: &str, value: &str| {
        let mut arguments = serde_json::json!({"session_index": index});
        arguments[name] = value.into();
        arguments
    };
    client.call("next_activity", at("activity_id", "plan")).ok();
    let yielded = client.call("yield_checkpoint", at("checkpoint_id", "confirm")).json();
    let folder = sandbox.folder("alpha").display().to_string();
    let release = |session: &str| sandbox.run(&["session", "release", session, "--yes"]);
    for session in [&index, "alpha", &folder] {
        let refused = release(session);
        assert_eq!(refused.status.code(), Some(1));
        let told = err(&refused);
        assert!(told.contains("CHECKPOINT_ACTIVE") && told.contains("respond_checkpoint"), "{session}: {told}");
    }

    let file = sandbox.workflows().join("mini/activities/01-plan.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("id: confirm", "id: agree")).unwrap();
    let gone = client.call("respond_checkpoint", at("option_id", "go"));
    assert_eq!(gone.code(), "CHECKPOINT_NOT_FOUND");
    assert!(gone.text.contains(&format!("workflow-server session release {index}")), "{}", gone.text);
    assert!(err(&sandbox.run(&["session", "release", "alpha"])).contains("--yes"), "nobody can be asked here");
    assert_eq!(client.call("get_workflow", serde_json::json!({"session_index": index})).code(), "CHECKPOINT_ACTIVE");
    let released = release("alpha");
    assert!(released.status.success() && out(&released).contains("confirm"), "{}{}", out(&released), err(&released));

    let status = client.call("get_workflow_status", serde_json::json!({"session_index": index})).json();
    assert_eq!((&status["status"], status.get("last_checkpoint")), (&Value::from("active"), None));
    let mut resume = serde_json::json!({"session_index": index});
    resume["checkpoint_handle"] = yielded["checkpoint_handle"].clone();
    let resumed = client.call("resume_checkpoint", resume).json();
    assert_eq!(resumed.get("resolved_option"), None, "{resumed}");
    assert_eq!(client.call("yield_checkpoint", at("checkpoint_id", "agree")).json()["status"], "yielded");
    for command in ["release", "show", "export", "verify", "adopt"] {
        for name in ["AAAAAA", "no-such-slug"] {
            let told = err(&sandbox.run(&["session", command, name]));
            assert!(told.contains("SESSION_NOT_FOUND") && told.contains("session list"), "{command}: {told}");
            assert!(!told.contains("start_session") && told.contains(name), "{command}: {told}");
        }
    }
}
