//! Hazards of spec 03 §15 that show at the surface: identifiers that reach outside, servers that share a process.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use workflow_corpus::{Library, Root};
use workflow_engine::Settings;
use workflow_mcp::{Outcome, Server};
use workflow_store::{FileStore, Options};

use crate::bench::index;

const SECRET: &str = "the-secret-outside";

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A server over a directory of definitions, with files worth reading all around it.
fn server(base: &Path) -> Server {
    for outside in ["out/x.md", "x.md", "ws/x.md", "out/workflow.yaml", "state/x.md", "wf/x.md", "wf/.hidden/x.md"] {
        write(&base.join(outside), &format!("---\nname: x\n---\n\n# {SECRET}\n\n## Part\n\n{SECRET}\n"));
    }
    for file in ["wf/mini/activities/01-a.yaml", "out/activities/01-a.yaml"] {
        write(&base.join(file), "id: a\nversion: 1.0.0\nname: A\nsteps: [{ kind: action, id: act }]\n");
    }
    write(&base.join("wf/mini/workflow.yaml"), "id: mini\nversion: 1.0.0\ntitle: Mini\ninitialActivity: a\n");
    write(&base.join("wf/mini/resources/notes.md"), "---\nname: notes\n---\n\n# Notes\n");
    #[cfg(unix)]
    for (link, target) in
        [("link.md", "../../../out/x.md"), ("gone.md", "../../../nowhere.md"), ("dir", "../../../out")]
    {
        std::os::unix::fs::symlink(target, base.join("wf/mini/resources").join(link)).unwrap();
    }
    fs::create_dir_all(base.join("ws")).unwrap();
    let root = Root::Directory { path: base.join("wf"), label: "wf".to_owned() };
    let store = FileStore::open(Options::new(base.join("ws"), base.join("state"))).unwrap();
    Server::new(
        Library::new(vec![root], None),
        store,
        Settings { checkpoint_min_response_ms: 0, ..Settings::default() },
    )
}

fn call(server: &Server, tool: &str, arguments: &Value) -> Outcome {
    server.call(tool, arguments.as_object().unwrap(), "test", &|| false)
}

/// Ways to name `x.md` outside of `wf/mini/resources`.
fn ways_out(base: &Path) -> Vec<String> {
    let mut ways = Vec::new();
    for target in ["x", "x.md", "out/x", "out/x.md", "../x", ".hidden/x", "resources/link", "resources/dir/x"] {
        for up in [
            "",
            "../",
            "../../",
            "../../../",
            "../../../../",
            "./",
            "/",
            "//",
            "..\\..\\",
            "mini/",
            "mini/../",
            "mini/../../",
        ] {
            ways.push(format!("{up}{target}"));
            ways.push(format!("{up}{target}#part"));
        }
        ways.push(base.join(target).display().to_string());
        ways.push(format!("mini/{}", base.join(target).display()));
        ways.push(format!("file://{}", base.join(target).display()));
    }
    for odd in [
        "link",
        "gone",
        "dir/x",
        "dir",
        "..",
        ".",
        "mini/..",
        "x\0",
        "..%2fx",
        "%2e%2e/x",
        "‥/x",
        "．．/x",
        "notes/../link",
    ] {
        ways.push(odd.to_owned());
    }
    ways
}

#[test]
fn hazard_h01_no_identifier_reads_outside_its_root() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().canonicalize().unwrap();
    let server = server(&base);
    let started = call(&server, "start_session", &json!({"workflow_id": "mini", "planning_slug": "a"}));
    let index = index(&serde_json::from_str(&started.text).unwrap());
    let entered = call(&server, "next_activity", &json!({"session_index": index, "activity_id": "a"}));
    assert!(!entered.is_error, "{}", entered.text);
    let notes = call(&server, "get_resource", &json!({"session_index": index, "resource_id": "notes"}));
    assert!(notes.text.contains("# Notes"), "the way in works: {}", notes.text);
    for way in ways_out(&base) {
        for (tool, arguments) in [
            ("get_resource", json!({"session_index": index, "resource_id": way})),
            ("get_technique", json!({"session_index": index, "step_id": way})),
            ("next_activity", json!({"session_index": index, "activity_id": way})),
            ("start_session", json!({"workflow_id": way, "planning_slug": "b"})),
            ("dispatch_child", json!({"session_index": index, "workflow_id": way})),
        ] {
            let outcome = call(&server, tool, &arguments);
            let answer = format!("{outcome:?}");
            assert!(!answer.contains(SECRET), "{tool} {way}: {answer}");
            assert!(outcome.is_error, "{tool} {way}: {answer}");
        }
    }
    assert!(!base.join("ws/.engineering/artifacts/planning/b").exists());
}

#[test]
fn hazard_h01_no_slug_writes_outside_the_planning_root() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().canonicalize().unwrap();
    let server = server(&base);
    let start = |arguments: Value| call(&server, "start_session", &arguments);
    assert!(!start(json!({"workflow_id": "mini", "planning_slug": "plain"})).is_error);
    let planning = base.join("ws/.engineering/artifacts/planning");
    let long = "x".repeat(121);
    let names = [
        "..",
        ".",
        "../b",
        "a/b",
        "a\\b",
        "/b",
        "b/",
        ".git",
        "b.",
        "b ",
        " b",
        "b\n",
        "b\0",
        "-b",
        "_b",
        "CON",
        "nul",
        "com1",
        "LPT9.txt",
        "aux.md",
        "PLAIN",
        "Plain",
        "pla\u{ed}n",
        "plai\u{301}n",
        "ｐｌａｉｎ",
        "b\u{202e}",
        "b:stream",
        "~",
        "$HOME",
        "*",
        long.as_str(),
    ];
    for name in names {
        for arguments in [
            json!({"workflow_id": "mini", "planning_slug": name}),
            json!({"workflow_id": "mini", "planning_slug": "c", "parent_planning_slug": name}),
        ] {
            let outcome = start(arguments.clone());
            assert!(outcome.is_error, "{arguments}: {}", outcome.text);
        }
    }
    for folder in ["relative/b", "../b", "/b/..", "/", ""] {
        let outcome = start(json!({"workflow_id": "mini", "planning_folder": folder}));
        assert!(outcome.is_error || folder == "/b/..", "{folder}: {}", outcome.text);
    }
    // Only the last segment of a folder counts: it is made below the planning root, wherever the rest points to.
    let elsewhere = base.join("out/evil").display().to_string();
    assert!(!start(json!({"workflow_id": "mini", "planning_folder": elsewhere})).is_error);
    assert!(!base.join("out/evil").exists());
    let mut made: Vec<String> = fs::read_dir(&planning)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != ".gitignore")
        .collect();
    made.sort();
    assert_eq!(made, ["evil", "plain"]);
    let mut around: Vec<String> =
        fs::read_dir(&base).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    around.sort();
    assert_eq!(around, ["out", "state", "wf", "ws", "x.md"]);
}

/// Nothing of a server is kept for the whole process: two of them do not see each other's sessions, keys or settings.
#[test]
fn hazard_h24_two_servers_in_one_process_are_two() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().canonicalize().unwrap();
    let (one, two) = (server(&base.join("one")), server(&base.join("two")));
    let start = |server: &Server, slug: &str| {
        let outcome = call(server, "start_session", &json!({"workflow_id": "mini", "planning_slug": slug}));
        index(&serde_json::from_str(&outcome.text).unwrap())
    };
    let (first, second) = (start(&one, "a"), start(&two, "b"));
    for (server, own, other) in [(&one, &first, &second), (&two, &second, &first), (&one, &first, &second)] {
        assert!(!call(server, "get_workflow_status", &json!({"session_index": own})).is_error);
        let unknown = call(server, "get_workflow_status", &json!({"session_index": other}));
        assert!(unknown.text.starts_with("SESSION_NOT_FOUND: "), "{}", unknown.text);
        assert!(!call(server, "next_activity", &json!({"session_index": own, "activity_id": "a"})).is_error);
    }
    let key = |name: &str| fs::read(base.join(name).join("state/secret")).unwrap();
    assert_ne!(key("one"), key("two"));
    for (name, own, other) in [("one", &first, &second), ("two", &second, &first)] {
        let trace = |index: &String| base.join(name).join(format!("state/trace/{index}.jsonl"));
        assert!(trace(own).exists() && !trace(other).exists());
    }
}
