//! Recognising a repeated call and answering it again (spec 03 §4.2).

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use workflow_corpus::{COMPLETE, TERMINAL};

use crate::{
    Arguments, Environment, Reply, Tool, Workset,
    state::{LastCall, canonical_json},
    trace,
};

/// Arguments that only say which session is meant.
const ADDRESS: [&str; 2] = ["session_index", "checkpoint_handle"];

/// The answer of the last call, if this is that call again and nobody called in between.
pub(crate) fn repeat(
    tool: &Tool,
    env: &Environment<'_>,
    arguments: &Arguments,
    workset: &Workset,
) -> Option<Reply> {
    let session = workset.session()?;
    let last = session.last_call.as_ref()?;
    if last.tool != tool.name || last.seq != session.seq || last.arguments != digest(arguments) {
        return None;
    }
    let Ok(Value::Object(mut members)) = serde_json::from_str(&last.result) else { return None };
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
