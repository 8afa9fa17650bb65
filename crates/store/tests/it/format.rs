//! The matrix of formats on disk (DURABILITY.md): who reads what, and what is kept.

use std::fs;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use workflow_store::SessionStore as _;

use crate::support::*;

fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// The forms of a seal, made here once more by the letter of spec 03 §3.4.
#[derive(Clone, Copy, Debug)]
enum Sealed {
    Bare,
    Envelope,
    /// An envelope with members that this version does not know.
    Extended,
    /// As a later version may write it.
    Later,
}

/// Puts a state with its seal into the folder `a`, as whoever holds the key may.
fn put(bench: &Bench, text: &str, sealed: Sealed) {
    let key = fs::read(bench.options.key_dir.join("secret")).unwrap();
    let state: Value = serde_json::from_str(text).unwrap();
    let mut payload = json!({
        "session_index": state["sessionIndex"], "folder": "a", "workspace": bench.options.workspace.to_str().unwrap(),
        "seq": state["seq"], "sha256": HEXLOWER.encode(&Sha256::digest(text)),
        "key": HEXLOWER.encode(&mac(&key, b"workflow-server/key-id/v1"))[..8],
    });
    if matches!(sealed, Sealed::Extended) {
        payload["pinned"] = json!({"definition": "sha256:0"});
    }
    let version = if matches!(sealed, Sealed::Later) { "wst2" } else { "wst1" };
    let signed = format!("{version}.{}", BASE64URL_NOPAD.encode(payload.to_string().as_bytes()));
    let seal = match sealed {
        Sealed::Bare => HEXLOWER.encode(&mac(&key, text.as_bytes())),
        Sealed::Envelope | Sealed::Extended | Sealed::Later => {
            let key = mac(&key, b"workflow-server/session-seal/v1");
            format!("{signed}.{}", HEXLOWER.encode(&mac(&key, signed.as_bytes())))
        }
    };
    // The state directory of another machine: it has not seen this session.
    let _absent = fs::remove_dir_all(bench.options.state_dir.join("seen"));
    fs::write(bench.folder("a").join("session.json"), text).unwrap();
    fs::write(bench.folder("a").join(".session-token"), seal).unwrap();
}

/// Opens a file in the given form, writes to the session, and answers the state that is there then.
#[track_caller]
fn check(change: impl Fn(&mut Value), sealed: Sealed, compact: bool) -> Result<Value, String> {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let file = bench.folder("a").join("session.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    change(&mut state);
    let text = if compact { state.to_string() } else { format!("{state:#}\n") };
    put(&bench, &text, sealed);
    let before = (fs::read(&file).unwrap(), seal(&bench.folder("a")));
    let (opened, written) = (read(&bench.store(), &index), advance(&bench.store(), &index));
    let listed = bench.store().sessions().unwrap().remove(0).session.map(drop);
    match (opened, written) {
        (Ok(_), Ok(_)) => {
            assert!(listed.is_ok());
            assert!(seal(&bench.folder("a")).starts_with("wst1."), "the first write makes it an envelope");
            Ok(serde_json::from_slice(&fs::read(&file).unwrap()).unwrap())
        }
        (Err(opened), Err(written)) => {
            assert_eq!(opened.code, written.code);
            assert_eq!(listed.unwrap_err().code, opened.code);
            assert_eq!((fs::read(&file).unwrap(), seal(&bench.folder("a"))), before, "what is refused is not touched");
            Err(opened.code.to_owned())
        }
        (opened, written) => panic!("read {opened:?}, written {written:?}"),
    }
}

/// A newer reader and older files: the original's seal, any spacing, members that came later.
#[test]
fn older_files_open_and_become_ours_with_the_first_write() {
    for sealed in [Sealed::Bare, Sealed::Envelope] {
        for compact in [true, false] {
            let state = check(|_| {}, sealed, compact).unwrap();
            assert_eq!(state["seq"], 1);
            let least = |state: &mut Value| {
                let members = state.as_object_mut().unwrap();
                members.retain(|name, _| {
                    [
                        "schemaVersion",
                        "sessionIndex",
                        "workflowId",
                        "workflowVersion",
                        "agentId",
                        "seq",
                        "ts",
                        "startedAt",
                    ]
                    .contains(&name.as_str())
                });
            };
            let state = check(least, sealed, compact).unwrap();
            assert_eq!((&state["status"], &state["variables"]), (&json!("running"), &json!({})));
        }
    }
}

/// An older reader and newer files: what it does not know is kept, at every level, through its own writes.
#[test]
fn unknown_members_and_event_types_are_kept() {
    let event = json!({"timestamp": NOW.text(), "type": "of_tomorrow", "data": {"deep": [{"x": 1}]}, "weight": 3});
    let child = session("BBBBBB", "child").to_json();
    let additions: &[(&str, Value)] = &[
        ("/fromTomorrow", json!({"a": [1, 2, {"b": null}]})),
        ("/history/-", event.clone()),
        (
            "/triggeredWorkflows/-",
            json!({
                "workflowId": "child", "sessionIndex": "BBBBBB", "triggeredAt": NOW.text(), "status": "running",
                "triggeredFrom": {"activityId": "plan", "lane": "left"}, "priority": 7, "state": child,
            }),
        ),
        ("/triggeredWorkflows/0/state/fromTomorrow", json!("in a child")),
        ("/triggeredWorkflows/0/state/history/-", event.clone()),
        (
            "/checkpointResponses/plan-confirm",
            json!({"optionId": "go", "respondedAt": NOW.text(), "proof": "abc", "effects": {"notes": ["n"]}}),
        ),
        (
            "/activeCheckpoint",
            json!({"checkpointId": "c", "activityId": "plan", "yieldedAt": NOW.text(), "urgency": 2}),
        ),
        ("/parentSession", {
            let mut parent = session("CCCCCC", "mini").to_json();
            parent["fromTomorrow"] = json!(true);
            parent["history"].as_array_mut().unwrap().push(event);
            parent
        }),
        ("/variables/__proto__", json!({"kept": true})),
    ];
    let add = |state: &mut Value| {
        for (path, value) in additions {
            let (above, name) = path.rsplit_once('/').unwrap();
            let target = if above.is_empty() { &mut *state } else { state.pointer_mut(above).unwrap() };
            match target {
                Value::Array(items) => items.push(value.clone()),
                members => members[name] = value.clone(),
            }
        }
    };
    for sealed in [Sealed::Bare, Sealed::Envelope, Sealed::Extended] {
        let state = check(add, sealed, false).unwrap();
        let mut expected = state.clone();
        for (path, value) in additions.iter().filter(|(path, _)| !path.contains("history/-")) {
            let found = state.pointer(&path.replace("/-", "/0")).unwrap_or_else(|| panic!("{path} is gone"));
            if !path.starts_with("/triggeredWorkflows/-") {
                assert_eq!(found, value, "{path}");
            }
        }
        for history in ["/history", "/triggeredWorkflows/0/state/history", "/parentSession/history"] {
            let events = expected.pointer_mut(history).unwrap().as_array_mut().unwrap();
            let kept = events.iter().find(|event| event["type"] == "of_tomorrow").unwrap();
            assert_eq!((&kept["weight"], &kept["data"]["deep"][0]["x"]), (&json!(3), &json!(1)), "{history}");
        }
        assert_eq!(state["triggeredWorkflows"][0]["priority"], 7);
        assert_eq!(state["triggeredWorkflows"][0]["triggeredFrom"]["lane"], "left");
    }
}

/// A file that only a later version understands is told as that, never as tampering, and is not touched.
#[test]
fn a_newer_schema_is_unsupported_and_no_tampering() {
    let unsupported = Err("SESSION_SCHEMA_UNSUPPORTED".to_owned());
    let newer = |state: &mut Value| state["schemaVersion"] = json!(2);
    for sealed in [Sealed::Bare, Sealed::Envelope, Sealed::Extended, Sealed::Later] {
        assert_eq!(check(newer, sealed, false), unsupported, "{sealed:?}");
    }
    assert_eq!(check(|_| {}, Sealed::Later, false), unsupported, "only the seal is newer");
    let embedded = |state: &mut Value| {
        let mut child = session("BBBBBB", "child").to_json();
        child["schemaVersion"] = json!(2);
        state["triggeredWorkflows"] = json!([{
            "workflowId": "child", "sessionIndex": "BBBBBB", "triggeredAt": NOW.text(), "status": "running",
            "triggeredFrom": {"activityId": ""}, "state": child,
        }]);
    };
    assert_eq!(check(embedded, Sealed::Envelope, false), unsupported);
    // A value of a closed set that came later.
    assert_eq!(check(|state| state["status"] = json!("paused"), Sealed::Envelope, false), unsupported);
}

/// A changed file of this version stays what it is.
#[test]
fn a_changed_file_of_this_version_is_tampering() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let file = bench.folder("a").join("session.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("orchestrator", "somebody")).unwrap();
    assert_eq!(read(&bench.store(), &index).unwrap_err().code, "SEAL_MISMATCH");
}

/// Backup names, staged files and the pending seal of other versions are left alone while a session is in use.
#[test]
fn files_of_other_names_are_left_alone() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    for name in ["session.7.bak.json", "notes.md", ".session-token.v2", "session.json.orig"] {
        fs::write(bench.folder("a").join(name), "mine").unwrap();
    }
    advance(&bench.store(), &index).unwrap();
    bench.store().read(&at(&index)).unwrap();
    for name in ["session.7.bak.json", "notes.md", ".session-token.v2", "session.json.orig"] {
        assert_eq!(fs::read_to_string(bench.folder("a").join(name)).unwrap(), "mine");
    }
}
