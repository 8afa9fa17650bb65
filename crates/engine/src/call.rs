//! One tool call from arguments to reply.

use std::{fmt::Write as _, sync::Arc};

use workflow_corpus::{Activity, ActivityLoadError, Diagnostic, Severity, TERMINAL, Warning, Workflow, WorkflowError};

use crate::{
    Arguments, Environment, Refusal, Reply, Settings, Timestamp, Tool, Workset, checkpoint, limits, lineage, retry,
    state::Session, validation,
};

/// What a tool works on.
pub struct Call<'a> {
    /// The world.
    pub env: &'a Environment<'a>,
    /// The arguments.
    pub arguments: &'a Arguments,
    /// The sessions.
    pub workset: &'a mut Workset,
    /// What the tool had to say so far.
    pub(crate) warnings: Vec<Warning>,
}

/// Runs a tool: argument limits, retry recognition, checkpoint gate, the tool itself, version drift, `lastCall`, and
/// the check of the state that results (spec 03 §3.1, §3.8, §4.2, §4.3).
///
/// # Errors
/// The refusals of spec 03 §11; the workset must then be thrown away.
pub fn apply(
    tool: &'static Tool,
    env: &Environment<'_>,
    arguments: &Arguments,
    workset: &mut Workset,
) -> Result<Reply, Refusal> {
    limits::check_arguments(&arguments.read, env.settings)?;
    if tool.retryable
        && let Some(mut reply) = retry::repeat(tool, env, arguments, workset)
    {
        let drift = workset.session().and_then(|session| version_drift(env, session));
        reply.warnings = merged(arguments, workset, Vec::new(), drift);
        reply.traces.extend(lineage::complete_link(env, workset));
        return Ok(reply);
    }
    let mut call = Call { env, arguments, workset, warnings: Vec::new() };
    if tool.gated
        && let Some(session) = call.workset.session()
    {
        checkpoint::gate(session, env.signer)?;
    }
    let before = generations(call.workset);
    let mut reply = (tool.run)(&mut call)?;
    let mut warnings = std::mem::take(&mut call.warnings);
    warnings.append(&mut reply.warnings);
    let drift = addressed(workset).and_then(|session| version_drift(env, session));
    if !tool.annotations.read_only {
        // a parent's write alone is none of the addressed session
        if tool.retryable && generations(workset).first() != before.first() {
            retry::remember(tool, arguments, workset, &reply);
        }
        let ending = retry::brings_to_an_end(tool, arguments);
        warnings.extend(check_families(workset, &before, ending, env.settings)?);
    }
    reply.warnings = merged(arguments, workset, warnings, drift);
    Ok(reply)
}

/// The addressed session; after a promotion it is the root of the folder it has moved to.
fn addressed(workset: &Workset) -> Option<&Session> {
    workset.session().or_else(|| workset.families.get(1)?.root.as_ref())
}

fn generations(workset: &Workset) -> Vec<Option<u64>> {
    workset.families.iter().map(|family| family.root.as_ref().map(Session::generation)).collect()
}

/// Checks every state that would be written.
fn check_families(
    workset: &Workset,
    before: &[Option<u64>],
    ending: bool,
    settings: &Settings,
) -> Result<Option<Warning>, Refusal> {
    let mut warning = None;
    for (position, family) in workset.families.iter().enumerate() {
        let Some(root) = &family.root else { continue };
        root.validate()?;
        if before.get(position).copied().flatten() != Some(root.generation()) {
            let grown = limits::check_session(root, ending || position > 0, settings)?;
            warning = warning.or(grown.map(|message| Warning { code: "W_SESSION_LARGE", message }));
        }
    }
    Ok(warning)
}

fn version_drift(env: &Environment<'_>, session: &Session) -> Option<Warning> {
    let workflow = env.corpus.workflow(&session.workflow_id).ok()?;
    validation::version_drift(session, &workflow)
}

/// All warnings of a call: of reading the arguments, of opening the sessions, of the tool, and version drift once.
fn merged(arguments: &Arguments, workset: &Workset, mut own: Vec<Warning>, drift: Option<Warning>) -> Vec<Warning> {
    if let Some(drift) = drift
        && !own.contains(&drift)
    {
        own.push(drift);
    }
    let mut warnings = arguments.warnings.clone();
    warnings.extend(workset.warnings.iter().cloned());
    warnings.append(&mut own);
    warnings
}

impl Call<'_> {
    /// The addressed session.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`.
    pub fn session(&self) -> Result<&Session, Refusal> {
        self.workset.session().ok_or_else(not_found)
    }

    /// The addressed session, to change it.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`.
    pub fn session_mut(&mut self) -> Result<&mut Session, Refusal> {
        self.workset.session_mut().ok_or_else(not_found)
    }

    /// The definition that the session walks.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, `WORKFLOW_INVALID`.
    pub fn workflow(&self) -> Result<Arc<Workflow>, Refusal> {
        self.load_workflow(&self.session()?.workflow_id)
    }

    /// Any definition.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, `WORKFLOW_INVALID`, `INVALID_WORKFLOW_ID`.
    pub(crate) fn load_workflow(&self, id: &str) -> Result<Arc<Workflow>, Refusal> {
        self.env.corpus.workflow(id).map_err(|error| definition_refusal(&error))
    }

    /// Id of the current activity.
    ///
    /// # Errors
    /// `NO_CURRENT_ACTIVITY`, `SESSION_TERMINAL`.
    pub(crate) fn current_activity(&self) -> Result<String, Refusal> {
        let session = self.session()?;
        if session.current_activity.is_empty() {
            let workflow = self.env.corpus.workflow(&session.workflow_id).ok();
            return Err(no_current_activity(workflow.as_deref()));
        }
        if session.is_over() {
            return Err(terminal(session));
        }
        Ok(session.current_activity.clone())
    }

    /// Definition of the current activity.
    ///
    /// # Errors
    /// `NO_CURRENT_ACTIVITY`, `SESSION_TERMINAL`, `ACTIVITY_NOT_FOUND`, and what loading the workflow may refuse.
    pub fn activity(&self) -> Result<Arc<Activity>, Refusal> {
        let current = self.current_activity()?;
        let workflow = self.workflow()?;
        workflow.activity(&current).cloned().ok_or_else(|| activity_not_found(&workflow, &current))
    }

    /// The time of the call.
    pub fn now(&self) -> Timestamp {
        self.env.now
    }

    /// Whose deliveries count: the context that calls, else the session's own agent (spec 03 §5).
    pub(crate) fn scope(&self, agent_id: Option<&str>) -> Result<String, Refusal> {
        let session = self.session()?;
        Ok(agent_id.filter(|id| !id.is_empty()).unwrap_or(&session.agent_id).to_owned())
    }

    /// Adds a warning to the answer.
    pub(crate) fn warn(&mut self, code: &'static str, message: impl Into<String>) {
        self.warnings.push(Warning { code, message: message.into() });
    }

    /// Warns of the activities that a workflow lacks because their files do not load, and of other errors in it.
    pub(crate) fn warn_degraded(&mut self, workflow: &Workflow) {
        let id = workflow.id();
        for error in workflow.load_errors.iter().take(UNLOADED) {
            let activity = error.activity_id.as_str();
            let first = workflow.initial_activity.as_deref() == Some(activity);
            let begins = if first { ", with which the workflow begins," } else { "" };
            let message = format!(
                "activity `{activity}`{begins} cannot be entered: {}. Its author has to repair the definition.",
                unloaded(workflow, error)
            );
            self.warn("W_ACTIVITY_UNLOADED", message);
        }
        if let Some(more) = workflow.load_errors.len().checked_sub(UNLOADED).filter(|more| *more > 0) {
            self.warn(
                "W_ACTIVITY_UNLOADED",
                format!("{more} more activities cannot be entered; `workflow-server show {id}` names them."),
            );
        }
        let told = |found: &Diagnostic| workflow.load_errors.iter().any(|error| error.file == found.file);
        let techniques = self.env.corpus.technique_diagnostics(workflow);
        let mut errors = workflow.diagnostics.iter().chain(techniques.iter());
        if let Some(first) = errors.find(|found| found.severity == Severity::Error && !told(found)) {
            let message = format!(
                "the definition of workflow `{id}` has errors, the first at {}: {}. `workflow-server show {id}` lists all \
                 with what to do; its author has to repair it.",
                first.place(),
                first.message,
            );
            self.warn("W_DEFINITION_ERRORS", message);
        }
    }

    /// Adds the version drift warning at this place; [`apply`] does not repeat it.
    pub(crate) fn warn_drift(&mut self, workflow: &Workflow) -> Result<(), Refusal> {
        let drift = validation::version_drift(self.session()?, workflow);
        self.warnings.extend(drift);
        Ok(())
    }

    /// Counts a write of the session.
    pub(crate) fn advance(&mut self) {
        let now = self.env.now;
        if let Some(session) = self.workset.session_mut() {
            session.advance(now);
        }
    }
}

fn not_found() -> Refusal {
    Refusal::new("SESSION_NOT_FOUND", "no session is open for this call; call start_session with the planning slug")
}

/// Most activities that do not load whose reasons are told when a session starts.
const UNLOADED: usize = 5;

/// Most places of a broken definition that a message names.
const PLACES: usize = 20;

/// Why a definition is not there, as the caller sees it.
pub(crate) fn definition_refusal(error: &WorkflowError) -> Refusal {
    let advice = "Call list_workflows for what can be started.";
    match error {
        WorkflowError::NotFound { id, available } => Refusal::new("WORKFLOW_NOT_FOUND", format!("{error}. {advice}"))
            .with("workflow_id", id.as_str())
            .with("available", available.clone()),
        WorkflowError::InvalidId { id } => {
            Refusal::new("INVALID_WORKFLOW_ID", format!("{error}. {advice}")).with("workflow_id", id.as_str())
        }
        WorkflowError::Invalid { id, issues } => {
            let errors = || issues.iter().filter(|issue| issue.severity == Severity::Error);
            let mut places: Vec<String> = errors().take(PLACES).map(Diagnostic::place).collect();
            if let Some(more) = errors().count().checked_sub(PLACES).filter(|more| *more > 0) {
                places.push(format!("{more} more"));
            }
            let stand = if places.len() == 1 { "It stands" } else { "In this order they stand" };
            let places = places.join(", ");
            let mut helps: Vec<&str> = errors().take(PLACES).filter_map(|issue| issue.help.as_deref()).collect();
            helps.dedup();
            let help = if let [help] = helps[..] {
                format!(" Advice: {}.", help.trim_end_matches('.'))
            } else {
                String::new()
            };
            let issues: Vec<String> = issues.iter().map(ToString::to_string).collect();
            let message = format!("{error}. {stand} at {places}.{help} Its author has to repair the definition.");
            Refusal::new("WORKFLOW_INVALID", message).with("workflow_id", id.as_str()).with("issues", issues)
        }
    }
}

/// The session is in no activity yet.
pub(crate) fn no_current_activity(workflow: Option<&Workflow>) -> Refusal {
    let first = workflow.and_then(|workflow| workflow.initial_activity.as_deref());
    let call = first.map_or_else(
        || "next_activity with one of the workflow's activities".to_owned(),
        |first| format!("next_activity {{activity_id: \"{first}\"}}"),
    );
    Refusal::new(
        "NO_CURRENT_ACTIVITY",
        format!("the session has not entered an activity yet. The orchestrator has to call {call} first."),
    )
    .with("initialActivity", first.unwrap_or_default())
}

/// The session has come to its end.
pub(crate) fn terminal(session: &Session) -> Refusal {
    let ended = session.history.iter().rev().find(|event| event.kind() == "workflow_completed");
    let when = ended.map_or_else(String::new, |event| format!(" at {}", event.timestamp()));
    Refusal::new(
        "SESSION_TERMINAL",
        format!(
            "this session ended through `{TERMINAL}`{when} (status {}); nothing is left to deliver. Stop here; \
             get_workflow_status shows the result.",
            session.status.as_str()
        ),
    )
    .with("status", session.status.as_str())
}

/// No activity of that id.
pub(crate) fn activity_not_found(workflow: &Workflow, id: &str) -> Refusal {
    let known: Vec<&str> = workflow.activities.iter().map(|activity| activity.id.as_str()).collect();
    let mut message = format!(
        "workflow `{}` has no activity `{id}`. Its activities: {}; `{TERMINAL}` ends the workflow.",
        workflow.id(),
        known.join(", ")
    );
    if let Some(error) = workflow.load_error(id) {
        let _ = write!(message, " It was left out because {}.", unloaded(workflow, error));
    }
    message.push_str(" Call next_activity with one of these ids.");
    Refusal::new("ACTIVITY_NOT_FOUND", message)
        .with("activity_id", id)
        .with("workflow_id", workflow.id())
        .with("valid", known)
}

/// Why an activity was left out of its workflow, each error with what its author can do; no full stop at the end.
pub(crate) fn unloaded(workflow: &Workflow, error: &ActivityLoadError) -> String {
    let errors = workflow.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let errors: Vec<&Diagnostic> = errors.filter(|found| found.file == error.file).collect();
    let mut text = format!("its file {} does not load", error.file);
    if errors.is_empty() {
        let _ = write!(text, " (line {}): {}", error.line, error.error);
    }
    for (at, found) in errors.iter().take(PLACES).enumerate() {
        let part = if at == 0 { ": " } else { "; " };
        let _ = write!(text, "{part}line {}: {}", found.line.unwrap_or(1), found.message);
        if let Some(help) = found.help.as_deref().filter(|help| !help.contains('\n')) {
            let _ = write!(text, " ({})", help.trim_end_matches('.'));
        }
    }
    if let Some(more) = errors.len().checked_sub(PLACES).filter(|more| *more > 0) {
        let _ = write!(text, "; {more} more");
    }
    text
}
