//! The trace of a session: events, segments, signed tokens and short references (spec 03 §8).

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq as _;

use crate::{
    Arguments, Environment, Purpose, Refusal, Reply, Signer, Timestamp, Tool, TraceEntry, TraceSlice, Workset, lineage,
    state::{Session, is_session_index},
};

/// Longest token that is issued, in bytes.
const TOKEN_LIMIT: usize = 256 * 1024;
/// Longest token that is read, in bytes.
const READ_LIMIT: usize = 1024 * 1024;
/// Bytes of a payload beside target activity and events.
const PAYLOAD_FRAME: usize = 256;
/// Refusals of arguments, which leave no event.
const ARGUMENT_CODES: [&str; 5] =
    ["INVALID_PARAMS", "PARAM_TOO_LARGE", "VALUE_NOT_JSON", "UNKNOWN_TOOL", "INVALID_SESSION_INDEX"];
/// What to do about a token that is not accepted.
const REMEDY: &str = "Omit trace_tokens to use the server's own trace.";

/// The event that a finished call leaves in the trace of the session it addressed (spec 03 §8.1).
///
/// `workset` is the one the call worked on; after a refusal, as it was read. `None` for tools that leave no event, for
/// refused arguments, for recognised retries, and when no session was found.
pub fn event(
    env: &Environment<'_>,
    tool: &Tool,
    arguments: &Arguments,
    workset: &Workset,
    outcome: Result<&Reply, &Refusal>,
    duration_ms: u64,
) -> Option<TraceEntry> {
    let leaves_none = match outcome {
        Ok(reply) => reply.repeated,
        Err(refusal) => leaves_no_event(refusal.code),
    };
    if !tool.traced || leaves_none {
        return None;
    }
    let family = workset.families.iter().find(|family| family.root.is_some())?;
    let root = family.root.as_ref()?;
    let session = root.at(&workset.path)?;
    let named = arguments.read.get("agent_id").and_then(Value::as_str).filter(|agent| !agent.is_empty());
    let agent = if tool.name == "dispatch_child" { None } else { named };
    let duration_ms = if tool.name == "start_session" { 0 } else { duration_ms };
    let mut members = base(env, session, tool.name, duration_ms, agent);
    match outcome {
        Ok(reply) if !reply.warnings.is_empty() => {
            let texts: Vec<&str> = reply.warnings.iter().map(|warning| warning.message.as_str()).collect();
            members.insert("vw".to_owned(), json!(texts));
        }
        Ok(_) => {}
        Err(refusal) => {
            members.insert("s".to_owned(), "error".into());
            members.insert("err".to_owned(), refusal.text().into());
        }
    }
    let ancestors = lineage::ancestors(root, &workset.path);
    if let Some(parent) = ancestors.first() {
        members.insert("psid".to_owned(), parent.session_index.as_str().into());
        members.insert("pdepth".to_owned(), ancestors.len().into());
    }
    let child = outcome.ok().and_then(|reply| reply.session_index.as_deref());
    if let Some(child) = child.filter(|child| *child != session.session_index) {
        let workflow = session.triggered_workflows.iter().find(|reference| reference.session_index == child);
        name_child(&mut members, child, workflow.map_or("", |reference| &reference.workflow_id));
    }
    Some(TraceEntry { session_index: session.session_index.clone(), event: Value::Object(members) })
}

/// Whether a refusal with this code is one of arguments, which makes no event.
pub fn leaves_no_event(code: &str) -> bool {
    ARGUMENT_CODES.contains(&code)
}

/// The event in a parent's trace that names the child it got.
pub(crate) fn link_event(env: &Environment<'_>, parent: &Session, child: &Session) -> TraceEntry {
    let mut members = base(env, parent, "start_session", 0, None);
    name_child(&mut members, &child.session_index, &child.workflow_id);
    TraceEntry { session_index: parent.session_index.clone(), event: Value::Object(members) }
}

fn base(env: &Environment<'_>, session: &Session, tool: &str, ms: u64, agent: Option<&str>) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("traceId".to_owned(), session.session_index.as_str().into());
    members.insert("spanId".to_owned(), env.randomness.uuid().into());
    members.insert("name".to_owned(), tool.into());
    members.insert("ts".to_owned(), env.now.seconds().into());
    members.insert("ms".to_owned(), ms.into());
    members.insert("s".to_owned(), "ok".into());
    members.insert("wf".to_owned(), session.workflow_id.as_str().into());
    members.insert("act".to_owned(), session.current_activity.as_str().into());
    members.insert("aid".to_owned(), agent.unwrap_or(&session.agent_id).into());
    members
}

fn name_child(members: &mut Map<String, Value>, index: &str, workflow: &str) {
    members.insert("csid".to_owned(), index.into());
    members.insert("cwf".to_owned(), workflow.into());
}

/// Number of the first event of the current segment: that of the newest `next_activity` that succeeded, else the first
/// one kept.
pub(crate) fn segment_start(slice: &TraceSlice) -> u64 {
    let newest = slice.events.iter().rposition(|event| event["name"] == "next_activity" && event["s"] == "ok");
    slice.dropped + newest.map_or(0, |at| at as u64)
}

/// What a transition hands out about the segment it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// `_meta.trace_token`.
    pub first: String,
    /// `_meta.trace_tokens_more`: the rest of a segment that is too large for one token.
    pub more: Vec<String>,
    /// `trace_ref`: `<index>:<from>-<to>`.
    pub reference: String,
}

impl Tokens {
    /// `trace_token`, and `trace_tokens_more` when there are more.
    pub(crate) fn meta(self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("trace_token".to_owned(), self.first.into());
        if !self.more.is_empty() {
            members.insert("trace_tokens_more".to_owned(), self.more.into());
        }
        members
    }
}

/// Tokens for the current segment of a session, which ends with a transition to `activity`.
pub(crate) fn mint(env: &Environment<'_>, session_index: &str, activity: &str) -> Tokens {
    let slice = env.traces.read(session_index);
    let from = segment_start(&slice);
    let to = slice.dropped + slice.events.len() as u64;
    tokens(env, &slice, session_index, activity, (from, to))
}

/// The tokens of an earlier transition, from the reference that it answered.
pub(crate) fn mint_again(env: &Environment<'_>, reference: &str, activity: &str) -> Option<Tokens> {
    let (session_index, from, to) = parse_reference(reference)?;
    Some(tokens(env, &env.traces.read(session_index), session_index, activity, (from, to)))
}

fn tokens(
    env: &Environment<'_>,
    slice: &TraceSlice,
    session_index: &str,
    activity: &str,
    (from, to): (u64, u64),
) -> Tokens {
    let room = ((TOKEN_LIMIT - 65) / 4 * 3).saturating_sub(PAYLOAD_FRAME + 2 * activity.len());
    let mut more: Vec<String> = Vec::new();
    let mut part: Vec<&Value> = Vec::new();
    let (mut size, mut begin) = (0, from);
    for number in from..to.min(slice.dropped + slice.events.len() as u64) {
        let Some(event) = kept(slice, number) else { continue };
        let length = event.to_string().len() + 1;
        if !part.is_empty() && size + length > room {
            more.push(sign(env.signer, &payload(session_index, activity, (begin, number), &part, env.now)));
            part.clear();
            (size, begin) = (0, number);
        }
        part.push(event);
        size += length;
    }
    more.push(sign(env.signer, &payload(session_index, activity, (begin, to), &part, env.now)));
    let first = more.remove(0);
    Tokens { first, more, reference: format!("{session_index}:{from}-{to}") }
}

/// The event with a number, unless it was dropped or could not be read.
fn kept(slice: &TraceSlice, number: u64) -> Option<&Value> {
    let at = usize::try_from(number.checked_sub(slice.dropped)?).ok()?;
    slice.events.get(at).filter(|event| event.is_object())
}

fn payload(session_index: &str, activity: &str, (from, to): (u64, u64), events: &[&Value], now: Timestamp) -> Value {
    let time = |event: Option<&&Value>| event.and_then(|event| event["ts"].as_i64()).unwrap_or_default();
    json!({
        "sid": session_index,
        "act": activity,
        "from": from,
        "to": to,
        "n": events.len(),
        "t0": time(events.first()),
        "t1": time(events.last()),
        "ts": now.seconds(),
        "events": events,
    })
}

fn sign(signer: &dyn Signer, payload: &Value) -> String {
    let body = BASE64URL_NOPAD.encode(payload.to_string().as_bytes());
    let mac = signer.mac(Purpose::TraceToken, body.as_bytes());
    format!("{body}.{}", HEXLOWER.encode(&mac))
}

/// Events that a token or a short reference stands for, in order.
///
/// # Errors
/// A line for `token_errors`.
pub(crate) fn resolve(env: &Environment<'_>, workset: &Workset, token: &str) -> Result<Vec<Value>, String> {
    if token.len() > READ_LIMIT {
        return Err(fault("TOO_LARGE", &format!("{} bytes, at most {READ_LIMIT} are read", token.len())));
    }
    if let Some((session_index, from, to)) = parse_reference(token) {
        check_owner(env, workset, session_index)?;
        let slice = env.traces.read(session_index);
        let to = to.min(slice.dropped + slice.events.len() as u64);
        return Ok((from.max(slice.dropped)..to).filter_map(|number| kept(&slice, number).cloned()).collect());
    }
    let payload = open(env.signer, token)?;
    let Some((sid, events)) = payload_parts(payload) else {
        return Err(fault("PAYLOAD", "the signed content has not the members of a trace token"));
    };
    check_owner(env, workset, &sid)?;
    Ok(events)
}

fn check_owner(env: &Environment<'_>, workset: &Workset, session_index: &str) -> Result<(), String> {
    if lineage::is_related(env, workset, session_index) {
        return Ok(());
    }
    let own = workset.session().map_or("", |session| &session.session_index);
    Err(fault(
        "FOREIGN",
        &format!("it belongs to session {session_index}, which is no ancestor or descendant of {own}"),
    ))
}

/// Verifies a token and reads its payload.
fn open(signer: &dyn Signer, token: &str) -> Result<Value, String> {
    let Some((body, mac)) = token.trim().rsplit_once('.') else {
        return Err(fault(
            "MALFORMED",
            "a token is base64url text, a dot and a signature; a reference is INDEX:FROM-TO",
        ));
    };
    let expected = HEXLOWER.encode(&signer.mac(Purpose::TraceToken, body.as_bytes()));
    if !bool::from(expected.as_bytes().ct_eq(mac.as_bytes())) {
        return Err(fault("SIGNATURE", "the signature does not fit; it was changed, cut, or issued under another key"));
    }
    let Ok(bytes) = BASE64URL_NOPAD.decode(body.as_bytes()) else {
        return Err(fault("MALFORMED", "the part before the dot is no base64url text"));
    };
    serde_json::from_slice(&bytes).map_err(|error| fault("PAYLOAD", &format!("the signed content is no JSON: {error}")))
}

fn payload_parts(payload: Value) -> Option<(String, Vec<Value>)> {
    let Value::Object(mut members) = payload else { return None };
    let numbers = ["from", "to", "n", "t0", "t1", "ts"];
    let sound = numbers.iter().all(|key| members.get(*key).is_some_and(Value::is_number))
        && members.get("act").is_some_and(Value::is_string);
    match (sound, members.remove("sid"), members.remove("events")) {
        (true, Some(Value::String(sid)), Some(Value::Array(events))) => Some((sid, events)),
        _ => None,
    }
}

/// Reads `<index>:<from>-<to>`.
fn parse_reference(text: &str) -> Option<(&str, u64, u64)> {
    let (index, range) = text.trim().split_once(':')?;
    let (from, to) = range.split_once('-')?;
    let (from, to) = (number(from)?, number(to)?);
    (is_session_index(index) && from <= to).then_some((index, from, to))
}

fn number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}

fn fault(kind: &str, cause: &str) -> String {
    format!("TRACE_TOKEN_{kind}: {cause}. {REMEDY}")
}

#[cfg(test)]
mod tests;
