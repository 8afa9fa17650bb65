//! Calls on a server without a protocol: traces, cancellation, defects.

use serde_json::json;
use tempfile::TempDir;
use workflow_corpus::Root;
use workflow_store::Options;

use super::*;

const FILES: &[(&str, &str)] = &[
    ("meta/workflow.yaml", "id: meta\nversion: 1.0.0\ntitle: Meta\ninitialActivity: only\n"),
    ("meta/activities/01-only.yaml", "id: only\nversion: 1.0.0\nname: Only\nsteps:\n  - kind: action\n    id: act\n"),
    ("mini/workflow.yaml", "id: mini\nversion: 1.0.0\ntitle: Mini\ninitialActivity: only\n"),
    ("mini/activities/01-only.yaml", "id: only\nversion: 1.0.0\nname: Only\nsteps:\n  - kind: action\n    id: act\n"),
];

/// A time that does not pass.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(1_783_933_200_000)
    }
}

/// A defect.
struct Broken;

impl Clock for Broken {
    fn now(&self) -> Timestamp {
        panic!("a defect, for the test")
    }
}

fn server(home: &TempDir) -> Server {
    let workspace = home.path().join("ws");
    std::fs::create_dir_all(&workspace).unwrap();
    let store = FileStore::open(Options::new(workspace, home.path().join("state"))).unwrap();
    let library = Library::new(vec![Root::Embedded { label: "test".to_owned(), files: FILES }], None);
    Server::new(library, store, Settings::default()).with_clock(Still)
}

fn call(server: &Server, tool: &str, arguments: &Value) -> Outcome {
    server.call(tool, arguments.as_object().unwrap(), "test", &|| false)
}

fn started(server: &Server, slug: &str) -> String {
    let outcome = call(server, "start_session", &json!({"workflow_id": "mini", "planning_slug": slug}));
    let answer: Value = serde_json::from_str(&outcome.text).unwrap_or_else(|_| panic!("{}", outcome.text));
    answer["session_index"].as_str().unwrap().to_owned()
}

fn events(server: &Server, index: &str) -> Vec<Value> {
    workflow_engine::TraceLog::read(server.store(), index).events
}

#[test]
fn identifiers_are_uuids_of_version_4() {
    let (one, two) = (SystemRandomness.uuid(), SystemRandomness.uuid());
    assert_ne!(one, two);
    let parts: Vec<usize> = one.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
    assert_eq!(&one[14..15], "4");
    assert!(matches!(&one[19..20], "8" | "9" | "a" | "b"));
}

#[test]
fn every_call_of_a_session_leaves_an_event_but_argument_errors() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home);
    let index = started(&server, "one");
    let refused =
        call(&server, "get_activity", &json!({"session_index": index, "context_tokens": 1000, "agent_id": "w1"}));
    assert!(refused.text.starts_with("NO_CURRENT_ACTIVITY: "), "{}", refused.text);
    assert!(call(&server, "get_activity", &json!({"session_index": index})).text.starts_with("INVALID_PARAMS: "));
    assert!(call(&server, "get_workflow_status", &json!({"session_index": index})).text.contains("active"));
    assert!(!call(&server, "next_activity", &json!({"session_index": index, "activity_id": "only"})).is_error);
    let found = events(&server, &index);
    let told: Vec<(&str, &str, &str, &str)> = found
        .iter()
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap();
            (text("name"), text("s"), text("act"), text("aid"))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("start_session", "ok", "", "orchestrator"),
            ("get_activity", "error", "", "w1"),
            ("next_activity", "ok", "only", "orchestrator"),
        ]
    );
    assert!(found[1]["err"].as_str().unwrap().starts_with("NO_CURRENT_ACTIVITY: "));
}

#[test]
fn a_refusal_has_its_code_in_text_and_meta() {
    let home = tempfile::tempdir().unwrap();
    let outcome = call(&server(&home), "get_workflow_status", &json!({"session_index": "ABCDE2"}));
    assert!(outcome.is_error && outcome.text.starts_with("SESSION_NOT_FOUND: "), "{}", outcome.text);
    let error = &outcome.meta.unwrap()["error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("SESSION_NOT_FOUND"), &json!(false)));
}

#[test]
fn a_call_cancelled_before_its_commit_has_no_effect() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home);
    let index = started(&server, "one");
    let file = home.path().join("ws/.engineering/artifacts/planning/one/session.json");
    let before = std::fs::read(&file).unwrap();
    let arguments = json!({"session_index": index, "activity_id": "only"});
    let outcome = server.call("next_activity", arguments.as_object().unwrap(), "test", &|| true);
    assert!(outcome.is_error && outcome.text.starts_with("CANCELLED: "), "{}", outcome.text);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert!(!call(&server, "next_activity", &arguments).is_error);
    let arguments = json!({"workflow_id": "mini", "planning_slug": "two"});
    assert!(server.call("start_session", arguments.as_object().unwrap(), "test", &|| true).is_error);
    assert!(!home.path().join("ws/.engineering/artifacts/planning/two").exists());
}

#[test]
fn a_defect_ends_one_call_and_not_the_server() {
    let home = tempfile::tempdir().unwrap();
    let good = server(&home);
    let index = started(&good, "one");
    let bad = server(&home).with_clock(Broken);
    let outcome = call(&bad, "next_activity", &json!({"session_index": index, "activity_id": "only"}));
    assert!(outcome.is_error && outcome.text.starts_with("INTERNAL: "), "{}", outcome.text);
    assert!(!call(&good, "next_activity", &json!({"session_index": index, "activity_id": "only"})).is_error);
}

#[test]
fn health_names_what_is_unusable() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home).with_problems(|| vec!["workflow directory /gone is not there".to_owned()]);
    let health = call(&server, "health_check", &json!({})).text;
    assert!(health.contains("degraded") && health.contains("/gone"), "{health}");
}

#[test]
fn sessions_are_listed_with_what_they_are() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home);
    let index = started(&server, "one");
    let sessions = server.sessions().unwrap();
    let one = &sessions[0];
    assert_eq!((&one["planning_slug"], &one["session_index"]), (&json!("one"), &json!(index)));
    assert_eq!((&one["status"], &one["last_written"]), (&json!("active"), &json!("2026-07-13T09:00:00.000Z")));
    std::fs::write(home.path().join("ws/.engineering/artifacts/planning/one/session.json"), "{}").unwrap();
    let sessions = server.sessions().unwrap();
    assert_eq!(sessions[0]["status"], "unreadable");
    assert!(sessions[0]["error"].as_str().unwrap().contains("session adopt"), "{sessions}");
}
