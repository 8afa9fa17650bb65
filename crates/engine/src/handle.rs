//! Checkpoint handles: a function of the yield, nothing is stored (spec 03 §6.3).

use data_encoding::BASE64URL_NOPAD;
use subtle::ConstantTimeEq as _;

use crate::{
    Purpose, Signer,
    state::{ActiveCheckpoint, Event, Session, is_session_index, quoted},
};

const PREFIX: &str = "cp1.";
const MAC_CHARS: usize = 22;

/// What a handle is to a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Standing<'a> {
    /// It names the checkpoint that is active.
    Live,
    /// It names an earlier yield, this `checkpoint_reached` event.
    Spent(&'a Event),
    /// It was not issued for this session.
    Foreign,
}

/// The handle of the active checkpoint.
pub(crate) fn of_active(signer: &dyn Signer, session_index: &str, active: &ActiveCheckpoint) -> String {
    issue(signer, session_index, &active.activity_id, &active.checkpoint_id, &active.yielded_at)
}

/// The handle of a yield that is in the history.
pub(crate) fn of_event(signer: &dyn Signer, session_index: &str, event: &Event) -> String {
    issue(signer, session_index, event.activity(), event.checkpoint(), event.timestamp())
}

fn issue(signer: &dyn Signer, session_index: &str, activity: &str, checkpoint: &str, yielded_at: &str) -> String {
    let parts = [session_index, activity, checkpoint, yielded_at].map(quoted);
    let mac = signer.mac(Purpose::CheckpointHandle, format!("[{}]", parts.join(",")).as_bytes());
    let text = BASE64URL_NOPAD.encode(&mac);
    format!("{PREFIX}{session_index}.{}", &text[..MAC_CHARS])
}

/// The session index inside a handle; `None` when it does not look like one.
pub(crate) fn session_index(handle: &str) -> Option<&str> {
    let (index, mac) = handle.strip_prefix(PREFIX)?.split_once('.')?;
    let mac_chars = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (is_session_index(index) && mac.len() == MAC_CHARS && mac.bytes().all(mac_chars)).then_some(index)
}

/// Finds out what a handle is to a session.
pub(crate) fn standing<'a>(signer: &dyn Signer, session: &'a Session, handle: &str) -> Standing<'a> {
    let equal = |expected: &str| bool::from(expected.as_bytes().ct_eq(handle.as_bytes()));
    if let Some(active) = &session.active_checkpoint
        && equal(&of_active(signer, &session.session_index, active))
    {
        return Standing::Live;
    }
    let mut yields = session.history.iter().rev().filter(|event| event.kind() == "checkpoint_reached");
    yields
        .find(|event| equal(&of_event(signer, &session.session_index, event)))
        .map_or(Standing::Foreign, Standing::Spent)
}
