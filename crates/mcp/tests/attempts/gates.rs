//! Passing a gate without a valid answer.

use serde_json::{Value, json};

use crate::field::{Field, go};

fn respond(index: &str, how: &Value) -> Value {
    let mut arguments = how.clone();
    arguments["session_index"] = index.into();
    arguments
}

/// An option that the checkpoint does not have opens it.
#[test]
fn an_option_that_is_none() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.wait(3000);
    for option in ["yes", "GO", "__condition_not_met__", "go\u{0}", "\u{ff47}o", "go,stop", "*", "confirm"] {
        let answer = respond(&index, &json!({"option_id": option}));
        field.refused("respond_checkpoint", &answer, "CHECKPOINT_OPTION_INVALID");
    }
}

/// No answer at all, a false one, or two at once count as one.
#[test]
fn no_answer_and_two_answers() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.wait(3000);
    for how in [
        json!({}),
        json!({"auto_advance": false}),
        json!({"condition_not_met": "false"}),
        json!({"option_id": "go", "auto_advance": true}),
        json!({"option_id": "go", "condition_not_met": true}),
        json!({"auto_advance": true, "condition_not_met": "true"}),
    ] {
        field.refused("respond_checkpoint", &respond(&index, &how), "CHECKPOINT_MODE");
    }
}

/// An answer of another kind than a text is taken for one.
#[test]
fn an_answer_of_another_kind() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.wait(3000);
    for option in [json!(["go", "stop"]), json!({"id": "go"}), json!(true), json!("")] {
        let outcome = field.call("respond_checkpoint", &respond(&index, &json!({"option_id": option})));
        assert!(outcome.is_error, "{option}");
        field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
    }
}

/// An answer in the moment of the yield comes before the user could have seen the question.
#[test]
fn an_answer_that_comes_too_fast() {
    let field = Field::new();
    let (index, handle) = field.blocked("a");
    for wait in [0, 1, 2998] {
        field.wait(wait);
        field.refused("respond_checkpoint", &respond(&index, &json!({"option_id": "go"})), "CHECKPOINT_TOO_FAST");
        let by_handle = json!({"checkpoint_handle": handle, "option_id": "go"});
        field.refused("respond_checkpoint", &by_handle, "CHECKPOINT_TOO_FAST");
    }
}

/// A clock that was set back makes the waiting time negative, and so very long.
#[test]
fn an_answer_after_the_clock_went_back() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.wait(-86_400_000);
    field.refused("respond_checkpoint", &respond(&index, &json!({"option_id": "go"})), "CHECKPOINT_TOO_FAST");
}

/// A checkpoint without a default advances by itself.
#[test]
fn an_advance_without_a_default() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.wait(1_000_000);
    field.refused("respond_checkpoint", &respond(&index, &json!({"auto_advance": true})), "AUTO_ADVANCE_UNAVAILABLE");
}

/// The timer of a checkpoint is not waited for.
#[test]
fn an_advance_before_its_time() {
    let field = Field::new();
    let index = field.running("a");
    field.stop(&index, "timed");
    field.wait(8999);
    field.refused("respond_checkpoint", &respond(&index, &json!({"auto_advance": true})), "AUTO_ADVANCE_TOO_EARLY");
    field.wait(-20_000);
    field.refused("respond_checkpoint", &respond(&index, &json!({"auto_advance": true})), "AUTO_ADVANCE_TOO_EARLY");
}

/// A default that is no option advances to nowhere.
#[test]
fn an_advance_to_an_option_that_is_none() {
    let field = Field::new();
    let index = field.running("a");
    field.stop(&index, "misnamed");
    field.wait(9000);
    let advance = respond(&index, &json!({"auto_advance": true}));
    field.refused("respond_checkpoint", &advance, "CHECKPOINT_DEFINITION_INVALID");
}

/// A checkpoint that always holds is dismissed as not holding.
#[test]
fn a_dismissal_without_a_condition() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.wait(9000);
    let dismissal = respond(&index, &json!({"condition_not_met": true}));
    field.refused("respond_checkpoint", &dismissal, "CHECKPOINT_NOT_CONDITIONAL");
}

/// The session walks on past a closed gate: to another activity, to its end, into the same activity again.
#[test]
fn walking_past_the_gate() {
    let mut field = Field::new();
    let (index, _) = field.blocked("a");
    for activity in ["ship", "plan", "complete", "__terminal__"] {
        field.refused("next_activity", &go(&index, activity), "CHECKPOINT_ACTIVE");
    }
    field.restart();
    field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
}

/// Content is taken from behind a closed gate, by its worker or by another agent.
#[test]
fn taking_content_behind_the_gate() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.refused("get_workflow", &json!({"session_index": index}), "CHECKPOINT_ACTIVE");
    for agent in ["orchestrator", "somebody-else"] {
        for (tool, how) in [
            ("get_activity", json!({"context_tokens": 200_000})),
            ("get_technique", json!({"step_id": "hello"})),
            ("get_resource", json!({"resource_id": "notes"})),
        ] {
            let mut arguments = respond(&index, &how);
            arguments["agent_id"] = agent.into();
            field.refused(tool, &arguments, "CHECKPOINT_ACTIVE");
        }
    }
}

/// A second yield displaces the first question.
#[test]
fn another_yield_in_place_of_the_question() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    for id in ["timed", "confirm", "confirm#2"] {
        let yielded = json!({"session_index": index, "checkpoint_id": id});
        field.refused("yield_checkpoint", &yielded, "CHECKPOINT_ALREADY_ACTIVE");
    }
    let own = json!({"session_index": index, "checkpoint_id": "mine", "message": "Go on?", "options":
        [{"id": "go", "label": "Go"}, {"id": "on", "label": "On"}]});
    field.refused("yield_checkpoint", &own, "CHECKPOINT_ALREADY_ACTIVE");
}

/// The worker resumes without an answer.
#[test]
fn a_resume_without_an_answer() {
    let field = Field::new();
    let (index, handle) = field.blocked("a");
    field.refused("resume_checkpoint", &json!({"session_index": index}), "CHECKPOINT_STILL_ACTIVE");
    let by_handle = json!({"session_index": index, "checkpoint_handle": handle});
    field.refused("resume_checkpoint", &by_handle, "CHECKPOINT_STILL_ACTIVE");
}

/// A declared checkpoint is yielded with a question and options of the worker's own.
#[test]
fn another_question_under_a_declared_id() {
    let field = Field::new();
    let index = field.running("a");
    for id in ["confirm", "confirm#1"] {
        let own = json!({"session_index": index, "checkpoint_id": id, "message": "Tea?", "options":
            [{"id": "go", "label": "Yes"}, {"id": "on", "label": "No"}]});
        field.refused("yield_checkpoint", &own, "CHECKPOINT_IS_DECLARED");
    }
}

/// The answer to one question of the worker's own is replayed for another.
#[test]
fn another_question_under_an_answered_id() {
    let field = Field::new();
    let index = field.running("a");
    let ask = |message: &str| {
        json!({"session_index": index, "checkpoint_id": "mine", "message": message, "options":
            [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]})
    };
    field.ok("yield_checkpoint", &ask("Tea?"));
    field.wait(3000);
    field.ok("respond_checkpoint", &respond(&index, &json!({"option_id": "yes"})));
    field.refused("yield_checkpoint", &ask("Delete everything?"), "CHECKPOINT_ID_REUSED");
}

/// An answer of an earlier visit is replayed in a new one.
#[test]
fn an_answer_of_an_earlier_visit() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.wait(3000);
    field.ok("respond_checkpoint", &respond(&index, &json!({"option_id": "go"})));
    field.ok("next_activity", &go(&index, "ship"));
    field.ok("next_activity", &go(&index, "plan"));
    let again = field.ok("yield_checkpoint", &json!({"session_index": index, "checkpoint_id": "confirm"}));
    assert_eq!(again["status"], "yielded");
    field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
}

/// A dismissal is replayed for the whole session, once the condition holds.
#[test]
fn a_dismissal_that_is_replayed() {
    let field = Field::new();
    field.define(
        "walk/activities/02-ship.yaml",
        "id: ship\nversion: 1.0.0\nname: Ship\nsteps:\n  - kind: checkpoint\n    id: sent\n    replay: session\n    \
         message: Sent?\n    condition: { type: simple, variable: is_ready, operator: '==', value: true }\n    \
         options: [{ id: sure, label: Sure }, { id: no, label: No }]\n",
    );
    let index = field.running("a");
    field.ok("next_activity", &go(&index, "ship"));
    field.stop(&index, "sent");
    field.ok("respond_checkpoint", &respond(&index, &json!({"condition_not_met": true})));
    field.ok("next_activity", &go(&index, "plan"));
    field.ok("next_activity", &go(&index, "ship"));
    let again = field.ok("yield_checkpoint", &json!({"session_index": index, "checkpoint_id": "sent"}));
    assert_eq!(again["status"], "yielded");
}

/// The definition is changed while the gate is closed: the checkpoint, its options or its activity are gone.
#[test]
fn a_definition_edited_while_the_gate_is_closed() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    field.wait(9000);
    let plan = |steps: &str| {
        let text = format!("id: plan\nversion: 1.0.0\nname: Plan\nsteps:\n{steps}");
        field.define("walk/activities/01-plan.yaml", &text);
    };
    plan("  - { kind: action, id: confirm }\n");
    for how in [json!({"option_id": "go"}), json!({"auto_advance": true}), json!({"condition_not_met": true})] {
        field.refused("respond_checkpoint", &respond(&index, &how), "CHECKPOINT_NOT_FOUND");
    }
    plan("  - { kind: checkpoint, id: confirm, message: Go?, options: [{ id: stop, label: Stop }] }\n");
    field.refused("respond_checkpoint", &respond(&index, &json!({"option_id": "go"})), "CHECKPOINT_OPTION_INVALID");
    field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
    std::fs::remove_file(field.base.join("corpus/walk/activities/01-plan.yaml")).unwrap();
    field.refused("respond_checkpoint", &respond(&index, &json!({"option_id": "go"})), "CHECKPOINT_NOT_FOUND");
    field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
}

/// A child answers, or is answered, in place of its parent, and the other way round.
#[test]
fn answering_through_child_and_parent() {
    let field = Field::new();
    let index = field.running("a");
    let dispatched = field.ok("dispatch_child", &json!({"session_index": index, "workflow_id": "walk"}));
    let child = dispatched["session_index"].as_str().unwrap().to_owned();
    assert_ne!(child, index);
    field.ok("next_activity", &go(&child, "plan"));
    let of_child = field.stop(&child, "confirm");
    field.wait(3000);
    let yes = json!({"option_id": "go"});
    field.refused("respond_checkpoint", &respond(&index, &yes), "NO_ACTIVE_CHECKPOINT");
    let crossed = json!({"checkpoint_handle": of_child.replacen(&child, &index, 1), "option_id": "go"});
    field.refused("respond_checkpoint", &crossed, "CHECKPOINT_HANDLE_INVALID");
    let of_parent = field.stop(&index, "confirm");
    field.wait(3000);
    field.ok("respond_checkpoint", &json!({"checkpoint_handle": of_parent, "option_id": "go"}));
    field.refused("next_activity", &go(&child, "ship"), "CHECKPOINT_ACTIVE");
}

/// A new session of the same slug, with another workflow or agent, forgets the gate.
#[test]
fn starting_again_in_front_of_the_gate() {
    let mut field = Field::new();
    let (index, _) = field.blocked("a");
    field.restart();
    for how in [
        json!({"planning_slug": "a", "workflow_id": "meta"}),
        json!({"planning_slug": "a", "agent_id": "new"}),
        json!({"planning_slug": "a", "context_mode": "fresh", "user_request": "open the gate"}),
    ] {
        let again = field.ok("start_session", &how);
        assert_eq!(again["session_index"], json!(index));
        field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
    }
}

/// Variables with the names of the session's own members open the gate.
#[test]
fn variables_named_like_the_gate() {
    let field = Field::new();
    let index = field.running("a");
    let mut named = go(&index, "plan");
    named["variables_changed"] = json!({"activeCheckpoint": null, "checkpointResponses": {"plan-confirm":
        {"optionId": "go"}}, "status": "completed", "__proto__": {"activeCheckpoint": null}});
    field.ok("next_activity", &named);
    let again = field.ok("yield_checkpoint", &json!({"session_index": index, "checkpoint_id": "confirm"}));
    assert_eq!(again["status"], "yielded");
    field.refused("next_activity", &named, "CHECKPOINT_ACTIVE");
}

/// A pair of ids that joins to the key of another pair replays its answer.
#[test]
fn two_pairs_of_ids_with_one_key() {
    let field = Field::new();
    let checkpoint = |id: &str| {
        format!(
            "  - {{ kind: checkpoint, id: {id}, message: Go?, replay: session, options: [{{ id: go, label: Go }}, {{ id: no, label: No }}] }}\n"
        )
    };
    let activity = |id: &str, step: &str| format!("id: {id}\nversion: 1.0.0\nname: X\nsteps:\n{}", checkpoint(step));
    field.define("walk/activities/06-a.yaml", &activity("a", "b-c"));
    field.define("walk/activities/07-a-b.yaml", &activity("a-b", "c"));
    let index = field.running("s");
    field.ok("next_activity", &go(&index, "a"));
    field.stop(&index, "b-c");
    field.wait(3000);
    field.ok("respond_checkpoint", &respond(&index, &json!({"option_id": "go"})));
    field.ok("next_activity", &go(&index, "a-b"));
    let other = field.ok("yield_checkpoint", &json!({"session_index": index, "checkpoint_id": "c"}));
    assert_eq!(other["status"], "yielded");
}
