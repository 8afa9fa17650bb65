//! The children of a session, at any depth.

use workflow_engine::state::{ChildReference, Session};
use workflow_engine::{Registry as _, Timestamp};
use workflow_store::FileStore;

use super::{Source, status};

/// Deeper ones are named by the reports of their parents.
const DEEPEST: usize = 20;

/// A session that was dispatched.
#[derive(Debug)]
pub(crate) struct Child {
    /// 0 for a child of the session itself.
    pub(crate) depth: usize,
    pub(crate) session_index: String,
    pub(crate) workflow_id: String,
    pub(crate) kept: Kept,
    pub(crate) status: String,
    pub(crate) current_activity: String,
    pub(crate) completed: usize,
    /// Activity of the parent that it was dispatched from.
    pub(crate) from: String,
    pub(crate) triggered_at: String,
    pub(crate) completed_at: Option<String>,
    pub(crate) events: usize,
    /// Its time: dispatch, and its end or its last event.
    pub(crate) times: Option<(Timestamp, Timestamp)>,
}

/// Where a child is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In its parent.
    Embedded,
    /// In a folder of its own.
    Folder,
    /// In a folder that does not open.
    Unreadable,
}

impl Kept {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Folder => "own folder",
            Self::Unreadable => "unreadable",
        }
    }
}

pub(super) fn children(store: &FileStore, source: &Source<'_>) -> Vec<Child> {
    let mut found = Vec::new();
    let mut above = vec![source.session.session_index.clone()];
    collect(store, source.session, &mut above, &mut found);
    found
}

fn collect(store: &FileStore, parent: &Session, above: &mut Vec<String>, found: &mut Vec<Child>) {
    for reference in &parent.triggered_workflows {
        let elsewhere = match &reference.state {
            None if !above.contains(&reference.session_index) => store.find(&reference.session_index),
            _ => None,
        };
        let state = reference.state.as_deref().or_else(|| elsewhere.as_ref()?.session());
        let kept = match (&reference.state, &state) {
            (Some(_), _) => Kept::Embedded,
            (None, Some(_)) => Kept::Folder,
            (None, None) => Kept::Unreadable,
        };
        found.push(child(above.len() - 1, reference, state, kept));
        if let Some(state) = state.filter(|_| above.len() < DEEPEST) {
            above.push(reference.session_index.clone());
            collect(store, state, above, found);
            above.pop();
        }
    }
}

fn child(depth: usize, reference: &ChildReference, state: Option<&Session>, kept: Kept) -> Child {
    let begun = Timestamp::parse(&reference.triggered_at);
    let told_end = reference.completed_at.as_deref().and_then(Timestamp::parse);
    let last = state.and_then(|state| state.history.iter().filter_map(workflow_engine::state::Event::time).max());
    let end = told_end.or(last);
    Child {
        depth,
        session_index: reference.session_index.clone(),
        workflow_id: reference.workflow_id.clone(),
        kept,
        status: state.map_or_else(|| reference.status.clone(), |state| status(state).to_owned()),
        current_activity: state.map(|state| state.current_activity.clone()).unwrap_or_default(),
        completed: state.map_or(0, |state| state.completed_activities.len()),
        from: reference.triggered_from.get("activityId").and_then(|id| id.as_str()).unwrap_or_default().to_owned(),
        triggered_at: reference.triggered_at.clone(),
        completed_at: reference.completed_at.clone(),
        events: state.map_or(0, |state| state.history.len()),
        times: begun.map(|begun| (begun, end.unwrap_or(begun).max(begun))),
    }
}
