//! Crashing the server, or making it wait for ever.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Map, Value, json};

use crate::field::{Field, code_of, go, named, pipe, write};

/// Another session answers, whatever lies beside it.
#[track_caller]
fn others_go_on(field: &Field) {
    let other = field.running("other");
    field.ok("get_workflow_status", &json!({"session_index": other}));
}

/// A pipe, a device, a directory or a socket in the place of session.json is waited for.
#[test]
fn a_state_that_is_no_file() {
    for kind in ["pipe", "zero", "directory", "tty"] {
        let mut field = Field::new();
        let index = field.running("a");
        let state = field.folder("a").join("session.json");
        fs::remove_file(&state).unwrap();
        match kind {
            "pipe" => pipe(&state),
            "zero" => symlink("/dev/zero", &state).unwrap(),
            "tty" => symlink("/dev/tty", &state).unwrap(),
            _ => fs::create_dir(&state).unwrap(),
        }
        field.refused("next_activity", &go(&index, "ship"), "SESSION_NOT_FOUND");
        field.refused("start_session", &named("a"), "SESSION_CORRUPT");
        field.restart();
        field.refused("start_session", &named("a"), "SESSION_CORRUPT");
        others_go_on(&field);
    }
}

/// A pipe in the place of the seal or of the pending seal is waited for.
#[test]
fn a_seal_that_is_no_file() {
    for name in [".session-token", ".session-token.pending"] {
        let field = Field::new();
        let index = field.running("a");
        pipe(&field.folder("a").join(name));
        field.refused("next_activity", &go(&index, "ship"), "SESSION_CORRUPT");
        field.refused("get_workflow_status", &json!({"session_index": index}), "SESSION_CORRUPT");
        others_go_on(&field);
    }
}

/// A lock that can never be had is waited for without end.
#[test]
fn a_lock_that_is_no_file() {
    for kind in ["pipe", "directory"] {
        let field = Field::new();
        let index = field.running("a");
        let lock = field.folder("a").join(".session.lock");
        drop(fs::remove_file(&lock));
        match kind {
            "pipe" => pipe(&lock),
            _ => fs::create_dir(&lock).unwrap(),
        }
        field.refused("next_activity", &go(&index, "ship"), "WRITE_FAILED");
        field.ok("get_workflow_status", &json!({"session_index": index}));
        others_go_on(&field);
    }
}

/// A lock that somebody holds for ever is waited for without end.
#[test]
fn a_lock_that_is_never_given_back() {
    let field = Field::new();
    let index = field.running("a");
    let lock = fs::OpenOptions::new().write(true).open(field.folder("a").join(".session.lock")).unwrap();
    lock.lock().unwrap();
    field.refused("next_activity", &go(&index, "ship"), "SESSION_BUSY");
    others_go_on(&field);
    drop(lock);
    field.ok("next_activity", &go(&index, "ship"));
}

/// Traces and notes that are pipes hold the calls that write or follow them.
#[test]
fn traces_and_notes_that_are_pipes() {
    let field = Field::new();
    let index = field.running("a");
    pipe(&field.base.join(format!("state/trace/{index}.jsonl")));
    field.ok("next_activity", &go(&index, "ship"));
    field.ok("get_trace", &json!({"session_index": index}));
    let minted = "transition-01234567-89ab-cdef-0123-456789abcdef";
    fs::create_dir_all(field.base.join("state/transient")).unwrap();
    pipe(&field.base.join("state/transient").join(format!("{minted}.moved")));
    field.refused("start_session", &named(minted), "SESSION_NOT_FOUND");
    pipe(&field.base.join(format!("state/seen/{index}.json")));
    field.ok("next_activity", &go(&index, "tidy"));
}

/// A key that is a pipe is waited for.
#[test]
fn a_key_that_is_no_file() {
    let mut field = Field::new();
    let index = field.running("a");
    pipe(&field.base.join("state/secret"));
    field.restart();
    let code = code_of(&field.call("next_activity", &go(&index, "ship"))).to_owned();
    assert!(code.starts_with("KEY_"), "{code}");
    field.refused("next_activity", &go(&index, "ship"), &code);
}

/// A state that nests without end exhausts the stack.
#[test]
fn a_state_that_nests_without_end() {
    let field = Field::new();
    field.running("a");
    for text in ["[".repeat(200_000), "{\"a\":".repeat(200_000), format!("{}{}", "[".repeat(5000), "]".repeat(5000))] {
        fs::write(field.folder("a").join("session.json"), text).unwrap();
        field.refused("start_session", &named("a"), "SESSION_CORRUPT");
    }
    others_go_on(&field);
}

/// A trace whose lines nest, are no text or have no end.
#[test]
fn a_trace_that_is_damaged() {
    let field = Field::new();
    let index = field.running("a");
    let mut text = "{\"a\":".repeat(100_000).into_bytes();
    text.extend([b'\n', 0xFF, 0xFE, b'\n']);
    text.extend(b"{\"dropped\":18446744073709551615}\nnull\n[]\n\"x\"\n");
    fs::write(field.base.join(format!("state/trace/{index}.jsonl")), &text).unwrap();
    field.ok("get_trace", &json!({"session_index": index}));
    let mut text = b"{\"dropped\":18446744073709551615}\n{}\n{}\n".to_vec();
    text.extend(b"{}\n".repeat(3));
    fs::write(field.base.join(format!("state/trace/{index}.jsonl")), text).unwrap();
    let outcome = field.call("next_activity", &go(&index, "ship"));
    assert_ne!(code_of(&outcome), "INTERNAL", "{}", outcome.text);
    let outcome = field.call("get_trace", &json!({"session_index": index, "trace_tokens": [format!("{index}:0-9")]}));
    assert_ne!(code_of(&outcome), "INTERNAL", "{}", outcome.text);
}

/// Links in a circle make the search for sessions endless.
#[test]
fn links_in_a_circle() {
    let field = Field::new();
    let index = field.running("a");
    for name in ["one", "two", "three"] {
        symlink(field.planning(), field.folder("a").join(name)).unwrap();
        symlink(field.folder("a"), field.folder(name)).unwrap();
    }
    symlink(field.folder("self"), field.folder("self")).unwrap();
    field.ok("next_activity", &go(&index, "ship"));
    field.refused("get_workflow_status", &json!({"session_index": "AAAAAA"}), "SESSION_NOT_FOUND");
    field.refused("start_session", &named("self"), "WORKSPACE_INVALID");
    symlink(field.base.join("corpus"), field.base.join("corpus/walk/round")).unwrap();
    symlink(field.base.join("corpus/loop"), field.base.join("corpus/loop")).unwrap();
    field.ok("list_workflows", &json!({}));
}

/// Aliases that double themselves fill the memory.
#[test]
fn a_definition_of_aliases() {
    let field = Field::new();
    field.start("first");
    let mut text = "id: bomb\nversion: 1.0.0\ntitle: Bomb\na0: &a0 [x, x]\n".to_owned();
    for i in 1..40 {
        let line = format!("a{i}: &a{i} [*a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}]\n", i - 1);
        text.push_str(&line);
    }
    field.define("bomb/workflow.yaml", &text);
    field.refused("start_session", &json!({"workflow_id": "bomb", "planning_slug": "b"}), "WORKFLOW_INVALID");
    field.ok("list_workflows", &json!({}));
}

/// Definitions that nest without end exhaust the stack.
#[test]
fn a_definition_that_nests_without_end() {
    let field = Field::new();
    field.start("first");
    let head = "id: deep\nversion: 1.0.0\ntitle: Deep\ninitialActivity: only\n";
    let mut indented = format!("{head}x:\n");
    for level in 1..2000 {
        indented.push_str(&" ".repeat(level));
        indented.push_str("a:\n");
    }
    for text in [
        format!("{head}x: {}", "[".repeat(100_000)),
        format!("{head}x: {}", "{a: ".repeat(50_000)),
        format!("{head}x: {}y", "- ".repeat(50_000)),
        format!("{head}? {}", "? ".repeat(50_000)),
        indented,
    ] {
        field.define("deep/workflow.yaml", &text);
        field.refused("start_session", &json!({"workflow_id": "deep", "planning_slug": "b"}), "WORKFLOW_INVALID");
    }
}

/// Resources and techniques of 100,000 lines, of nested quotes and of open fences take all the time there is.
#[test]
fn texts_of_many_lines() {
    let field = Field::new();
    let heading = "# Same\n";
    let mut numbered = String::new();
    for i in 0..20_000 {
        numbered.push_str("## H ");
        numbered.push_str(&i.to_string());
        numbered.push('\n');
    }
    field.define("walk/resources/lines.md", &heading.repeat(100_000));
    field.define("walk/resources/quotes.md", &format!("{}x\n", "> ".repeat(100_000)));
    field.define("walk/resources/brackets.md", &"[".repeat(200_000));
    field.define("walk/resources/fences.md", &"```\n".repeat(100_001));
    field.define(
        "walk/techniques/greet.md",
        &format!(
            "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nHi.\n\n## Protocol\n\n{}",
            "- x\n".repeat(50_000)
        ),
    );
    field.define("walk/resources/numbered.md", &numbered);
    let index = field.running("a");
    for id in ["lines", "quotes", "brackets", "fences", "numbered"] {
        let missing = json!({"session_index": index, "resource_id": format!("{id}#no-such-section")});
        field.refused("get_resource", &missing, "SECTION_NOT_FOUND");
    }
    field.ok("get_technique", &json!({"session_index": index, "step_id": "hello"}));
}

/// A definition that is a pipe is waited for; one above the limit is read.
#[test]
fn definitions_that_are_no_files_or_too_large() {
    let field = Field::new();
    let index = field.running("a");
    pipe(&field.base.join("corpus/walk/resources/pipe.md"));
    symlink("/dev/zero", field.base.join("corpus/walk/resources/zero.md")).unwrap();
    field.define("walk/resources/large.md", &"x".repeat(4 * 1024 * 1024 + 1));
    fs::write(field.base.join("corpus/walk/resources/bytes.md"), [0xFF; 100]).unwrap();
    for id in ["pipe", "zero", "large", "bytes"] {
        let wanted = json!({"session_index": index, "resource_id": id});
        field.refused("get_resource", &wanted, "RESOURCE_NOT_FOUND");
    }
}

/// Techniques that bind each other in a circle are composed for ever.
#[test]
fn definitions_in_a_circle() {
    let field = Field::new();
    field.define(
        "walk/activities/01-plan.yaml",
        "id: plan\nversion: 1.0.0\nname: Plan\nsteps:\n  - { kind: technique, id: hello, technique: one }\n",
    );
    for (name, other) in [("one", "two"), ("two", "one")] {
        let text = format!(
            "---\nmetadata: {{ version: 1.0.0 }}\ntechniques: [{other}]\n---\n\n## Capability\n\nTurns to [{other}](./{other}.md).\n\n## Protocol\n\n- Apply [{other}](./{other}.md).\n"
        );
        field.define(&format!("walk/techniques/{name}.md"), &text);
    }
    let index = field.running("a");
    field.ok("get_technique", &json!({"session_index": index, "step_id": "hello"}));
    let manifest = "id: one\nversion: 1.0.0\ntitle: One\ninitialActivity: x\nactivities: [two/x]\n";
    field.define("one/workflow.yaml", manifest);
    field.define("two/workflow.yaml", &manifest.replace("one", "two").replace("two/x", "one/x").replace("One", "Two"));
    let outcome = field.call("start_session", &json!({"workflow_id": "one", "planning_slug": "b"}));
    assert_ne!(code_of(&outcome), "INTERNAL", "{}", outcome.text);
}

/// Arguments that are too long, too many or nest too deep.
#[test]
fn arguments_beyond_every_limit() {
    let field = Field::new();
    let index = field.running("a");
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    for value in [deep, json!("x".repeat(20_000_000)), json!(vec![0; 2_000_000])] {
        let mut arguments = go(&index, "ship");
        arguments["variables_changed"] = json!({"is_ready": value});
        field.refused("next_activity", &arguments, "PARAM_TOO_LARGE");
    }
    let token = json!({"session_index": index, "trace_tokens": ["A".repeat(20_000_000)]});
    field.refused("get_trace", &token, "PARAM_TOO_LARGE");
    let slug = json!({"workflow_id": "walk", "planning_slug": "x".repeat(100_000)});
    field.refused("start_session", &slug, "INVALID_SLUG");
}

/// Arguments of every kind but the right one bring a tool down.
#[test]
fn arguments_of_every_wrong_kind() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    let values = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!("\u{0}\u{202e}\u{feff}"),
        json!("[[[[{\"a\":"),
        json!([]),
        json!([null, {}, [[]]]),
        json!({}),
        json!({"": {"\u{0}": []}}),
    ];
    for tool in workflow_engine::TOOLS {
        let schema = serde_json::to_value((tool.schema)()).unwrap();
        let names: Vec<String> =
            schema["properties"].as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
        for name in names.iter().map(String::as_str).chain(["unknown", "", "__proto__"]) {
            for value in &values {
                let mut arguments = Map::new();
                if names.iter().any(|name| name == "session_index") {
                    arguments.insert("session_index".to_owned(), json!(index));
                }
                arguments.insert(name.to_owned(), value.clone());
                let outcome = field.call(tool.name, &Value::Object(arguments));
                assert_ne!(code_of(&outcome), "INTERNAL", "{} {name} {value}: {}", tool.name, outcome.text);
            }
        }
    }
    field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
}

/// A tool that is none, with a name without end.
#[test]
fn a_tool_that_is_none() {
    let field = Field::new();
    for name in ["", "start_session\u{0}", "START_SESSION", "../start_session", &"x".repeat(1_000_000)] {
        let outcome = field.refused(name, &json!({}), "UNKNOWN_TOOL");
        assert!(outcome.text.len() < 2000);
    }
}

/// Children of children without end.
#[test]
fn children_without_end() {
    let field = Field::new();
    let mut index = field.running("a");
    for _ in 0..32 {
        let child = field.ok("dispatch_child", &json!({"session_index": index, "workflow_id": "walk"}));
        child["session_index"].as_str().unwrap().clone_into(&mut index);
    }
    field.refused("dispatch_child", &json!({"session_index": index, "workflow_id": "walk"}), "DEPTH_LIMIT");
}

/// A clock at the end of time.
#[test]
fn a_clock_at_the_end_of_time() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    for wait in [i64::MAX / 4, i64::MAX / 2, i64::MIN / 2] {
        field.wait(wait);
        for (tool, how) in [
            ("get_workflow_status", json!({"session_index": index})),
            ("present_checkpoint", json!({"session_index": index})),
            ("respond_checkpoint", json!({"session_index": index, "auto_advance": true})),
        ] {
            let outcome = field.call(tool, &how);
            assert_ne!(code_of(&outcome), "INTERNAL", "{}", outcome.text);
        }
    }
}

/// Files with names that no text holds, and thousands of folders, stop the search.
#[test]
fn names_that_are_no_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let field = Field::new();
    let index = field.running("a");
    for name in [&b"\xff\xfe"[..], b"a\nb", b"\x1b[2J", b" "] {
        let folder = field.planning().join(OsStr::from_bytes(name));
        write(&folder.join("session.json"), "{}");
        write(&field.base.join("corpus").join(OsStr::from_bytes(name)).join("workflow.yaml"), "id: x\n");
    }
    field.ok("next_activity", &go(&index, "ship"));
    field.ok("list_workflows", &json!({}));
    field.refused("get_workflow_status", &json!({"session_index": "AAAAAA"}), "SESSION_NOT_FOUND");
}
