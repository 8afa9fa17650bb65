//! How a call names a checkpoint: by handle, by session index, or by both (spec 03 §4.4).

use workflow_corpus::Warning;

use crate::{
    Refusal, Signer, Target, checkpoint, handle,
    state::{Session, is_session_index},
    target::valid_index,
};

/// A checkpoint address, checked as far as that is possible without the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The session.
    pub(crate) index: String,
    /// The handle, if one was given.
    pub(crate) handle: Option<String>,
    /// The handle was a bare session index.
    pub(crate) warning: Option<Warning>,
}

impl Address {
    /// Reads the two parameters.
    ///
    /// # Errors
    /// `CHECKPOINT_ADDRESS_MISSING`, `CHECKPOINT_ADDRESS_CONFLICT`, `CHECKPOINT_HANDLE_INVALID`,
    /// `INVALID_SESSION_INDEX`.
    pub(crate) fn read(session_index: Option<&str>, given: Option<&str>) -> Result<Self, Refusal> {
        let index = session_index.map(valid_index).transpose()?;
        let Some(given) = given else {
            let index = index.ok_or_else(missing)?;
            return Ok(Self { index: index.to_owned(), handle: None, warning: None });
        };
        let bare = is_session_index(given);
        let named =
            if bare { given } else { handle::session_index(given).ok_or_else(|| checkpoint::foreign(given))? };
        if let Some(index) = index.filter(|index| *index != named) {
            return Err(Refusal::new(
                "CHECKPOINT_ADDRESS_CONFLICT",
                format!(
                    "session_index is {index}, but checkpoint_handle `{given}` belongs to session {named}. Pass the handle \
                     alone, or both of the same session."
                ),
            )
            .with("session_index", index)
            .with("checkpoint_handle", given));
        }
        let warning = bare.then(|| Warning {
            code: "W_HANDLE_WAS_INDEX",
            message: format!(
                "checkpoint_handle held the session index {given} and was read as session_index; a handle begins with \
                 cp1. and is what yield_checkpoint returns"
            ),
        });
        Ok(Self { index: named.to_owned(), handle: (!bare).then(|| given.to_owned()), warning })
    }

    /// What the store has to open.
    pub(crate) fn target(self) -> Target {
        Target::Session { index: self.index, parent: false }
    }

    /// What the address is to the session it names: its active checkpoint, or a spent handle.
    ///
    /// # Errors
    /// `NO_ACTIVE_CHECKPOINT` without a handle when nothing waits; `CHECKPOINT_HANDLE_INVALID`.
    pub(crate) fn standing<'a>(
        &self,
        signer: &dyn Signer,
        session: &'a Session,
    ) -> Result<handle::Standing<'a>, Refusal> {
        match &self.handle {
            None if session.active_checkpoint.is_some() => Ok(handle::Standing::Live),
            None => Err(checkpoint::none_active(session)),
            Some(given) => match handle::standing(signer, session, given) {
                handle::Standing::Foreign => Err(checkpoint::foreign(given)),
                standing => Ok(standing),
            },
        }
    }
}

fn missing() -> Refusal {
    Refusal::new(
        "CHECKPOINT_ADDRESS_MISSING",
        "neither checkpoint_handle nor session_index was given. Pass the handle from the worker's <checkpoint_yield> \
         block, or the session_index of the session that waits.",
    )
}
