//! What there is to tell about a session, collected once and shown in several forms.
//!
//! [`Report`] is data: what a renderer gets has been through the [`Redaction`] already, so no renderer can tell a secret.
//! Renderers are pure functions of it.

mod activity;
mod chronicle;
mod delivery;
mod drawing;
mod family;
mod gate;
pub(crate) mod html;
pub(crate) mod json;
mod page;
mod redaction;
mod span;
mod trace;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use workflow_corpus::Workflow;
use workflow_engine::state::{Event, Session, Status};
use workflow_engine::{Refusal, Target, Timestamp, Workset};
use workflow_mcp::Server;
use workflow_store::{FileStore, SessionStore as _};

pub(crate) use activity::{Activity, State, Visit};
pub(crate) use chronicle::Line;
pub(crate) use delivery::{Delivered, Share};
pub(crate) use family::{Child, Kept};
pub(crate) use gate::{Choice, Gate, Round, Wording};
pub(crate) use redaction::Redaction;
pub(crate) use span::{counted, date_time, grouped, moment, span};
pub(crate) use trace::{Trace, Warned};

/// Everything about one session.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) head: Head,
    /// What a reader has to know before believing the rest.
    pub(crate) notes: Vec<String>,
    pub(crate) activities: Vec<Activity>,
    pub(crate) visits: Vec<Visit>,
    pub(crate) gate: Option<Gate>,
    pub(crate) rounds: Vec<Round>,
    pub(crate) variables: Vec<Variable>,
    /// As `inspect_session` answers it.
    pub(crate) usage: Map<String, Value>,
    pub(crate) delivered: Delivered,
    pub(crate) children: Vec<Child>,
    pub(crate) lines: Vec<Line>,
    pub(crate) trace: Trace,
    pub(crate) redacted: Redacted,
}

/// Which session it is and where it stands.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) session_index: String,
    pub(crate) slug: String,
    /// Relative to the workspace where it lies in it.
    pub(crate) folder: String,
    pub(crate) transient: bool,
    /// Where it is embedded, `triggeredWorkflows.0.state`; empty for a session with a folder of its own.
    pub(crate) embedded: String,
    pub(crate) parent: Option<String>,
    pub(crate) workflow_id: String,
    /// Of the definition as it is now.
    pub(crate) title: Option<String>,
    /// Recorded when the session began.
    pub(crate) workflow_version: String,
    pub(crate) agent_id: String,
    /// `active`, `blocked`, `completed` or `aborted`.
    pub(crate) status: &'static str,
    /// `""` before the first.
    pub(crate) current_activity: String,
    pub(crate) started_at: String,
    /// Of the last event, else of the last write.
    pub(crate) last_at: String,
    /// From the first event to the last.
    pub(crate) elapsed_ms: Option<i64>,
    pub(crate) writes: u64,
    pub(crate) made_at: String,
    pub(crate) server_version: String,
}

/// A variable as it is told.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: Value,
    pub(crate) declared: bool,
    pub(crate) description: Option<String>,
    /// How often it was written after the session began.
    pub(crate) writes: usize,
    /// The newest write.
    pub(crate) written: Option<Write>,
}

/// Who wrote a variable last.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) at: String,
    pub(crate) activity: String,
    pub(crate) source: String,
}

/// What is not told.
#[derive(Debug)]
pub(crate) struct Redacted {
    pub(crate) hidden: usize,
    pub(crate) cut: usize,
    pub(crate) full: bool,
    pub(crate) secrets: bool,
}

/// What a part of a report is collected from.
struct Source<'a> {
    session: &'a Session,
    workflow: Option<&'a Workflow>,
    trace: &'a trace::Log,
    redaction: &'a Redaction,
}

/// Collects everything about the session that somebody addressed by index, slug or folder.
///
/// # Errors
/// Those of finding and opening a session.
pub(crate) fn collect(
    server: &Server,
    addressed: &str,
    now: Timestamp,
    redaction: &Redaction,
) -> Result<Report, Refusal> {
    let workset = find(server.store(), addressed)?;
    let vanished = || Refusal::new("SESSION_NOT_FOUND", format!("the folder of '{addressed}' holds no session"));
    let (family, session) = workset.families.first().zip(workset.session()).ok_or_else(vanished)?;
    let definition = server.corpus().workflow(&session.workflow_id);
    let workflow: Option<&Arc<Workflow>> = definition.as_ref().ok();
    let log = trace::Log::read(server.store(), &session.session_index);
    let source = Source { session, workflow: workflow.map(AsRef::as_ref), trace: &log, redaction };
    let mut notes: Vec<String> = workset.warnings.iter().map(|w| format!("{}: {}", w.code, w.message)).collect();
    notes.extend(definition_notes(session, definition.as_deref().map_err(ToString::to_string)));
    let visits = activity::visits(session);
    let mut report = Report {
        head: head(server, &workset, session, workflow.map(AsRef::as_ref), now),
        activities: activity::activities(&source, &visits),
        gate: gate::open(&source),
        rounds: gate::rounds(&source),
        variables: variables(&source),
        usage: usage(server, &source),
        delivered: delivery::delivered(session),
        children: family::children(server.store(), &source),
        lines: chronicle::lines(&source),
        trace: log.summary(redaction),
        redacted: Redacted { hidden: 0, cut: 0, full: redaction.full, secrets: redaction.secrets },
        visits,
        notes,
    };
    if family.folder.transient {
        report.notes.push("The session is transient: it has no planning folder yet.".to_owned());
    }
    report.redacted.hidden = redaction.hidden();
    report.redacted.cut = redaction.cut();
    Ok(report)
}

/// The session that somebody addressed by index, slug or folder.
///
/// # Errors
/// Those of finding and opening a session.
pub(crate) fn find(store: &FileStore, addressed: &str) -> Result<Workset, Refusal> {
    let addressed = crate::place::session(store, addressed);
    let by_index = |index: &str| store.read(&Target::Session { index: index.to_owned(), parent: false });
    let by_slug = || {
        let slug = addressed.clone();
        store.read(&Target::Slug { slug, minted: false, transient: false, parent: None })
    };
    if workflow_engine::state::is_session_index(&addressed) {
        return match by_index(&addressed) {
            Err(refusal) if refusal.code == "SESSION_NOT_FOUND" => by_slug().map_err(|_| refusal),
            outcome => outcome,
        };
    }
    if addressed.contains(['/', '\\']) {
        return by_index(&store.verify(&addressed)?.session?.session_index);
    }
    by_slug()
}

fn head(server: &Server, workset: &Workset, session: &Session, workflow: Option<&Workflow>, now: Timestamp) -> Head {
    let folder = workset.families.first().map(|family| &family.folder);
    let root = workset.families.first().and_then(|family| family.root.as_ref());
    let times = || session.history.iter().filter_map(Event::time);
    let above = workset.path.0.split_last().and_then(|(_, above)| {
        root?.at(&workflow_engine::StatePath(above.to_vec())).map(|parent| parent.session_index.clone())
    });
    let last = times().max().unwrap_or(Timestamp(session.ts.saturating_mul(1000)));
    Head {
        session_index: session.session_index.clone(),
        slug: folder.map(|folder| folder.slug.clone()).unwrap_or_default(),
        folder: folder.map(|folder| beside_the_work(&folder.path, folder.transient, &folder.slug)).unwrap_or_default(),
        transient: folder.is_some_and(|folder| folder.transient),
        embedded: workset.path.text(),
        parent: above.or_else(|| session.parent_session.as_ref().map(|parent| parent.session_index.clone())),
        workflow_id: session.workflow_id.clone(),
        title: workflow.map(|workflow| workflow.title.clone()),
        workflow_version: session.workflow_version.clone(),
        agent_id: session.agent_id.clone(),
        status: status(session),
        current_activity: session.current_activity.clone(),
        started_at: session.started_at.clone(),
        last_at: last.text(),
        elapsed_ms: times().min().map(|first| last.0.saturating_sub(first.0)),
        writes: session.seq,
        made_at: now.text(),
        server_version: server.settings().server_version.clone(),
    }
}

/// The path without what lies above the work: whose machine it was is nobody's business.
fn beside_the_work(path: &str, transient: bool, slug: &str) -> String {
    if transient {
        return format!("transient/{slug}");
    }
    match path.rfind("/.engineering/").or_else(|| path.rfind("/artifacts/planning/")) {
        Some(at) => path.get(at + 1..).unwrap_or(slug).to_owned(),
        None => slug.to_owned(),
    }
}

pub(crate) fn status(session: &Session) -> &'static str {
    match session.status {
        _ if session.active_checkpoint.is_some() => "blocked",
        Status::Completed => "completed",
        Status::Aborted => "aborted",
        Status::Running => "active",
    }
}

fn definition_notes(session: &Session, workflow: Result<&Workflow, String>) -> Vec<String> {
    match workflow {
        Err(error) => vec![format!(
            "The definition is not there ({error}): titles, messages and options are missing, and what would come next."
        )],
        Ok(workflow) if workflow.version != session.workflow_version => vec![format!(
            "The session began with version {} of the workflow; titles, messages and options are those of version {}.",
            session.workflow_version, workflow.version
        )],
        Ok(_) => Vec::new(),
    }
}

fn variables(source: &Source<'_>) -> Vec<Variable> {
    let mut writes: HashMap<&str, (usize, &Event)> = HashMap::new();
    for event in source.session.history.iter().filter(|event| event.kind() == "variable_set") {
        let entry = writes.entry(event.data_text("name").unwrap_or_default()).or_insert((0, event));
        *entry = (entry.0 + 1, event);
    }
    let mut variables: Vec<Variable> = source
        .session
        .variables
        .iter()
        .map(|(name, value)| {
            let written = writes.get(name.as_str());
            let declaration = source.workflow.and_then(|workflow| workflow.variable(name));
            let description = declaration.and_then(|d| d.declaration.get("description")?.as_str().map(str::to_owned));
            Variable {
                value: source.redaction.value(name, value),
                name: source.redaction.text(name),
                declared: declaration.is_some(),
                description,
                writes: written.map_or(0, |(count, _)| *count),
                written: written.map(|(_, event)| Write {
                    at: event.timestamp().to_owned(),
                    activity: event.activity().to_owned(),
                    source: event.data_text("source").unwrap_or_default().to_owned(),
                }),
            }
        })
        .collect();
    variables.sort_by(|left, right| left.name.cmp(&right.name));
    variables
}

/// The usage as agents are told it, by the same code.
fn usage(server: &Server, source: &Source<'_>) -> Map<String, Value> {
    let mut arguments = Map::new();
    arguments.insert("session_index".to_owned(), source.session.session_index.as_str().into());
    arguments.insert("view".to_owned(), "usage".into());
    let outcome = server.call("inspect_session", &arguments, "report", &|| false);
    let view = if outcome.is_error { None } else { serde_json::from_str(&outcome.text).ok() };
    let Some(Value::Object(mut members)) = view else { return Map::new() };
    members.shift_remove("validation");
    members.shift_remove("children_outside_totals");
    if let Some(Value::Array(rows)) = members.get_mut("rows") {
        for row in rows {
            if let Some(usage) = row.get_mut("usage") {
                *usage = told_usage(source.redaction, usage);
            }
        }
    }
    members
}

/// Counts of tokens are what this is about, so numbers stay whatever they are called.
fn told_usage(redaction: &Redaction, usage: &Value) -> Value {
    let Value::Object(members) = usage else { return redaction.value("usage", usage) };
    let told = members.iter().map(|(name, value)| {
        let told = if value.is_number() { value.clone() } else { redaction.value(name, value) };
        (redaction.text(name), told)
    });
    Value::Object(told.collect())
}

/// A value on one line.
pub(crate) fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => json!(other).to_string(),
    }
}
