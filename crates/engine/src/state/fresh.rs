//! The state of a session that begins (spec 03 §1.7).

use indexmap::IndexMap;
use serde_json::{Map, Value};
use workflow_corpus::Workflow;

use super::{ContextMode, Event, Session, Status};
use crate::Timestamp;

/// What a new session is made of.
#[derive(Clone, Debug)]
pub struct FreshSession<'a> {
    /// The workflow it walks; gives id, version and declared defaults.
    pub workflow: &'a Workflow,
    /// The session's own agent.
    pub agent_id: &'a str,
    /// Derived and free (spec 03 §1.3).
    pub session_index: &'a str,
    /// Absolute folder of a durable root session.
    pub planning_folder_path: Option<&'a str>,
    /// `owner/name`.
    pub repo: Option<&'a str>,
    /// As sent.
    pub context_mode: Option<ContextMode>,
    /// Snapshot of the parent of an own-folder child.
    pub parent_session: Option<Box<Session>>,
    /// Seeded beside the defaults.
    pub user_request: Option<&'a str>,
}

impl Session {
    /// The initial state: defaults seeded, falsy ones included; `workflow_started`, and `variables_seeded` when there
    /// is anything in the bag (spec 03 §1.7, §9).
    pub fn fresh(parts: FreshSession<'_>, now: Timestamp) -> Self {
        let mut variables: Map<String, Value> = parts
            .workflow
            .variables
            .iter()
            .filter_map(|variable| Some((variable.name.clone(), variable.default.clone()?)))
            .collect();
        if let Some(request) = parts.user_request {
            variables.insert("user_request".to_owned(), request.into());
        }
        let mut session = Self {
            status: Status::Running,
            workflow_id: parts.workflow.key.id.clone(),
            workflow_version: parts.workflow.version.clone(),
            agent_id: parts.agent_id.to_owned(),
            session_index: parts.session_index.to_owned(),
            planning_folder_path: parts.planning_folder_path.map(str::to_owned),
            current_activity: String::new(),
            current_technique: String::new(),
            condition: String::new(),
            active_checkpoint: None,
            seq: 0,
            ts: now.seconds(),
            started_at: now.text(),
            completed_activities: Vec::new(),
            skipped_activities: Vec::new(),
            variables,
            checkpoint_responses: IndexMap::new(),
            history: Vec::new(),
            triggered_workflows: Vec::new(),
            parent_session: parts.parent_session,
            snapshot_trimmed: false,
            repo: parts.repo.map(str::to_owned),
            context_mode: parts.context_mode,
            delivered_content: IndexMap::new(),
            declared_artifacts: Vec::new(),
            last_call: None,
            extra: Map::new(),
        };
        session.record(Event::new("workflow_started"), now);
        if !session.variables.is_empty() {
            let seeded = Event::new("variables_seeded").with_data("variables", session.variables.clone());
            session.record(seeded, now);
        }
        session
    }
}
