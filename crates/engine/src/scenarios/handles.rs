//! Handles and addresses (spec 03 §4.4, §6.3).

use serde_json::json;

use super::{Run, codes};
use crate::{handle, state::ActiveCheckpoint, workspace::KeySigner};

#[test]
fn the_vector_of_the_specification() {
    let active = ActiveCheckpoint {
        checkpoint_id: "confirm".to_owned(),
        activity_id: "plan".to_owned(),
        yielded_at: "2026-07-13T09:00:00.123Z".to_owned(),
        adhoc: None,
        extra: serde_json::Map::new(),
    };
    let issued = handle::of_active(&KeySigner, "ABCDE2", &active);
    assert_eq!(issued, "cp1.ABCDE2.OoYG17oXA0k83PJBm9bC-4");
    assert_eq!(issued.len(), 33);
    assert_eq!(handle::session_index(&issued), Some("ABCDE2"));
}

#[test]
fn malformed_handles_name_no_session() {
    for text in [
        "",
        "cp1.",
        "cp1.ABCDE2",
        "cp1.ABCDE2.",
        "cp1.abcde2.OoYG17oXA0k83PJBm9bC-4",
        "cp1.ABCDE2.OoYG17oXA0k83PJBm9bC-4x",
        "cp1.ABCDE2.OoYG17oXA0k83PJBm9bC+4",
        "cp2.ABCDE2.OoYG17oXA0k83PJBm9bC-4",
    ] {
        assert_eq!(handle::session_index(text), None, "{text}");
    }
}

fn yielded(run: &Run, checkpoint: &str) -> String {
    let answer = run.json("yield_checkpoint", json!({"checkpoint_id": checkpoint}));
    let names: Vec<&String> = answer.keys().collect();
    assert_eq!(names, ["status", "checkpoint_id", "checkpoint_handle", "session_index", "message"]);
    assert_eq!(answer["status"], "yielded");
    let handle = answer["checkpoint_handle"].as_str().unwrap().to_owned();
    assert!(answer["message"].as_str().unwrap().contains(&format!("<checkpoint_yield>{handle}</checkpoint_yield>")));
    handle
}

#[test]
fn a_handle_lives_until_its_checkpoint_is_answered() {
    let run = Run::at("plan");
    let first = yielded(&run, "confirm");
    let with = |more: serde_json::Value| {
        let mut arguments = json!({"checkpoint_handle": first});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    assert!(run.ws.try_call("present_checkpoint", with(json!({}))).is_ok());
    assert_eq!(run.refused("resume_checkpoint", with(json!({}))).code, "CHECKPOINT_STILL_ACTIVE");
    let answer = run.ws.json("respond_checkpoint", with(json!({"option_id": "again"})));
    assert_eq!(answer["checkpoint_handle"], first.as_str());
    assert_eq!(answer.get("already_done"), None);

    // spent: shown no more, answered again only alike
    let refusal = run.ws.refusal("present_checkpoint", with(json!({})));
    assert_eq!((refusal.code, &refusal.details["option_id"]), ("CHECKPOINT_HANDLE_SPENT", &json!("again")));
    run.call("get_workflow", json!({}));
    let seq = run.session().seq;
    let repeated = run.ws.json("respond_checkpoint", with(json!({"option_id": "again"})));
    assert_eq!((&repeated["already_done"], &repeated["effect"]), (&json!(true), &answer["effect"]));
    assert_eq!(run.session().seq, seq, "nothing was changed");
    assert_eq!(run.ws.refusal("respond_checkpoint", with(json!({"option_id": "go"}))).code, "CHECKPOINT_HANDLE_SPENT");

    // a later yield of the same checkpoint in the same millisecond has another handle
    run.go("plan");
    run.wait(-60_000);
    let second = yielded(&run, "confirm");
    assert_ne!(first, second);
    assert_eq!(run.ws.refusal("present_checkpoint", with(json!({}))).code, "CHECKPOINT_HANDLE_SPENT");
    run.answer("go");
    let resumed = |handle: &str| run.json("resume_checkpoint", json!({"checkpoint_handle": handle}));
    assert_eq!(resumed(&first)["resolved_option"], "again");
    assert_eq!(resumed(&second)["resolved_option"], "go", "not a retry of the call before");
    assert_eq!(resumed(&second)["effect"], json!({"setVariable": {"is_ready": true}}));
    // the older answer's effect is rebuilt from the definition once a newer answer has its place
    let repeated = run.ws.json("respond_checkpoint", with(json!({"option_id": "again"})));
    assert_eq!(repeated["effect"], json!({"transitionTo": "plan"}));
}

#[test]
fn addresses_agree_or_are_refused() {
    let run = Run::at("plan");
    assert_eq!(run.refused("present_checkpoint", json!({})).code, "NO_ACTIVE_CHECKPOINT");
    assert_eq!(run.refused("respond_checkpoint", json!({"option_id": "go"})).code, "NO_ACTIVE_CHECKPOINT");
    let handle = yielded(&run, "confirm");
    let other = handle.replace(&run.index, "ABCDE2");
    let forged = format!("{}{}", &handle[..32], if handle.ends_with('A') { 'B' } else { 'A' });
    for tool in ["present_checkpoint", "respond_checkpoint"] {
        let mut arguments = if tool == "respond_checkpoint" { json!({"option_id": "go"}) } else { json!({}) };
        let mut code = |session: Option<&str>, handle: Option<&str>| {
            arguments.as_object_mut().unwrap().shift_remove("session_index");
            arguments.as_object_mut().unwrap().shift_remove("checkpoint_handle");
            for (name, value) in [("session_index", session), ("checkpoint_handle", handle)] {
                if let Some(value) = value {
                    arguments[name] = value.into();
                }
            }
            run.ws.refusal(tool, arguments.clone()).code
        };
        assert_eq!(code(None, None), "CHECKPOINT_ADDRESS_MISSING");
        assert_eq!(code(Some(&run.index), Some(&other)), "CHECKPOINT_ADDRESS_CONFLICT");
        assert_eq!(code(Some(&run.index), Some(&forged)), "CHECKPOINT_HANDLE_INVALID");
        assert_eq!(code(None, Some("cp1.what")), "CHECKPOINT_HANDLE_INVALID");
        assert_eq!(code(None, Some(&other)), "SESSION_NOT_FOUND");
        assert_eq!(code(Some("abc"), None), "INVALID_SESSION_INDEX");
    }
    // agents of the newer generation hand the index over
    let reply = run.ws.call("present_checkpoint", json!({"checkpoint_handle": run.index}));
    assert_eq!(codes(&reply), ["W_HANDLE_WAS_INDEX"]);
    assert!(run.ws.try_call("respond_checkpoint", json!({"checkpoint_handle": run.index, "option_id": "go"})).is_ok());
}

#[test]
fn a_resume_returns_what_was_recorded() {
    let run = Run::new();
    let reply = run.call("resume_checkpoint", json!({}));
    assert_eq!(codes(&reply), ["W_NOTHING_RESOLVED"]);
    assert!(!reply.plain_text().contains("resolved_option"));
    run.go("plan");
    run.ask("confirm", "again");
    run.ask("pick#1", "left");
    let resumed = run.json("resume_checkpoint", json!({}));
    let names: Vec<&String> = resumed.keys().collect();
    assert_eq!(names, ["status", "session_index", "message", "checkpoint_id", "resolved_option"]);
    assert_eq!((&resumed["checkpoint_id"], &resumed["resolved_option"]), (&json!("pick#1"), &json!("left")));
    let forged = format!("cp1.{}.OoYG17oXA0k83PJBm9bC-4", run.index);
    assert_eq!(
        run.refused("resume_checkpoint", json!({"checkpoint_handle": forged})).code,
        "CHECKPOINT_HANDLE_INVALID"
    );
    // an answer given elsewhere is not the current activity's
    run.go("review");
    assert_eq!(codes(&run.call("resume_checkpoint", json!({}))), ["W_NOTHING_RESOLVED"]);
}

/// An older handle still tells what its own answer did (spec 03 §5.16).
#[test]
fn a_handle_of_an_earlier_visit_keeps_its_effect() {
    let run = Run::at("plan");
    let first = run.json("yield_checkpoint", json!({"checkpoint_id": "confirm"}));
    let effect = run.answer("go")["effect"].clone();
    run.go("review");
    run.go("plan");
    run.ask("confirm", "skip");
    let resumed = run.json("resume_checkpoint", json!({"checkpoint_handle": first["checkpoint_handle"]}));
    assert_eq!((&resumed["resolved_option"], &resumed["effect"]), (&json!("go"), &effect));
}
