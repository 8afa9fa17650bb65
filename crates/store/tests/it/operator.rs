//! `session adopt`, `session migrate`, `session verify` (spec 03 §1.11, §3.4).

use std::fs;

use serde_json::{Value, json};
use workflow_engine::{Purpose, Signer as _};
use workflow_store::{FileStore, SessionStore as _};

use crate::support::*;

fn token(store: &FileStore, payload: &Value, signed: bool) -> String {
    let text = data_encoding::BASE64URL_NOPAD.encode(payload.to_string().as_bytes());
    let mac = data_encoding::HEXLOWER.encode(&store.mac(Purpose::TraceToken, text.as_bytes()));
    if signed { format!("{text}.{mac}") } else { format!("{text}.{}", "0".repeat(64)) }
}

fn legacy(bench: &Bench, envelope: Option<&Value>, token: Option<&str>) {
    fs::create_dir_all(bench.folder("old")).unwrap();
    if let Some(envelope) = envelope {
        fs::write(bench.folder("old/workflow-state.json"), envelope.to_string()).unwrap();
    }
    if let Some(token) = token {
        fs::write(bench.folder("old/.session-token"), token).unwrap();
    }
}

fn envelope() -> Value {
    json!({"startedAt": "2026-05-01T10:00:00Z", "state": {
        "workflowId": "from-envelope", "workflowVersion": "2.1.0", "currentSkill": "skill",
        "variables": {"n": 1}, "completedActivities": ["a", 7, "a"], "skippedActivities": ["s"],
        "checkpointResponses": {"confirm": "go", "plan-x": {"optionId": "no", "respondedAt": "2026-05-01T10:00:00.000Z"},
            "broken": 7},
        "history": [{"event": "x"}]}})
}

#[test]
fn a_signed_legacy_session_is_migrated_whole() {
    let bench = Bench::new();
    let store = bench.store();
    let payload = json!({"wf": "mini", "v": "not a version", "act": "plan", "skill": "old-skill", "aid": "me",
        "cond": "x", "sid": "S", "seq": 4, "ts": 1, "bcp": "cp", "psid": "P"});
    legacy(&bench, Some(&envelope()), Some(&token(&store, &payload, true)));
    let report = store.migrate("old", NOW).unwrap();
    assert!(report.verified && !report.already_done);
    let session = read(&bench.store(), &report.session_index).unwrap();
    assert_eq!((session.workflow_id.as_str(), session.workflow_version.as_str()), ("mini", "0.0.0"));
    assert_eq!((session.current_activity.as_str(), session.current_technique.as_str()), ("plan", "old-skill"));
    assert_eq!((session.agent_id.as_str(), session.condition.as_str()), ("me", "x"));
    assert_eq!(session.started_at, "2026-05-01T10:00:00Z");
    assert_eq!(session.completed_activities, ["a"]);
    assert_eq!(session.planning_folder_path.as_deref(), bench.folder("old").to_str());
    assert_eq!(session.checkpoint_responses.keys().collect::<Vec<_>>(), ["confirm", "plan-x"]);
    assert_eq!(session.checkpoint_responses["confirm"].responded_at, "1970-01-01T00:00:00.000Z");
    assert_eq!(session.history.len(), 1);
    assert_eq!(session.history[0].data("verified"), Some(&json!(true)));
    assert_eq!(names(&bench.folder("old")), [".session-token", ".session.lock", "session.json"]);
    assert!(seal(&bench.folder("old")).starts_with("wst1."));
    assert_eq!(start(&bench.store(), "old").unwrap(), report.session_index);
    assert!(bench.store().migrate("old", NOW).unwrap().already_done);
}

#[test]
fn an_unsigned_one_brings_no_answers() {
    let bench = Bench::new();
    let forged = token(&bench.store(), &json!({"wf": "mini"}), false);
    for token in [Some(forged.as_str()), Some("no token at all"), None] {
        let bench = Bench::new();
        legacy(&bench, Some(&envelope()), token);
        let report = bench.store().migrate("old", NOW).unwrap();
        assert!(!report.verified);
        let session = read(&bench.store(), &report.session_index).unwrap();
        assert!(session.checkpoint_responses.is_empty());
        assert_eq!(session.variables.get("n"), Some(&json!(1)));
    }
}

#[test]
fn what_cannot_be_read_is_not_migrated() {
    for (file, content) in [
        ("workflow-state.json", "not json"),
        ("workflow-state.json", "[1]"),
        (".session-token", "x.y"),
        (".session-token", "nothing"),
    ] {
        let bench = Bench::new();
        fs::create_dir_all(bench.folder("old")).unwrap();
        fs::write(bench.folder("old").join(file), content).unwrap();
        let refused = bench.store().migrate("old", NOW).unwrap_err();
        assert_eq!((refused.code, detail(&refused, "file")), ("MIGRATION_FAILED", file), "{content}");
        assert!(!bench.folder("old").join("session.json").exists());
    }
    assert_eq!(Bench::new().store().migrate("old", NOW).unwrap_err().code, "SESSION_NOT_FOUND");
}

#[test]
fn the_way_back_writes_what_the_original_reads() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    store
        .transaction(&at(&index), &mut |workset| {
            let session = workset.session_mut().unwrap();
            for kind in ["activity_entered", "activity_dispatched", "activity_usage", "activity_usage", "of_tomorrow"] {
                session.record(workflow_engine::state::Event::new(kind), NOW);
            }
            session.advance(NOW);
            Ok(reply())
        })
        .unwrap();
    let report = bench.store().migrate_to_original("a").unwrap();
    let expected = [("activity_dispatched", 1), ("activity_usage", 2), ("of_tomorrow", 1)];
    assert_eq!(report.stripped, expected.map(|(kind, n)| (kind.to_owned(), n)));
    let bytes = fs::read(bench.folder("a/session.json")).unwrap();
    let mac = data_encoding::HEXLOWER.encode(&store.mac(Purpose::TraceToken, &bytes));
    assert_eq!(seal(&bench.folder("a")), mac);
    assert!(bench.folder("a/session.1.bak.json").exists());
    assert_eq!(bench.store().verify("a").unwrap().session.unwrap().seal, "bare");
    assert_eq!(advance(&bench.store(), &index).unwrap(), 2, "and it opens here again");
}

#[test]
fn adopting_takes_over_key_workspace_and_missing_seal() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let mut other = bench.options.clone();
    other.workspace_id = Some("team".to_owned());
    let there = || FileStore::open(other.clone()).unwrap();
    let refused = read(&there(), &index).unwrap_err();
    assert_eq!(
        (refused.code, detail(&refused, "reason"), detail(&refused, "found")),
        ("SEAL_MISMATCH", "workspace", "team")
    );
    assert_eq!(there().adopt("a").unwrap().reason.as_deref(), Some("workspace"));
    assert!(read(&there(), &index).is_ok());
    fs::remove_file(bench.folder("a/.session-token")).unwrap();
    assert_eq!(read(&there(), &index).unwrap_err().code, "SEAL_MISSING");
    assert_eq!(there().adopt("a").unwrap().reason.as_deref(), Some("missing"));
    let fresh = Bench::new();
    let mut other = other.clone();
    other.key_dir.clone_from(&fresh.options.key_dir);
    let there = || FileStore::open(other.clone()).unwrap();
    assert_eq!(detail(&read(&there(), &index).unwrap_err(), "reason"), "key");
    assert_eq!(there().adopt("a").unwrap().reason.as_deref(), Some("key"));
    assert_eq!(read(&there(), &index).unwrap().seq, 3);
    assert_eq!(there().adopt("nowhere").unwrap_err().code, "SESSION_NOT_FOUND");
    assert_eq!(there().adopt("/etc").unwrap_err().code, "PATH_ESCAPE");
}

#[test]
fn a_state_that_does_not_validate_is_not_adopted() {
    let bench = Bench::new();
    start(&bench.store(), "a").unwrap();
    let file = bench.folder("a/session.json");
    let text = fs::read_to_string(&file).unwrap().replace("\"agentId\": \"orchestrator\"", "\"agentId\": \"\"");
    fs::write(&file, &text).unwrap();
    assert!(bench.store().adopt("a").is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn sessions_are_listed_with_what_keeps_them_shut() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    start(&bench.store(), "b").unwrap();
    fs::write(bench.folder("b/session.json"), "{").unwrap();
    let listed = bench.store().sessions().unwrap();
    let facts = listed[0].session.as_ref().unwrap();
    assert_eq!((facts.session_index.as_str(), facts.status, facts.seal), (index.as_str(), "active", "envelope"));
    assert_eq!(listed[1].session.as_ref().unwrap_err().code, "SESSION_CORRUPT");
}
