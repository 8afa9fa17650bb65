//! Sessions that the original wrote, resumed by the real binary. `WORKFLOW_TEST_SESSIONS` names the folder that holds
//! them and their key, `WORKFLOW_TEST_CORPORA` the definitions that they were walked with.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Client, Sandbox, copy_tree};

use crate::sandbox;

/// Folder without its date, agent, and what the session must report.
struct Recorded {
    kind: &'static str,
    agent: &'static str,
    status: &'static str,
    activity: &'static str,
    answers: usize,
    index: [&'static str; 2],
}

const RECORDED: &[Recorded] = &[
    Recorded {
        kind: "part-way",
        agent: "orchestrator",
        status: "active",
        activity: "design-philosophy",
        answers: 11,
        index: ["NEFBWT", "64WEYS"],
    },
    Recorded {
        kind: "open-checkpoint",
        agent: "orchestrator",
        status: "blocked",
        activity: "design-philosophy",
        answers: 10,
        index: ["ANEGZL", "OEZQRH"],
    },
    Recorded {
        kind: "family",
        agent: "top",
        status: "active",
        activity: "discover-session",
        answers: 0,
        index: ["VFDHSM", "6MOVAU"],
    },
    Recorded {
        kind: "ledger",
        agent: "orchestrator",
        status: "active",
        activity: "codebase-comprehension",
        answers: 13,
        index: ["6WCMJC", "3YKSSO"],
    },
    Recorded {
        kind: "completed",
        agent: "orchestrator",
        status: "completed",
        activity: "__terminal__",
        answers: 2,
        index: ["MXU7PB", "KAJB3F"],
    },
    Recorded {
        kind: "odd-values",
        agent: "оркестратор-é",
        status: "active",
        activity: "design-philosophy",
        answers: 0,
        index: ["NNRVMN", "CSJUOB"],
    },
];

const DATES: [&str; 2] = ["2026-07", "2026-08"];

/// The recordings, and the corpus of each date; `None` when they are not named.
#[expect(clippy::print_stdout, reason = "a skipped test says why")]
fn recordings() -> Option<(PathBuf, Vec<PathBuf>)> {
    let sessions = std::env::var_os("WORKFLOW_TEST_SESSIONS").map(PathBuf::from);
    let corpora: Vec<PathBuf> =
        std::env::var_os("WORKFLOW_TEST_CORPORA").iter().flat_map(std::env::split_paths).collect();
    let found: Vec<PathBuf> =
        DATES.iter().filter_map(|date| corpora.iter().find(|corpus| corpus.ends_with(date)).cloned()).collect();
    let sessions = sessions.filter(|sessions| sessions.join("secret").is_file() && found.len() == DATES.len());
    if sessions.is_none() {
        println!("skipped: WORKFLOW_TEST_SESSIONS and WORKFLOW_TEST_CORPORA do not name recordings and their corpora");
    }
    sessions.map(|sessions| (sessions, found))
}

/// Calls `check` with a resumed session of a kind, for both dates.
fn each(kind: &str, check: impl Fn(&Sandbox, &mut Client, &str, &str, &Value)) {
    let Some((sessions, corpora)) = recordings() else { return };
    for (recorded, (date, corpus)) in RECORDED
        .iter()
        .filter(|recorded| recorded.kind == kind)
        .flat_map(|recorded| DATES.iter().zip(&corpora).map(move |pair| (recorded, pair)))
    {
        let slug = format!("{date}-{kind}");
        let (sandbox, mut client) = start(&sessions, corpus, &slug);
        let state: Value =
            serde_json::from_slice(&fs::read(sandbox.folder(&slug).join("session.json")).unwrap()).unwrap();
        let position = DATES.iter().position(|known| known == date).unwrap();
        let index = recorded.index[position];
        let resumed = client.call("start_session", json!({"planning_slug": slug, "agent_id": recorded.agent})).json();
        assert_eq!((&resumed["session_index"], &resumed["resumed"]), (&json!(index), &json!(true)), "{slug}");
        let status = client.call("get_workflow_status", json!({"session_index": index})).json();
        assert_eq!(status["status"], recorded.status, "{slug}");
        assert_eq!(status["current_activity"], recorded.activity, "{slug}");
        assert_eq!(status["variables"], state["variables"], "{slug}");
        assert_eq!(status["completed_activities"], state["completedActivities"], "{slug}");
        let answers = client.call("inspect_session", json!({"session_index": index, "view": "checkpoints"})).json();
        assert_eq!(answers.as_object().unwrap().len(), recorded.answers, "{slug}");
        let history = client.call("inspect_session", json!({"session_index": index, "view": "history"})).json();
        assert!(history["count"].as_u64() >= state["history"].as_array().map(|events| events.len() as u64), "{slug}");
        check(&sandbox, &mut client, &slug, index, &state);
        finish(&sandbox, &mut client, &slug, index);
    }
}

fn start(sessions: &Path, corpus: &Path, slug: &str) -> (Sandbox, Client) {
    let sandbox = sandbox();
    let state = sandbox.home().join(".workflow-server");
    fs::create_dir(&state).unwrap();
    fs::copy(sessions.join("secret"), state.join("secret")).unwrap();
    copy_tree(&sessions.join(slug), &sandbox.folder(slug));
    #[cfg(unix)]
    for (path, mode) in [(state.join("secret"), 0o600), (state, 0o700), (sandbox.folder(slug), 0o700)] {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    let places =
        [format!("--workspace={}", sandbox.workspace().display()), format!("--workflow-dir={}", corpus.display())];
    let mut client = Client::spawn(sandbox.command(places));
    client.initialize("2025-06-18");
    (sandbox, client)
}

/// Walks to the end and looks at the seal.
fn finish(sandbox: &Sandbox, client: &mut Client, slug: &str, index: &str) {
    if client.call("get_workflow_status", json!({"session_index": index})).json()["status"] == "blocked" {
        let shown = client.call("present_checkpoint", json!({"session_index": index}));
        let option = shown.ok().lines().find_map(|line| line.trim().strip_prefix("- id: ")).unwrap().to_owned();
        client.call("respond_checkpoint", json!({"session_index": index, "option_id": option})).ok();
        client.call("resume_checkpoint", json!({"session_index": index})).ok();
    }
    client.call("next_activity", json!({"session_index": index, "activity_id": "__terminal__"})).ok();
    let status = client.call("get_workflow_status", json!({"session_index": index})).json();
    assert_eq!(
        (&status["status"], &status["current_activity"]),
        (&json!("completed"), &json!("__terminal__")),
        "{slug}"
    );
    let seal = fs::read_to_string(sandbox.folder(slug).join(".session-token")).unwrap();
    // A session that had ended before may have had nothing to write.
    let written = sandbox.run(&["session", "verify", slug]);
    assert!(written.status.success(), "{slug}: {}", String::from_utf8_lossy(&written.stderr));
    assert!(seal.starts_with("wst1."), "{slug}: {seal}");
}

#[test]
fn part_way() {
    each("part-way", |_, client, slug, index, _| {
        let arguments = json!({"session_index": index, "checkpoint_id": "classification-and-path-confirmed"});
        let replayed = client.call("yield_checkpoint", arguments).json();
        assert_eq!(replayed["status"], "replayed", "{slug}");
        assert_eq!(replayed["resolved_option"], "revise-classification", "{slug}");
        client.call("get_activity", json!({"session_index": index, "context_tokens": 200_000})).ok();
    });
}

#[test]
fn open_checkpoint() {
    each("open-checkpoint", |_, client, slug, index, _| {
        for (tool, arguments) in [
            ("next_activity", json!({"session_index": index, "activity_id": "codebase-comprehension"})),
            ("get_activity", json!({"session_index": index, "context_tokens": 200_000})),
            ("resume_checkpoint", json!({"session_index": index})),
        ] {
            let refused = client.call(tool, arguments);
            assert!(refused.code().starts_with("CHECKPOINT_"), "{slug}");
            assert!(refused.text.contains("classification-and-path-confirmed"), "{slug}: {}", refused.text);
        }
    });
}

#[test]
fn family() {
    each("family", |_, client, slug, index, state| {
        let child = &state["triggeredWorkflows"][0]["state"];
        let grandchild = &child["triggeredWorkflows"][0]["state"];
        for member in [child, grandchild] {
            let status = client.call("get_workflow_status", json!({"session_index": member["sessionIndex"]})).json();
            assert_eq!(status["current_activity"], member["currentActivity"], "{slug}");
            assert_eq!(status["workflow"]["id"], member["workflowId"], "{slug}");
        }
        let children = client.call("inspect_session", json!({"session_index": index, "view": "children"}));
        assert!(children.ok().contains("\"status\": \"running\""), "{slug}: {}", children.text);
        client.call("get_workflow", json!({"session_index": grandchild["sessionIndex"]})).ok();
    });
}

#[test]
fn ledger() {
    each("ledger", |_, client, slug, index, _| {
        for _ in 0..2 {
            let answer = client.call("get_activity", json!({"session_index": index, "context_tokens": 200_000}));
            assert!(!answer.is_error, "{slug}: {}", answer.text);
        }
    });
}

#[test]
fn completed() {
    each("completed", |_, client, slug, index, _| {
        let refused = client.call("get_activity", json!({"session_index": index, "context_tokens": 200_000}));
        assert_eq!(refused.code(), "SESSION_TERMINAL", "{slug}");
    });
}

#[test]
fn odd_values() {
    each("odd-values", |sandbox, client, slug, index, state| {
        let shown = client.call("inspect_session", json!({"session_index": index, "view": "variables"})).json();
        assert_eq!(shown, state["variables"], "{slug}");
        assert!(shown.get("__proto__").is_some(), "{slug}");
        client.call("get_activity", json!({"session_index": index, "context_tokens": 200_000})).ok();
        let file = fs::read(sandbox.folder(slug).join("session.json")).unwrap();
        let written: Value = serde_json::from_slice(&file).unwrap();
        assert_eq!(written["variables"], state["variables"], "{slug}");
    });
}
