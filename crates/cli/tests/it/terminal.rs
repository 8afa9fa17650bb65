//! What a terminal is sent: nothing that comes from outside steers it.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use serde_json::json;
use testkit::Sandbox;

use crate::sandbox;

/// For a file name: styles, a title, a line of its own, one that is overwritten, one that is erased, turned writing.
const NAME: &str = "e\u{1b}[35mv\u{1b}]0;pwn\u{7}\u{8}il\u{7f}\rOK\nforged\u{9b}2K\u{202e}x\u{2066}y\u{2028}z\u{200b}";

/// The same for a definition.
const QUOTED: &str = r#""\u0065\x1b[35mv\x1b]0;pwn\x07\bil\x7f\rOK\nforged\x9b2K\u202ex\u2066y\Lz\u200b""#;

/// How a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Pipe,
    Forced,
    Terminal,
}

const WAYS: [Way; 3] = [Way::Pipe, Way::Forced, Way::Terminal];

/// What a command writes, to both streams.
fn shown(sandbox: &Sandbox, arguments: &[&str], way: Way) -> String {
    let places = sandbox.places();
    let mut command = sandbox.command(arguments.iter().copied().chain(places.iter().map(String::as_str)));
    command.stdin(Stdio::null()).env("TERM", "xterm");
    if way != Way::Terminal {
        if way == Way::Forced {
            command.env("CLICOLOR_FORCE", "1");
        }
        let output = command.output().unwrap();
        return String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    }
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let peer = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    command.stdout(peer.try_clone().unwrap()).stderr(peer);
    let mut child = command.spawn().unwrap();
    // It holds this end of the terminal too.
    drop(command);
    let (mut master, mut bytes) = (File::from(master), Vec::new());
    // The other end is closed when the program ends, which is told as an error.
    drop(master.read_to_end(&mut bytes));
    child.wait().unwrap();
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

/// Nothing but line ends, tabs and this program's own styles.
#[track_caller]
fn assert_harmless(text: &str, about: &str) {
    let mut parts = text.split('\u{1b}');
    let mut rest = parts.next().unwrap().to_owned();
    for part in parts {
        let (style, after) = part.strip_prefix('[').and_then(|part| part.split_once('m')).unwrap_or((part, ""));
        assert!(["0", "1", "2", "4", "31", "32", "33", "36"].contains(&style), "{about}: {style:?} in {text:?}");
        rest.push_str(after);
    }
    let harmful = |c: char| (c.is_control() && !"\n\t".contains(c)) || "\u{202e}\u{2066}\u{2028}\u{200b}".contains(c);
    assert!(!rest.contains(harmful), "{about}: {rest:?}");
    assert!(!rest.lines().any(|line| line.starts_with("forged")), "{about}: {rest:?}");
}

/// A session that waits for a checkpoint of a hostile id, which is gone from the definition, and folders of a hostile name.
fn hostile_place() -> Sandbox {
    let sandbox = sandbox();
    let write = |path: &str, text: String| {
        let path = sandbox.workflows().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let manifest = |id: &str, version: &str, more: &str| {
        format!(
            "id: {id}\nversion: {version}\ntitle: {QUOTED}\ndescription: {QUOTED}\ntags: [{QUOTED}]\ninitialActivity: act\n\
             variables:\n  - {{ name: a_word, type: string, defaultValue: {QUOTED}, description: {QUOTED} }}\n{more}"
        )
    };
    let activity = |id: &str, gate: &str, more: &str| {
        format!(
            "id: {id}\nversion: 1.0.0\nname: {QUOTED}\nsteps:\n  - kind: checkpoint\n    id: {gate}\n    message: {QUOTED}\n    \
             options:\n      - {{ id: {QUOTED}, label: {QUOTED}, description: {QUOTED} }}\n\
             transitions:\n  - {{ to: {QUOTED}, isDefault: true }}\n{more}"
        )
    };
    let unknown = format!("{QUOTED}: 2\n");
    write("esc/workflow.yaml", manifest("esc", "1.0.0", ""));
    write("esc/activities/01-act.yaml", activity("act", QUOTED, ""));
    write("esc/activities/02-other.yaml", activity(QUOTED, "gate", ""));
    write("worse/workflow.yaml", manifest("worse", QUOTED, &unknown));
    write("worse/activities/01-act.yaml", activity("act", QUOTED, &unknown));
    write("half/workflow.yaml", manifest("half", "1.0.0", ""));
    write("half/activities/01-act.yaml", activity("act", QUOTED, ""));
    write("half/activities/02-other.yaml", activity(QUOTED, "gate", &unknown));
    write(&format!("half/activities/03-{NAME}.yaml"), "id: [\n".to_owned());
    write("bad/workflow.yaml", format!("{QUOTED}: [\n"));
    write(&format!("{NAME}/workflow.yaml"), "title: a: b\n".to_owned());
    write(&format!("{NAME}2/workflow.yaml"), "id: x\nversion: 1.0.0\ntitle: T\ninitialActivity: a\n".to_owned());
    let mut client = sandbox.connect();
    for slug in ["alpha", "beta", "gamma"] {
        let arguments = json!({"workflow_id": "esc", "planning_slug": slug, "agent_id": NAME});
        let index = client.call("start_session", arguments).json()["session_index"].clone();
        client.call("next_activity", json!({"session_index": index, "activity_id": "act"})).ok();
        client.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": NAME})).ok();
    }
    fs::rename(sandbox.folder("beta"), sandbox.folder(NAME)).unwrap();
    fs::create_dir(sandbox.folder(&format!("{NAME}2"))).unwrap();
    fs::write(sandbox.folder(&format!("{NAME}2")).join("workflow-state.json"), "{}").unwrap();
    sandbox
}

#[test]
fn nothing_from_outside_steers_the_terminal() {
    let sandbox = hostile_place();
    let path = sandbox.folder(NAME).display().to_string();
    let flag = format!("--{NAME}");
    let pair = format!("{NAME}={NAME}");
    let setting = format!("--log-level={NAME}");
    let directory = format!("--workflow-dir={}", sandbox.path().join(NAME).display());
    let workspace = format!("--workspace={NAME}");
    let activity = format!("esc/{NAME}");
    let id = format!("--workspace-id={NAME}");
    let output = format!("--output={}", sandbox.path().join(NAME).display());
    for arguments in [
        &["list"][..],
        &["list", "--sessions"],
        &["show", "esc"],
        &["show", "bad"],
        &["show", "worse"],
        &["show", "half"],
        &["show", &format!("half/{NAME}")],
        &["show", NAME],
        &["show", &activity],
        &["session", "list"],
        &["session", "show", "alpha", "--full"],
        &["session", "show", NAME],
        &["session", "show", &path],
        &["session", "verify"],
        &["session", "verify", NAME],
        &["session", "verify", &path],
        &["session", "release", "alpha"],
        &["session", "release", NAME],
        &["session", "adopt", &path],
        &["session", "adopt", NAME],
        &["session", "migrate", &path],
        &["session", "migrate", NAME],
        &["session", "export", NAME],
        &["session", "export", "alpha", &output],
        &["session", "gc", "--older-than", "0s", "--dry-run"],
        &["session", "gc", "--older-than", NAME],
        &["call", "next_activity", "session_index=ABCDEF", &pair],
        &["call", "start_session", &format!("planning_slug={NAME}")],
        &["call", "start_session", &format!("workflow_id={NAME}")],
        &["call", "get_workflow_status", &format!("session_index={NAME}")],
        &["call", "get_workflow_status", NAME],
        &["call", NAME],
        &["config", "show", &id],
        &["config", "show", &setting],
        &["list", &directory],
        &["list", &workspace],
        &["key", "show"],
        &["serve", &setting],
        &["serve", "--log-format=text", &id, &directory],
        &[NAME],
        &["list", &flag],
        &["session", NAME],
    ] {
        for way in WAYS {
            let text = shown(&sandbox, arguments, way);
            assert_harmless(&text, &format!("{arguments:?}, {way:?}"));
            assert!(!text.is_empty(), "{arguments:?}, {way:?}");
        }
    }
    // The gate can be released when its checkpoint is gone.
    let file = sandbox.workflows().join("esc/activities/01-act.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen(&format!("    id: {QUOTED}"), "    id: gate", 1)).unwrap();
    for way in WAYS {
        let text = shown(&sandbox, &["session", "release", "alpha"], way);
        assert!(text.contains("no longer in the definition"), "{text}");
        assert_harmless(&text, &format!("{way:?}"));
        assert_harmless(&shown(&sandbox, &["session", "show", "alpha"], way), &format!("{way:?}"));
    }
    assert!(shown(&sandbox, &["list"], Way::Terminal).contains("\u{1b}[1mesc\u{1b}[0m"), "own styles are shown");
    let text = shown(&sandbox, &["session", "release", "alpha", "--yes"], Way::Terminal);
    assert!(text.contains("released"), "{text}");
    assert_harmless(&text, "release");
}

/// Agents and scripts get what was answered; a terminal gets what it can show.
#[test]
fn answers_stay_as_they_are_except_on_a_terminal() {
    let sandbox = hostile_place();
    let index =
        sandbox.connect().call("start_session", json!({"planning_slug": "gamma"})).json()["session_index"].clone();
    let status = sandbox.connect().call("get_workflow_status", json!({"session_index": index})).text;
    assert!(status.contains(['\u{9b}', '\u{202e}']), "{status:?}");
    let index = format!("session_index={}", index.as_str().unwrap());
    let call: &[&str] = &["call", "get_workflow_status", &index];
    for way in [Way::Pipe, Way::Forced] {
        assert_eq!(shown(&sandbox, call, way), format!("{}\n", status.trim_end_matches('\n')), "{way:?}");
    }
    let resource = sandbox.workflows().join("mini/resources/notes.md");
    let text = fs::read_to_string(&resource).unwrap();
    fs::write(&resource, text.replace("Friendly.", &format!("Friendly.\ta\n\u{1b}[35m{NAME}"))).unwrap();
    let other = json!({"workflow_id": "mini", "planning_slug": "other"});
    let other = sandbox.connect().call("start_session", other).json()["session_index"].clone();
    let other = format!("session_index={}", other.as_str().unwrap());
    let read = ["call", "get_resource", &other, "resource_id=mini/notes"];
    assert!(
        shown(&sandbox, &read, Way::Pipe).contains(&format!("Friendly.\ta\n\u{1b}[35m{NAME}")),
        "{:?}",
        shown(&sandbox, &read, Way::Pipe)
    );
    let told = shown(&sandbox, &read, Way::Terminal);
    assert!(told.contains("Friendly.\ta\n\u{fffd}[35me\u{fffd}[35mv"), "{told:?}");
    for arguments in [
        call,
        &["call", "get_workflow_status", &index, "--json"],
        &["list", "--json"],
        &["show", "esc", "--yaml"],
        &["show", "esc/act"],
        &["session", "list", "--json"],
        &["session", "show", "alpha", "--json"],
        &["session", "export", "alpha", "--output", "-"],
        &["session", "export", "alpha", "--json", "--output", "-"],
    ] {
        let told = shown(&sandbox, arguments, Way::Terminal).replace("\nforged", "");
        assert_harmless(&told, &format!("{arguments:?}"));
    }
}
