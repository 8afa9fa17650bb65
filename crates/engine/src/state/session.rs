//! The session object.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::{StatePath, Timestamp};

/// One session, root or embedded (spec 03 §3.1). Unknown members are kept in `extra` and written back.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Stored life cycle.
    pub status: Status,
    /// Workflow directory name.
    pub workflow_id: String,
    /// Version recorded at start.
    pub workflow_version: String,
    /// The session's own agent.
    pub agent_id: String,
    /// Six base32 characters.
    pub session_index: String,
    /// Absolute folder; absent for transient and embedded sessions.
    pub planning_folder_path: Option<String>,
    /// Activity id, `""` before the first, `__terminal__` after the sentinel.
    pub current_activity: String,
    /// Resolved id of the last fetched technique.
    pub current_technique: String,
    /// Last `transition_condition`.
    pub condition: String,
    /// The gate, if one is closed.
    pub active_checkpoint: Option<ActiveCheckpoint>,
    /// Write counter.
    pub seq: u64,
    /// Unix seconds of the last write.
    pub ts: i64,
    /// RFC 3339.
    pub started_at: String,
    /// Order of first completion.
    pub completed_activities: Vec<String>,
    /// Recorded as skipped.
    pub skipped_activities: Vec<String>,
    /// The bag.
    pub variables: Map<String, Value>,
    /// `<activity>-<checkpoint>` → newest answer.
    pub checkpoint_responses: IndexMap<String, CheckpointResponse>,
    /// Append-only.
    pub history: Vec<Event>,
    /// Children of both kinds.
    pub triggered_workflows: Vec<ChildReference>,
    /// Snapshot of the parent (own-folder children).
    pub parent_session: Option<Box<Self>>,
    /// Only inside a snapshot that lost its older ancestors.
    pub snapshot_trimmed: bool,
    /// `owner/name`.
    pub repo: Option<String>,
    /// Delivery model; absent = fresh.
    pub context_mode: Option<ContextMode>,
    /// scope → content key → 16 hex.
    pub delivered_content: IndexMap<String, IndexMap<String, String>>,
    /// Merged by id.
    pub declared_artifacts: Vec<DeclaredArtifact>,
    /// The last retryable call.
    pub last_call: Option<LastCall>,
    /// Members this version does not know, verbatim.
    pub extra: Map<String, Value>,
}

/// Stored life cycle of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Status {
    Running,
    Completed,
    Aborted,
}

/// How contexts receive content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextMode {
    /// One context holds what it was sent.
    Persistent,
    /// Every call is delivered in full.
    Fresh,
}

/// A closed gate.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveCheckpoint {
    /// The id as yielded.
    pub checkpoint_id: String,
    /// Activity it belongs to.
    pub activity_id: String,
    /// RFC 3339 with milliseconds; part of the handle.
    pub yielded_at: String,
    /// `{message, options}` of an undeclared decision.
    pub adhoc: Option<Map<String, Value>>,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

/// A recorded answer.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointResponse {
    /// Option id, or `__condition_not_met__`.
    pub option_id: String,
    /// RFC 3339.
    pub responded_at: String,
    /// `{variablesSet?, transitionedTo?, activitiesSkipped?}`.
    pub effects: Option<Map<String, Value>>,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

/// One history event: an object with `timestamp` and `type` (spec 03 §3.2), kept whole so that nothing is lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Event(pub Map<String, Value>);

/// A child in `triggeredWorkflows`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildReference {
    /// Workflow of the child.
    pub workflow_id: String,
    /// Its index.
    pub session_index: String,
    /// RFC 3339.
    pub triggered_at: String,
    /// `{activityId, stepIndex?}`.
    pub triggered_from: Map<String, Value>,
    /// `running`, `completed`, `aborted` or `error`.
    pub status: String,
    /// RFC 3339.
    pub completed_at: Option<String>,
    /// Free object.
    pub returned_context: Option<Map<String, Value>>,
    /// The embedded session; absent for a child with its own folder.
    pub state: Option<Box<Session>>,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

/// An artifact that was reported as produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredArtifact {
    /// Output id.
    pub id: String,
    /// File name.
    pub name: String,
    /// Where it lies.
    pub path: Option<String>,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

/// The last retryable call (spec 03 §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastCall {
    /// Tool name.
    pub tool: String,
    /// First 16 hex of SHA-256 over the canonical arguments.
    pub arguments: String,
    /// `seq` after the call.
    pub seq: u64,
    /// The answer's text without warnings.
    pub result: String,
    /// Unknown members.
    pub extra: Map<String, Value>,
}

impl Session {
    /// The session at an address below this one.
    pub fn at(&self, path: &StatePath) -> Option<&Self> {
        path.0.iter().try_fold(self, |session, &i| session.triggered_workflows.get(i)?.state.as_deref())
    }

    /// The session at an address below this one, to change it.
    pub fn at_mut(&mut self, path: &StatePath) -> Option<&mut Self> {
        path.0.iter().try_fold(self, |session, &i| session.triggered_workflows.get_mut(i)?.state.as_deref_mut())
    }

    /// This session and all embedded ones, each before its children.
    pub fn walk(&self) -> impl Iterator<Item = (StatePath, &Self)> {
        let mut open = vec![(StatePath::default(), self)];
        std::iter::from_fn(move || {
            let (path, session) = open.pop()?;
            for (i, child) in session.triggered_workflows.iter().enumerate().rev() {
                if let Some(state) = child.state.as_deref() {
                    let mut below = path.clone();
                    below.0.push(i);
                    open.push((below, state));
                }
            }
            Some((path, session))
        })
    }

    /// Grows with every write to this session or one embedded in it: the sum of their `seq` (spec 03 §3.4).
    pub fn generation(&self) -> u64 {
        self.walk().fold(0, |sum, (_, session)| sum.saturating_add(session.seq))
    }

    /// Counts a write.
    pub fn advance(&mut self, now: Timestamp) {
        self.seq = self.seq.saturating_add(1);
        self.ts = self.ts.max(now.seconds());
    }

    /// The time an event recorded now gets: never before the newest one (spec 03 §3.2).
    pub fn clock(&self, now: Timestamp) -> Timestamp {
        let newest = self.history.last().and_then(Event::time);
        newest.map_or(now, |newest| newest.max(now))
    }

    /// Appends an event and gives it its timestamp, which is returned.
    pub fn record(&mut self, mut event: Event, now: Timestamp) -> String {
        let stamp = self.clock(now).text();
        event.stamp(&stamp);
        self.history.push(event);
        stamp
    }

    /// Whether nothing is left to execute: the sentinel was reached.
    pub fn is_over(&self) -> bool {
        self.current_activity == workflow_corpus::TERMINAL
    }
}
