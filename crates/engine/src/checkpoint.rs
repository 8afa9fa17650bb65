//! The checkpoint machine: gate, recorded answers and their effects (spec 03 §6).

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use workflow_corpus::{Activity, Effect, Replay};

use crate::{
    Refusal, Signer, handle,
    state::{ActiveCheckpoint, CheckpointResponse, Event, Session},
    visit,
};

/// Recorded option of a checkpoint whose condition did not hold.
pub const DISMISSED: &str = "__condition_not_met__";

/// `data.mode` of an answer that nobody gave: the default was taken when the time was over.
pub const BY_DEFAULT: &str = "auto_advance";

/// What a worker is told to do about an answer.
pub(crate) fn instruction(checkpoint: &str, option: &str, when: &str) -> String {
    if option == DISMISSED {
        return format!(
            "Checkpoint `{checkpoint}` was dismissed{when}: its condition does not hold. There is no answer to follow; go \
             on with the next step."
        );
    }
    format!(
        "Checkpoint `{checkpoint}` was answered with `{option}`{when}. Follow that answer and go on with the next step."
    )
}

/// Key of an answer in `checkpointResponses`.
pub(crate) fn key(activity: &str, checkpoint: &str) -> String {
    format!("{activity}-{checkpoint}")
}

/// Refuses while a checkpoint waits for an answer.
///
/// # Errors
/// `CHECKPOINT_ACTIVE`.
pub(crate) fn gate(session: &Session, signer: &dyn Signer) -> Result<(), Refusal> {
    match &session.active_checkpoint {
        None => Ok(()),
        Some(active) => Err(waiting("CHECKPOINT_ACTIVE", session, active, signer)),
    }
}

/// A refusal that names the active checkpoint and how to go on.
pub(crate) fn waiting(
    code: &'static str,
    session: &Session,
    active: &ActiveCheckpoint,
    signer: &dyn Signer,
) -> Refusal {
    let handle = handle::of_active(signer, &session.session_index, active);
    Refusal::new(
        code,
        format!(
            "checkpoint `{}` of activity `{}` has been waiting for an answer since {}. Until it is resolved the session \
             goes nowhere: the orchestrator shows it to the user (present_checkpoint) and calls respond_checkpoint \
             {{checkpoint_handle: \"{handle}\", option_id: …}}.",
            active.checkpoint_id, active.activity_id, active.yielded_at
        ),
    )
    .with("checkpoint_id", active.checkpoint_id.as_str())
    .with("activity_id", active.activity_id.as_str())
    .with("yielded_at", active.yielded_at.as_str())
    .with("checkpoint_handle", handle)
}

/// Nothing waits for an answer.
pub(crate) fn none_active(session: &Session) -> Refusal {
    Refusal::new(
        "NO_ACTIVE_CHECKPOINT",
        format!(
            "no checkpoint of session {} waits for an answer; a worker must yield first (yield_checkpoint).",
            session.session_index
        ),
    )
    .with("session_index", session.session_index.as_str())
}

/// The activity declares no such checkpoint.
pub(crate) fn unknown(activity: &Activity, checkpoint: &str, advice: &str) -> Refusal {
    let declared = declared_ids(activity);
    let listed = if declared.is_empty() { "none".to_owned() } else { declared.join(", ") };
    let rounds = if declared.iter().any(|id| id.contains("#{")) {
        " What stands in braces behind a `#` is filled in with the round of the loop."
    } else {
        ""
    };
    Refusal::new(
        "CHECKPOINT_NOT_FOUND",
        format!(
            "activity `{}` declares no checkpoint `{checkpoint}`; its checkpoints: {listed}.{rounds} {advice}",
            activity.id
        ),
    )
    .with("checkpoint_id", checkpoint)
    .with("activity_id", activity.id.as_str())
    .with("declared", declared)
}

fn declared_ids(activity: &Activity) -> Vec<String> {
    activity.checkpoints().iter().map(|(step, _)| step.id.clone()).collect()
}

/// An answer that is given again instead of asking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded<'a> {
    pub(crate) response: &'a CheckpointResponse,
    /// Given during the current visit.
    pub(crate) in_visit: bool,
}

/// The answer that a yield of this checkpoint gets without asking, if one counts (spec 03 §6.4).
pub(crate) fn recorded<'a>(
    session: &'a Session,
    activity: &Activity,
    checkpoint: &str,
    replay: Replay,
) -> Option<Recorded<'a>> {
    let key = key(&activity.id, checkpoint);
    let response = session.checkpoint_responses.get(&key)?;
    // two pairs of ids can share a key: the newest answer under it must be of this pair
    let answered = session.history.iter().enumerate().rev().find(|(_, event)| {
        event.kind() == "checkpoint_response" && self::key(event.activity(), event.checkpoint()) == key
    });
    let in_visit = match answered {
        Some((_, event)) if event.activity() != activity.id || event.checkpoint() != checkpoint => return None,
        Some((at, _)) => at >= visit::start(session, Some(activity)),
        None => false,
    };
    let whole_session = replay == Replay::Session && response.option_id != DISMISSED;
    (in_visit || whole_session).then_some(Recorded { response, in_visit })
}

/// What an option does, as it is recorded; `None` when it does nothing.
pub(crate) fn recorded_effects(effect: &Effect) -> Option<Map<String, Value>> {
    let mut effects = Map::new();
    if !effect.set_variable.is_empty() {
        effects.insert("variablesSet".to_owned(), Value::Object(effect.set_variable.clone()));
    }
    if let Some(to) = &effect.transition_to {
        effects.insert("transitionedTo".to_owned(), to.as_str().into());
    }
    if !effect.skip_activities.is_empty() {
        effects.insert("activitiesSkipped".to_owned(), effect.skip_activities.clone().into());
    }
    (!effects.is_empty()).then_some(effects)
}

/// Recorded effects as they are answered: `{setVariable?, transitionTo?, skipActivities?}`.
pub(crate) fn answered_effect(response: &CheckpointResponse) -> Option<Value> {
    const NAMES: [(&str, &str); 3] =
        [("setVariable", "variablesSet"), ("transitionTo", "transitionedTo"), ("skipActivities", "activitiesSkipped")];
    let effects = response.effects.as_ref()?;
    let members: Map<String, Value> = NAMES
        .iter()
        .filter_map(|(answered, recorded)| Some(((*answered).to_owned(), effects.get(*recorded)?.clone())))
        .collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

/// Where a recorded answer leads.
pub(crate) fn transition_of(response: &CheckpointResponse) -> Option<&str> {
    response.effects.as_ref()?.get("transitionedTo")?.as_str()
}

/// The answer to one yield: its `checkpoint_response` event, and the recorded response if it is still the newest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolution<'a> {
    pub(crate) event: &'a Event,
    pub(crate) response: Option<&'a CheckpointResponse>,
}

impl<'a> Resolution<'a> {
    fn of(session: &'a Session, event: &'a Event) -> Self {
        let response = session.checkpoint_responses.get(&key(event.activity(), event.checkpoint()));
        Self { event, response: response.filter(|response| response.responded_at == event.timestamp()) }
    }

    /// The chosen option, or [`DISMISSED`].
    pub(crate) fn option(&self) -> &'a str {
        self.event.data_text("optionId").unwrap_or_default()
    }

    /// The effect, as it is answered.
    pub(crate) fn effect(&self) -> Option<Value> {
        self.response.and_then(answered_effect)
    }
}

/// How a yield that is no longer active was resolved; `None` when it was given up.
pub(crate) fn resolution_of<'a>(session: &'a Session, reached: &Event) -> Option<Resolution<'a>> {
    let same = |event: &&Event| event.activity() == reached.activity() && event.checkpoint() == reached.checkpoint();
    let at = session.history.iter().position(|event| event == reached)?;
    session.history[at + 1..]
        .iter()
        .filter(same)
        .find(|event| matches!(event.kind(), "checkpoint_response" | "checkpoint_reached"))
        .filter(|event| event.kind() == "checkpoint_response")
        .map(|event| Resolution::of(session, event))
}

/// The newest answer of the current activity.
pub(crate) fn newest_resolution(session: &Session) -> Option<Resolution<'_>> {
    session
        .history
        .iter()
        .rev()
        .find(|event| event.kind() == "checkpoint_response" && event.activity() == session.current_activity)
        .map(|event| Resolution::of(session, event))
}

/// A handle whose checkpoint was resolved before.
pub(crate) fn spent(session: &Session, reached: &Event) -> Refusal {
    let outcome = match resolution_of(session, reached) {
        Some(resolution) => {
            format!("it was answered with `{}` at {}", resolution.option(), resolution.event.timestamp())
        }
        None => "it was given up without an answer".to_owned(),
    };
    let option = resolution_of(session, reached).map(|resolution| resolution.option().to_owned());
    Refusal::new(
        "CHECKPOINT_HANDLE_SPENT",
        format!(
            "this handle belongs to an earlier yield of checkpoint `{}` in activity `{}`: {outcome}. An answer is final; \
             the worker goes on with resume_checkpoint {{session_index: \"{}\", checkpoint_handle: …}}.",
            reached.checkpoint(),
            reached.activity(),
            session.session_index
        ),
    )
    .with("checkpoint_id", reached.checkpoint())
    .with("activity_id", reached.activity())
    .with("option_id", option)
}

/// A handle that is none of this session's.
pub(crate) fn foreign(handle: &str) -> Refusal {
    Refusal::new(
        "CHECKPOINT_HANDLE_INVALID",
        format!(
            "`{handle}` is no checkpoint handle of this session. Pass the handle from the worker's <checkpoint_yield> \
             block character by character, or address the checkpoint by session_index."
        ),
    )
    .with("checkpoint_handle", handle)
}

/// What an undeclared decision asks, as 16 hex characters of SHA-256 over `[message, options]`.
pub(crate) fn adhoc_digest(message: &str, options: &Value) -> String {
    let asked = serde_json::json!([message, options]).to_string();
    HEXLOWER.encode(&Sha256::digest(asked)[..8])
}
