//! Opening a gate whose checkpoint is no longer in the definition (spec 03 §6.5): the way out for an operator, since
//! neither an answer nor a dismissal can open it. What can be answered is never released.

use serde_json::json;
use workflow_corpus::Corpus;

use crate::{
    Refusal, Timestamp, Workset,
    call::{activity_not_found, definition_refusal},
    checkpoint,
    state::{Event, Session},
};

/// A gate that was opened, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// The session.
    pub session_index: String,
    /// The activity that had the checkpoint.
    pub activity: String,
    /// The checkpoint, as it was yielded.
    pub checkpoint: String,
    /// When it was yielded.
    pub yielded_at: String,
}

/// Gives up the active checkpoint of the addressed session. No answer is recorded; an `error` event says what happened.
///
/// # Errors
/// `NO_ACTIVE_CHECKPOINT`; `CHECKPOINT_ACTIVE` while it can be answered; what loading the definition may refuse, also
/// when the activity's file is only broken; `SESSION_NOT_FOUND`.
pub fn release_gate(corpus: &Corpus, workset: &mut Workset, now: Timestamp) -> Result<Released, Refusal> {
    let session = workset.session_mut().ok_or_else(|| Refusal::new("SESSION_NOT_FOUND", "no session is open"))?;
    let active = session.active_checkpoint.clone().ok_or_else(|| checkpoint::none_active(session))?;
    let workflow = corpus.workflow(&session.workflow_id).map_err(|error| definition_refusal(&error))?;
    let activity = workflow.activity(&active.activity_id);
    let declared = activity.is_some_and(|activity| activity.checkpoint(&active.checkpoint_id).is_some());
    if active.adhoc.is_some() || declared {
        return Err(answerable(session, &active.checkpoint_id));
    }
    if activity.is_none() && workflow.load_error(&active.activity_id).is_some() {
        return Err(activity_not_found(&workflow, &active.activity_id));
    }
    let message = "an operator opened the gate: the definition no longer has this checkpoint";
    let mut event = Event::new("error").with_activity(&active.activity_id).with_checkpoint(&active.checkpoint_id);
    event.0.insert("error".to_owned(), json!({"message": message, "code": "CHECKPOINT_NOT_FOUND"}));
    session.record(event, now);
    session.active_checkpoint = None;
    session.advance(now);
    Ok(Released {
        session_index: session.session_index.clone(),
        activity: active.activity_id,
        checkpoint: active.checkpoint_id,
        yielded_at: active.yielded_at,
    })
}

fn answerable(session: &Session, checkpoint: &str) -> Refusal {
    Refusal::new(
        "CHECKPOINT_ACTIVE",
        format!(
            "checkpoint `{checkpoint}` of session {} can be answered, so it is not released. Let the orchestrator show it to \
             the user and call respond_checkpoint.",
            session.session_index
        ),
    )
    .with("checkpoint_id", checkpoint)
}
