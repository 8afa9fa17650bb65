//! `record_usage`: what an activity cost, one row per call (spec 03 §5.18).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::start_session::refuse_blank;
use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool,
    schema::input_schema,
    state::{Event, Session},
    usage,
};

pub(crate) static TOOL: Tool = Tool {
    name: "record_usage",
    title: "Record usage",
    description: "Records what one activity cost, as measured by the harness: one call per activity that a worker covered, \
                  also when one dispatch covered several. usage is taken as sent; input_tokens, output_tokens, \
                  total_tokens and subagent_tokens are summed. basis says what the numbers are: 'delta' for this activity \
                  alone, 'cumulative' for everything the agent has used so far. agent_id is the worker's. Send measured \
                  numbers only; if nothing was measured, don't call. Zeros are data. An idempotency_key makes the call safe \
                  to repeat. Read the result with inspect_session, view: 'usage'. Possible while a checkpoint is open.",
    annotations: Annotations { read_only: false, idempotent: false },
    gated: false,
    retryable: false,
    traced: true,
    schema: input_schema::<Params>,
    target,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The session, as returned by start_session.
    session_index: String,
    /// Activity the numbers belong to.
    #[schemars(length(min = 1))]
    activity: String,
    /// Numbers by name, such as {"input_tokens": 1200, "output_tokens": 300}.
    usage: Map<String, Value>,
    /// What the numbers count.
    basis: Basis,
    /// The worker that executed the activity.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
    /// Any text of yours; a second call with the same one adds nothing.
    #[serde(default)]
    #[schemars(length(min = 1))]
    idempotency_key: Option<String>,
}

/// What reported numbers count.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Basis {
    /// this activity alone
    Delta,
    /// everything the agent has used so far
    Cumulative,
}

impl Basis {
    fn as_str(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Cumulative => "cumulative",
        }
    }
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Target::session(&params.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params: Params = call.arguments.decode(TOOL.name)?;
    refuse_blank(TOOL.name, "activity", Some(&params.activity))?;
    refuse_blank(TOOL.name, "agent_id", params.agent_id.as_deref())?;
    let now = call.now();
    if let Some((count, row)) = find_row(call.session()?, params.idempotency_key.as_deref()) {
        let recorded = row.activity().to_owned();
        if recorded != params.activity || row.data("usage") != Some(&Value::Object(params.usage)) {
            call.warn(
                "W_IDEMPOTENCY_KEY_REUSED",
                format!("This idempotency_key already stands for other numbers, of activity '{recorded}'; nothing was added. Use a new key for a new row."),
            );
        }
        let mut reply = answer(call.session()?, &recorded, count);
        if let crate::Content::Json(members) = &mut reply.content {
            members.insert("already_done".to_owned(), true.into());
        }
        return Ok(reply);
    }
    if let Ok(workflow) = call.workflow()
        && workflow.activity(&params.activity).is_none()
    {
        call.warn(
            "W_UNKNOWN_ACTIVITY_USAGE",
            format!(
                "Workflow '{}' has no activity '{}'; the row was recorded under that name.",
                workflow.id(),
                params.activity
            ),
        );
    }
    let event = Event::new(usage::ROW)
        .with_activity(&params.activity)
        .with_data("usage", params.usage)
        .with_data("basis", params.basis.as_str())
        .with_optional_data("agentId", params.agent_id.as_deref())
        .with_optional_data("idempotencyKey", params.idempotency_key.as_deref());
    call.session_mut()?.record(event, now);
    call.advance();
    let agent = call.scope(params.agent_id.as_deref())?;
    let missing = usage::missing(call.session()?, &agent);
    if !missing.is_empty() {
        call.warn(
            "W_USAGE_MISSING",
            format!(
                "Agent '{agent}' also took these activities, and no usage is recorded for them: {}.",
                missing.join(", ")
            ),
        );
    }
    let session = call.session()?;
    Ok(answer(session, &params.activity, usage::rows(session).count()))
}

/// The row that a key stands for, and how many rows there were with it.
fn find_row<'a>(session: &'a Session, key: Option<&str>) -> Option<(usize, &'a Event)> {
    let key = key?;
    usage::rows(session)
        .enumerate()
        .find(|(_, row)| row.data_text("idempotencyKey") == Some(key))
        .map(|(position, row)| (position + 1, row))
}

fn answer(session: &Session, activity: &str, count: usize) -> Reply {
    let mut members = Map::new();
    members.insert("status".to_owned(), "recorded".into());
    members.insert("activity".to_owned(), activity.into());
    members.insert("session_index".to_owned(), session.session_index.as_str().into());
    members.insert("usage_events".to_owned(), count.into());
    members.insert(
        "message".to_owned(),
        format!("Usage of activity '{activity}' is recorded. Rows of this session so far: {count}.").into(),
    );
    Reply::json(&session.session_index, members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::workspace::Workspace;

    fn started(workspace: &Workspace) -> String {
        let answer = workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": "a"}));
        answer["session_index"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_row_is_kept_as_sent() {
        let workspace = Workspace::new();
        let index = started(&workspace);
        let usage = json!({"input_tokens": 0, "note": "free", "deep": {"x": [null]}});
        let answer = workspace.json(
            "record_usage",
            json!({"session_index": index, "activity": "plan", "usage": usage, "basis": "delta", "agent_id": "w1"}),
        );
        let members: Vec<&str> = answer.keys().map(String::as_str).collect();
        assert_eq!(members, ["status", "activity", "session_index", "usage_events", "message"]);
        assert_eq!((&answer["status"], &answer["usage_events"]), (&json!("recorded"), &json!(1)));
        let session = workspace.session(&index);
        let event = session.history.last().unwrap();
        assert_eq!((event.kind(), event.activity()), ("activity_usage", "plan"));
        assert_eq!(event.0["data"], json!({"usage": usage, "basis": "delta", "agentId": "w1"}));
        assert_eq!(session.seq, 1);
    }

    #[test]
    fn an_idempotency_key_counts_once() {
        let workspace = Workspace::new();
        let index = started(&workspace);
        let call = |key: &str, tokens: u32| {
            workspace.call(
                "record_usage",
                json!({"session_index": index, "activity": "plan", "usage": {"input_tokens": tokens}, "basis": "delta",
                       "idempotency_key": key}),
            )
        };
        let first = call("k1", 1);
        call("k2", 1);
        let before = workspace.session(&index);
        let again = call("k1", 1);
        let (crate::Content::Json(first), crate::Content::Json(again_members)) = (first.content, &again.content) else {
            panic!("no JSON")
        };
        let mut expected = first;
        expected.insert("already_done".to_owned(), true.into());
        assert_eq!(*again_members, expected);
        assert_eq!(Workspace::codes(&call("k1", 2)), ["W_IDEMPOTENCY_KEY_REUSED"]);
        assert_eq!(workspace.session(&index), before);
    }

    #[test]
    fn activities_without_a_row_are_recalled() {
        let workspace = Workspace::new();
        let index = started(&workspace);
        for activity in ["plan", "ship"] {
            workspace.call("next_activity", json!({"session_index": index, "activity_id": activity}));
            let arguments = json!({"session_index": index, "context_tokens": 200_000, "agent_id": "w1"});
            workspace.call("get_activity", arguments);
        }
        workspace.call("next_activity", json!({"session_index": index, "activity_id": "__terminal__"}));
        let record = |activity: &str| {
            let arguments =
                json!({"session_index": index, "activity": activity, "usage": {}, "basis": "delta", "agent_id": "w1"});
            workspace.call("record_usage", arguments)
        };
        let reply = record("plan");
        assert_eq!(Workspace::codes(&reply), ["W_USAGE_MISSING"]);
        assert!(reply.warnings[0].message.contains("ship"));
        assert!(record("ship").warnings.is_empty());
        assert_eq!(Workspace::codes(&record("none")), ["W_UNKNOWN_ACTIVITY_USAGE"]);
    }

    #[test]
    fn empty_names_are_refused_and_an_open_checkpoint_is_no_obstacle() {
        let workspace = Workspace::new();
        let index = started(&workspace);
        let arguments = json!({"session_index": index, "activity": "", "usage": {}, "basis": "delta"});
        assert_eq!(workspace.refusal("record_usage", arguments).code, "INVALID_PARAMS");
        let arguments = json!({"session_index": index, "activity": "plan", "usage": {}, "basis": "total"});
        assert_eq!(workspace.refusal("record_usage", arguments).code, "INVALID_PARAMS");
        workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
        workspace.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}));
        let arguments = json!({"session_index": index, "activity": "plan", "usage": {}, "basis": "delta"});
        workspace.call("record_usage", arguments);
    }
}
