use serde_json::{Map, Value, json};

use crate::{
    Content, Reply, StatePath, index,
    state::Status,
    workspace::{KeySigner, PLANNING, Workspace},
};

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn members(reply: &Reply) -> &Map<String, Value> {
    match &reply.content {
        Content::Json(members) => members,
        other => panic!("no JSON: {other:?}"),
    }
}

/// A durable parent of `meta`.
fn durable(workspace: &Workspace) -> String {
    text(&workspace.json("start_session", json!({"planning_slug": "2026-07-13-alpha"}))["session_index"])
}

/// A transient parent of `meta`.
fn transient(workspace: &Workspace) -> String {
    text(&workspace.json("start_session", json!({"user_request": "Do it"}))["session_index"])
}

/// The request named the parent; `_meta.session_index` is the child's.
#[test]
fn trap_03_14_29_the_answer_is_about_the_child() {
    let workspace = Workspace::new();
    let parent = durable(&workspace);
    let reply = workspace.call("dispatch_child", json!({"session_index": parent, "workflow_id": "mini"}));
    assert_eq!(
        Value::Object(members(&reply).clone()),
        json!({
            "session_index": "66X3P3",
            "workflow": {"id": "mini", "version": "1.2.0", "initialActivity": "plan"},
            "planning_folder_path": format!("{PLANNING}/2026-07-13-alpha"),
            "next": "hand session_index 66X3P3 to the child's orchestrator, who begins with get_workflow {session_index: \"66X3P3\"}",
        })
    );
    assert_eq!(reply.render().meta.unwrap()["session_index"], "66X3P3");
    let child = workspace.session("66X3P3");
    assert_eq!((child.agent_id.as_str(), child.planning_folder_path), ("worker", None));
    let after = workspace.session(&parent);
    assert_eq!(after.seq, 1);
    assert_eq!(after.triggered_workflows[0].session_index, "66X3P3");
    assert!(after.triggered_workflows[0].state.is_some());
    assert_eq!(after.history.last().unwrap().kind(), "workflow_triggered");
}

#[test]
fn children_are_embedded_at_any_depth() {
    let workspace = Workspace::new();
    let parent = durable(&workspace);
    workspace.call("dispatch_child", json!({"session_index": parent, "workflow_id": "mini"}));
    workspace.call("dispatch_child", json!({"session_index": "66X3P3", "workflow_id": "bare"}));
    let deep = workspace.json("dispatch_child", json!({"session_index": "66X3P3", "workflow_id": "bare"}));
    assert_eq!(deep["session_index"], "2KVH42");
    assert_eq!(workspace.session(&parent).seq, 1, "only the addressed session counts the write");
    assert_eq!(workspace.session("66X3P3").seq, 2);
}

/// The folder was moved and adopted: the new child derives from the new path, the old one keeps its index.
#[test]
fn trap_03_14_02_a_child_index_uses_the_path_at_its_creation() {
    let workspace = Workspace::new();
    let parent = durable(&workspace);
    workspace.call("dispatch_child", json!({"session_index": parent, "workflow_id": "mini"}));
    workspace.rename("2026-07-13-alpha", "beta");
    let second = workspace.json("dispatch_child", json!({"session_index": parent, "workflow_id": "mini"}));
    let expected = index::derive(&KeySigner, &index::place(&format!("{PLANNING}/beta"), &StatePath(vec![1])));
    assert_eq!(second["session_index"], expected);
    assert_eq!(workspace.session("66X3P3").workflow_id, "mini");
}

#[test]
fn a_child_gets_its_own_defaults_and_the_request() {
    let workspace = Workspace::new();
    let parent = transient(&workspace);
    let arguments = json!({"session_index": parent, "workflow_id": "mini", "planning_slug": "p", "agent_id": "w",
                           "repo": "acme/tool", "context_mode": "persistent"});
    let child = workspace.session(&text(&workspace.json("dispatch_child", arguments)["session_index"]));
    let expected = json!({"is_ready": false, "plan_note": "", "item_count": 0, "user_request": "Do it"});
    assert_eq!(Value::Object(child.variables), expected);
    assert_eq!((child.agent_id.as_str(), child.repo.as_deref()), ("w", Some("acme/tool")));
    assert_eq!(workspace.session(&parent).repo.as_deref(), Some("acme/tool"));
    assert_eq!(workspace.session(&parent).agent_id, "orchestrator");
}

#[test]
fn promotion_keeps_the_parent_index_and_moves_the_folder() {
    let workspace = Workspace::new();
    let parent = transient(&workspace);
    let arguments = json!({"session_index": parent, "workflow_id": "mini", "planning_slug": "promoted"});
    let answer = workspace.json("dispatch_child", arguments);
    let keys: Vec<&str> = answer.keys().map(String::as_str).collect();
    assert_eq!(keys, ["session_index", "workflow", "planning_slug", "planning_folder_path", "next"]);
    assert_eq!(answer["planning_slug"], "promoted");
    let folder = format!("{PLANNING}/promoted");
    assert_eq!(answer["planning_folder_path"], folder);
    let root = workspace.session(&parent);
    assert_eq!(root.planning_folder_path.as_deref(), Some(folder.as_str()));
    let expected = index::derive(&KeySigner, &format!("{folder}:triggeredWorkflows.0.state"));
    assert_eq!(answer["session_index"], expected);
    assert_eq!(workspace.json("start_session", json!({"planning_slug": "promoted"}))["session_index"], parent);
}

#[test]
fn two_dispatches_of_the_fallback_slug_are_numbered() {
    let workspace = Workspace::new();
    for expected in ["2026-07-13-mini", "2026-07-13-mini-2", "2026-07-13-mini-3"] {
        let parent = transient(&workspace);
        let answer = workspace.json("dispatch_child", json!({"session_index": parent, "workflow_id": "mini"}));
        assert_eq!(answer["planning_slug"], expected);
    }
}

/// A promotion onto a slug that holds a session destroys nothing.
#[test]
fn hazard_h04_an_occupied_slug_is_refused() {
    let workspace = Workspace::new();
    let occupant = text(
        &workspace.json("start_session", json!({"workflow_id": "bare", "planning_slug": "taken"}))["session_index"],
    );
    let before = workspace.session(&occupant);
    let parent = transient(&workspace);
    let arguments = json!({"session_index": parent, "workflow_id": "mini", "planning_slug": "taken"});
    let refusal = workspace.refusal("dispatch_child", arguments.clone());
    assert_eq!(refusal.code, "SLUG_IN_USE");
    for part in ["taken", occupant.as_str(), "bare", "start_session", "another planning_slug"] {
        assert!(refusal.message.contains(part), "{part}: {}", refusal.message);
    }
    assert_eq!(workspace.session(&occupant), before);
    assert!(workspace.session(&parent).planning_folder_path.is_none());

    let mut resume = arguments;
    resume["on_existing"] = "resume".into();
    assert_eq!(workspace.refusal("dispatch_child", resume).code, "SLUG_IN_USE", "no such child to resume");
}

#[test]
fn an_occupied_slug_can_be_resumed() {
    let workspace = Workspace::new();
    let first = transient(&workspace);
    let dispatch = json!({"session_index": first, "workflow_id": "mini", "planning_slug": "p"});
    let child = workspace.json("dispatch_child", dispatch)["session_index"].clone();
    let before = workspace.session(&first);
    let second = transient(&workspace);
    let arguments =
        json!({"session_index": second, "workflow_id": "mini", "planning_slug": "p", "on_existing": "resume"});
    let answer = workspace.json("dispatch_child", arguments.clone());
    assert_eq!((&answer["session_index"], &answer["planning_slug"]), (&child, &json!("p")));
    assert_eq!(workspace.session(&first), before, "nothing is written there");
    let parent = workspace.session(&second);
    assert!(parent.planning_folder_path.is_none(), "it stays transient");
    assert!(parent.triggered_workflows[0].state.is_none());
    workspace.call("dispatch_child", arguments);
    assert_eq!(workspace.session(&second).triggered_workflows.len(), 1);
}

#[test]
fn an_occupied_slug_can_be_replaced() {
    let workspace = Workspace::new();
    workspace.call("start_session", json!({"workflow_id": "bare", "planning_slug": "p"}));
    let parent = transient(&workspace);
    let arguments =
        json!({"session_index": parent, "workflow_id": "mini", "planning_slug": "p", "on_existing": "replace"});
    workspace.call("dispatch_child", arguments);
    assert_eq!(workspace.json("start_session", json!({"planning_slug": "p"}))["session_index"], parent);
}

/// As in the original, the child of a replacement has the index of the one that was replaced.
#[test]
fn a_replacement_gives_the_child_index_again() {
    let workspace = Workspace::new();
    let arguments = |parent: &str| {
        json!({"session_index": parent, "workflow_id": "mini", "planning_slug": "p",
                                          "on_existing": "replace"})
    };
    let first = workspace.json("dispatch_child", arguments(&transient(&workspace)));
    let index = text(&first["session_index"]);
    workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    let second = workspace.json("dispatch_child", arguments(&transient(&workspace)));
    assert_eq!(second, first);
    assert_eq!(workspace.session(&index).current_activity, "", "an empty session");
}

/// The parent waits at a gate; its child does not.
#[test]
fn trap_03_14_30_a_blocked_parent_leaves_its_child_free() {
    let workspace = Workspace::new();
    let parent =
        text(&workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": "p"}))["session_index"]);
    workspace.call("next_activity", json!({"session_index": parent, "activity_id": "plan"}));
    workspace.call("yield_checkpoint", json!({"session_index": parent, "checkpoint_id": "confirm"}));
    let child = workspace.json("dispatch_child", json!({"session_index": parent, "workflow_id": "bare"}));
    let index = text(&child["session_index"]);
    workspace.call("next_activity", json!({"session_index": index, "activity_id": "only"}));
    assert_eq!(workspace.session(&index).current_activity, "only");
    let refusal = workspace.refusal("next_activity", json!({"session_index": parent, "activity_id": "ship"}));
    assert_eq!(refusal.code, "CHECKPOINT_ACTIVE");
}

/// An embedded child's end is written into its parent's reference.
#[test]
fn hazard_h11_an_embedded_child_reports_its_end() {
    let workspace = Workspace::new();
    let parent = durable(&workspace);
    workspace.call("dispatch_child", json!({"session_index": parent, "workflow_id": "bare"}));
    workspace.call("next_activity", json!({"session_index": "66X3P3", "activity_id": "only"}));
    let ended = workspace.json("next_activity", json!({"session_index": "66X3P3", "activity_id": "__terminal__"}));
    let next = ended["next"].as_str().unwrap();
    assert!(next.contains(&parent) && next.ends_with("of workflow 'meta'"), "{next}");
    let reference = workspace.session(&parent).triggered_workflows[0].clone();
    assert_eq!(reference.status, "completed");
    assert!(reference.completed_at.is_some());
    assert_eq!(workspace.session("66X3P3").status, Status::Completed);
}

#[track_caller]
fn check_refused(arguments: Value, code: &str) {
    let workspace = Workspace::new();
    let parent = transient(&workspace);
    let mut arguments = arguments;
    if arguments.get("session_index").is_none() {
        arguments["session_index"] = parent.into();
    }
    assert_eq!(workspace.refusal("dispatch_child", arguments.clone()).code, code, "{arguments}");
}

/// A bad promotion slug is a bad slug, not a bad session index.
#[test]
fn hazard_h22_refusals_name_their_cause() {
    check_refused(json!({"workflow_id": "mini", "planning_slug": "a/b"}), "INVALID_SLUG");
    check_refused(json!({"workflow_id": "mini", "planning_slug": "nul"}), "INVALID_SLUG");
    check_refused(json!({"workflow_id": "mini", "planning_slug": ""}), "INVALID_SLUG");
    check_refused(json!({"workflow_id": "mini", "session_index": "bad"}), "INVALID_SESSION_INDEX");
    check_refused(json!({"workflow_id": "mini", "session_index": "AAAAAA"}), "SESSION_NOT_FOUND");
    check_refused(json!({"workflow_id": ""}), "INVALID_PARAMS");
    check_refused(json!({"workflow_id": "../mini"}), "INVALID_WORKFLOW_ID");
    check_refused(json!({"workflow_id": "none"}), "WORKFLOW_NOT_FOUND");
    check_refused(json!({"workflow_id": "mini", "repo": "x"}), "REPO_INVALID");
    check_refused(json!({"workflow_id": "mini", "agent_id": ""}), "INVALID_PARAMS");
}

#[test]
fn a_durable_parent_ignores_the_slug_and_an_ended_one_warns() {
    let workspace = Workspace::new();
    let parent = durable(&workspace);
    workspace.change(&parent, |session| session.status = Status::Completed);
    let arguments = json!({"session_index": parent, "workflow_id": "mini", "planning_slug": "other"});
    let reply = workspace.call("dispatch_child", arguments.clone());
    assert_eq!(Workspace::codes(&reply), ["W_SLUG_IGNORED"], "a completed parent may still carry out `complete`");
    workspace.change(&parent, |session| "__terminal__".clone_into(&mut session.current_activity));
    let reply = workspace.call("dispatch_child", arguments);
    assert_eq!(Workspace::codes(&reply), ["W_PARENT_COMPLETED", "W_SLUG_IGNORED"]);
    assert!(!members(&reply).contains_key("planning_slug"));
}

#[test]
fn another_repository_than_the_bound_one_is_refused() {
    let workspace = Workspace::new();
    let parent = transient(&workspace);
    workspace.change(&parent, |session| session.repo = Some("acme/tool".to_owned()));
    let arguments = json!({"session_index": parent, "workflow_id": "mini", "repo": "acme/other"});
    assert_eq!(workspace.refusal("dispatch_child", arguments).code, "REPO_CONFLICT");
}
