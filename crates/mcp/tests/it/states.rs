//! Every tool in every state of the addressed session (spec 03 §10).

use std::fs;

use serde_json::{Value, json};

use crate::bench::{Bench, code, index, warnings};

/// States of the addressed session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is none.
    None,
    /// Opened, in no activity.
    Idle,
    /// In an activity.
    Running,
    /// A checkpoint waits.
    Blocked,
    /// In activity `complete`.
    Complete,
    /// After `__terminal__`.
    Terminal,
    /// It does not open.
    Unreadable(Damage),
}

/// Why a session does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Bytes,
    SealGone,
    NoJson,
    Moved,
    Schema,
}

use State::{Blocked, Complete, Idle, None, Running, Terminal, Unreadable};

const STATES: [State; 11] = [
    None,
    Idle,
    Running,
    Blocked,
    Complete,
    Terminal,
    Unreadable(Damage::Bytes),
    Unreadable(Damage::SealGone),
    Unreadable(Damage::NoJson),
    Unreadable(Damage::Moved),
    Unreadable(Damage::Schema),
];

/// `ok`, a code, or `ok` with the codes of the warnings that the state causes.
type Row = (&'static str, [&'static str; 6]);

/// Outcomes in the states from [`None`] to [`Terminal`]; an unreadable session refuses every call that names it.
const TABLE: [Row; 18] = [
    ("discover", ["ok"; 6]),
    ("list_workflows", ["ok"; 6]),
    ("health_check", ["ok"; 6]),
    ("start_session", ["ok"; 6]),
    ("dispatch_child", ["SESSION_NOT_FOUND", "ok", "ok", "ok", "ok", "ok W_PARENT_COMPLETED"]),
    ("get_workflow", ["SESSION_NOT_FOUND", "ok", "ok", "CHECKPOINT_ACTIVE", "ok", "ok"]),
    (
        "next_activity",
        ["SESSION_NOT_FOUND", "ok", "ok", "CHECKPOINT_ACTIVE", "ok W_COMPLETED_REOPENED", "ok W_COMPLETED_REOPENED"],
    ),
    ("get_activity", ["SESSION_NOT_FOUND", "NO_CURRENT_ACTIVITY", "ok", "CHECKPOINT_ACTIVE", "ok", "SESSION_TERMINAL"]),
    ("get_technique", ["SESSION_NOT_FOUND", "ok", "ok", "CHECKPOINT_ACTIVE", "ok", "SESSION_TERMINAL"]),
    ("get_resource", ["SESSION_NOT_FOUND", "ok", "ok", "CHECKPOINT_ACTIVE", "ok", "ok"]),
    (
        "yield_checkpoint",
        ["SESSION_NOT_FOUND", "NO_CURRENT_ACTIVITY", "ok", "CHECKPOINT_ALREADY_ACTIVE", "ok", "SESSION_TERMINAL"],
    ),
    (
        "present_checkpoint",
        [
            "SESSION_NOT_FOUND",
            "NO_ACTIVE_CHECKPOINT",
            "NO_ACTIVE_CHECKPOINT",
            "ok",
            "NO_ACTIVE_CHECKPOINT",
            "NO_ACTIVE_CHECKPOINT",
        ],
    ),
    (
        "respond_checkpoint",
        [
            "SESSION_NOT_FOUND",
            "NO_ACTIVE_CHECKPOINT",
            "NO_ACTIVE_CHECKPOINT",
            "ok",
            "NO_ACTIVE_CHECKPOINT",
            "NO_ACTIVE_CHECKPOINT",
        ],
    ),
    (
        "resume_checkpoint",
        [
            "SESSION_NOT_FOUND",
            "ok W_NOTHING_RESOLVED",
            "ok W_NOTHING_RESOLVED",
            "CHECKPOINT_STILL_ACTIVE",
            "ok W_NOTHING_RESOLVED",
            "ok W_NOTHING_RESOLVED",
        ],
    ),
    ("get_trace", ["SESSION_NOT_FOUND", "ok", "ok", "CHECKPOINT_ACTIVE", "ok", "ok"]),
    ("get_workflow_status", ["SESSION_NOT_FOUND", "ok", "ok", "ok", "ok", "ok"]),
    ("inspect_session", ["SESSION_NOT_FOUND", "ok", "ok", "ok", "ok", "ok"]),
    ("record_usage", ["SESSION_NOT_FOUND", "ok", "ok", "ok", "ok", "ok"]),
];

/// Warnings that come of the state; the others belong to the call.
const OF_THE_STATE: [&str; 3] = ["W_PARENT_COMPLETED", "W_COMPLETED_REOPENED", "W_NOTHING_RESOLVED"];

/// Tools that never write.
const READ_ONLY: [&str; 6] =
    ["discover", "list_workflows", "health_check", "present_checkpoint", "get_workflow_status", "inspect_session"];

/// Brings a new session into a state; answers its index.
fn reach(bench: &Bench, slug: &str, state: State) -> String {
    if state == None {
        return "AAAAAA".to_owned();
    }
    let index = bench.start(slug);
    match state {
        None | Idle => {}
        Running => bench.go(&index, "plan"),
        Blocked => {
            bench.go(&index, "plan");
            bench.stop(&index, "confirm");
            bench.wait(3000);
        }
        Complete => bench.go(&index, "complete"),
        Terminal => bench.go(&index, "__terminal__"),
        Unreadable(damage) => break_it(bench, slug, damage),
    }
    index
}

fn break_it(bench: &Bench, slug: &str, damage: Damage) {
    let folder = bench.folder(slug);
    let file = folder.join("session.json");
    match damage {
        Damage::Bytes => {
            let mut text = fs::read(&file).unwrap();
            text.push(b'\n');
            fs::write(file, text).unwrap();
        }
        Damage::SealGone => fs::remove_file(folder.join(".session-token")).unwrap(),
        Damage::NoJson => fs::write(file, "{").unwrap(),
        Damage::Moved => {
            let moved = bench.planning().join("group").join(slug);
            fs::create_dir_all(moved.parent().unwrap()).unwrap();
            fs::rename(folder, moved).unwrap();
        }
        Damage::Schema => {
            let mut state = bench.state(slug);
            state["status"] = "sleeping".into();
            bench.write_bare(&folder, &state);
        }
    }
}

/// Arguments that the state alone can make wrong.
fn arguments(tool: &str, slug: &str, index: &str, state: State) -> Value {
    let mut given = match tool {
        "discover" | "list_workflows" | "health_check" => return json!({}),
        "start_session" => return json!({"workflow_id": "walk", "planning_slug": slug}),
        "dispatch_child" => json!({"workflow_id": "bare"}),
        "next_activity" => json!({"activity_id": "ship"}),
        "get_activity" => json!({"context_tokens": 200_000}),
        "get_resource" => json!({"resource_id": "notes"}),
        "yield_checkpoint" => json!({"checkpoint_id": if state == Complete { "farewell" } else { "confirm" }}),
        "respond_checkpoint" => json!({"option_id": "go"}),
        "record_usage" => json!({"activity": "plan", "usage": {}, "basis": "delta"}),
        _ => json!({}),
    };
    given["session_index"] = index.into();
    given
}

/// The files of the planning tree, but for locks.
fn files(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![bench.planning()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else if entry.file_name() != *".session.lock" {
                found.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn expected(row: &Row, state: State) -> String {
    let (tool, outcomes) = row;
    match state {
        Unreadable(_) if ["discover", "list_workflows", "health_check"].contains(tool) => "ok".to_owned(),
        Unreadable(Damage::Bytes | Damage::Moved) => "SEAL_MISMATCH".to_owned(),
        Unreadable(Damage::SealGone) => "SEAL_MISSING".to_owned(),
        Unreadable(Damage::NoJson) if *tool == "start_session" => "SESSION_CORRUPT".to_owned(),
        // no index can be read from it
        Unreadable(Damage::NoJson) => "SESSION_NOT_FOUND".to_owned(),
        Unreadable(Damage::Schema) => "SESSION_SCHEMA_UNSUPPORTED".to_owned(),
        _ => outcomes[STATES.iter().position(|known| *known == state).unwrap()].to_owned(),
    }
}

fn check(bench: &Bench, row: &Row, state: State, slug: &str) {
    let tool = row.0;
    let index = reach(bench, slug, state);
    let before = files(bench);
    let outcome = bench.call(tool, &arguments(tool, slug, &index, state));
    let mut found = code(&outcome);
    for warning in warnings(&outcome).iter().filter(|warning| OF_THE_STATE.contains(&warning.as_str())) {
        found = format!("{found} {warning}");
    }
    if state == Unreadable(Damage::NoJson) && found == "SESSION_NOT_FOUND" {
        assert!(outcome.text.contains(slug), "the folder that could not be read is named: {}", outcome.text);
    }
    assert_eq!(found, expected(row, state), "{tool} in {state:?}: {}", outcome.text);
    let writes = found.starts_with("ok") && !READ_ONLY.contains(&tool);
    // a resume, or a repetition of the first call, changes nothing
    let writes = writes && (tool != "start_session" || state == None);
    assert_eq!(files(bench) != before, writes, "{tool} in {state:?}");
}

#[test]
fn every_tool_in_every_state() {
    let names: Vec<&str> = workflow_engine::TOOLS.iter().map(|tool| tool.name).collect();
    for name in names {
        assert!(TABLE.iter().any(|row| row.0 == name), "{name} is not in the table");
    }
    // each row has directories of its own, since the disk is what takes the time
    std::thread::scope(|threads| {
        for row in &TABLE {
            threads.spawn(|| {
                let bench = Bench::new();
                for (nth, state) in STATES.into_iter().enumerate() {
                    check(&bench, row, state, &format!("s{nth}"));
                }
            });
        }
    });
}

/// A batch that is full is no error (spec 03 §5.9), and a step of an idle session has no technique yet.
#[test]
fn cells_with_two_outcomes() {
    let bench = Bench::new();
    let index = bench.start("batch");
    let take = json!({"session_index": index, "context_tokens": 200_000, "agent_id": "w1"});
    for activity in ["plan", "ship", "tidy"] {
        bench.go(&index, activity);
        assert_eq!(code(&bench.call("get_activity", &take)), "ok");
    }
    bench.go(&index, "rest");
    let refused = bench.call("get_activity", &take);
    assert_eq!((code(&refused).as_str(), refused.is_error), ("BATCH_FULL", false));
    assert!(refused.text.starts_with("status: refused\n"), "{}", refused.text);
    bench.go(&index, "tidy");
    assert_eq!(code(&bench.call("get_activity", &take)), "ok", "an activity that it holds");

    let idle = bench.start("idle");
    let step = bench.call("get_technique", &json!({"session_index": idle, "step_id": "hello"}));
    assert_eq!(code(&step), "NO_CURRENT_ACTIVITY");
    let legacy = bench.folder("legacy");
    fs::create_dir_all(&legacy).unwrap();
    fs::write(legacy.join("workflow-state.json"), "{}").unwrap();
    let old = bench.call("start_session", &json!({"workflow_id": "walk", "planning_slug": "legacy"}));
    assert_eq!(code(&old), "MIGRATION_REQUIRED");
}

/// A resume finds the session as it is, in every state.
#[test]
fn a_resume_changes_no_state() {
    let mut bench = Bench::new();
    let reached: Vec<(State, String, String)> = [Idle, Running, Blocked, Complete, Terminal]
        .into_iter()
        .enumerate()
        .map(|(nth, state)| (state, format!("s{nth}"), reach(&bench, &format!("s{nth}"), state)))
        .collect();
    bench.restart();
    for (state, slug, session) in reached {
        let before = files(&bench);
        let resumed = bench.ok("start_session", &json!({"planning_slug": slug}));
        assert_eq!((index(&resumed), &resumed["resumed"]), (session.clone(), &json!(true)), "{state:?}");
        assert_eq!(files(&bench), before, "{state:?}");
        let status = bench.ok("get_workflow_status", &json!({"session_index": session}));
        let said = match state {
            Blocked => "blocked",
            Complete | Terminal => "completed",
            _ => "active",
        };
        assert_eq!(status["status"], said, "{state:?}");
    }
}
