//! What a store is told when it is opened.

use std::{path::PathBuf, time::Duration};

/// Places and limits; nothing here is read from the environment by this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The directory that the server is bound to; absolute.
    pub workspace: PathBuf,
    /// Takes the place of the canonical workspace path in seals.
    pub workspace_id: Option<String>,
    /// The directory whose planning tree is used, when that is not the workspace (spec 04 §3.1, split).
    pub engineering_dir: Option<PathBuf>,
    /// `PLANNING_SLUG`: planning tree relative to the engineering root; blank = default.
    pub planning_dir: Option<String>,
    /// State directory: transient sessions, traces, what was seen.
    pub state_dir: PathBuf,
    /// Directory of the server key.
    pub key_dir: PathBuf,
    /// How long to wait for a session that another call holds.
    pub lock_deadline: Duration,
    /// Accept a key file that others may read, that belongs to another user or is a link (mounted secrets).
    pub allow_open_key: bool,
    /// Events kept per session (spec 03 §8.2).
    pub trace_capacity: usize,
}

impl Options {
    /// Default limits, with state and key in one directory.
    pub fn new(workspace: impl Into<PathBuf>, state_dir: impl Into<PathBuf>) -> Self {
        let state_dir = state_dir.into();
        Self {
            workspace: workspace.into(),
            workspace_id: None,
            engineering_dir: None,
            planning_dir: None,
            key_dir: state_dir.clone(),
            state_dir,
            lock_deadline: Duration::from_secs(10),
            allow_open_key: false,
            trace_capacity: 10_000,
        }
    }
}
