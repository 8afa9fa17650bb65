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
            format!("Workflow '{}' has no activity '{}'; the row was recorded under that name.", workflow.id(), params.activity),
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
            format!("Agent '{agent}' also took these activities, and no usage is recorded for them: {}.", missing.join(", ")),
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
    members.insert("message".to_owned(), format!("Usage of activity '{activity}' is recorded; the session has {count} rows.").into());
    Reply::json(&session.session_index, members)
}
