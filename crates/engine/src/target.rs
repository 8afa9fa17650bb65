//! Which planning folders a call needs, before anything is read.

use crate::{Refusal, state::is_session_index};

/// What the store opens and locks for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// No session at all.
    Nothing,
    /// The session holding this index; with `parent`, also the folder of its own-folder parent, when it has one.
    Session {
        /// `^[A-Z2-7]{6}$`.
        index: String,
        /// Whether the call may end the session, which its parent is told.
        parent: bool,
    },
    /// The session of a slug, created when there is none.
    Slug {
        /// One path segment.
        slug: String,
        /// Minted in this call: never looked up.
        minted: bool,
        /// Where a new one is created: below the state directory instead of the planning root.
        transient: bool,
        /// Slug of the parent of an own-folder child.
        parent: Option<String>,
    },
    /// The session holding this index, which is about to get a child; a transient one is promoted to a folder.
    Dispatch {
        /// `^[A-Z2-7]{6}$`.
        index: String,
        /// Folder to promote to, if the caller named one.
        slug: Option<String>,
        /// Folder name to promote to otherwise; `-2`, `-3` … are tried while it is occupied.
        fallback: String,
    },
}

impl Target {
    /// The session that holds this index.
    ///
    /// # Errors
    /// `INVALID_SESSION_INDEX` when it is no index.
    pub(crate) fn session(index: &str) -> Result<Self, Refusal> {
        Ok(Self::Session { index: valid_index(index)?.to_owned(), parent: false })
    }
}

/// Checks the form of a session index.
///
/// # Errors
/// `INVALID_SESSION_INDEX`.
pub(crate) fn valid_index(index: &str) -> Result<&str, Refusal> {
    if is_session_index(index) {
        return Ok(index);
    }
    Err(Refusal::new(
        "INVALID_SESSION_INDEX",
        format!(
            "`{index}` is no session index. One has six characters, A-Z and 2-7 (pattern ^[A-Z2-7]{{6}}$), as returned \
             by start_session; call start_session with the planning slug to get it again."
        ),
    )
    .with("session_index", index))
}
