//! How long answers are replayed (spec 03 §6.4, design §5).

use serde_json::json;

use super::Run;
use crate::visit;

/// Answers a checkpoint, walks, and yields it again.
#[track_caller]
fn check(start: &str, checkpoint: &str, option: &str, walk: &[&str], again: &str) {
    let run = Run::at(start);
    run.ask(checkpoint, option);
    for activity in walk {
        run.go(activity);
        run.call("get_workflow", json!({}));
    }
    assert_eq!(run.stop(checkpoint), again, "{start} {checkpoint}={option}, then {walk:?}");
}

/// A resumed orchestrator re-enters the current activity plainly; a loop-back comes from another one. Hazard H19.
#[test]
fn trap_01_14_38_an_answer_holds_until_a_declared_route_or_another_activity() {
    check("plan", "confirm", "go", &[], "go");
    check("plan", "confirm", "go", &["plan"], "go");
    check("plan", "confirm", "go", &["plan", "plan"], "go");
    check("plan", "confirm", "again", &["plan"], "yielded");
    check("plan", "confirm", "go", &["review", "plan"], "yielded");
    check("plan", "confirm", "go", &["__terminal__", "plan"], "yielded");
    check("spin", "round", "done", &["spin"], "yielded");
}

#[test]
fn a_step_may_keep_its_answer_for_the_session() {
    let run = Run::at("plan");
    run.ask("standing", "always");
    let answer = run.json("yield_checkpoint", json!({"checkpoint_id": "standing"}));
    assert_eq!(answer["answered_in_visit"], true);
    run.go("review");
    run.go("plan");
    let answer = run.json("yield_checkpoint", json!({"checkpoint_id": "standing"}));
    assert_eq!((&answer["resolved_option"], &answer["answered_in_visit"]), (&json!("always"), &json!(false)));
    assert_eq!(run.json("yield_checkpoint", json!({"checkpoint_id": "standing"})).get("effect"), None);
}

#[test]
fn a_dismissal_never_outlives_its_visit() {
    let run = Run::at("plan");
    assert_eq!(run.stop("standing"), "yielded");
    run.json("respond_checkpoint", json!({"condition_not_met": true}));
    assert_eq!(run.stop("standing"), "__condition_not_met__");
    run.go("review");
    run.go("plan");
    assert_eq!(run.stop("standing"), "yielded");
}

#[test]
fn trap_03_14_17_a_dismissal_is_an_answer_within_the_visit() {
    let run = Run::at("plan");
    run.stop("maybe");
    let answer = run.json("respond_checkpoint", json!({"condition_not_met": true}));
    assert_eq!((&answer["dismissed"], answer.get("resolved_option")), (&json!(true), None));
    run.call("get_activity", json!({"context_tokens": 100_000, "agent_id": "replacement"}));
    let replayed = run.json("yield_checkpoint", json!({"checkpoint_id": "maybe"}));
    assert_eq!(replayed["resolved_option"], "__condition_not_met__");
    for told in [&replayed, &run.json("resume_checkpoint", json!({}))] {
        let message = told["message"].as_str().expect("a message");
        assert!(message.contains("dismissed") && message.contains("no answer to follow"), "{message}");
    }
    assert_eq!(run.session().checkpoint_responses["plan-maybe"].option_id, "__condition_not_met__");
}

#[test]
fn trap_03_14_15_a_replay_does_not_apply_its_effect_again() {
    let run = Run::at("plan");
    run.ask("confirm", "go");
    run.call("next_activity", json!({"activity_id": "plan", "variables_changed": {"is_ready": false}}));
    let answer = run.json("yield_checkpoint", json!({"checkpoint_id": "confirm"}));
    assert_eq!(answer["effect"], json!({"setVariable": {"is_ready": true}}));
    let names: Vec<&String> = answer.keys().collect();
    assert_eq!(names, ["status", "checkpoint_id", "session_index", "resolved_option", "message", "effect"]);
    assert_eq!(run.session().variables["is_ready"], false);
    let replayed = run.events("checkpoint_replayed").remove(0);
    assert_eq!((replayed.checkpoint(), replayed.data_text("optionId")), ("confirm", Some("go")));
}

#[test]
fn two_pairs_of_ids_with_one_key_do_not_answer_for_each_other() {
    let run = Run::at("a");
    run.ask("b-c", "one");
    run.go("a-b");
    assert_eq!(run.stop("c"), "yielded", "the key a-b-c holds the answer of another checkpoint");
    run.answer("two");
    run.go("a");
    assert_eq!(run.stop("b-c"), "yielded");
}

#[test]
fn migrated_answers_count_for_the_session_only() {
    let run = Run::at("plan");
    run.ask("standing", "always");
    run.ask("confirm", "go");
    run.ws.change(&run.index, |session| session.history.retain(|event| event.kind() != "checkpoint_response"));
    assert_eq!(run.stop("standing"), "always");
    assert_eq!(run.stop("confirm"), "yielded");
}

#[test]
fn the_kind_of_a_re_entry_is_written_down() {
    let run = Run::at("plan");
    // without a call in between it would be a retry
    run.call("get_workflow", json!({}));
    run.go("plan");
    run.ask("confirm", "again");
    run.go("plan");
    run.go("review");
    run.go("plan");
    let visits: Vec<Option<String>> =
        run.events("activity_entered").iter().map(|event| event.data_text("visit").map(str::to_owned)).collect();
    assert_eq!(visits, [None, Some(visit::SAME.to_owned()), Some(visit::NEW.to_owned()), None, None]);
}

/// Histories of the original do not say what a re-entry was: the rule is applied with the definition at hand.
#[test]
fn unmarked_re_entries_follow_the_definition() {
    let unmark = |run: &Run| {
        run.ws.change(&run.index, |session| {
            for event in &mut session.history {
                if event.kind() == "activity_entered" {
                    event.0.shift_remove("data");
                }
            }
        });
    };
    let run = Run::at("spin");
    run.ask("round", "more");
    run.go("spin");
    unmark(&run);
    assert_eq!(run.stop("round"), "yielded");
    let run = Run::at("plan");
    run.ask("timed", "halt");
    run.go("plan");
    unmark(&run);
    assert_eq!(run.stop("timed"), "halt");
    run.ask("confirm", "again");
    run.go("plan");
    unmark(&run);
    assert_eq!(run.stop("timed"), "yielded");
}

#[test]
fn a_visit_starts_where_the_session_last_came_from_elsewhere() {
    let run = Run::at("plan");
    run.go("review");
    run.go("plan");
    run.call("get_workflow", json!({}));
    run.go("plan");
    let session = run.session();
    let start = visit::start(&session, Some(&run.activity("plan")));
    let entered: Vec<usize> = session
        .history
        .iter()
        .enumerate()
        .filter(|(_, event)| event.kind() == "activity_entered")
        .map(|(at, _)| at)
        .collect();
    assert_eq!(start, entered[2]);
    assert_eq!(visit::start(&Run::new().session(), None), 0);
}
