//! Repeated calls (spec 03 §4.2).

use serde_json::json;

use super::{Run, codes};

#[test]
fn a_repeated_transition_is_no_self_transition() {
    let run = Run::new();
    let arguments = json!({"activity_id": "plan", "variables_changed": {"is_ready": "yes"}});
    let first = run.call("next_activity", arguments.clone());
    let before = run.session();
    let again = run.call("next_activity", arguments.clone());
    assert_eq!(run.session(), before);
    assert!(again.repeated && !first.repeated);
    let mut expected: serde_json::Value = serde_json::from_str(&first.plain_text()).unwrap();
    expected["already_done"] = true.into();
    let answer: serde_json::Value = serde_json::from_str(&again.plain_text()).unwrap();
    assert_eq!(answer, expected);
    assert_eq!(codes(&again), [""; 0], "only what holds now is warned about");
    assert!(again.meta.contains_key("trace_token"));
    // reads in between do not count, and neither does who the caller says it is reading for
    run.call("get_workflow_status", json!({}));
    assert!(run.call("next_activity", arguments.clone()).repeated);
    // other arguments, and another call in between, do
    assert!(!run.call("next_activity", json!({"activity_id": "plan"})).repeated);
    run.call("get_workflow", json!({}));
    assert!(!run.call("next_activity", json!({"activity_id": "plan"})).repeated);
}

#[test]
fn an_answer_may_be_sent_twice_in_either_form() {
    let run = Run::at("plan");
    run.stop("confirm");
    let handle = run.refused("resume_checkpoint", json!({})).details["checkpoint_handle"].clone();
    let first = run.json("respond_checkpoint", json!({"option_id": "go"}));
    let seq = run.session().seq;
    let again = run.json("respond_checkpoint", json!({"option_id": "go"}));
    assert_eq!((&again["already_done"], &again["effect"]), (&json!(true), &first["effect"]));
    let by_handle = run.ws.json("respond_checkpoint", json!({"option_id": "go", "checkpoint_handle": handle}));
    assert_eq!(by_handle, again);
    assert_eq!(run.refused("respond_checkpoint", json!({"option_id": "skip"})).code, "NO_ACTIVE_CHECKPOINT");
    assert_eq!(run.session().seq, seq);
    let resumed = run.call("resume_checkpoint", json!({"checkpoint_handle": handle}));
    assert!(!resumed.repeated);
    assert_eq!(run.session().seq, seq + 1);
    let resumed = run.json("resume_checkpoint", json!({"checkpoint_handle": handle}));
    assert_eq!(resumed["already_done"], true);
    assert_eq!(run.session().seq, seq + 1);
}

#[test]
fn a_retry_survives_a_crash_and_names_its_own_session() {
    let run = Run::at("plan");
    let arguments = json!({"activity_id": "review"});
    run.call("next_activity", arguments.clone());
    // what is in the file is all that is needed
    let text = run.session().canonical_text();
    let read = crate::state::Session::from_json(&crate::state::parse_text(text.as_bytes()).unwrap()).unwrap();
    run.ws.change(&run.index, |session| *session = read);
    assert!(run.call("next_activity", arguments).repeated);
    let last = run.session().last_call.unwrap();
    assert_eq!((last.tool.as_str(), last.seq, last.arguments.len()), ("next_activity", run.session().seq, 16));
    // a handle of another session is no retry
    run.go("plan");
    run.ask("confirm", "go");
    run.call("resume_checkpoint", json!({}));
    let foreign = json!({"checkpoint_handle": "cp1.ABCDE2.OoYG17oXA0k83PJBm9bC-4"});
    assert_eq!(run.refused("resume_checkpoint", foreign).code, "CHECKPOINT_ADDRESS_CONFLICT");
}

#[test]
fn a_start_is_repeated_until_somebody_works() {
    let run = Run::new();
    let arguments = json!({"workflow_id": "walk", "planning_slug": "2026-07-13-alpha"});
    let again = run.ws.json("start_session", arguments.clone());
    assert_eq!((&again["already_done"], &again["resumed"]), (&json!(true), &json!(false)));
    run.go("plan");
    let resumed = run.ws.json("start_session", arguments);
    assert_eq!((resumed.get("already_done"), &resumed["resumed"]), (None, &json!(true)));
}

#[test]
fn large_arguments_and_large_sessions_are_refused() {
    let run = Run::at("plan");
    let deep = (0..64).fold(json!(1), |inner, _| json!([inner]));
    let refusal = run.refused("next_activity", json!({"activity_id": "plan", "variables_changed": {"deep": deep}}));
    assert_eq!((refusal.code, &refusal.details["parameter"]), ("PARAM_TOO_LARGE", &json!("variables_changed")));
    let mut run = Run::at("plan");
    let bytes = run.session().canonical_text().len();
    run.ws.settings.large_session_bytes = bytes;
    run.ws.settings.max_session_bytes = bytes + 2000;
    assert_eq!(
        codes(&run.call("next_activity", json!({"activity_id": "plan", "step_manifest": []})))[1..],
        ["W_SESSION_LARGE"]
    );
    run.stop("confirm");
    let big = json!({"activity_id": "review", "variables_changed": {"big": "x".repeat(3000)}});
    run.ws.settings.max_session_bytes = bytes;
    run.answer("go");
    run.call("resume_checkpoint", json!({}));
    let before = run.session();
    let refusal = run.refused("next_activity", big);
    assert_eq!(refusal.code, "SESSION_TOO_LARGE");
    assert!(refusal.message.contains("respond_checkpoint"));
    assert_eq!(run.session(), before);
    run.call("get_workflow_status", json!({}));
    run.go("__terminal__");
}
