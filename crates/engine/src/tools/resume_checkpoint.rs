//! `resume_checkpoint`: the worker goes on with the answer (spec 03 §5.16).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;

use super::respond_checkpoint;
use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool,
    address::Address,
    checkpoint,
    handle::{self, Standing},
    schema::input_schema,
};

pub(crate) static TOOL: Tool = Tool {
    name: "resume_checkpoint",
    title: "Go on after a checkpoint",
    description: "Returns the answer to a checkpoint so that the worker can go on; call it after the orchestrator has \
                  resumed you. With the checkpoint_handle of your yield it returns that yield's resolved_option and effect, \
                  without it those of the newest answer in the current activity. Refused while a checkpoint still waits \
                  for its answer: then stop and wait. May be repeated.",
    annotations: Annotations { read_only: false, idempotent: true },
    gated: false,
    retryable: true,
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
    /// The handle of your yield.
    #[serde(default)]
    #[schemars(length(min = 1))]
    checkpoint_handle: Option<String>,
}

fn address(arguments: &Arguments) -> Result<Address, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Address::read(Some(&params.session_index), params.checkpoint_handle.as_deref())
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    address(arguments).map(Address::target)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let address = address(call.arguments)?;
    call.warnings.extend(address.warning.clone());
    let session = call.session()?;
    if let Some(active) = &session.active_checkpoint {
        return Err(checkpoint::waiting("CHECKPOINT_STILL_ACTIVE", session, active, call.env.signer));
    }
    let (yielded, resolution) = match &address.handle {
        None => (None, checkpoint::newest_resolution(session)),
        Some(given) => match handle::standing(call.env.signer, session, given) {
            Standing::Spent(reached) => {
                (Some(reached.checkpoint().to_owned()), checkpoint::resolution_of(session, reached))
            }
            Standing::Live | Standing::Foreign => return Err(checkpoint::foreign(given)),
        },
    };
    let mut members = Map::new();
    members.insert("status".to_owned(), "resumed".into());
    members.insert("session_index".to_owned(), session.session_index.as_str().into());
    let message = match &resolution {
        Some(resolution) => checkpoint::instruction(resolution.event.checkpoint(), resolution.option(), ""),
        None => "No checkpoint waits. Go on with the next step.".to_owned(),
    };
    members.insert("message".to_owned(), message.into());
    let id = resolution.map(|resolution| resolution.event.checkpoint().to_owned()).or(yielded);
    if let Some(id) = id {
        members.insert("checkpoint_id".to_owned(), id.into());
    }
    if let Some(resolution) = &resolution {
        members.insert("resolved_option".to_owned(), resolution.option().into());
        if let Some(effect) = respond_checkpoint::effect_of(call, resolution.event, *resolution) {
            members.insert("effect".to_owned(), effect);
        }
    }
    let reply = Reply::json(&session.session_index, members);
    if resolution.is_none() {
        call.warn(
            "W_NOTHING_RESOLVED",
            "no answered checkpoint was found for this resume; there is no resolved_option to follow. If a checkpoint step \
             comes next, call yield_checkpoint",
        );
    }
    call.advance();
    Ok(reply)
}
