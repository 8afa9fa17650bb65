//! The history of a session as sentences.

use serde_json::{Map, Value};
use workflow_engine::state::Event;

use super::gate::Settled;
use super::{Source, counted, grouped, inline};

/// One event.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) at: String,
    /// As recorded.
    pub(crate) kind: String,
    pub(crate) activity: String,
    pub(crate) checkpoint: String,
    pub(crate) agent: Option<String>,
    /// A sentence.
    pub(crate) text: String,
    pub(crate) data: Map<String, Value>,
}

impl Line {
    /// Whether the event marks the course of a session.
    pub(crate) fn is_milestone(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "workflow_started"
                | "activity_entered"
                | "checkpoint_reached"
                | "checkpoint_response"
                | "workflow_triggered"
                | "workflow_returned"
                | "workflow_completed"
                | "workflow_aborted"
                | "batch_refused"
                | "error"
        )
    }
}

pub(super) fn lines(source: &Source<'_>) -> Vec<Line> {
    source
        .session
        .history
        .iter()
        .map(|event| {
            let agent = event.data_text("agentId").map(|agent| source.redaction.text(agent));
            Line {
                at: event.timestamp().to_owned(),
                kind: event.kind().to_owned(),
                activity: event.activity().to_owned(),
                checkpoint: event.checkpoint().to_owned(),
                agent,
                text: sentence(source, event),
                data: data(source, event),
            }
        })
        .collect()
}

/// The members of an event beside those that every event has.
fn data(source: &Source<'_>, event: &Event) -> Map<String, Value> {
    let mut told = Map::new();
    if let Some(Value::Object(members)) = event.0.get("data") {
        let of_variable = event.data_text("name").filter(|_| event.kind() == "variable_set");
        for (key, value) in members {
            let value = match (event.kind(), key.as_str(), of_variable) {
                ("variable_set", "value", Some(name)) => source.redaction.value(name, value),
                ("activity_usage", "usage", _) => super::told_usage(source.redaction, value),
                // Names of this kind are the format's own.
                (_, "idempotencyKey", _) => continue,
                _ => source.redaction.value(key, value),
            };
            told.insert(source.redaction.text(key), value);
        }
    }
    for member in ["step", "decision", "loop", "error"] {
        if let Some(value) = event.0.get(member) {
            told.insert(member.to_owned(), source.redaction.value("", value));
        }
    }
    told
}

fn sentence(source: &Source<'_>, event: &Event) -> String {
    let text = |key: &str| source.redaction.text(event.data_text(key).unwrap_or("?"));
    let sent = || {
        let size = match event.data("chars").and_then(Value::as_u64) {
            Some(chars) => format!("{} characters", grouped(chars)),
            None => "size not recorded".to_owned(),
        };
        if event.data_text("delivery") == Some("unchanged") { format!("{size}, only a marker") } else { size }
    };
    let activity = event.activity();
    let checkpoint = event.checkpoint();
    match event.kind() {
        "workflow_started" if event.data("migrated").is_some() => "Taken over from an older format".to_owned(),
        "workflow_started" => "Session started".to_owned(),
        "variables_seeded" => {
            let count = event.data("variables").and_then(Value::as_object).map_or(0, Map::len);
            format!(
                "{} set to {}",
                counted(count, "variable"),
                if count == 1 { "its default" } else { "their defaults" }
            )
        }
        "activity_entered" if activity == workflow_corpus::TERMINAL => "Reached the end".to_owned(),
        "activity_entered" if event.data_text("visit") == Some("same") => format!("Went on with {activity}"),
        "activity_entered" => format!("Entered {activity}"),
        "activity_exited" => format!("Left {activity}"),
        "activity_outcome" => format!("Outcome of {activity}: {}", text("outcome")),
        "activity_skipped" => format!("{activity} recorded as skipped"),
        "progress_published" => match event.data("published") {
            Some(Value::Bool(true)) => format!("Progress mark of {activity} published"),
            _ => format!("Progress mark of {activity} not published"),
        },
        "step_started" => format!("Step {} started", text("stepId")),
        "step_completed" => format!("Step {} reported", text("stepId")),
        "checkpoint_reached" => format!("Asked {checkpoint}"),
        "checkpoint_response" => match Settled::of(event) {
            Settled::Answered => format!("Answered {checkpoint}: {}", text("optionId")),
            Settled::ByDefault => format!("Default taken for {checkpoint}: {}", text("optionId")),
            Settled::Dismissed => format!("Dismissed {checkpoint}: its condition did not hold"),
        },
        "checkpoint_replayed" if Settled::of(event) == Settled::Dismissed => {
            format!("{checkpoint} stays dismissed: its condition did not hold")
        }
        "checkpoint_replayed" => format!("Earlier answer to {checkpoint} used again: {}", text("optionId")),
        "variable_set" => {
            let name = event.data_text("name").unwrap_or_default();
            let value = source.redaction.value(name, event.data("value").unwrap_or(&Value::Null));
            format!("{} = {}", source.redaction.text(name), shortened(&inline(&value)))
        }
        "technique_fetched" => format!("Technique {} fetched, {}", text("techniqueId"), sent()),
        "technique_bundled" => format!("Technique {} came along, {}", text("techniqueId"), sent()),
        "resource_fetched" => format!("Resource {} fetched, {}", text("resourceId"), sent()),
        "activity_dispatched" if event.data("chars").is_none() => format!("{} appeared", text("agentId")),
        "activity_dispatched" => format!("{activity} sent to {}, {}", text("agentId"), sent()),
        "activity_redelivered" => format!("{activity} sent once more, before to {}", text("priorAgentId")),
        "batch_refused" => format!("{activity} refused to {}: {}", text("agentId"), text("limit")),
        "activity_usage" => {
            let usage = event.data("usage").map(|usage| super::told_usage(source.redaction, usage));
            format!("Usage of {activity}: {}", shortened(&usage.as_ref().map(inline).unwrap_or_default()))
        }
        "workflow_triggered" => format!("Child {} of {} dispatched", text("sessionIndex"), text("workflowId")),
        "workflow_returned" => format!("Child {} of {} returned", text("sessionIndex"), text("workflowId")),
        "workflow_completed" => "Workflow completed".to_owned(),
        "error" => {
            let message = event.0.get("error").and_then(|error| error.get("message")?.as_str());
            source.redaction.text(message.unwrap_or("an error"))
        }
        other => source.redaction.text(&other.replace('_', " ")),
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(160).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
