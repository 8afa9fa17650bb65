//! The demo: what it prints, what it leaves, and that it can be gone on with.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use testkit::Sandbox;

use crate::{binary, repository, sandbox};

/// What the demo prints, without where things lie: the directory, and the way to the binary.
pub(crate) fn played() -> String {
    let sandbox = sandbox();
    let output = sandbox.command(["demo"]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(fs::read_dir(sandbox.path().join("tmp")).unwrap().count(), 0, "the temporary directory goes");
    assert_eq!(fs::read_dir(sandbox.home()).unwrap().count(), 0, "nothing else is touched");
    let directory = text.lines().find_map(|line| line.strip_prefix("workspace  ")?.strip_suffix(" (temporary)"));
    let text = text.replace(directory.expect("it says where it works"), "DIR");
    let binary = binary().display().to_string();
    text.replace(&format!("'{binary}'"), "workflow-server").replace(&binary, "workflow-server")
}

/// Without what else differs from run to run: the session indexes.
pub(crate) fn plain(text: &str) -> String {
    let mut indexes: BTreeMap<String, String> = BTreeMap::new();
    for marker in ["session    ", "session_index: ", "session_index="] {
        for (at, _) in text.match_indices(marker) {
            let index: String = text[at + marker.len()..].chars().take(6).collect();
            let number = indexes.len() + 1;
            if index.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7')) {
                indexes.entry(index).or_insert_with(|| format!("INDEX{number}"));
            }
        }
    }
    indexes.iter().fold(text.to_owned(), |text, (index, name)| text.replace(index, name))
}

#[test]
fn the_demo_is_played_as_written() {
    let file = repository().join("crates/cli/tests/it/demo.txt");
    let played = played();
    assert!(!played.contains('\u{1b}') && !played.contains("warning"), "{played}");
    let found = plain(&played);
    assert!(found.lines().all(|line| line.chars().count() <= 110), "{found}");
    if std::env::var_os("UPDATE_TRANSCRIPT").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "UPDATE_TRANSCRIPT=1 accepts what is printed now:\n{found}");
}

/// However the program was called and from where, the commands that it names at the end can be typed there.
#[cfg(unix)]
#[test]
fn what_to_do_next_works_where_the_demo_was_played() {
    let sandbox = sandbox();
    let cwd = sandbox.path().join("here");
    let place = |path: &str| {
        let path = sandbox.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(binary(), &path).unwrap();
        path
    };
    let [near, below, spaced] =
        ["here/workflow-server", "here/target/release/workflow-server", "here/my target/ws"].map(place);
    let long = place(&format!("{}/workflow-server", "a-long-name/".repeat(10)));
    let found = place("path/workflow-server");
    std::os::unix::fs::symlink(&cwd, sandbox.path().join("link")).unwrap();
    let linked = sandbox.path().join("link/target/../workflow-server");
    let path = format!("{}:{}", found.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let sandbox = sandbox.with_env("PATH", &path);
    let here = |command: &str| {
        let mut shell = sandbox.shell(command);
        shell.current_dir(&cwd).stdin(Stdio::null()).stdout(Stdio::piped());
        shell
    };
    let absolute = |path: &Path| path.display().to_string();
    let quoted = |path: &Path| match path.display().to_string() {
        spaced if spaced.contains(' ') => format!("'{spaced}'"),
        plain => plain,
    };
    let cases = [
        ("workflow-server".to_owned(), "workflow-server".to_owned()),
        (absolute(&near), "./workflow-server".to_owned()),
        ("./workflow-server".to_owned(), "./workflow-server".to_owned()),
        (absolute(&below), "target/release/workflow-server".to_owned()),
        ("target/release/workflow-server".to_owned(), "target/release/workflow-server".to_owned()),
        (absolute(&spaced), "'my target/ws'".to_owned()),
        ("../path/workflow-server".to_owned(), "../path/workflow-server".to_owned()),
        (absolute(&long), quoted(&long)),
        (absolute(&linked), quoted(&linked)),
    ];
    // Together, since each waits a second for a question of the tour.
    let players = cases.map(|(called, said)| (here("exec \"$0\" demo").arg(&called).spawn().unwrap(), called, said));
    for (player, called, said) in players {
        let text = String::from_utf8(player.wait_with_output().unwrap().stdout).unwrap();
        let next = text.split_once("What to do next\n").unwrap_or_else(|| panic!("{called}: {text}")).1;
        let commands: Vec<&str> = next.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        let expected = ["show quick-tour", "call discover", "demo --slow"].map(|command| format!("{said} {command}"));
        assert_eq!(commands, [&expected[0], &expected[1], &expected[2], "README.md"], "{called}");
        let known = commands[0].strip_suffix(" show quick-tour").unwrap();
        assert!(here(&format!("{known} --version")).status().unwrap().success(), "{known}");
    }
}

/// Runs `call` as the demo says it is to be gone on with.
struct Continued {
    sandbox: Sandbox,
    line: String,
}

impl Continued {
    fn call(&self, tool: &str, arguments: &str) -> Output {
        let line = self.line.replace("get_workflow_status", tool);
        self.sandbox.shell(&format!("{line} {arguments}")).stdin(Stdio::null()).output().unwrap()
    }

    #[track_caller]
    fn json(&self, tool: &str, arguments: &str) -> Value {
        let output = self.call(tool, arguments);
        let (text, problem) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{tool} {arguments}: {problem}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

#[test]
fn a_demo_that_was_killed_is_gone_on_with() {
    let sandbox = sandbox();
    let mut child = sandbox.command(["demo", "--keep"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.by_ref().take(3).find_map(|line| line.strip_prefix("continue").map(|rest| rest.trim().to_owned()));
    let continued = Continued { sandbox, line: line.expect("the way to go on comes first") };
    // At the third gate of the loop the demo waits for a second.
    assert!(lines.any(|line| line.contains("checkpoint_id=keep-stop#delivery")));
    child.kill().unwrap();
    child.wait().unwrap();

    let mut steps = 0;
    loop {
        let status = continued.json("get_workflow_status", "");
        if status["status"] == "completed" {
            break;
        }
        steps += 1;
        assert!(steps < 20, "{status}");
        if let Some(checkpoint) = status.get("active_checkpoint") {
            let id = checkpoint["checkpoint_id"].as_str().unwrap();
            let option = if id.starts_with("keep-stop") { "keep" } else { "skip" };
            let answered = continued.json("respond_checkpoint", &format!("option_id={option}"));
            assert_eq!(answered["resolved_option"], option);
            continue;
        }
        let next = match status["current_activity"].as_str().unwrap() {
            "look-around" => "visit-stops",
            "visit-stops" | "send-postcard" => "look-back",
            "look-back" => "wrap-up",
            "wrap-up" => "__terminal__",
            other => panic!("{other}"),
        };
        let entered = continued.json("next_activity", &format!("activity_id={next}"));
        assert_eq!(entered["activity_id"], next);
    }
    assert!(continued.call("get_trace", "").status.success());
}

/// However and wherever a demo ends, its directory goes; the status is the one that shells give.
#[cfg(unix)]
#[test]
fn a_demo_that_is_interrupted_leaves_nothing() {
    use rustix::process::{Pid, Signal, kill_process};

    let places = ["workspace  ", "] Begin", "checkpoint_id=keep-stop#delivery"];
    let signals = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];
    // Without a terminal other systems do not tell whether the last one is ignored.
    let signals = signals.into_iter().filter(|(signal, _)| cfg!(target_os = "linux") || *signal != Signal::HUP);
    let cases = signals.map(Some).chain([None]).flat_map(|end| places.map(|place| (end, place)));
    for (end, place) in cases {
        let sandbox = sandbox();
        let mut command = sandbox.command(["demo"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains(place)), "{place}");
        match end {
            Some((signal, _)) => kill_process(Pid::from_child(&child), signal).unwrap(),
            // The reader has enough.
            None => drop(lines),
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(end.map_or(0, |(_, status)| status)), "{end:?} at {place}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{end:?} at {place}");
        assert_eq!(fs::read_dir(sandbox.path().join("tmp")).unwrap().count(), 0, "{end:?} at {place}");
    }
}

/// As `nohup` starts it, or a shell that runs it in the background.
#[cfg(target_os = "linux")]
#[test]
fn a_demo_goes_on_at_signals_that_were_ignored() {
    use rustix::process::{Pid, Signal, kill_process};

    let signals = [(Signal::HUP, "HUP"), (Signal::INT, "INT"), (Signal::TERM, "TERM")];
    for (ignored, name) in signals {
        let sandbox = sandbox();
        let mut shell = sandbox.shell(&format!("trap '' {name}; exec '{}' demo", crate::binary().display()));
        let mut child = shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("] Begin")));
        kill_process(Pid::from_child(&child), ignored).unwrap();
        // At this gate it waits for a second, so what came before was heard.
        assert!(lines.any(|line| line.contains("checkpoint_id=keep-stop#delivery")), "{name}");
        kill_process(Pid::from_child(&child), ignored).unwrap();
        let (end, status) = if ignored == Signal::INT { (Signal::TERM, 143) } else { (Signal::INT, 130) };
        // The others end it as ever.
        kill_process(Pid::from_child(&child), end).unwrap();
        drop(lines);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{name}");
        assert_eq!(fs::read_dir(sandbox.path().join("tmp")).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn colours_are_for_terminals() {
    let sandbox = sandbox().with_env("CLICOLOR_FORCE", "1");
    let text = |sandbox: &Sandbox| {
        let output = sandbox.run(&["list"]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(text(&sandbox).contains('\u{1b}'), "asked for");
    assert!(!text(&sandbox.with_env("NO_COLOR", "1")).contains('\u{1b}'));
}
