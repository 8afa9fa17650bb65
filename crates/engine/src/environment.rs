//! What a call sees of the world, injected by whoever runs it.

use std::sync::Arc;

use serde_json::Value;
use workflow_corpus::Corpus;

use crate::{Folder, Settings, Timestamp, Workset};

/// Everything outside the sessions that a call may depend on.
pub struct Environment<'a> {
    /// The definitions.
    pub corpus: &'a Arc<Corpus>,
    /// Limits and names.
    pub settings: &'a Settings,
    /// The time of this call.
    pub now: Timestamp,
    /// Holder of the server key.
    pub signer: &'a dyn Signer,
    /// Source of identifiers.
    pub randomness: &'a dyn Randomness,
    /// The other sessions of the workspace.
    pub registry: &'a dyn Registry,
    /// Events recorded so far.
    pub traces: &'a dyn TraceLog,
    /// Seconds since the process started.
    pub uptime_seconds: u64,
    /// What `health_check` reports as unusable: key, planning root, workflow directory.
    pub problems: &'a dyn Fn() -> Vec<String>,
}

/// What a MAC is for; each purpose has its key (spec 03 §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Derivation of a session index, raw key.
    SessionIndex,
    /// Trace tokens, raw key.
    TraceToken,
    /// Checkpoint handles, derived key `workflow-server/checkpoint-handle/v1`.
    CheckpointHandle,
}

/// Computes HMAC-SHA-256 under the server key without showing it.
pub trait Signer {
    /// The MAC of `message` for `purpose`.
    fn mac(&self, purpose: Purpose, message: &[u8]) -> [u8; 32];
}

/// Source of random identifiers.
pub trait Randomness {
    /// A version 4 UUID, lower case with hyphens.
    fn uuid(&self) -> String;
}

/// Read access to the sessions that are not part of the transaction.
pub trait Registry {
    /// Whether a live session of another place already holds this index.
    fn is_taken(&self, index: &str) -> bool;
    /// Reads the session that holds this index; `None` when there is none or it does not open.
    fn find(&self, index: &str) -> Option<Workset>;
    /// Indexes of own-folder sessions whose `parentSession` holds this index.
    fn children_of(&self, index: &str) -> Vec<String>;
    /// Names of the regular files directly in a planning folder; asked for when a caller reports artifacts
    /// (spec 03 §7, `W_ARTIFACT_UNDECLARED`).
    fn files_in(&self, _folder: &Folder) -> Vec<String> {
        Vec::new()
    }
}

/// A range of a session's trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceSlice {
    /// Number of the first event in `events`: how many were dropped before it.
    pub dropped: u64,
    /// Events in order; a line that could not be read is `Null` and keeps its number.
    pub events: Vec<Value>,
}

/// Read access to recorded trace events (spec 03 §8.2).
pub trait TraceLog {
    /// All events kept for a session.
    fn read(&self, session_index: &str) -> TraceSlice;
}
