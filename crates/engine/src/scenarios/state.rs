//! What is written and what is understood (spec 03 §3.1, §3.3).

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Run;
use crate::{
    Timestamp,
    state::{Event, Session, parse_text},
};

/// A state with every member that the specification knows.
fn full() -> Value {
    serde_json::from_str(include_str!("full.json")).unwrap()
}

#[test]
fn every_known_member_comes_back() {
    let value = full();
    let session = Session::from_json(&value).unwrap();
    assert!(session.extra.is_empty());
    assert_eq!(session.to_json(), value);
    assert_eq!(session.generation(), 10);
    assert_eq!(session.walk().count(), 2);
    let text = session.canonical_text();
    assert_eq!(Session::from_json(&parse_text(text.as_bytes()).unwrap()).unwrap().canonical_text(), text);
}

#[test]
fn trap_03_14_04_only_the_root_begins_with_the_schema_version() {
    let text = Session::from_json(&full()).unwrap().canonical_text();
    let member = |indent: usize| {
        let prefix = format!("{}\"", " ".repeat(indent));
        text.lines()
            .filter(move |line| line.starts_with(&prefix))
            .map(|line| line.trim().split('"').nth(1).unwrap_or(""))
    };
    let head: Vec<&str> = member(2).collect();
    assert_eq!(head[..6], ["schemaVersion", "status", "workflowId", "workflowVersion", "agentId", "sessionIndex"]);
    assert_eq!(
        head[20..],
        ["parentSession", "contextMode", "declaredArtifacts", "deliveredContent", "lastCall", "repo"]
    );
    let embedded = text.split_once("\"state\": {\n").unwrap().1;
    assert!(embedded.trim_start().starts_with("\"agentId\""), "an embedded child is plainly sorted");
    let parent: Vec<&str> = member(4).skip_while(|name| *name != "agentId").collect();
    assert_eq!(parent[0], "agentId", "and so is a snapshot");
    assert!(!text.ends_with('\n'));
}

/// The same state with other spacing and order is the same session, and is written in our own form.
#[test]
fn trap_03_14_08_other_spacing_is_read_and_not_kept() {
    let text = full().to_string();
    let session = Session::from_json(&parse_text(text.as_bytes()).unwrap()).unwrap();
    assert_ne!(session.canonical_text(), text);
    assert_eq!(session, Session::from_json(&full()).unwrap());
}

/// Puts a value at a dotted path of the full state (`null` removes it) and expects the fault to name that path.
#[track_caller]
fn check(path: &str, value: Value, named: &str) {
    let mut state = full();
    let pointer = format!("/{}", path.replace('.', "/"));
    if value.is_null() {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        state.pointer_mut(parent).unwrap().as_object_mut().unwrap().shift_remove(member);
    } else {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        match state.pointer_mut(parent).unwrap() {
            Value::Object(members) => {
                members.insert(member.to_owned(), value);
            }
            Value::Array(items) => items[member.parse::<usize>().unwrap()] = value,
            other => panic!("{other}"),
        }
    }
    let refusal = Session::from_json(&state).expect_err(path);
    assert_eq!(refusal.code, "SESSION_SCHEMA_UNSUPPORTED");
    assert_eq!(refusal.details["path"], named, "{}", refusal.message);
    assert!(refusal.message.contains("not tampering"));
}

#[test]
fn what_is_not_understood_is_named() {
    check("schemaVersion", json!(2), "schemaVersion");
    check("schemaVersion", json!(null), "schemaVersion");
    check("status", json!("paused"), "status");
    check("workflowId", json!(""), "workflowId");
    check("workflowVersion", json!(""), "workflowVersion");
    check("workflowVersion", json!("1.0"), "workflowVersion");
    check("agentId", json!(""), "agentId");
    check("sessionIndex", json!("abcde2"), "sessionIndex");
    check("seq", json!(-1), "seq");
    check("ts", json!(-1), "ts");
    check("startedAt", json!("yesterday"), "startedAt");
    check("repo", json!(""), "repo");
    check("contextMode", json!("eager"), "contextMode");
    check("variables", json!([]), "variables");
    check("completedActivities.0", json!(3), "completedActivities.0");
    check("activeCheckpoint.activityId", json!(""), "activeCheckpoint.activityId");
    check("activeCheckpoint.checkpointId", json!(""), "activeCheckpoint.checkpointId");
    check("activeCheckpoint.adhoc.message", json!(""), "activeCheckpoint.adhoc.message");
    check("activeCheckpoint.adhoc.options", json!([]), "activeCheckpoint.adhoc.options");
    check("activeCheckpoint.adhoc.options.1.label", json!(null), "activeCheckpoint.adhoc.options.1.label");
    check("activeCheckpoint.adhoc.options.1", json!(1), "activeCheckpoint.adhoc.options.1");
    check("checkpointResponses.plan-confirm.respondedAt", json!("x"), "checkpointResponses.plan-confirm.respondedAt");
    check(
        "checkpointResponses.plan-confirm.effects.activitiesSkipped",
        json!([1]),
        "checkpointResponses.plan-confirm.effects.activitiesSkipped",
    );
    check("history.1.type", json!(""), "history.1.type");
    check("history.1.timestamp", json!("x"), "history.1.timestamp");
    check("history.1.step", json!(0), "history.1.step");
    check("history.1.data", json!([]), "history.1.data");
    check("triggeredWorkflows.0.status", json!("lost"), "triggeredWorkflows.0.status");
    check(
        "triggeredWorkflows.0.triggeredFrom.activityId",
        json!(null),
        "triggeredWorkflows.0.triggeredFrom.activityId",
    );
    check("triggeredWorkflows.0.state.agentId", json!(""), "triggeredWorkflows.0.state.agentId");
    check("triggeredWorkflows.0.state.status", json!("x"), "triggeredWorkflows.0.state.status");
    check("parentSession.seq", json!("0"), "parentSession.seq");
    check("parentSession.snapshotTrimmed", json!(false), "parentSession.snapshotTrimmed");
    check("deliveredContent.worker.technique:greet", json!("xyz"), "deliveredContent.worker.technique:greet");
    check("declaredArtifacts.0.name", json!(""), "declaredArtifacts.0.name");
    check("lastCall.arguments", json!("short"), "lastCall.arguments");
    for value in [json!([]), json!("x"), json!(null)] {
        assert_eq!(Session::from_json(&value).unwrap_err().code, "SESSION_SCHEMA_UNSUPPORTED");
    }
}

/// Hazard H9: a state that nobody could open again is never written.
#[test]
fn an_invalid_state_is_a_defect_and_not_written() {
    let run = Run::at("plan");
    run.ws.change(&run.index, |session| session.agent_id.clear());
    let refusal = run.refused("next_activity", json!({"activity_id": "review"}));
    assert_eq!((refusal.code, &refusal.details["path"]), ("INTERNAL_INVALID_STATE", &json!("agentId")));
    assert!(refusal.message.contains("Nothing was changed"));
}

#[test]
fn defaults_are_seeded_even_when_falsy() {
    let run = Run::new();
    let session = run.session();
    assert_eq!(Value::Object(session.variables.clone()), json!({"is_ready": false}));
    let kinds: Vec<&str> = session.history.iter().map(Event::kind).collect();
    assert_eq!(kinds, ["workflow_started", "variables_seeded"]);
    assert_eq!(session.history[0].timestamp(), session.history[1].timestamp());
    assert_eq!(session.history[1].data("variables"), Some(&json!({"is_ready": false})));
    assert_eq!((session.seq, session.current_activity.as_str(), session.condition.as_str()), (0, "", ""));
}

#[test]
fn recorded_times_never_run_backwards() {
    let mut session = Session::from_json(&full()).unwrap();
    let newest = session.history.last().and_then(Event::time).unwrap();
    assert_eq!(session.record(Event::new("error"), Timestamp(0)), newest.text());
    assert_eq!(session.record(Event::new("error"), Timestamp(newest.0 + 5)), Timestamp(newest.0 + 5).text());
    let (seq, ts) = (session.seq, session.ts);
    session.advance(Timestamp(0));
    assert_eq!((session.seq, session.ts), (seq + 1, ts));
}

/// A chain of nested sessions, as text.
fn chain(length: usize, embedded: bool) -> Value {
    let base = full()["parentSession"].clone();
    (1..length).fold(base.clone(), |inner, _| {
        let mut outer = base.clone();
        if embedded {
            let mut reference = full()["triggeredWorkflows"][0].clone();
            reference["state"] = inner;
            outer["triggeredWorkflows"] = json!([reference]);
        } else {
            outer["parentSession"] = inner;
        }
        outer
    })
}

/// The stack of a test thread is that of a server's worker.
#[test]
fn deep_chains_are_read_or_refused_and_never_overflow() {
    for embedded in [false, true] {
        let deepest = chain(150, embedded);
        let text = serde_json::to_string(&deepest).unwrap();
        let session = Session::from_json(&parse_text(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(session.to_json(), deepest);
        assert!(session.validate().is_ok());
        assert_eq!(session.clone(), session);
        let refusal = Session::from_json(&chain(151, embedded)).unwrap_err();
        assert!(refusal.message.contains("150 sessions"), "{}", refusal.message);
    }
}

/// Any JSON value.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Objects of a state, as JSON pointers; maps whose values have a form of their own are left out.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            let typed = at.ends_with("/checkpointResponses") || at.contains("/deliveredContent");
            if !typed {
                found.push(at.to_owned());
            }
            for (key, inner) in members {
                objects(inner, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (position, inner) in items.iter().enumerate() {
                objects(inner, &format!("{at}/{position}"), found);
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn unknown_members_survive_at_every_level(
        added in prop::collection::vec((any::<prop::sample::Index>(), "[a-z]{0,6}", anything()), 1..12)
    ) {
        let mut value = full();
        let mut places = Vec::new();
        objects(&value, "", &mut places);
        for (place, name, member) in added {
            let object = value.pointer_mut(&places[place.index(places.len())]).and_then(Value::as_object_mut).unwrap();
            object.insert(format!("zz_{name}"), member);
        }
        let session = Session::from_json(&value).unwrap();
        prop_assert_eq!(session.to_json(), value);
        // and through the text; numbers keep their value, though not their spelling
        let text = session.canonical_text();
        let read = Session::from_json(&parse_text(text.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(read.canonical_text(), text);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = parse_text(&bytes) {
            let _ = Session::from_json(&value).is_ok();
        }
    }
}
