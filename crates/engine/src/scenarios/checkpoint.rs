//! Answers: modes, timers, options, effects (spec 03 §6.5).

use serde_json::json;

use super::{Run, codes};
use crate::Timestamp;

/// Yields and answers with these arguments after some milliseconds; expects this refusal and a closed gate, or success.
#[track_caller]
fn check(checkpoint: &str, waited: i64, answer: impl Into<serde_json::Value>, code: Option<&str>) {
    let answer = answer.into();
    let run = Run::patient("plan");
    assert_eq!(run.stop(checkpoint), "yielded");
    // the call itself takes a second
    run.wait(waited - 1000);
    let before = run.session();
    match (run.ws.try_call("respond_checkpoint", run.addressed(answer.clone())), code) {
        (Ok(_), None) => assert!(run.session().active_checkpoint.is_none(), "{answer}"),
        (Err(refusal), Some(code)) => {
            assert_eq!(refusal.code, code, "{answer}: {}", refusal.message);
            assert_eq!(run.session(), before, "a refusal changes nothing");
            assert!(before.active_checkpoint.is_some());
        }
        (found, expected) => panic!("{answer}: {found:?} instead of {expected:?}"),
    }
}

#[test]
fn every_mode_has_its_conditions() {
    let option = |id: &str| json!({"option_id": id});
    check("confirm", 3000, option("go"), None);
    check("confirm", 2999, option("go"), Some("CHECKPOINT_TOO_FAST"));
    check("confirm", 3000, option("gone"), Some("CHECKPOINT_OPTION_INVALID"));
    check("timed", 5000, json!({"auto_advance": true}), None);
    check("timed", 5000, json!({"auto_advance": "true"}), None);
    check("timed", 4999, json!({"auto_advance": true}), Some("AUTO_ADVANCE_TOO_EARLY"));
    check("confirm", 9000, json!({"auto_advance": true}), Some("AUTO_ADVANCE_UNAVAILABLE"));
    check("maybe", 1000, json!({"condition_not_met": true}), None);
    check("confirm", 9000, json!({"condition_not_met": true}), Some("CHECKPOINT_NOT_CONDITIONAL"));
    check("inline", 9000, json!({"condition_not_met": true}), Some("CHECKPOINT_NOT_CONDITIONAL"));
    check("timed", 9000, json!({"auto_advance": true, "option_id": "halt"}), Some("CHECKPOINT_MODE"));
    check("timed", 9000, json!({}), Some("CHECKPOINT_MODE"));
    check("timed", 9000, json!({"auto_advance": 1}), Some("INVALID_PARAMS"));
    check("timed", 9000, json!({"option_id": ""}), Some("INVALID_PARAMS"));
    check("timed", 9000, json!({"option": "halt"}), Some("INVALID_PARAMS"));
}

#[test]
fn the_record_says_when_nobody_answered() {
    for (answer, mode) in
        [(json!({"auto_advance": true}), Some("auto_advance")), (json!({"option_id": "carry_on"}), None)]
    {
        let run = Run::at("plan");
        run.stop("timed");
        run.wait(5000);
        run.json("respond_checkpoint", answer);
        let event = run.events("checkpoint_response").remove(0);
        assert_eq!((event.data_text("optionId"), event.data_text("mode")), (Some("carry_on"), mode));
    }
}

/// Hazard H2: in the original `auto_advance: false` opened any gate.
#[test]
fn trap_03_14_13_a_false_flag_is_no_mode_and_the_gate_stays() {
    for flag in [json!(false), json!("false"), json!(""), json!(null)] {
        check("timed", 9000, json!({ "auto_advance": flag }), Some("CHECKPOINT_MODE"));
        check("maybe", 9000, json!({ "condition_not_met": flag }), Some("CHECKPOINT_MODE"));
        check("timed", 9000, json!({ "auto_advance": flag, "option_id": "halt" }), None);
    }
}

#[test]
fn trap_03_14_14_the_timer_comes_before_the_option() {
    check("confirm", 1000, json!({"option_id": "gone"}), Some("CHECKPOINT_TOO_FAST"));
}

/// Hazard H18: the original compared whole seconds and stamped answers before their yields.
#[test]
fn times_are_milliseconds_and_never_run_backwards() {
    let run = Run::patient("plan");
    run.wait(400);
    assert_eq!(run.stop("confirm"), "yielded");
    run.wait(1170);
    let refusal = run.refused("respond_checkpoint", json!({"option_id": "go"}));
    assert_eq!(refusal.code, "CHECKPOINT_TOO_FAST");
    assert!(refusal.retryable);
    assert_eq!(refusal.details["elapsed_ms"], 2170);
    assert_eq!(refusal.details["required_ms"], 3000);
    assert_eq!(refusal.details["retry_after_seconds"], 1);
    // the clock goes back by an hour: nothing has elapsed, and the history does not go back
    run.wait(-3_600_000);
    assert_eq!(run.refused("respond_checkpoint", json!({"option_id": "go"})).details["elapsed_ms"], 0);
    run.wait(3_600_000 + 1000);
    run.answer("go");
    run.wait(-3_600_000);
    run.go("review");
    let session = run.session();
    let stamps: Vec<Option<Timestamp>> = session.history.iter().map(crate::state::Event::time).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
    assert_eq!(
        session.checkpoint_responses["plan-confirm"].responded_at,
        run.events("checkpoint_response")[0].timestamp()
    );
}

#[test]
fn an_answer_is_recorded_with_its_effects() {
    let run = Run::at("plan");
    assert_eq!(run.stop("confirm"), "yielded");
    let reply = run.call("respond_checkpoint", json!({"option_id": "skip"}));
    assert_eq!(codes(&reply), ["W_VARIABLE_TYPE"]);
    let session = run.session();
    assert_eq!(session.variables["item_count"], "many", "stored as written");
    assert_eq!(session.variables["chosen_name"], "{user_name}", "a template is stored literally");
    assert_eq!(session.skipped_activities, ["review", "ship"]);
    let kinds: Vec<&str> = session.history.iter().rev().take(5).map(crate::state::Event::kind).collect();
    assert_eq!(kinds, ["activity_skipped", "activity_skipped", "variable_set", "variable_set", "checkpoint_response"]);
    let mistyped = run.events("variable_set").remove(0);
    assert_eq!(mistyped.data("typeMismatch"), Some(&json!(true)));
    assert_eq!((mistyped.data_text("declaredType"), mistyped.data_text("valueType")), (Some("number"), Some("string")));
    assert_eq!(mistyped.activity(), "plan");
    assert!(run.events("variable_set")[1].data("typeMismatch").is_none());
    let rendered = reply.render().text;
    let answer: serde_json::Value = serde_json::from_str(&rendered).unwrap();
    let names: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "checkpoint_id",
            "resolved",
            "session_index",
            "resolved_option",
            "effect",
            "checkpoint_handle",
            "next",
            "validation"
        ]
    );
    assert_eq!(
        answer["effect"],
        json!({"setVariable": {"item_count": "many", "chosen_name": "{user_name}"}, "skipActivities": ["review", "ship"]})
    );
    assert_eq!(answer["next"], "resume_checkpoint");
    // a second skip of the same activities leaves no second event
    run.go("review");
    run.go("plan");
    run.ask("confirm", "skip");
    assert_eq!(run.events("activity_skipped").len(), 2);
}

#[test]
fn a_transition_of_an_option_is_returned_and_not_enacted() {
    let run = Run::at("plan");
    let answer = run.ask("confirm", "again");
    assert_eq!(answer["effect"], json!({"transitionTo": "plan"}));
    assert_eq!(run.events("activity_entered").len(), 1);
}

#[test]
fn what_is_presented_is_the_definition_with_times() {
    let run = Run::patient("plan");
    run.stop("timed");
    let before = run.session();
    let text = run.call("present_checkpoint", json!({})).plain_text();
    let handle = run.refused("next_activity", json!({"activity_id": "ship"})).details["checkpoint_handle"].clone();
    assert_eq!(
        text,
        format!(
            "id: timed\nname: timed\nmessage: Wait?\noptions:\n  - id: carry_on\n    label: Carry on\n    effect:\n      \
             setVariable:\n        is_ready: true\n  - id: halt\n    label: Halt\ndefaultOption: carry_on\nautoAdvanceMs: \
             5000\nblocking: true\ninstance_id: timed\nsession_index: {}\ncheckpoint_handle: {}\nseconds_until_answerable: \
             2\nseconds_until_auto_advance: 4\n",
            run.index,
            handle.as_str().unwrap()
        )
    );
    assert_eq!(run.session(), before, "presenting changes nothing");
}

#[test]
fn a_template_is_presented_as_written() {
    let run = Run::at("plan");
    run.stop("pick#7");
    let text = run.call("present_checkpoint", json!({})).plain_text();
    assert!(text.starts_with("id: pick#{cur_item.id}\n"), "{text}");
    assert!(text.contains("\ninstance_id: pick#7\n"), "{text}");
}

#[test]
fn undeclared_decisions_are_asked_and_answered_by_option_only() {
    let run = Run::at("plan");
    let options = json!([{"id": "x", "label": "X"}, {"id": "y", "label": "Y", "description": "Why."}]);
    let decision = json!({"checkpoint_id": "surprise", "message": "What now?", "options": options});
    assert_eq!(run.json("yield_checkpoint", decision.clone())["status"], "yielded");
    let text = run.call("present_checkpoint", json!({})).plain_text();
    assert!(text.starts_with("id: surprise\nmessage: What now?\noptions:\n  - id: x\n    label: X\n"), "{text}");
    assert!(text.contains("\nblocking: true\ndeclared: false\nsession_index: "), "{text}");
    for (answer, code) in [
        (json!({"auto_advance": true}), "AUTO_ADVANCE_UNAVAILABLE"),
        (json!({"condition_not_met": true}), "CHECKPOINT_NOT_CONDITIONAL"),
        (json!({"option_id": "z"}), "CHECKPOINT_OPTION_INVALID"),
    ] {
        assert_eq!(run.refused("respond_checkpoint", answer).code, code);
    }
    let answer = run.answer("y");
    assert_eq!(answer.get("effect"), None);
    assert_eq!(run.events("checkpoint_reached")[0].data_text("adhoc").map(str::len), Some(16));
    // the same question again, with or without its payload, is answered already; another one is not
    assert_eq!(run.json("yield_checkpoint", decision)["resolved_option"], "y");
    assert_eq!(run.stop("surprise"), "y");
    let other = json!({"checkpoint_id": "surprise", "message": "And now?", "options": options});
    assert_eq!(run.refused("yield_checkpoint", other.clone()).code, "CHECKPOINT_ID_REUSED");
    // a new visit may ask anything under the same id
    run.go("review");
    run.go("plan");
    assert_eq!(run.json("yield_checkpoint", other)["status"], "yielded");
}

#[test]
fn undeclared_decisions_need_both_parts_and_distinct_options() {
    let run = Run::at("plan");
    let two = json!([{"id": "x", "label": "X"}, {"id": "y", "label": "Y"}]);
    for (arguments, code) in [
        (json!({"checkpoint_id": "surprise"}), "CHECKPOINT_NOT_FOUND"),
        (json!({"checkpoint_id": "surprise", "message": "?"}), "CHECKPOINT_NOT_FOUND"),
        (json!({"checkpoint_id": "surprise", "options": two}), "CHECKPOINT_NOT_FOUND"),
        (json!({"checkpoint_id": "surprise", "message": "", "options": two}), "INVALID_PARAMS"),
        (
            json!({"checkpoint_id": "surprise", "message": "?", "options": [{"id": "x", "label": "X"}]}),
            "INVALID_PARAMS",
        ),
        (
            json!({"checkpoint_id": "s", "message": "?", "options": [{"id": "x", "label": "X"}, {"id": "x", "label": "Y"}]}),
            "INVALID_PARAMS",
        ),
        (
            json!({"checkpoint_id": "s", "message": "?", "options": [{"id": "", "label": "X"}, {"id": "y", "label": "Y"}]}),
            "INVALID_PARAMS",
        ),
        (json!({"checkpoint_id": "confirm", "message": "?"}), "CHECKPOINT_IS_DECLARED"),
        (json!({"checkpoint_id": "confirm", "options": two}), "CHECKPOINT_IS_DECLARED"),
        (json!({"checkpoint_id": "confirm", "message": "?", "options": two}), "CHECKPOINT_IS_DECLARED"),
    ] {
        let refusal = run.refused("yield_checkpoint", arguments.clone());
        assert_eq!(refusal.code, code, "{arguments}");
    }
    let listed = run.refused("yield_checkpoint", json!({"checkpoint_id": "conf"}));
    assert_eq!(
        listed.details["declared"],
        json!(["confirm", "timed", "maybe", "inline", "standing", "pick#{cur_item.id}"])
    );
}

#[test]
fn trap_03_14_16_instances_are_answers_of_their_own_and_one_definition() {
    let run = Run::at("plan");
    run.ask("pick#1", "left");
    run.ask("pick#2", "right");
    assert_eq!((run.stop("pick#1").as_str(), run.stop("pick#2").as_str()), ("left", "right"));
    run.ask("pick", "left");
    assert_eq!(run.stop("pick"), "left", "yielded twice, it is one answer");
    for (id, warned) in [("pick", true), ("pick#1", false)] {
        let replayed = run.ws.call("yield_checkpoint", run.addressed(json!({"checkpoint_id": id})));
        assert_eq!(format!("{replayed:?}").contains("another round of the loop"), warned, "{replayed:?}");
    }
    let two = json!([{"id": "x", "label": "X"}, {"id": "y", "label": "Y"}]);
    let refusal =
        run.refused("yield_checkpoint", json!({"checkpoint_id": "confirm#later", "message": "?", "options": two}));
    assert_eq!(refusal.code, "CHECKPOINT_IS_DECLARED");
}

#[test]
fn trap_01_14_23_templated_ids_match_by_their_base() {
    let run = Run::at("plan");
    run.stop("pick#3");
    assert_eq!(run.session().active_checkpoint.unwrap().checkpoint_id, "pick#3");
    let text = run.call("present_checkpoint", json!({})).plain_text();
    assert!(text.contains("message: Which one?"), "{text}");
}

/// Hazard H9: ids that brick a session are refused where they come in.
#[test]
fn nothing_is_yielded_outside_an_activity_or_without_an_id() {
    let two = json!([{"id": "x", "label": "X"}, {"id": "y", "label": "Y"}]);
    let run = Run::new();
    let before = run.session();
    for (arguments, code) in [
        (json!({"checkpoint_id": "confirm"}), "NO_CURRENT_ACTIVITY"),
        (json!({"checkpoint_id": "surprise", "message": "?", "options": two}), "NO_CURRENT_ACTIVITY"),
        (json!({"checkpoint_id": ""}), "INVALID_PARAMS"),
    ] {
        assert_eq!(run.refused("yield_checkpoint", arguments).code, code);
    }
    for arguments in [
        json!({"activity_id": ""}),
        json!({"activity_id": "plan", "agent_id": ""}),
        json!({"activity_id": "plan", "step_manifest": [{"step_id": "", "output": "x"}]}),
        json!({"activity_id": "plan", "activity_manifest": [{"activity_id": "", "outcome": "x"}]}),
        json!({"activity_id": "plan", "artifacts_produced": [{"id": "", "name": "x"}]}),
        json!({"activity_id": "plan", "artifacts_produced": [{"id": "x", "name": ""}]}),
    ] {
        assert_eq!(run.refused("next_activity", arguments.clone()).code, "INVALID_PARAMS", "{arguments}");
    }
    assert_eq!(run.session(), before);
    run.go("plan");
    run.go("__terminal__");
    assert_eq!(run.refused("yield_checkpoint", json!({"checkpoint_id": "confirm"})).code, "SESSION_TERMINAL");
}

#[test]
fn a_definition_that_went_away_does_not_open_the_gate() {
    let run = Run::at("plan");
    run.stop("confirm");
    run.ws.change(&run.index, |session| {
        session.active_checkpoint.as_mut().unwrap().checkpoint_id = "removed".to_owned();
    });
    for answer in [json!({"option_id": "go"}), json!({"condition_not_met": true})] {
        let refusal = run.refused("respond_checkpoint", answer);
        assert_eq!(refusal.code, "CHECKPOINT_NOT_FOUND");
        assert!(refusal.message.contains("condition_not_met") && refusal.message.contains("operator"));
    }
    assert_eq!(run.refused("present_checkpoint", json!({})).code, "CHECKPOINT_NOT_FOUND");
}
