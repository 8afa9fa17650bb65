//! A report as JSON, `docs/session-report.md`.

use serde_json::{Map, Value, json};

use super::{Choice, Report, Round, Share, Wording};

/// Raised when a member changes its meaning or goes; new members do not raise it.
pub(crate) const VERSION: u32 = 1;

/// The whole report.
pub(crate) fn render(report: &Report) -> String {
    format!("{:#}\n", value(report, true))
}

/// The report, with or without `timeline`.
pub(crate) fn value(report: &Report, with_timeline: bool) -> Value {
    let mut told = json!({
        "format": {"name": "workflow-session-report", "version": VERSION},
        "made_at": report.head.made_at,
        "server_version": report.head.server_version,
        "redaction": {
            "secrets": if report.redacted.secrets { "shown" } else { "hidden" },
            "texts": if report.redacted.full { "whole" } else { "cut" },
            "values_hidden": report.redacted.hidden,
            "texts_cut": report.redacted.cut,
        },
        "notes": report.notes,
        "session": session(report),
        "activities": report.activities.iter().map(|activity| json!({
            "id": activity.id,
            "name": activity.name,
            "state": activity.state.as_str(),
            "declared": activity.declared,
            "visits": activity.visits,
            "first_entered_at": activity.entered_at,
            "duration_ms": activity.ms,
            "steps_reported": activity.steps,
            "outcomes": activity.outcomes,
        })).collect::<Vec<_>>(),
        "visits": report.visits.iter().map(|visit| json!({
            "activity": visit.activity,
            "entered_at": visit.entered.text(),
            "left_at": visit.left.map(workflow_engine::Timestamp::text),
            "duration_ms": visit.until.0.saturating_sub(visit.entered.0),
        })).collect::<Vec<_>>(),
        "open_checkpoint": report.gate.as_ref().map(|gate| json!({
            "activity": gate.activity,
            "checkpoint": gate.checkpoint,
            "yielded_at": gate.yielded_at,
            "yielded_by": gate.yielded_by,
            "wording": wording(gate.wording.as_ref()),
        })),
        "checkpoints": report.rounds.iter().map(round).collect::<Vec<_>>(),
        "variables": report.variables.iter().map(|variable| json!({
            "name": variable.name,
            "value": variable.value,
            "declared": variable.declared,
            "description": variable.description,
            "writes": variable.writes,
            "last_write": variable.written.as_ref().map(|write| json!({
                "at": write.at, "activity": write.activity, "source": write.source,
            })),
        })).collect::<Vec<_>>(),
        "usage": report.usage,
        "delivered": {
            "total": share(&report.delivered.total),
            "by_activity": shares("activity", &report.delivered.by_activity),
            "by_tool": shares("tool", &report.delivered.by_tool),
            "by_agent": shares("agent", &report.delivered.by_agent),
        },
        "children": report.children.iter().map(|child| json!({
            "depth": child.depth,
            "session_index": child.session_index,
            "workflow_id": child.workflow_id,
            "kept": child.kept.as_str(),
            "status": child.status,
            "current_activity": child.current_activity,
            "activities_completed": child.completed,
            "dispatched_from": child.from,
            "dispatched_at": child.triggered_at,
            "completed_at": child.completed_at,
            "events": child.events,
        })).collect::<Vec<_>>(),
        "warnings": report.trace.warnings.iter().map(|warned| json!({
            "at": warned.at, "tool": warned.tool, "text": warned.text,
        })).collect::<Vec<_>>(),
        "trace": {
            "calls": report.trace.calls,
            "dropped": report.trace.dropped,
            "unreadable": report.trace.unreadable,
            "warnings": report.trace.warnings.len(),
            "tools": report.trace.tools.iter().map(|calls| json!({
                "tool": calls.tool,
                "calls": calls.count,
                "refused": calls.refused,
                "total_ms": calls.total_ms,
                "longest_ms": calls.longest_ms,
            })).collect::<Vec<_>>(),
            "refusals": report.trace.refusals.iter().map(|(code, count)| json!({"code": code, "count": count})).collect::<Vec<_>>(),
        },
    });
    if with_timeline && let Some(members) = told.as_object_mut() {
        let lines = report.lines.iter().map(|line| {
            let mut members = Map::new();
            for (key, text) in [
                ("at", Some(&line.at)),
                ("type", Some(&line.kind)),
                ("activity", Some(&line.activity)),
                ("checkpoint", Some(&line.checkpoint)),
                ("agent", line.agent.as_ref()),
                ("text", Some(&line.text)),
            ] {
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    members.insert(key.to_owned(), text.as_str().into());
                }
            }
            if !line.data.is_empty() {
                members.insert("data".to_owned(), line.data.clone().into());
            }
            Value::Object(members)
        });
        members.insert("timeline".to_owned(), lines.collect());
    }
    told
}

fn session(report: &Report) -> Value {
    let head = &report.head;
    json!({
        "session_index": head.session_index,
        "slug": head.slug,
        "folder": head.folder,
        "transient": head.transient,
        "embedded_at": head.embedded,
        "parent": head.parent,
        "workflow_id": head.workflow_id,
        "workflow_title": head.title,
        "workflow_version": head.workflow_version,
        "agent_id": head.agent_id,
        "status": head.status,
        "current_activity": head.current_activity,
        "started_at": head.started_at,
        "last_at": head.last_at,
        "elapsed_ms": head.elapsed_ms,
        "writes": head.writes,
        "events": report.lines.len(),
    })
}

fn round(round: &Round) -> Value {
    json!({
        "activity": round.activity,
        "checkpoint": round.checkpoint,
        "asked_at": round.reached_at,
        "asked_by": round.yielded_by,
        "answered_at": round.answered_at,
        "recorded_by": round.recorded_by,
        "waited_ms": round.waited_ms,
        "option": round.option,
        "option_label": round.label(),
        "dismissed": round.dismissed,
        "by_default": round.by_default,
        "replays": round.replays,
        "effects": round.effects,
        "wording": wording(round.wording.as_ref()),
    })
}

fn wording(wording: Option<&Wording>) -> Value {
    let option = |choice: &Choice| json!({"id": choice.id, "label": choice.label, "description": choice.description});
    wording.map_or(Value::Null, |wording| {
        json!({
            "message": wording.message,
            "options": wording.options.iter().map(option).collect::<Vec<_>>(),
            "adhoc": wording.adhoc,
        })
    })
}

fn share(share: &Share) -> Value {
    json!({
        "deliveries": share.calls,
        "chars": share.chars,
        "unchanged": share.unchanged,
        "size_unknown": share.unknown,
    })
}

fn shares(name: &str, shares: &[(String, Share)]) -> Value {
    let told = shares.iter().map(|(key, part)| {
        let mut members = Map::new();
        members.insert(name.to_owned(), key.as_str().into());
        if let Value::Object(rest) = share(part) {
            members.extend(rest);
        }
        Value::Object(members)
    });
    told.collect()
}
