//! Recognising a repeated call and answering it again (spec 03 §4.2).

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use workflow_corpus::{COMPLETE, TERMINAL};

use crate::{
    Arguments, Environment, Reply, Tool, Workset, checkpoint,
    handle::{self, Standing},
    state::{LastCall, Session, canonical_json, is_session_index},
    trace,
};

/// Arguments that only say which session is meant.
const ADDRESS: [&str; 2] = ["session_index", "checkpoint_handle"];

/// The answer of the last call, if this is that call again and nobody called in between.
pub(crate) fn repeat(tool: &Tool, env: &Environment<'_>, arguments: &Arguments, workset: &Workset) -> Option<Reply> {
    let session = workset.session()?;
    let last = session.last_call.as_ref()?;
    if last.tool != tool.name || last.seq != session.seq || last.arguments != digest(arguments) {
        return None;
    }
    let Ok(Value::Object(mut members)) = serde_json::from_str(&last.result) else { return None };
    if !means_the_same(tool, env, arguments, session, &members) {
        return None;
    }
    members.insert("already_done".to_owned(), true.into());
    let batch = members.get("batch").cloned();
    let reference = members.get("trace_ref").and_then(Value::as_str).map(str::to_owned);
    let mut reply = Reply::json(&session.session_index, members);
    reply.repeated = true;
    if let Some(batch) = batch {
        reply.meta.insert("batch".to_owned(), batch);
    }
    if let Some(tokens) = reference.and_then(|text| trace::mint_again(env, &text, &session.current_activity)) {
        reply.meta.extend(tokens.meta());
    }
    Some(reply)
}

/// The address of a checkpoint is no part of the digest, so that its two forms are one call; but a handle of another
/// yield of the session, or a forged one, asks for something else than what was answered.
fn means_the_same(
    tool: &Tool,
    env: &Environment<'_>,
    arguments: &Arguments,
    session: &Session,
    answer: &Map<String, Value>,
) -> bool {
    let given = arguments.read.get("checkpoint_handle").and_then(Value::as_str);
    let given = given.filter(|given| !is_session_index(given));
    let text = |member: &str| answer.get(member).and_then(Value::as_str);
    match (tool.name, given) {
        ("respond_checkpoint", Some(given)) => text("checkpoint_handle") == Some(given),
        ("resume_checkpoint", Some(given)) => match handle::standing(env.signer, session, given) {
            Standing::Spent(reached) => {
                let option = checkpoint::resolution_of(session, reached).map(|resolution| resolution.option());
                (text("checkpoint_id"), text("resolved_option")) == (Some(reached.checkpoint()), option)
            }
            Standing::Live | Standing::Foreign => false,
        },
        ("resume_checkpoint", None) => {
            let newest = checkpoint::newest_resolution(session);
            let answered = newest.map(|newest| (newest.event.checkpoint(), newest.option()));
            text("checkpoint_id").zip(text("resolved_option")) == answered
        }
        _ => true,
    }
}

/// Keeps the call that was just carried out.
pub(crate) fn remember(tool: &Tool, arguments: &Arguments, workset: &mut Workset, reply: &Reply) {
    if let Some(session) = workset.session_mut() {
        session.last_call = Some(LastCall {
            tool: tool.name.to_owned(),
            arguments: digest(arguments),
            seq: session.seq,
            result: reply.plain_text(),
            extra: Map::new(),
        });
    }
}

/// First 16 hex characters of SHA-256 over the canonical arguments as sent, without those that are an address.
fn digest(arguments: &Arguments) -> String {
    let kept = arguments.sent.iter().filter(|(name, _)| !ADDRESS.contains(&name.as_str()));
    let kept: Map<String, Value> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    let hash = Sha256::digest(canonical_json(&Value::Object(kept)));
    HEXLOWER.encode(&hash[..8])
}

/// Whether the call only resolves a checkpoint or ends the session, which stays possible when the state is too large.
pub(crate) fn brings_to_an_end(tool: &Tool, arguments: &Arguments) -> bool {
    let target = arguments.read.get("activity_id").and_then(Value::as_str);
    match tool.name {
        "respond_checkpoint" | "resume_checkpoint" => true,
        "next_activity" => target.is_some_and(|target| target == TERMINAL || target == COMPLETE),
        _ => false,
    }
}
