//! `next_activity`: what moves and what is recorded (spec 03 §3.2, §5.8, §1.9).

use serde_json::{Value, json};

use super::{Run, codes};
use crate::{
    state::{Event, Status},
    workspace::Workspace,
};

fn kinds_since(run: &Run, start: usize) -> Vec<(String, String)> {
    let pair = |event: &Event| (event.kind().to_owned(), event.activity().to_owned());
    run.session().history[start..].iter().map(pair).collect()
}

#[test]
fn the_events_of_a_transition_stand_in_order() {
    let run = Run::at("steps");
    let start = run.session().history.len();
    run.call(
        "next_activity",
        json!({
            "activity_id": "complete",
            "transition_condition": "x",
            "step_manifest": [
                {"step_id": "s1", "output": "done"},
                {"step_id": "s2", "output": " "},
                {"step_id": "s1~2", "output": {"count": 2}},
            ],
            "activity_manifest": [{"activity_id": "plan", "outcome": "partial"}, {"activity_id": "steps", "outcome": ""}],
            "variables_changed": {"is_ready": true, "free": {"a": [1]}},
            "artifacts_produced": [{"id": "plan_doc", "name": "plan.md"}],
            "agent_id": "worker-1",
            "progress_published": false,
        }),
    );
    let pair = |kind: &str, activity: &str| (kind.to_owned(), activity.to_owned());
    assert_eq!(
        kinds_since(&run, start),
        [
            pair("activity_exited", "steps"),
            pair("activity_outcome", "plan"),
            pair("variable_set", "steps"),
            pair("variable_set", "steps"),
            pair("step_completed", "steps"),
            pair("step_completed", "steps"),
            pair("activity_entered", "complete"),
            pair("progress_published", "complete"),
            pair("workflow_completed", ""),
        ]
    );
    let steps = run.events("step_completed");
    assert_eq!((steps[0].data_text("stepId"), steps[0].data_text("agentId")), (Some("s1"), Some("worker-1")));
    assert_eq!(steps[1].data_text("stepId"), Some("s1~2"));
    assert_eq!(run.events("progress_published")[0].data("published"), Some(&json!(false)));
    let session = run.session();
    assert_eq!(session.variables["free"], json!({"a": [1]}));
    assert_eq!(session.condition, "x");
    assert_eq!(session.completed_activities, ["steps"]);
    assert_eq!(session.declared_artifacts.len(), 1);
    assert!(session.validate().is_ok());
}

#[test]
fn the_answer_names_the_target_and_nothing_more() {
    let run = Run::new();
    let reply = run.call("next_activity", json!({"activity_id": "plan", "agent_id": "w", "context_tokens": 200_000}));
    let answer: Value = serde_json::from_str(&reply.plain_text()).unwrap();
    let names: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(names, ["activity_id", "name", "session_index", "trace_ref", "batch"]);
    assert_eq!((&answer["activity_id"], &answer["name"]), (&json!("plan"), &json!("Plan")));
    assert_eq!(answer["batch"], reply.meta["batch"]);
    let meta: Vec<&String> = reply.meta.keys().collect();
    assert_eq!(meta, ["batch", "trace_token"]);
    // without a context size, and at the end, there is no reading
    let reply = run.call("next_activity", json!({"activity_id": "review", "agent_id": "w"}));
    assert_eq!(reply.meta.keys().collect::<Vec<_>>(), ["trace_token"]);
    let end = json!({"activity_id": "__terminal__", "agent_id": "w", "context_tokens": 200_000});
    let reply = run.call("next_activity", end);
    assert_eq!(reply.meta.keys().collect::<Vec<_>>(), ["trace_token"]);
    assert!(reply.plain_text().contains("\"name\": \"Workflow Complete\""));
}

#[test]
fn trap_03_14_18_complete_completes_on_entry() {
    let run = Run::at("plan");
    run.go("complete");
    let session = run.session();
    assert_eq!(session.status, Status::Completed);
    assert_eq!(session.completed_activities, ["plan"]);
    assert_eq!(session.current_activity, "complete");
    // its own steps and gates still run
    assert!(run.ws.try_call("get_activity", run.addressed(json!({"context_tokens": 100_000}))).is_ok());
    run.ask("farewell", "bye");
}

#[test]
fn trap_03_14_19_blocked_beats_completed() {
    let run = Run::at("complete");
    assert_eq!(run.json("get_workflow_status", json!({}))["status"], "completed");
    run.stop("farewell");
    let status = run.json("get_workflow_status", json!({}));
    assert_eq!((&status["status"], &status["lifecycle"]), (&json!("blocked"), &json!("completed")));
    run.answer("bye");
    assert_eq!(run.json("get_workflow_status", json!({}))["status"], "completed");
}

#[test]
fn trap_03_14_20_every_transition_overwrites_the_condition() {
    let run = Run::at("plan");
    run.call("next_activity", json!({"activity_id": "review", "transition_condition": "a == 1"}));
    assert_eq!(run.session().condition, "a == 1");
    run.go("ship");
    assert_eq!(run.session().condition, "");
}

#[test]
fn trap_01_14_39_done_is_not_completed_until_the_sentinel() {
    let run = Run::at("ship");
    run.call(
        "next_activity",
        json!({"activity_id": "ship", "step_manifest": [{"step_id": "send_it", "output": "sent"}]}),
    );
    assert_eq!(run.session().status, Status::Running);
    assert_eq!(run.json("get_workflow_status", json!({}))["status"], "active");
    let reply = run.call(
        "next_activity",
        json!({"activity_id": "__terminal__", "step_manifest": [{"step_id": "send_it", "output": "sent"}]}),
    );
    assert!(reply.warnings.is_empty(), "{:?}", reply.warnings);
    assert_eq!(run.session().status, Status::Completed);
    assert_eq!(run.session().current_activity, "__terminal__");
}

/// Hazard H20: the sentinel is no completed activity, and a session that goes on is not called completed.
#[test]
fn a_finished_session_ends_once_and_may_be_reopened() {
    let run = Run::at("complete");
    let end = |run: &Run| run.call("next_activity", json!({"activity_id": "__terminal__", "step_manifest": []}));
    assert_eq!(codes(&end(&run)), ["W_STEPS_MISSING"], "the regular end is no reopening");
    assert_eq!(run.events("workflow_completed").len(), 2);
    let before = run.session();
    assert_eq!(before.completed_activities, ["complete"]);
    run.call("get_workflow", json!({}));
    // the sentinel after the sentinel changes nothing
    let before_again = run.session();
    let reply = run.call("next_activity", json!({"activity_id": "__terminal__", "agent_id": "other"}));
    assert!(reply.plain_text().contains("\"already_done\": true"));
    assert!(reply.warnings.is_empty() && reply.meta.contains_key("trace_token"));
    assert_eq!(run.session(), before_again);
    // reopened: warned about, running, and no manifest is demanded for the sentinel
    let reply = run.go("plan");
    assert_eq!(codes(&reply), ["W_COMPLETED_REOPENED"]);
    let session = run.session();
    assert_eq!(session.status, Status::Running);
    assert_eq!(session.completed_activities, ["complete"]);
    // from `complete` to anything but the end is one as well
    let run = Run::at("complete");
    assert!(codes(&run.go("plan")).contains(&"W_COMPLETED_REOPENED"));
    assert_eq!(run.session().status, Status::Running);
}

#[test]
fn an_active_checkpoint_refuses_the_transition_and_names_the_way() {
    let run = Run::at("plan");
    run.stop("confirm");
    let before = run.session();
    for (tool, arguments, code) in [
        ("next_activity", json!({"activity_id": "review"}), "CHECKPOINT_ACTIVE"),
        ("next_activity", json!({"activity_id": "__terminal__"}), "CHECKPOINT_ACTIVE"),
        ("get_workflow", json!({}), "CHECKPOINT_ACTIVE"),
        ("get_activity", json!({"context_tokens": 1000}), "CHECKPOINT_ACTIVE"),
        ("get_technique", json!({}), "CHECKPOINT_ACTIVE"),
        ("get_resource", json!({"resource_id": "x"}), "CHECKPOINT_ACTIVE"),
        ("get_trace", json!({}), "CHECKPOINT_ACTIVE"),
        ("yield_checkpoint", json!({"checkpoint_id": "timed"}), "CHECKPOINT_ALREADY_ACTIVE"),
        ("resume_checkpoint", json!({}), "CHECKPOINT_STILL_ACTIVE"),
    ] {
        let refusal = run.refused(tool, arguments);
        assert_eq!(refusal.code, code, "{tool}");
        assert_eq!(refusal.details["checkpoint_id"], "confirm", "{tool}");
        assert!(
            refusal.message.contains("respond_checkpoint {checkpoint_handle: \"cp1."),
            "{tool}: {}",
            refusal.message
        );
    }
    assert_eq!(run.session(), before);
    for (tool, arguments) in [
        ("get_workflow_status", json!({})),
        ("inspect_session", json!({})),
        ("present_checkpoint", json!({})),
        ("record_usage", json!({"activity": "plan", "usage": {"input_tokens": 1}, "basis": "delta"})),
        ("dispatch_child", json!({"workflow_id": "walk"})),
    ] {
        run.call(tool, arguments);
    }
    assert!(run.session().active_checkpoint.is_some());
}

#[test]
fn trap_03_14_30_a_blocked_parent_does_not_stop_its_child() {
    let run = Run::at("plan");
    let child = run.json("dispatch_child", json!({"workflow_id": "walk"}))["session_index"].clone();
    run.stop("confirm");
    let reply = run.ws.call("next_activity", json!({"session_index": child, "activity_id": "plan"}));
    assert_eq!(reply.session_index.as_deref(), child.as_str());
    run.ws.call("yield_checkpoint", json!({"session_index": child, "checkpoint_id": "timed"}));
    run.answer("go");
    run.go("review");
}

#[test]
fn unknown_targets_are_refused_with_the_valid_ones() {
    let run = Run::at("plan");
    let refusal = run.refused("next_activity", json!({"activity_id": "plam"}));
    assert_eq!(refusal.code, "ACTIVITY_NOT_FOUND");
    assert_eq!(refusal.details["valid"][0], "plan");
    assert_eq!(run.refused("next_activity", json!({"activity": "plan"})).code, "INVALID_PARAMS");
}

#[test]
fn trap_03_14_31_the_first_outcome_stays() {
    let run = Run::at("plan");
    for outcome in ["", "partial", "completed"] {
        run.call(
            "next_activity",
            json!({"activity_id": "review", "activity_manifest": [{"activity_id": "plan", "outcome": outcome}]}),
        );
    }
    let outcomes = run.events("activity_outcome");
    assert_eq!(outcomes.len(), 1);
    assert_eq!(outcomes[0].data_text("outcome"), Some("partial"));
}

#[test]
fn trap_03_14_32_artifacts_are_merged_by_id() {
    let run = Run::at("plan");
    for artifact in [
        json!({"id": "a", "name": "x", "path": "p"}),
        json!({"id": "a", "name": "y"}),
        json!({"id": "b", "name": "z", "path": ""}),
    ] {
        run.call("next_activity", json!({"activity_id": "plan", "artifacts_produced": [artifact]}));
    }
    let merged = run.session().to_json()["declaredArtifacts"].clone();
    assert_eq!(merged, json!([{"id": "a", "name": "y", "path": "p"}, {"id": "b", "name": "z"}]));
}

/// Hazard H27: names of the prototype chain are names like any other.
#[test]
fn every_name_is_a_variable_name() {
    let run = Run::at("plan");
    let changed = json!({"__proto__": {"x": 1}, "constructor": 2, "": null, "a.b": [true]});
    run.call("next_activity", json!({"activity_id": "plan", "variables_changed": changed}));
    let text = run.session().canonical_text();
    let read = crate::state::parse_text(text.as_bytes()).unwrap();
    for (name, value) in changed.as_object().unwrap() {
        assert_eq!(&read["variables"][name], value, "{name}");
    }
    assert_eq!(run.json("get_workflow_status", json!({}))["variables"]["__proto__"], json!({"x": 1}));
}

#[test]
fn parents_are_told_once_of_children_of_both_kinds() {
    let run = Run::at("plan");
    let embedded = run.json("dispatch_child", json!({"workflow_id": "walk"}))["session_index"].clone();
    let own = run.ws.json(
        "start_session",
        json!({"workflow_id": "walk", "planning_slug": "own-child", "parent_planning_slug": "2026-07-13-alpha"}),
    )["session_index"]
        .clone();
    for child in [embedded, own] {
        let seq = run.session().seq;
        run.ws.call("next_activity", json!({"session_index": child, "activity_id": "complete"}));
        let parent = run.session();
        let reference = parent.triggered_workflows.iter().find(|found| found.session_index == child).unwrap();
        assert_eq!(reference.status, "completed");
        assert!(reference.completed_at.is_some());
        let told = parent.history.last().unwrap();
        assert_eq!((told.kind(), told.data_text("sessionIndex")), ("workflow_returned", child.as_str()));
        assert_eq!(told.data_text("workflowId"), Some("walk"));
        assert_eq!(parent.seq, seq + 1);
        run.ws.call("next_activity", json!({"session_index": child, "activity_id": "__terminal__"}));
        assert_eq!((run.session().history, run.session().seq), (parent.history, parent.seq), "told once");
    }
}

/// The definition is looked for before the gate and the target (spec 03 §5.8).
#[test]
fn a_lost_definition_is_told_before_the_closed_gate() {
    let mut run = Run::at("plan");
    assert_eq!(run.stop("confirm"), "yielded");
    assert_eq!(run.refused("next_activity", json!({"activity_id": "nowhere"})).code, "CHECKPOINT_ACTIVE");
    run.ws.corpus = Workspace::over(&super::FILES[super::FILES.len() - 2..]).corpus;
    assert_eq!(run.refused("next_activity", json!({"activity_id": "ship"})).code, "WORKFLOW_NOT_FOUND");
    assert_eq!(run.refused("get_workflow", json!({})).code, "CHECKPOINT_ACTIVE");
}
