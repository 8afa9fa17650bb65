//! `yield_checkpoint`: a worker stops at a checkpoint (spec 03 §5.13, §6.4).

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use workflow_corpus::{Activity, Replay, Step, checkpoint_base};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Timestamp, Tool,
    checkpoint::{self, Recorded},
    handle,
    schema::input_schema,
    state::{ActiveCheckpoint, Event, Session},
    visit,
};

pub(crate) static TOOL: Tool = Tool {
    name: "yield_checkpoint",
    title: "Stop at a checkpoint",
    description: "Stops at a checkpoint step and hands the decision to the orchestrator; the worker's call. On status \
                  'yielded' print a <checkpoint_yield> block with the checkpoint_handle, stop, and wait until you are \
                  resumed, then call resume_checkpoint. On status 'replayed' the checkpoint was answered before: take \
                  resolved_option and effect and go on. checkpoint_id is the id of a checkpoint step of the current \
                  activity; inside a loop add an instance (confirm#2) so that each round is asked. For an unforeseen \
                  decision that no checkpoint declares pass a new checkpoint_id with message and at least two options. \
                  Refused while another checkpoint waits.",
    annotations: Annotations { read_only: false, idempotent: true },
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
    /// Id of the checkpoint step, with an instance inside a loop (confirm#2).
    #[schemars(length(min = 1))]
    checkpoint_id: String,
    /// Only for an undeclared decision: what to ask the user.
    #[serde(default)]
    #[schemars(length(min = 1))]
    message: Option<String>,
    /// Only for an undeclared decision: at least two options.
    #[serde(default)]
    #[schemars(length(min = 2))]
    options: Option<Vec<AdhocOption>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AdhocOption {
    /// What respond_checkpoint sends back.
    #[schemars(length(min = 1))]
    id: String,
    /// Short text.
    #[schemars(length(min = 1))]
    label: String,
    /// Long text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl Params {
    fn read(arguments: &Arguments) -> Result<Self, Refusal> {
        let params: Self = arguments.decode(TOOL.name)?;
        let refuse = |cause: &str| Err(Refusal::invalid_params(TOOL.name, cause));
        if params.checkpoint_id.is_empty() {
            return refuse("checkpoint_id: must not be empty");
        }
        if params.message.as_deref() == Some("") {
            return refuse("message: must not be empty");
        }
        if let Some(options) = &params.options {
            if options.len() < 2 {
                return refuse("options: a decision needs at least two");
            }
            if options.iter().any(|option| option.id.is_empty() || option.label.is_empty()) {
                return refuse("options[]: id and label must not be empty");
            }
            let distinct: HashSet<&str> = options.iter().map(|option| option.id.as_str()).collect();
            if distinct.len() < options.len() {
                return refuse("options[].id: every option needs an id of its own");
            }
        }
        Ok(params)
    }

    /// Message and options of an undeclared decision, when both were sent.
    fn decision(&self) -> Option<(&str, Value)> {
        Some((self.message.as_deref()?, json!(self.options.as_ref()?)))
    }
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    Target::session(&Params::read(arguments)?.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params = Params::read(call.arguments)?;
    let session = call.session()?;
    if let Some(active) = &session.active_checkpoint {
        return Err(checkpoint::waiting("CHECKPOINT_ALREADY_ACTIVE", session, active, call.env.signer));
    }
    let activity = call.activity()?;
    match activity.checkpoint(&params.checkpoint_id) {
        Some((step, declared)) => {
            if params.message.is_some() || params.options.is_some() {
                return Err(is_declared(&activity, &params.checkpoint_id, &step.id));
            }
            let replay = declared.replay;
            yield_or_replay(call, &activity, &params, replay)
        }
        None => yield_adhoc(call, &activity, &params),
    }
}

fn yield_adhoc(call: &mut Call<'_>, activity: &Activity, params: &Params) -> Result<Reply, Refusal> {
    let session = call.session()?;
    let answered = checkpoint::recorded(session, activity, &params.checkpoint_id, Replay::Visit);
    let nothing_sent = params.message.is_none() && params.options.is_none();
    match params.decision() {
        None if answered.is_some() && nothing_sent => {}
        None => {
            return Err(checkpoint::unknown(
                activity,
                &params.checkpoint_id,
                "Yield one of these, or for an unforeseen decision pass message and at least two options.",
            ));
        }
        Some((message, options)) => {
            let asked = answered.and(asked_in_visit(session, activity, &params.checkpoint_id));
            if asked.is_some_and(|asked| asked != checkpoint::adhoc_digest(message, &options)) {
                return Err(id_reused(activity, &params.checkpoint_id));
            }
        }
    }
    yield_or_replay(call, activity, params, Replay::Visit)
}

/// Digest of what was asked under an undeclared id in this visit, if it was recorded.
fn asked_in_visit<'a>(session: &'a Session, activity: &Activity, checkpoint: &str) -> Option<&'a str> {
    session.history[visit::start(session, Some(activity))..]
        .iter()
        .rev()
        .find(|event| event.kind() == "checkpoint_reached" && event.checkpoint() == checkpoint)?
        .data_text("adhoc")
}

fn yield_or_replay(
    call: &mut Call<'_>,
    activity: &Activity,
    params: &Params,
    replay: Replay,
) -> Result<Reply, Refusal> {
    let id = params.checkpoint_id.as_str();
    let session = call.session()?;
    let members = match checkpoint::recorded(session, activity, id, replay) {
        Some(recorded) => {
            let mut members = replayed(session, id, recorded, replay);
            let unnamed = activity.checkpoint(id).is_some_and(|(declared, _)| lacks_round(activity, declared, id));
            if let Some(Value::String(message)) = members.get_mut("message").filter(|_| unnamed) {
                *message = format!(
                    "{message} If this is another round of the loop, the user has to be asked again: yield `{}#…` with \
                     what is special about the round.",
                    checkpoint_base(id)
                );
            }
            let option = recorded.response.option_id.clone();
            let event = Event::new("checkpoint_replayed")
                .with_activity(&activity.id)
                .with_checkpoint(id)
                .with_data("optionId", option);
            let now = call.now();
            call.session_mut()?.record(event, now);
            members
        }
        None => yielded(call, activity, params)?,
    };
    call.advance();
    Ok(Reply::json(&call.session()?.session_index, members))
}

/// Was a checkpoint of a loop body yielded without saying for which round: by its base, or with nothing or an unfilled
/// placeholder behind the `#`?
fn lacks_round(activity: &Activity, declared: &Step, id: &str) -> bool {
    let in_loop = activity.flat_steps().iter().any(|flat| !flat.top_level && std::ptr::eq(flat.step, declared));
    let round = id.split_once('#').map_or("", |(_, round)| round);
    in_loop && (round.is_empty() || round.contains('{'))
}

fn replayed(session: &Session, id: &str, recorded: Recorded<'_>, replay: Replay) -> Map<String, Value> {
    let option = recorded.response.option_id.as_str();
    let mut members = Map::new();
    members.insert("status".to_owned(), "replayed".into());
    members.insert("checkpoint_id".to_owned(), id.into());
    members.insert("session_index".to_owned(), session.session_index.as_str().into());
    members.insert("resolved_option".to_owned(), option.into());
    let message = checkpoint::instruction(id, option, " before, and is not asked again");
    members.insert("message".to_owned(), message.into());
    if let Some(effect) = checkpoint::answered_effect(recorded.response) {
        members.insert("effect".to_owned(), effect);
    }
    if replay == Replay::Session {
        members.insert("answered_in_visit".to_owned(), recorded.in_visit.into());
    }
    members
}

fn yielded(call: &mut Call<'_>, activity: &Activity, params: &Params) -> Result<Map<String, Value>, Refusal> {
    let id = params.checkpoint_id.as_str();
    let declared = activity.checkpoint(id).map(|(declared, _)| declared).filter(|declared| declared.id.contains('#'));
    if let Some(declared) = declared.filter(|declared| lacks_round(activity, declared, id)) {
        call.warn(
            "W_ROUND_UNNAMED",
            format!(
                "checkpoint `{}` asks in every round of its loop, and `{id}` does not say for which, so the next round will \
                 be given the same answer; put what is special about the round behind the `#`",
                declared.id
            ),
        );
    }
    let signer = call.env.signer;
    let now = call.now();
    let decision = params.decision();
    let session = call.session_mut()?;
    let digest = decision.as_ref().map(|(message, options)| checkpoint::adhoc_digest(message, options));
    let event = Event::new("checkpoint_reached")
        .with_activity(&activity.id)
        .with_checkpoint(id)
        .with_optional_data("adhoc", digest);
    let stamp = session.record(event, own_moment(session, now));
    let adhoc = decision.map(|(message, options)| {
        let mut adhoc = Map::new();
        adhoc.insert("message".to_owned(), message.into());
        adhoc.insert("options".to_owned(), options);
        adhoc
    });
    let active = ActiveCheckpoint {
        checkpoint_id: id.to_owned(),
        activity_id: activity.id.clone(),
        yielded_at: stamp,
        adhoc,
        extra: Map::new(),
    };
    let handle = handle::of_active(signer, &session.session_index, &active);
    session.active_checkpoint = Some(active);
    let mut members = Map::new();
    members.insert("status".to_owned(), "yielded".into());
    members.insert("checkpoint_id".to_owned(), id.into());
    members.insert("checkpoint_handle".to_owned(), handle.as_str().into());
    members.insert("session_index".to_owned(), session.session_index.as_str().into());
    let message = format!(
        "Print this block, then stop and wait; do not decide yourself: <checkpoint_yield>{handle}</checkpoint_yield>. When \
         you are resumed, call resume_checkpoint with this handle."
    );
    members.insert("message".to_owned(), message.into());
    Ok(members)
}

/// A moment at which this history has no yield yet, so that no two handles are equal.
fn own_moment(session: &Session, now: Timestamp) -> Timestamp {
    let newest = session.history.iter().rev().find(|event| event.kind() == "checkpoint_reached").and_then(Event::time);
    newest.map_or(now, |newest| now.max(Timestamp(newest.0.saturating_add(1))))
}

fn is_declared(activity: &Activity, yielded: &str, declared: &str) -> Refusal {
    Refusal::new(
        "CHECKPOINT_IS_DECLARED",
        format!(
            "`{yielded}` means checkpoint `{declared}`, which activity `{}` declares with its own message and options. \
             Yield it without message and options, or choose another checkpoint_id for a decision of your own.",
            activity.id
        ),
    )
    .with("checkpoint_id", yielded)
    .with("activity_id", activity.id.as_str())
    .with("declared", declared)
}

fn id_reused(activity: &Activity, checkpoint: &str) -> Refusal {
    Refusal::new(
        "CHECKPOINT_ID_REUSED",
        format!(
            "the undeclared checkpoint `{checkpoint}` of activity `{}` was answered in this visit, and it asked something \
             else. An answer belongs to its question: yield the new decision under a new checkpoint_id.",
            activity.id
        ),
    )
    .with("checkpoint_id", checkpoint)
    .with("activity_id", activity.id.as_str())
}
