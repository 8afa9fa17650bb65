use serde_json::{Value, json};

use crate::{Refusal, workspace::Workspace};

/// A session of `mini` that has answered a checkpoint and stands in `ship`.
fn walked() -> (Workspace, String) {
    let workspace = Workspace::new();
    let answer =
        workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": "a", "repo": "acme/tool"}));
    let index = answer["session_index"].as_str().unwrap().to_owned();
    workspace
        .call("next_activity", json!({"session_index": index, "activity_id": "plan", "progress_published": false}));
    workspace.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}));
    workspace.call("respond_checkpoint", json!({"session_index": index, "option_id": "go"}));
    let outcome = json!([{"activity_id": "plan", "outcome": "done", "transition_condition": "default"}]);
    let arguments =
        json!({"session_index": index, "activity_id": "ship", "activity_manifest": outcome, "agent_id": "w1"});
    workspace.call("next_activity", arguments);
    (workspace, index)
}

#[track_caller]
fn inspect(workspace: &Workspace, arguments: &Value) -> Value {
    let before = workspace.session(arguments["session_index"].as_str().unwrap());
    let text = workspace.call("inspect_session", arguments.clone()).plain_text();
    assert_eq!(workspace.session(arguments["session_index"].as_str().unwrap()), before, "it changes nothing");
    serde_json::from_str(&text).expect("JSON")
}

fn refused(workspace: &Workspace, arguments: Value) -> Refusal {
    workspace.refusal("inspect_session", arguments)
}

#[test]
fn views_project_the_state() {
    let (workspace, index) = walked();
    let view = |view: &str| inspect(&workspace, &json!({"session_index": index, "view": view}));
    let session = workspace.session(&index);
    assert_eq!(
        view("identity"),
        json!({"workflowId": "mini", "workflowVersion": "1.2.0", "sessionIndex": index, "agentId": "orchestrator",
               "status": "running", "currentActivity": "ship", "currentTechnique": "", "startedAt": session.started_at,
               "seq": session.seq, "repo": "acme/tool", "planningFolderPath": session.planning_folder_path})
    );
    assert_eq!(view("variables"), json!({"is_ready": true, "plan_note": "", "item_count": 0}));
    let answer = &view("checkpoints")["plan-confirm"];
    assert_eq!((&answer["optionId"], &answer["variablesSet"]), (&json!("go"), &json!({"is_ready": true})));
    assert_eq!(
        view("activities"),
        json!({"completed": ["plan"], "skipped": [], "current": "ship",
               "outcomes": [{"activity": "plan", "outcome": "done", "transitionCondition": "default"}],
               "progress_mark_unpublished": ["plan"], "progress_mark_unreported": ["ship"]})
    );
    assert_eq!(view("children"), json!([]));
    let summary = inspect(&workspace, &json!({"session_index": index}));
    let members: Vec<&str> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["identity", "activities", "variables", "checkpoints", "history", "children"]);
    assert_eq!(summary["identity"], view("identity"));
    assert_eq!(view("usage")["rows"], json!([]));
    assert_eq!(refused(&workspace, json!({"session_index": index, "view": "all"})).code, "INVALID_PARAMS");
}

#[test]
fn the_history_counts_types_and_shows_milestones() {
    let (workspace, index) = walked();
    let history = inspect(&workspace, &json!({"session_index": index, "view": "history"}));
    assert_eq!(history["byType"]["activity_entered"], 2);
    assert_eq!(history["count"], workspace.session(&index).history.len());
    assert_eq!(history["milestones"][0], json!({"type": "activity_entered", "activity": "plan"}));
    assert_eq!(
        history["milestones"][1],
        json!({"type": "checkpoint_reached", "activity": "plan", "checkpoint": "confirm"})
    );
    let mine = inspect(&workspace, &json!({"session_index": index, "view": "history", "agent_id": "nobody"}));
    assert_eq!(mine, json!({"count": 0, "byType": {}, "milestones": []}));
}

/// A missing variable is an error that names close ones, not a result without text.
#[test]
fn hazard_h21_a_missing_variable_is_refused() {
    let (workspace, index) = walked();
    let one = |name: &str| json!({"session_index": index, "view": "variables", "variable": name});
    assert_eq!(inspect(&workspace, &one("is_ready")), json!(true));
    assert_eq!(inspect(&workspace, &one("plan_note")), json!(""));
    let refusal = refused(&workspace, one("is_redy"));
    assert_eq!((refusal.code, &refusal.details["close"]), ("VARIABLE_NOT_FOUND", &json!(["is_ready"])));
    assert!(refusal.message.contains("is_ready"));
    let arguments = json!({"session_index": index, "variable": "is_ready"});
    assert_eq!(Workspace::codes(&workspace.call("inspect_session", arguments)), ["W_VARIABLE_IGNORED"]);
}

#[test]
fn children_of_both_kinds_are_shown() {
    let (workspace, index) = walked();
    let embedded = workspace.json("dispatch_child", json!({"session_index": index, "workflow_id": "bare"}));
    let own = workspace
        .json("start_session", json!({"workflow_id": "bare", "planning_slug": "c", "parent_planning_slug": "a"}));
    let own = own["session_index"].as_str().unwrap();
    workspace.call("next_activity", json!({"session_index": own, "activity_id": "only"}));
    let usage = json!({"session_index": own, "activity": "only", "usage": {"input_tokens": 5}, "basis": "delta"});
    workspace.call("record_usage", usage);
    let children = inspect(&workspace, &json!({"session_index": index, "view": "children"}));
    assert_eq!(
        children,
        json!([
            {"index": 0, "sessionIndex": embedded["session_index"], "workflowId": "bare", "status": "running",
             "currentActivity": "", "completed": [], "cost_known": false, "rows": 0, "totals": {}},
            {"index": 1, "sessionIndex": own, "workflowId": "bare", "status": "running",
             "currentActivity": "only", "completed": [], "cost_known": true, "rows": 1, "totals": {"input_tokens": 5}}
        ])
    );
    let costs = inspect(&workspace, &json!({"session_index": index, "view": "usage"}));
    assert_eq!(costs["children_outside_totals"][1]["totals"], json!({"input_tokens": 5}));
    assert_eq!(costs["totals"], json!({}));

    let child = |position: u32| json!({"session_index": index, "child_index": position, "view": "identity"});
    assert_eq!(inspect(&workspace, &child(0))["sessionIndex"], embedded["session_index"]);
    assert_eq!(inspect(&workspace, &child(1))["currentActivity"], "only");
    let meta = workspace.call("inspect_session", child(1)).render().meta.unwrap();
    assert_eq!(meta["session_index"], index.as_str(), "the answer is about the addressed session");
    let refusal = refused(&workspace, child(2));
    assert_eq!((refusal.code, &refusal.details["children"]), ("CHILD_NOT_FOUND", &json!(2)));

    workspace.remove("c");
    let reply = workspace.call("inspect_session", json!({"session_index": index, "view": "children"}));
    assert_eq!(Workspace::codes(&reply), ["W_CHILD_UNREADABLE"]);
    let lines: Value = serde_json::from_str(&reply.plain_text()).unwrap();
    assert_eq!(lines[1], json!({"index": 1, "sessionIndex": own, "workflowId": "bare", "status": "running"}));
    assert_eq!(refused(&workspace, child(1)).code, "CHILD_NOT_FOUND");
}

#[test]
fn a_waiting_checkpoint_is_no_obstacle() {
    let workspace = Workspace::new();
    let answer = workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": "a"}));
    let index = answer["session_index"].as_str().unwrap();
    workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    workspace.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}));
    inspect(&workspace, &json!({"session_index": index}));
}

#[test]
fn a_variable_called_validation_is_not_hidden_by_warnings() {
    let (workspace, index) = walked();
    workspace.change(&index, |session| {
        session.variables.insert("validation".to_owned(), "mine".into());
        session.workflow_version = "1.0.0".to_owned();
    });
    let reply = workspace.call("inspect_session", json!({"session_index": index, "view": "variables"}));
    assert_eq!(Workspace::codes(&reply), ["W_VERSION_DRIFT"]);
    assert!(reply.render().text.contains("\"validation\": \"mine\""));
}
