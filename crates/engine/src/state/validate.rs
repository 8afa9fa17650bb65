//! What a state must satisfy beyond its shape, checked after reading and before writing (spec 03 §3.1).

use serde_json::{Map, Value};

use super::{
    ChildReference, Event, Session,
    fault::{Checked, Fault},
};
use crate::{Refusal, Timestamp};

impl Session {
    /// Checks the session with everything nested in it, before it is written.
    ///
    /// # Errors
    /// `INTERNAL_INVALID_STATE` naming the JSON path.
    pub fn validate(&self) -> Result<(), Refusal> {
        self.check().map_err(|fault| fault.internal())
    }

    pub(super) fn check(&self) -> Checked {
        self.check_identity()?;
        self.check_checkpoints()?;
        for (i, event) in self.history.iter().enumerate() {
            check_event(event).map_err(|fault| fault.under(i).under("history"))?;
        }
        for (scope, entries) in &self.delivered_content {
            for (key, hash) in entries {
                hex16(key, hash).map_err(|fault| fault.under(scope).under("deliveredContent"))?;
            }
        }
        for (i, artifact) in self.declared_artifacts.iter().enumerate() {
            not_empty("id", &artifact.id)
                .and_then(|()| not_empty("name", &artifact.name))
                .map_err(|fault| fault.under(i).under("declaredArtifacts"))?;
        }
        if let Some(call) = &self.last_call {
            not_empty("tool", &call.tool)
                .and_then(|()| hex16("arguments", &call.arguments))
                .map_err(|fault| fault.under("lastCall"))?;
        }
        for (i, child) in self.triggered_workflows.iter().enumerate() {
            check_child(child).map_err(|fault| fault.under(i).under("triggeredWorkflows"))?;
        }
        match &self.parent_session {
            Some(parent) => parent.check().map_err(|fault| fault.under("parentSession")),
            None => Ok(()),
        }
    }

    fn check_identity(&self) -> Checked {
        not_empty("workflowId", &self.workflow_id)?;
        if !is_version(&self.workflow_version) {
            return Err(Fault::at("workflowVersion", format!("`{}` is no version X.Y.Z", self.workflow_version)));
        }
        not_empty("agentId", &self.agent_id)?;
        if !is_session_index(&self.session_index) {
            return Err(Fault::at("sessionIndex", format!("`{}` is no session index", self.session_index)));
        }
        if self.ts < 0 {
            return Err(Fault::at("ts", format!("{} is negative", self.ts)));
        }
        timestamp("startedAt", &self.started_at)?;
        match &self.repo {
            Some(repo) => not_empty("repo", repo),
            None => Ok(()),
        }
    }

    fn check_checkpoints(&self) -> Checked {
        if let Some(active) = &self.active_checkpoint {
            not_empty("checkpointId", &active.checkpoint_id)
                .and_then(|()| not_empty("activityId", &active.activity_id))
                .and_then(|()| timestamp("yieldedAt", &active.yielded_at))
                .and_then(|()| match &active.adhoc {
                    Some(adhoc) => check_adhoc(adhoc).map_err(|fault| fault.under("adhoc")),
                    None => Ok(()),
                })
                .map_err(|fault| fault.under("activeCheckpoint"))?;
        }
        for (key, response) in &self.checkpoint_responses {
            timestamp("respondedAt", &response.responded_at)
                .and_then(|()| match &response.effects {
                    Some(effects) => check_effects(effects).map_err(|fault| fault.under("effects")),
                    None => Ok(()),
                })
                .map_err(|fault| fault.under(key).under("checkpointResponses"))?;
        }
        Ok(())
    }
}

/// Six characters of the base32 alphabet (spec 03 §1.3).
pub fn is_session_index(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte))
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn not_empty(member: &str, text: &str) -> Checked {
    if text.is_empty() { Err(Fault::at(member, "the text is empty")) } else { Ok(()) }
}

fn timestamp(member: &str, text: &str) -> Checked {
    match Timestamp::parse(text) {
        Some(_) => Ok(()),
        None => Err(Fault::at(member, format!("`{text}` is no RFC 3339 timestamp"))),
    }
}

fn hex16(member: &str, text: &str) -> Checked {
    let good = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase());
    if good { Ok(()) } else { Err(Fault::at(member, format!("`{text}` is not 16 hexadecimal characters"))) }
}

fn filled_text(members: &Map<String, Value>, member: &str) -> Checked {
    match members.get(member).and_then(Value::as_str) {
        Some(text) => not_empty(member, text),
        None => Err(Fault::at(member, "a string was expected")),
    }
}

fn check_adhoc(adhoc: &Map<String, Value>) -> Checked {
    filled_text(adhoc, "message")?;
    let options = adhoc.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if options.len() < 2 {
        return Err(Fault::at("options", "at least two options were expected"));
    }
    for (i, option) in options.iter().enumerate() {
        let option = option.as_object().ok_or_else(|| Fault::at(&i.to_string(), "an object was expected"));
        option
            .and_then(|option| {
                filled_text(option, "id").and_then(|()| filled_text(option, "label")).map_err(|fault| fault.under(i))
            })
            .map_err(|fault| fault.under("options"))?;
    }
    Ok(())
}

fn check_effects(effects: &Map<String, Value>) -> Checked {
    let wrong = |member, expected: &str| Err(Fault::at(member, format!("{expected} was expected")));
    match effects.get("variablesSet") {
        None | Some(Value::Object(_)) => {}
        Some(_) => return wrong("variablesSet", "an object"),
    }
    match effects.get("transitionedTo") {
        None | Some(Value::String(_)) => {}
        Some(_) => return wrong("transitionedTo", "a string"),
    }
    match effects.get("activitiesSkipped") {
        None => Ok(()),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => Ok(()),
        Some(_) => wrong("activitiesSkipped", "an array of strings"),
    }
}

fn check_event(event: &Event) -> Checked {
    filled_text(&event.0, "type")?;
    timestamp("timestamp", event.timestamp())?;
    for member in ["activity", "checkpoint", "decision", "loop"] {
        if event.0.get(member).is_some_and(|value| !value.is_string()) {
            return Err(Fault::at(member, "a string was expected"));
        }
    }
    if event.0.get("step").is_some_and(|step| step.as_u64().is_none_or(|step| step == 0)) {
        return Err(Fault::at("step", "an integer of at least 1 was expected"));
    }
    for member in ["data", "error"] {
        if event.0.get(member).is_some_and(|value| !value.is_object()) {
            return Err(Fault::at(member, "an object was expected"));
        }
    }
    Ok(())
}

fn check_child(child: &ChildReference) -> Checked {
    not_empty("workflowId", &child.workflow_id)?;
    not_empty("sessionIndex", &child.session_index)?;
    timestamp("triggeredAt", &child.triggered_at)?;
    if let Some(completed_at) = &child.completed_at {
        timestamp("completedAt", completed_at)?;
    }
    if !child.triggered_from.get("activityId").is_some_and(Value::is_string) {
        return Err(Fault::at("activityId", "a string was expected").under("triggeredFrom"));
    }
    match &child.state {
        Some(state) => state.check().map_err(|fault| fault.under("state")),
        None => Ok(()),
    }
}
