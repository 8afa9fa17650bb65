//! The sessions that one call works on.

use workflow_corpus::Warning;

use crate::state::Session;

/// Where a planning folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Name of the folder.
    pub slug: String,
    /// Canonical absolute path without a trailing slash.
    pub path: String,
    /// Below the state directory, not in the planning tree.
    pub transient: bool,
}

/// One planning folder with its root session and everything embedded in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The folder.
    pub folder: Folder,
    /// The root session. `None` before: nothing is there yet. `None` after: the session has moved to another family of
    /// the workset (promotion), and the folder goes.
    pub root: Option<Session>,
    /// An occupant that the call has decided to replace: its pair is kept under a backup name (`on_existing: replace`).
    pub replaced: bool,
}

/// Address of a session inside a family: positions in `triggeredWorkflows`, outermost first; empty = the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatePath(pub Vec<usize>);

impl StatePath {
    /// `triggeredWorkflows.0.state`, empty for the root (spec 03 §1.1).
    pub fn text(&self) -> String {
        self.0.iter().map(|i| format!("triggeredWorkflows.{i}.state")).collect::<Vec<_>>().join(".")
    }
}

/// The families of a call: the addressed one first, then its own-folder parent's, or for a dispatch from a transient
/// session the folder it is promoted to.
#[derive(Clone, Debug, PartialEq)]
pub struct Workset {
    /// Committed in this order; a family left without a root goes last.
    pub families: Vec<Family>,
    /// The addressed session inside `families[0]`.
    pub path: StatePath,
    /// What opening had to say (`W_ROLLED_BACK` …).
    pub warnings: Vec<Warning>,
}

impl Workset {
    /// The addressed session.
    pub fn session(&self) -> Option<&Session> {
        self.families.first()?.root.as_ref()?.at(&self.path)
    }

    /// The addressed session, to change it.
    pub fn session_mut(&mut self) -> Option<&mut Session> {
        let path = self.path.clone();
        self.families.first_mut()?.root.as_mut()?.at_mut(&path)
    }
}
