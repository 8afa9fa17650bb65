//! `get_trace`: what happened in a session, from tokens or from the server's store (spec 03 §8.4).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool, schema::input_schema, trace};

pub(crate) static TOOL: Tool = Tool {
    name: "get_trace",
    title: "Get the trace",
    description: "Returns the trace of a session as JSON: one event per tool call with time, duration, result, activity and \
                  agent. Pass trace_tokens to get only what they stand for: each is a trace_token from _meta of \
                  next_activity, or the short trace_ref in its text, both for the activity that ended there. Tokens of \
                  this session, its ancestors and its descendants are accepted; the others are named in token_errors. \
                  Without trace_tokens the server's own record of the whole session is returned.",
    annotations: Annotations { read_only: false, idempotent: true },
    gated: true,
    retryable: false,
    traced: false,
    schema: input_schema::<Params>,
    target,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The session, as returned by start_session.
    session_index: String,
    /// Tokens or short references that next_activity returned. Omit it for everything.
    #[serde(default)]
    trace_tokens: Option<Vec<String>>,
    /// Only events of this agent.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Target::session(&params.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params: Params = call.arguments.decode(TOOL.name)?;
    let index = call.session()?.session_index.clone();
    let tokens = params.trace_tokens.unwrap_or_default();
    let mut events: Vec<Value> = Vec::new();
    let mut errors: Vec<String> = Vec::new();
    let mut dropped = 0;
    if tokens.is_empty() {
        let slice = call.env.traces.read(&index);
        dropped = slice.dropped;
        events = slice.events.into_iter().filter(Value::is_object).collect();
    }
    for (position, token) in tokens.iter().enumerate() {
        match trace::resolve(call.env, call.workset, token) {
            Ok(found) => events.extend(found),
            Err(error) => errors.push(format!("trace_tokens[{position}]: {error}")),
        }
    }
    let mut seen = std::collections::HashSet::new();
    events.retain(|event| {
        let is_new = event["spanId"].as_str().is_none_or(|span| seen.insert(span.to_owned()));
        is_new && params.agent_id.as_deref().is_none_or(|agent| event["aid"] == agent)
    });
    call.advance();

    let mut members = Map::new();
    members.insert("traceId".to_owned(), index.as_str().into());
    if tokens.is_empty() {
        members.insert("source".to_owned(), "memory".into());
        members.insert("tracing_enabled".to_owned(), true.into());
        if dropped > 0 {
            members.insert("dropped".to_owned(), dropped.into());
        }
    } else {
        members.insert("source".to_owned(), "tokens".into());
    }
    members.insert("event_count".to_owned(), events.len().into());
    members.insert("events".to_owned(), events.into());
    members.insert("session_index".to_owned(), index.as_str().into());
    if !errors.is_empty() {
        members.insert("token_errors".to_owned(), json!(errors));
    }
    Ok(Reply::json(&index, members))
}
