//! Session ↔ JSON. Unknown members are kept at every level and written back (spec 03 §3.1).

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{
    ActiveCheckpoint, CheckpointResponse, ChildReference, ContextMode, DeclaredArtifact, Event, LastCall, Session,
    Status,
    canonical::state_text,
    fault::{Checked, Fault},
};
use crate::Refusal;

/// How many sessions may be nested in each other, snapshots of parents included. The engine stops far earlier.
const MAX_NESTED: usize = 150;

impl Session {
    /// Reads a state.
    ///
    /// # Errors
    /// `SESSION_SCHEMA_UNSUPPORTED` naming the JSON path (spec 03 §3.1).
    pub fn from_json(value: &Value) -> Result<Self, Refusal> {
        let session = read_session(value, MAX_NESTED).map_err(|fault| fault.unsupported())?;
        session.check().map_err(|fault| fault.unsupported())?;
        Ok(*session)
    }

    /// The state as JSON.
    pub fn to_json(&self) -> Value {
        Value::Object(write_session(self))
    }

    /// The exact text that is written and sealed (spec 03 §3.3).
    pub fn canonical_text(&self) -> String {
        state_text(&self.to_json())
    }
}

/// Members of an object while it is read; what nobody asked for is extra.
struct Members<'a> {
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> Members<'a> {
    fn of(value: &'a Value) -> Checked<Self> {
        let map = value.as_object().ok_or_else(|| mismatch("an object", value))?;
        Ok(Self { map, known: Vec::new() })
    }

    fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.map.get(name)
    }

    fn read<T>(&mut self, name: &'static str, read: impl FnOnce(&'a Value) -> Checked<T>) -> Checked<Option<T>> {
        self.get(name).map(read).transpose().map_err(|fault| fault.under(name))
    }

    fn required<T>(&mut self, name: &'static str, read: impl FnOnce(&'a Value) -> Checked<T>) -> Checked<T> {
        self.read(name, read)?.ok_or_else(|| Fault::at(name, "the member is missing"))
    }

    fn list<T>(&mut self, name: &'static str, read: impl Fn(&'a Value) -> Checked<T>) -> Checked<Vec<T>> {
        let list = self.read(name, |value| {
            let items = value.as_array().ok_or_else(|| mismatch("an array", value))?;
            items.iter().enumerate().map(|(i, item)| read(item).map_err(|fault| fault.under(i))).collect()
        })?;
        Ok(list.unwrap_or_default())
    }

    fn map<T>(&mut self, name: &'static str, read: impl Fn(&'a Value) -> Checked<T>) -> Checked<IndexMap<String, T>> {
        Ok(self.read(name, |value| entries(value, read))?.unwrap_or_default())
    }

    fn extra(self) -> Map<String, Value> {
        let unknown = self.map.iter().filter(|(key, _)| !self.known.contains(&key.as_str()));
        unknown.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

fn entries<'a, T>(value: &'a Value, read: impl Fn(&'a Value) -> Checked<T>) -> Checked<IndexMap<String, T>> {
    let members = object_ref(value)?;
    members.iter().map(|(key, item)| Ok((key.clone(), read(item).map_err(|fault| fault.under(key))?))).collect()
}

fn mismatch(expected: &str, found: &Value) -> Fault {
    let mut shown: String = found.to_string().chars().take(60).collect();
    if shown.chars().count() == 60 {
        shown.push('…');
    }
    Fault::new(format!("{expected} was expected, found {shown}"))
}

fn text(value: &Value) -> Checked<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| mismatch("a string", value))
}

fn count(value: &Value) -> Checked<u64> {
    value.as_u64().ok_or_else(|| mismatch("an integer of at least 0", value))
}

fn object_ref(value: &Value) -> Checked<&Map<String, Value>> {
    value.as_object().ok_or_else(|| mismatch("an object", value))
}

fn object(value: &Value) -> Checked<Map<String, Value>> {
    object_ref(value).cloned()
}

/// A value of a closed enumeration.
fn one_of<T: Copy>(value: &Value, names: &[(&str, T)]) -> Checked<T> {
    let found = names.iter().find(|(name, _)| value.as_str() == Some(name));
    found.map(|(_, variant)| *variant).ok_or_else(|| {
        let valid: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        mismatch(&format!("one of {}", valid.join(", ")), value)
    })
}

const STATUSES: [(&str, Status); 3] =
    [("running", Status::Running), ("completed", Status::Completed), ("aborted", Status::Aborted)];
const CONTEXT_MODES: [(&str, ContextMode); 2] =
    [("persistent", ContextMode::Persistent), ("fresh", ContextMode::Fresh)];

impl Status {
    /// As written.
    pub fn as_str(self) -> &'static str {
        name_of(&STATUSES, self)
    }
}

impl ContextMode {
    /// As written.
    pub fn as_str(self) -> &'static str {
        name_of(&CONTEXT_MODES, self)
    }
}

fn name_of<T: Copy + PartialEq>(names: &[(&'static str, T)], variant: T) -> &'static str {
    names.iter().find(|(_, known)| *known == variant).map_or("", |(name, _)| name)
}

/// Nested sessions are read by frames of their own, which are small: a deep chain must not need a deep stack.
fn read_session(value: &Value, levels: usize) -> Checked<Box<Session>> {
    let inner =
        levels.checked_sub(1).ok_or_else(|| Fault::new(format!("more than {MAX_NESTED} sessions are nested")))?;
    let mut session = read_flat(value)?;
    read_nested(&mut session, value, inner)?;
    Ok(session)
}

fn read_nested(session: &mut Session, value: &Value, levels: usize) -> Checked {
    if let Some(children) = value.get("triggeredWorkflows").and_then(Value::as_array) {
        for (i, child) in children.iter().enumerate() {
            if let Some(state) = child.get("state") {
                let state = read_session(state, levels)
                    .map_err(|fault| fault.under("state").under(i).under("triggeredWorkflows"))?;
                session.triggered_workflows[i].state = Some(state);
            }
        }
    }
    if let Some(parent) = value.get("parentSession") {
        session.parent_session = Some(read_session(parent, levels).map_err(|fault| fault.under("parentSession"))?);
    }
    Ok(())
}

fn read_flat(value: &Value) -> Checked<Box<Session>> {
    let mut from = Members::of(value)?;
    from.required("schemaVersion", |value| {
        if value.as_u64() == Some(1) { Ok(()) } else { Err(mismatch("schema version 1", value)) }
    })?;
    Ok(Box::new(Session {
        status: from.read("status", |value| one_of(value, &STATUSES))?.unwrap_or(Status::Running),
        workflow_id: from.required("workflowId", text)?,
        workflow_version: from.required("workflowVersion", text)?,
        agent_id: from.required("agentId", text)?,
        session_index: from.required("sessionIndex", text)?,
        planning_folder_path: from.read("planningFolderPath", text)?,
        current_activity: from.read("currentActivity", text)?.unwrap_or_default(),
        current_technique: from.read("currentTechnique", text)?.unwrap_or_default(),
        condition: from.read("condition", text)?.unwrap_or_default(),
        active_checkpoint: from.read("activeCheckpoint", read_active)?,
        seq: from.required("seq", count)?,
        ts: from.required("ts", |value| value.as_i64().ok_or_else(|| mismatch("an integer", value)))?,
        started_at: from.required("startedAt", text)?,
        completed_activities: from.list("completedActivities", text)?,
        skipped_activities: from.list("skippedActivities", text)?,
        variables: from.read("variables", object)?.unwrap_or_default(),
        checkpoint_responses: from.map("checkpointResponses", read_response)?,
        history: from.list("history", |value| object(value).map(Event))?,
        triggered_workflows: from.list("triggeredWorkflows", read_child)?,
        parent_session: from.get("parentSession").and(None),
        snapshot_trimmed: from.read("snapshotTrimmed", one_true)?.is_some(),
        repo: from.read("repo", text)?,
        context_mode: from.read("contextMode", |value| one_of(value, &CONTEXT_MODES))?,
        delivered_content: from.map("deliveredContent", |value| entries(value, text))?,
        declared_artifacts: from.list("declaredArtifacts", read_artifact)?,
        last_call: from.read("lastCall", read_last_call)?,
        extra: from.extra(),
    }))
}

fn one_true(value: &Value) -> Checked {
    if value == &Value::Bool(true) { Ok(()) } else { Err(mismatch("true", value)) }
}

fn read_active(value: &Value) -> Checked<ActiveCheckpoint> {
    let mut from = Members::of(value)?;
    Ok(ActiveCheckpoint {
        checkpoint_id: from.required("checkpointId", text)?,
        activity_id: from.required("activityId", text)?,
        yielded_at: from.required("yieldedAt", text)?,
        adhoc: from.read("adhoc", object)?,
        extra: from.extra(),
    })
}

fn read_response(value: &Value) -> Checked<CheckpointResponse> {
    let mut from = Members::of(value)?;
    Ok(CheckpointResponse {
        option_id: from.required("optionId", text)?,
        responded_at: from.required("respondedAt", text)?,
        effects: from.read("effects", object)?,
        extra: from.extra(),
    })
}

fn read_child(value: &Value) -> Checked<ChildReference> {
    const REFERENCE_STATUSES: [(&str, &str); 4] =
        [("running", "running"), ("completed", "completed"), ("aborted", "aborted"), ("error", "error")];
    let mut from = Members::of(value)?;
    Ok(ChildReference {
        workflow_id: from.required("workflowId", text)?,
        session_index: from.required("sessionIndex", text)?,
        triggered_at: from.required("triggeredAt", text)?,
        triggered_from: from.required("triggeredFrom", object)?,
        status: from.required("status", |value| one_of(value, &REFERENCE_STATUSES))?.to_owned(),
        completed_at: from.read("completedAt", text)?,
        returned_context: from.read("returnedContext", object)?,
        state: from.get("state").and(None),
        extra: from.extra(),
    })
}

fn read_artifact(value: &Value) -> Checked<DeclaredArtifact> {
    let mut from = Members::of(value)?;
    Ok(DeclaredArtifact {
        id: from.required("id", text)?,
        name: from.required("name", text)?,
        path: from.read("path", text)?,
        extra: from.extra(),
    })
}

fn read_last_call(value: &Value) -> Checked<LastCall> {
    let mut from = Members::of(value)?;
    Ok(LastCall {
        tool: from.required("tool", text)?,
        arguments: from.required("arguments", text)?,
        seq: from.required("seq", count)?,
        result: from.required("result", text)?,
        extra: from.extra(),
    })
}

/// An object under construction.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn put_some(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn finish(mut self, extra: &Map<String, Value>) -> Map<String, Value> {
        self.0.extend(extra.iter().map(|(key, value)| (key.clone(), value.clone())));
        self.0
    }
}

fn write_session(session: &Session) -> Map<String, Value> {
    let mut members = write_flat(session);
    write_nested(session, &mut members);
    members
}

fn write_nested(session: &Session, members: &mut Map<String, Value>) {
    let children = members.get_mut("triggeredWorkflows").and_then(Value::as_array_mut);
    for (reference, child) in children.into_iter().flatten().zip(&session.triggered_workflows) {
        if let (Some(state), Some(reference)) = (&child.state, reference.as_object_mut()) {
            reference.insert("state".to_owned(), Value::Object(write_session(state)));
        }
    }
    if let Some(parent) = &session.parent_session {
        members.insert("parentSession".to_owned(), Value::Object(write_session(parent)));
    }
}

fn write_flat(session: &Session) -> Map<String, Value> {
    let mut to = Object::default();
    to.put("schemaVersion", 1);
    to.put("status", session.status.as_str());
    to.put("workflowId", session.workflow_id.as_str());
    to.put("workflowVersion", session.workflow_version.as_str());
    to.put("agentId", session.agent_id.as_str());
    to.put("sessionIndex", session.session_index.as_str());
    to.put_some("planningFolderPath", session.planning_folder_path.as_deref());
    to.put("currentActivity", session.current_activity.as_str());
    to.put("currentTechnique", session.current_technique.as_str());
    to.put("condition", session.condition.as_str());
    to.put_some("activeCheckpoint", session.active_checkpoint.as_ref().map(write_active));
    to.put("seq", session.seq);
    to.put("ts", session.ts);
    to.put("startedAt", session.started_at.as_str());
    to.put("completedActivities", session.completed_activities.clone());
    to.put("skippedActivities", session.skipped_activities.clone());
    to.put("variables", session.variables.clone());
    let responses = session.checkpoint_responses.iter().map(|(key, response)| (key.clone(), write_response(response)));
    to.put("checkpointResponses", responses.collect::<Map<String, Value>>());
    to.put("history", session.history.iter().map(|event| Value::Object(event.0.clone())).collect::<Vec<_>>());
    to.put("triggeredWorkflows", session.triggered_workflows.iter().map(write_child).collect::<Vec<_>>());
    to.put_some("snapshotTrimmed", session.snapshot_trimmed.then_some(true));
    to.put_some("repo", session.repo.as_deref());
    to.put_some("contextMode", session.context_mode.map(ContextMode::as_str));
    if !session.delivered_content.is_empty() {
        let scopes = session.delivered_content.iter().map(|(scope, entries)| {
            let entries: Map<String, Value> =
                entries.iter().map(|(key, hash)| (key.clone(), hash.as_str().into())).collect();
            (scope.clone(), Value::Object(entries))
        });
        to.put("deliveredContent", scopes.collect::<Map<String, Value>>());
    }
    if !session.declared_artifacts.is_empty() {
        to.put("declaredArtifacts", session.declared_artifacts.iter().map(write_artifact).collect::<Vec<_>>());
    }
    to.put_some("lastCall", session.last_call.as_ref().map(write_last_call));
    to.finish(&session.extra)
}

fn write_active(active: &ActiveCheckpoint) -> Map<String, Value> {
    let mut to = Object::default();
    to.put("checkpointId", active.checkpoint_id.as_str());
    to.put("activityId", active.activity_id.as_str());
    to.put("yieldedAt", active.yielded_at.as_str());
    to.put_some("adhoc", active.adhoc.clone());
    to.finish(&active.extra)
}

fn write_response(response: &CheckpointResponse) -> Value {
    let mut to = Object::default();
    to.put("optionId", response.option_id.as_str());
    to.put("respondedAt", response.responded_at.as_str());
    to.put_some("effects", response.effects.clone());
    Value::Object(to.finish(&response.extra))
}

fn write_child(child: &ChildReference) -> Value {
    let mut to = Object::default();
    to.put("workflowId", child.workflow_id.as_str());
    to.put("sessionIndex", child.session_index.as_str());
    to.put("triggeredAt", child.triggered_at.as_str());
    to.put("triggeredFrom", child.triggered_from.clone());
    to.put("status", child.status.as_str());
    to.put_some("completedAt", child.completed_at.as_deref());
    to.put_some("returnedContext", child.returned_context.clone());
    Value::Object(to.finish(&child.extra))
}

fn write_artifact(artifact: &DeclaredArtifact) -> Value {
    let mut to = Object::default();
    to.put("id", artifact.id.as_str());
    to.put("name", artifact.name.as_str());
    to.put_some("path", artifact.path.as_deref());
    Value::Object(to.finish(&artifact.extra))
}

fn write_last_call(call: &LastCall) -> Map<String, Value> {
    let mut to = Object::default();
    to.put("tool", call.tool.as_str());
    to.put("arguments", call.arguments.as_str());
    to.put("seq", call.seq);
    to.put("result", call.result.as_str());
    to.finish(&call.extra)
}
