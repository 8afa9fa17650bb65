//! `get_workflow_status`: where a session stands (spec 03 §5.6).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use workflow_corpus::TERMINAL;

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool, handle, lineage,
    schema::input_schema,
    state::{Session, Status},
};

pub(crate) static TOOL: Tool = Tool {
    name: "get_workflow_status",
    title: "Get workflow status",
    description: "Says where a session stands, as JSON: status (active, blocked while a checkpoint waits for its answer, or \
                  completed), current_activity, completed_activities, all variables, the workflow, the parent if the session \
                  was dispatched, last_checkpoint, and last_activity: true when the current activity has no successor. When \
                  blocked, active_checkpoint holds the checkpoint_handle for present_checkpoint and respond_checkpoint. \
                  Changes nothing and is always possible: poll a dispatched child with it, and call it first after a resume. \
                  inspect_session shows more.",
    annotations: Annotations { read_only: true, idempotent: true },
    gated: false,
    retryable: false,
    traced: false,
    schema: input_schema::<Params>,
    target,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The session, as returned by start_session or dispatch_child.
    session_index: String,
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Target::session(&params.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let env = call.env;
    let session = call.session()?;
    let index = session.session_index.as_str();
    let definition = env.corpus.workflow(&session.workflow_id).ok();
    let mut members = Map::new();
    members.insert("status".to_owned(), status(session).into());
    let current = if session.current_activity.is_empty() { "none" } else { &session.current_activity };
    members.insert("current_activity".to_owned(), current.into());
    // Finished, as the state has it (seed 1): an activity that is only entered is none of them.
    let completed: Vec<&String> = session.completed_activities.iter().filter(|id| *id != TERMINAL).collect();
    members.insert("completed_activities".to_owned(), json!(completed));
    members.insert("variables".to_owned(), Value::Object(session.variables.clone()));
    let workflow = match &definition {
        Some(workflow) => json!({"id": workflow.id(), "version": workflow.version, "title": workflow.title}),
        None => json!({"id": session.workflow_id}),
    };
    members.insert("workflow".to_owned(), workflow);
    if let Some(parent) = lineage::of(call.workset).first() {
        members.insert("parent".to_owned(), lineage::digest(parent));
    }
    if let Some(answer) = session.history.iter().rev().find(|event| event.kind() == "checkpoint_response") {
        let last = json!({
            "activity_id": answer.activity(),
            "checkpoint_id": answer.checkpoint(),
            "option_id": answer.data_text("optionId").unwrap_or_default(),
            "timestamp": answer.timestamp(),
        });
        members.insert("last_checkpoint".to_owned(), last);
    }
    if let Some(active) = &session.active_checkpoint {
        let waiting = json!({
            "activity_id": active.activity_id,
            "checkpoint_id": active.checkpoint_id,
            "yielded_at": active.yielded_at,
            "checkpoint_handle": handle::of_active(env.signer, index, active),
        });
        members.insert("active_checkpoint".to_owned(), waiting);
        let next = "put the question of present_checkpoint {checkpoint_handle} to the user, and pass the answer to \
                    respond_checkpoint {checkpoint_handle, option_id}";
        members.insert("next".to_owned(), next.into());
    }
    let activity = definition.as_deref().and_then(|workflow| workflow.activity(&session.current_activity));
    if activity.is_some_and(|activity| !activity.has_route()) {
        members.insert("last_activity".to_owned(), true.into());
    }
    members.insert("lifecycle".to_owned(), session.status.as_str().into());
    members.insert("session_index".to_owned(), index.into());
    Ok(Reply::json(index, members))
}

/// A closed gate shows before an end that was reached already.
fn status(session: &Session) -> &'static str {
    match session.status {
        _ if session.active_checkpoint.is_some() => "blocked",
        Status::Completed | Status::Aborted => "completed",
        Status::Running => "active",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{FILES, Workspace};

    fn started(workspace: &Workspace) -> String {
        let answer = workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": "a"}));
        answer["session_index"].as_str().unwrap().to_owned()
    }

    fn enter(workspace: &Workspace, index: &str, activity: &str) {
        workspace.call("next_activity", json!({"session_index": index, "activity_id": activity}));
    }

    #[test]
    fn a_fresh_session_is_active_and_nowhere() {
        let workspace = Workspace::new();
        let index = started(&workspace);
        let before = workspace.session(&index);
        let status = workspace.json("get_workflow_status", json!({"session_index": index}));
        let expected = json!({
            "status": "active",
            "current_activity": "none",
            "completed_activities": [],
            "variables": {"is_ready": false, "plan_note": "", "item_count": 0},
            "workflow": {"id": "mini", "version": "1.2.0", "title": "Mini"},
            "lifecycle": "running",
            "session_index": index,
        });
        assert_eq!(serde_json::to_string(&status).unwrap(), serde_json::to_string(&expected).unwrap());
        assert_eq!(workspace.session(&index), before);
    }

    #[test]
    fn a_blocked_session_hands_out_the_live_handle() {
        let workspace = Workspace::new();
        let index = started(&workspace);
        enter(&workspace, &index, "plan");
        let yielded = workspace.json("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}));
        let status = workspace.json("get_workflow_status", json!({"session_index": index}));
        assert_eq!(status["status"], "blocked");
        assert_eq!(status["active_checkpoint"]["checkpoint_handle"], yielded["checkpoint_handle"]);
        assert_eq!(status["active_checkpoint"]["checkpoint_id"], "confirm");
        assert!(status["next"].as_str().unwrap().contains("present_checkpoint"));
        assert!(!status.contains_key("last_activity"));
        let answer = json!({"checkpoint_handle": yielded["checkpoint_handle"], "option_id": "go"});
        workspace.call("respond_checkpoint", answer);
        let status = workspace.json("get_workflow_status", json!({"session_index": index}));
        assert_eq!(status["status"], "active");
        let last = &status["last_checkpoint"];
        assert_eq!(
            (&last["activity_id"], &last["checkpoint_id"], &last["option_id"]),
            (&json!("plan"), &json!("confirm"), &json!("go"))
        );
        assert_eq!(status["variables"]["is_ready"], true);
    }

    /// The answer comes from the state: it says completed, and `last_checkpoint` needs no trace.
    #[test]
    fn hazard_h20_the_status_is_true_after_the_end() {
        let workspace = Workspace::new();
        let index = started(&workspace);
        enter(&workspace, &index, "plan");
        enter(&workspace, &index, "ship");
        let status = workspace.json("get_workflow_status", json!({"session_index": index}));
        assert_eq!(status["last_activity"], true);
        enter(&workspace, &index, "__terminal__");
        workspace.traces.0.borrow_mut().clear();
        let status = workspace.json("get_workflow_status", json!({"session_index": index}));
        assert_eq!((&status["status"], &status["lifecycle"]), (&json!("completed"), &json!("completed")));
        assert_eq!(
            (&status["current_activity"], &status["completed_activities"]),
            (&json!("__terminal__"), &json!(["plan", "ship"]))
        );
        assert!(!status.contains_key("last_activity"));
    }

    #[test]
    fn what_was_only_entered_is_not_completed() {
        let workspace = Workspace::new();
        let index = started(&workspace);
        enter(&workspace, &index, "plan");
        let status = workspace.json("get_workflow_status", json!({"session_index": index}));
        assert_eq!((&status["current_activity"], &status["completed_activities"]), (&json!("plan"), &json!([])));
    }

    #[test]
    fn a_definition_that_is_gone_leaves_its_id() {
        let mut workspace = Workspace::new();
        let index = started(&workspace);
        workspace.corpus = Workspace::over(&FILES[..4]).corpus;
        let status = workspace.json("get_workflow_status", json!({"session_index": index}));
        assert_eq!(status["workflow"], json!({"id": "mini"}));
    }

    #[test]
    fn both_kinds_of_children_know_their_parent() {
        let workspace = Workspace::new();
        let parent = started(&workspace);
        enter(&workspace, &parent, "plan");
        let embedded = workspace.json("dispatch_child", json!({"session_index": parent, "workflow_id": "bare"}));
        let own = workspace
            .json("start_session", json!({"workflow_id": "bare", "planning_slug": "c", "parent_planning_slug": "a"}));
        let expected = json!({"session_index": parent, "workflow_id": "mini", "activity": "plan", "version": "1.2.0"});
        for child in [embedded, own] {
            let status = workspace.json("get_workflow_status", json!({"session_index": child["session_index"]}));
            assert_eq!(status["parent"], expected);
        }
    }
}
