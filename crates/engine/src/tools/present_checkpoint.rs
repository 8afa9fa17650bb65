//! `present_checkpoint`: what the orchestrator shows to the user (spec 03 §5.14).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use workflow_corpus::{Checkpoint, CheckpointOption, Step};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Timestamp, Tool,
    address::Address,
    checkpoint,
    delivery::yaml,
    handle::{self, Standing},
    schema::input_schema,
    state::ActiveCheckpoint,
};

pub(crate) static TOOL: Tool = Tool {
    name: "present_checkpoint",
    title: "Show a checkpoint",
    description: "Returns what to ask the user at a yielded checkpoint: message, options with their effects, default option \
                  and timer; the orchestrator's call. Pass the checkpoint_handle from the worker's <checkpoint_yield> block \
                  (or the session_index of the waiting session). Show message and options to the user and wait for the \
                  answer, then call respond_checkpoint with the same handle. Changes nothing and may be repeated; \
                  seconds_until_answerable says how long an answer would still be refused as too fast.",
    annotations: Annotations { read_only: true, idempotent: true },
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
    /// The handle that yield_checkpoint returned to the worker.
    #[serde(default)]
    #[schemars(length(min = 1))]
    checkpoint_handle: Option<String>,
    /// Instead of the handle: the session that waits.
    #[serde(default)]
    session_index: Option<String>,
}

fn address(arguments: &Arguments) -> Result<Address, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Address::read(params.session_index.as_deref(), params.checkpoint_handle.as_deref())
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    address(arguments).map(Address::target)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let address = address(call.arguments)?;
    let session = call.session()?;
    if let Standing::Spent(reached) = address.standing(call.env.signer, session)? {
        return Err(checkpoint::spent(session, reached));
    }
    let active = session.active_checkpoint.as_ref().ok_or_else(|| checkpoint::none_active(session))?;
    let index = session.session_index.as_str();
    let handle = handle::of_active(call.env.signer, index, active);
    let mut members = if let Some(adhoc) = &active.adhoc {
        undeclared(active, adhoc)
    } else {
        let workflow = call.workflow()?;
        let activity = workflow.activity(&active.activity_id);
        let found = activity.and_then(|activity| activity.checkpoint(&active.checkpoint_id));
        let (step, declared) = found.ok_or_else(|| super::respond_checkpoint::gone(&workflow, index, active))?;
        let mut members = definition(step, declared);
        members.insert("instance_id".to_owned(), active.checkpoint_id.as_str().into());
        members
    };
    members.insert("session_index".to_owned(), index.into());
    members.insert("checkpoint_handle".to_owned(), handle.into());
    let elapsed = elapsed_ms(active, call.now());
    let wait = call.env.settings.checkpoint_min_response_ms.saturating_sub(elapsed);
    members.insert("seconds_until_answerable".to_owned(), whole_seconds(wait).into());
    if let Some(after) = members.get("autoAdvanceMs").and_then(Value::as_u64) {
        let wait = whole_seconds(after.saturating_sub(elapsed));
        members.insert("seconds_until_auto_advance".to_owned(), wait.into());
    }
    let reply = Reply::text(index, yaml(members));
    call.warnings.extend(address.warning);
    Ok(reply)
}

/// Milliseconds since the yield; a clock that went backwards counts as none.
pub(super) fn elapsed_ms(active: &ActiveCheckpoint, now: Timestamp) -> u64 {
    let yielded = Timestamp::parse(&active.yielded_at).unwrap_or(now);
    u64::try_from(now.0.saturating_sub(yielded.0)).unwrap_or(0)
}

/// Seconds, rounded up.
pub(super) fn whole_seconds(milliseconds: u64) -> u64 {
    milliseconds.div_ceil(1000)
}

fn definition(step: &Step, checkpoint: &Checkpoint) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("id".to_owned(), step.id.as_str().into());
    members.insert("name".to_owned(), step.id.as_str().into());
    members.insert("message".to_owned(), checkpoint.message.as_str().into());
    members.insert("options".to_owned(), checkpoint.options.iter().map(option).collect::<Vec<_>>().into());
    if let Some(default) = &checkpoint.default_option {
        members.insert("defaultOption".to_owned(), default.as_str().into());
    }
    if let Some(after) = checkpoint.auto_advance_ms {
        members.insert("autoAdvanceMs".to_owned(), after.into());
    }
    if let Some(condition) = &step.condition {
        members.insert("condition".to_owned(), condition.to_value());
    }
    if let Some(blocking) = checkpoint.blocking {
        members.insert("blocking".to_owned(), blocking.into());
    }
    members
}

fn option(option: &CheckpointOption) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), option.id.as_str().into());
    members.insert("label".to_owned(), option.label.as_str().into());
    if let Some(description) = &option.description {
        members.insert("description".to_owned(), description.as_str().into());
    }
    if let Some(effect) = &option.effect {
        members.insert("effect".to_owned(), Value::Object(effect.source.clone()));
    }
    Value::Object(members)
}

fn undeclared(active: &ActiveCheckpoint, adhoc: &Map<String, Value>) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("id".to_owned(), active.checkpoint_id.as_str().into());
    for member in ["message", "options"] {
        members.insert(member.to_owned(), adhoc.get(member).cloned().unwrap_or_default());
    }
    members.insert("blocking".to_owned(), true.into());
    members.insert("declared".to_owned(), false.into());
    members
}
