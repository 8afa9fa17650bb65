//! `next_activity`: the orchestrator's step from one activity to the next (spec 03 §5.8).

use std::{num::NonZeroU64, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use workflow_corpus::{Activity, COMPLETE, TERMINAL, Warning, Workflow};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Timestamp, Tool, batch,
    call::activity_not_found,
    checkpoint, completion,
    schema::input_schema,
    state::{ChildReference, DeclaredArtifact, Event, Session, Status},
    target::valid_index,
    trace,
    validation::{self, ManifestEntry, OutcomeEntry},
    variable, visit,
};

pub(crate) static TOOL: Tool = Tool {
    name: "next_activity",
    title: "Go to the next activity",
    description: "Moves the session to an activity; the orchestrator's call. It returns id and name only: a worker then \
                  loads the content with get_activity. First call: activity_id is the workflow's initialActivity; later \
                  ones: a target of the current activity's transitions, decisions or checkpoint options; '__terminal__' \
                  ends the workflow, and an activity named 'complete' completes it on entry. Report the activity that is \
                  being left: step_manifest with one {step_id, output} per step that was carried out (a step with several \
                  outputs reports an object keyed by output id), activity_manifest with outcomes, variables_changed with \
                  the values that changed, artifacts_produced, agent_id of the worker. transition_condition is the \
                  declared condition text, character by character. A target or report that does not fit is warned about \
                  in 'validation', never refused; only an active checkpoint or an unknown activity refuses the call. \
                  agent_id with context_tokens asks whether that worker may take the target too: read batch.may_continue. \
                  A repetition of the same call answers the same with already_done. trace_ref is for get_trace.",
    annotations: Annotations { read_only: false, idempotent: false },
    // it looks for its definition before the gate
    gated: false,
    retryable: true,
    traced: true,
    schema: input_schema::<Params>,
    target,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The session, as returned by start_session.
    session_index: String,
    /// Where to go: an activity id, or '__terminal__'.
    #[schemars(length(min = 1))]
    activity_id: String,
    /// The declared condition text of the transition taken, or 'default'.
    #[serde(default)]
    transition_condition: Option<String>,
    /// What the steps of the activity being left produced, in the order in which they were carried out. Omit it when
    /// none ran.
    #[serde(default)]
    step_manifest: Option<Vec<StepReport>>,
    /// How activities ended so far.
    #[serde(default)]
    activity_manifest: Option<Vec<ActivityReport>>,
    /// Variables that changed, name to value; stored as sent.
    #[serde(default)]
    variables_changed: Option<Map<String, Value>>,
    /// Files that were written.
    #[serde(default)]
    artifacts_produced: Option<Vec<ArtifactReport>>,
    /// The worker that finished the activity being left.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
    /// Context window of that worker in tokens; with agent_id.
    #[serde(default)]
    context_tokens: Option<NonZeroU64>,
    /// Whether progress was published to the user.
    #[serde(default)]
    progress_published: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepReport {
    /// Step id, as written or qualified (record~2).
    #[schemars(length(min = 1))]
    step_id: String,
    /// Short text, or an object keyed by output id.
    output: Output,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Output {
    Text(String),
    Members(Map<String, Value>),
}

impl Output {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Members(members) if members.is_empty() => String::new(),
            Self::Members(members) => Value::Object(members.clone()).to_string(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActivityReport {
    /// Activity id.
    #[schemars(length(min = 1))]
    activity_id: String,
    /// How it ended.
    outcome: String,
    /// Condition that led on from it.
    #[serde(default)]
    transition_condition: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ArtifactReport {
    /// Artifact id, as the activity declares it.
    #[schemars(length(min = 1))]
    id: String,
    /// File name.
    #[schemars(length(min = 1))]
    name: String,
    /// Where it lies, if not directly in the planning folder.
    #[serde(default)]
    path: Option<String>,
}

impl ArtifactReport {
    /// Where it lies, if that was said; a blank text says nothing.
    fn path(&self) -> Option<&str> {
        self.path.as_deref().filter(|path| !path.is_empty())
    }
}

impl Params {
    fn read(arguments: &Arguments) -> Result<Self, Refusal> {
        let params: Self = arguments.decode(TOOL.name)?;
        valid_index(&params.session_index)?;
        match params.empty_id() {
            Some(place) => Err(Refusal::invalid_params(TOOL.name, &format!("{place}: must not be empty"))),
            None => Ok(params),
        }
    }

    /// The first id that is empty: none is ever stored so (spec 03 §3.1).
    fn empty_id(&self) -> Option<&'static str> {
        let own = [("activity_id", Some(self.activity_id.as_str())), ("agent_id", self.agent_id.as_deref())];
        let steps = self.step_manifest.iter().flatten().map(|entry| ("step_manifest[].step_id", &entry.step_id));
        let activities = self.activity_manifest.iter().flatten();
        let activities = activities.map(|entry| ("activity_manifest[].activity_id", &entry.activity_id));
        let artifacts = self.artifacts_produced.iter().flatten();
        let artifacts = artifacts
            .flat_map(|entry| [("artifacts_produced[].id", &entry.id), ("artifacts_produced[].name", &entry.name)]);
        own.into_iter()
            .chain(steps.chain(activities).chain(artifacts).map(|(place, id)| (place, Some(id.as_str()))))
            .find(|(_, id)| *id == Some(""))
            .map(|(place, _)| place)
    }

    fn manifest(&self) -> Option<Vec<(&str, String)>> {
        let entries = self.step_manifest.as_ref()?;
        Some(entries.iter().map(|entry| (entry.step_id.as_str(), entry.output.text())).collect())
    }
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params = Params::read(arguments)?;
    let ends = params.activity_id == TERMINAL || params.activity_id == COMPLETE;
    Ok(Target::Session { index: params.session_index, parent: ends })
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params = Params::read(call.arguments)?;
    let workflow = call.workflow()?;
    checkpoint::gate(call.session()?, call.env.signer)?;
    let entered = params.activity_id.as_str();
    let name = match workflow.activity(entered) {
        Some(activity) => activity.name.clone(),
        None if entered == TERMINAL => "Workflow Complete".to_owned(),
        None => return Err(activity_not_found(&workflow, entered)),
    };
    let mut answer = Answer::of(call, entered, &name)?;
    if entered == TERMINAL && call.session()?.is_over() {
        answer.already_done = true;
        answer.next = completion::parent(call.workset).map(go_on_with);
        return Ok(answer.reply());
    }
    answer.batch = batch_reading(call, &params)?;
    let left = Left::of(call.session()?, &workflow);
    check(call, &params, &workflow, &left)?;
    transit(call, &params, &workflow, &left)?;
    let ends = entered == TERMINAL || entered == COMPLETE;
    let traced = if ends { completion::tell_parent(call.env, call.workset) } else { None };
    if entered == TERMINAL {
        answer.next = completion::parent(call.workset).map(go_on_with);
    }
    let mut reply = answer.reply();
    reply.traces.extend(traced);
    Ok(reply)
}

/// What the end of a child leads to.
fn go_on_with(parent: &Session) -> String {
    let named = format!("session {} of workflow '{}'", parent.session_index, parent.workflow_id);
    match &parent.active_checkpoint {
        _ if parent.status != Status::Running => format!("this child has ended; its parent, {named}, had ended before"),
        Some(waiting) => {
            format!("this child has ended: go on with {named}, which waits at checkpoint '{}'", waiting.checkpoint_id)
        }
        None => format!("this child has ended: go on with {named}"),
    }
}

/// Whether the worker that is named may take the target too; read before anything changes.
fn batch_reading(call: &Call<'_>, params: &Params) -> Result<Option<Map<String, Value>>, Refusal> {
    let (Some(agent), Some(tokens)) = (&params.agent_id, params.context_tokens) else { return Ok(None) };
    if params.activity_id == TERMINAL {
        return Ok(None);
    }
    let reading = batch::may_continue(call.session()?, agent, tokens.get(), call.env.settings, &params.activity_id);
    Ok(Some(reading.to_map()))
}

/// The activity that the session is in.
struct Left {
    /// Its id; empty before the first one.
    id: String,
    /// Its definition, unless it is gone.
    activity: Option<Arc<Activity>>,
}

impl Left {
    fn of(session: &Session, workflow: &Workflow) -> Self {
        let id = session.current_activity.clone();
        let activity = workflow.activity(&id).cloned();
        Self { id, activity }
    }

    /// An activity with content: neither none nor the sentinel.
    fn is_real(&self) -> bool {
        !self.id.is_empty() && self.id != TERMINAL
    }
}

/// The advisory checks, in the order of spec 03 §7.
fn check(call: &mut Call<'_>, params: &Params, workflow: &Workflow, left: &Left) -> Result<(), Refusal> {
    let entered = params.activity_id.as_str();
    let mut found: Vec<Warning> = Vec::new();
    found.extend(reopened(call.session()?, left, entered));
    if left.id.is_empty() {
        found.extend(validation::first_activity(workflow, entered));
    }
    found.extend(left.activity.as_deref().and_then(|activity| validation::transition(activity, entered)));
    found.extend(validation::version_drift(call.session()?, workflow));
    if let (Some(activity), Some(claimed)) = (&left.activity, &params.transition_condition) {
        found.extend(validation::condition(activity, entered, claimed));
    }
    if let Some(activity) = &left.activity {
        found.extend(validation::answer_ignored(call.session()?, workflow, activity, entered));
    }
    if left.is_real() {
        found.extend(check_manifest(call, params, workflow, left)?);
    }
    if let Some(entries) = &params.activity_manifest {
        let entries: Vec<OutcomeEntry<'_>> = entries.iter().map(ActivityReport::entry).collect();
        found.extend(validation::activity_manifest(workflow, &entries));
    }
    if entered == TERMINAL {
        found.extend(unfinished_children(call.env, call.session()?));
    }
    call.warnings.append(&mut found);
    Ok(())
}

/// `W_CHILD_RUNNING`: a session ends before children that it dispatched. The children themselves are asked: what is noted
/// of one may be older.
fn unfinished_children(env: &Environment<'_>, session: &Session) -> Option<Warning> {
    let is_running = |child: &&ChildReference| match &child.state {
        Some(state) => state.status == Status::Running,
        None => env
            .registry
            .find(&child.session_index)
            .is_some_and(|found| found.session().is_some_and(|session| session.status == Status::Running)),
    };
    let running = session.triggered_workflows.iter().filter(is_running);
    let names: Vec<String> = running
        .take(NAMED_CHILDREN)
        .map(|child| format!("{} ('{}')", child.session_index, child.workflow_id))
        .collect();
    (!names.is_empty()).then(|| Warning {
        code: "W_CHILD_RUNNING",
        message: format!(
            "this session ends while children that it dispatched have not: {}. Let them come to their end, or end them with \
             next_activity {{activity_id: \"{TERMINAL}\"}} on their session_index.",
            names.join(", ")
        ),
    })
}

/// Most children that a warning names.
const NAMED_CHILDREN: usize = 10;

impl ActivityReport {
    fn entry(&self) -> OutcomeEntry<'_> {
        OutcomeEntry {
            activity: &self.activity_id,
            outcome: &self.outcome,
            condition: self.transition_condition.as_deref(),
        }
    }
}

fn check_manifest(call: &Call<'_>, params: &Params, workflow: &Workflow, left: &Left) -> Result<Vec<Warning>, Refusal> {
    let Some(manifest) = params.manifest() else { return Ok(vec![validation::manifest_absent(&left.id)]) };
    let Some(activity) = &left.activity else { return Ok(vec![validation::manifest_uncheckable(&left.id, workflow)]) };
    let entries: Vec<ManifestEntry<'_>> =
        manifest.iter().map(|(step, output)| ManifestEntry { step, output }).collect();
    let mut found = validation::step_manifest(activity, &entries);
    found.extend(validation::no_fetch(call.env.corpus, call.session()?, activity, &entries));
    found.extend(validation::not_yielded(call.session()?, activity, &entries));
    found.extend(validation::misreported(call.session()?, activity, &entries));
    Ok(found)
}

/// `W_COMPLETED_REOPENED`: a session that was over goes on. From `complete` to the sentinel is the regular end.
fn reopened(session: &Session, left: &Left, entered: &str) -> Option<Warning> {
    let goes_on = left.id == TERMINAL || (entered != TERMINAL && entered != COMPLETE);
    (session.status != Status::Running && goes_on).then(|| Warning {
        code: "W_COMPLETED_REOPENED",
        message: format!(
            "this session was {}; entering `{entered}` reopens it. If that is not meant, end it again with next_activity \
             {{activity_id: \"{TERMINAL}\"}}",
            session.status.as_str()
        ),
    })
}

/// Leaves one activity and enters another: the only place that moves a session.
fn transit(call: &mut Call<'_>, params: &Params, workflow: &Workflow, left: &Left) -> Result<(), Refusal> {
    let now = call.now();
    let entered = params.activity_id.as_str();
    let mut warnings = Vec::new();
    let session = call.session_mut()?;
    let visit = (left.id == entered).then(|| visit::of_reentry(session, left.activity.as_deref()));
    if !left.id.is_empty() {
        session.record(Event::new("activity_exited").with_activity(&left.id), now);
    }
    if left.is_real() && !session.completed_activities.contains(&left.id) {
        session.completed_activities.push(left.id.clone());
    }
    record_outcomes(session, params, now);
    for (name, value) in params.variables_changed.iter().flatten() {
        let activity = if left.is_real() { left.id.as_str() } else { "" };
        let write = variable::Write { name, value: value.clone(), activity, source: "variables_changed" };
        warnings.extend(variable::write(session, workflow, write, now));
    }
    if left.is_real() {
        record_steps(session, params, left, now);
    }
    merge_artifacts(session, params);
    entered.clone_into(&mut session.current_activity);
    session.condition = params.transition_condition.clone().unwrap_or_default();
    session.active_checkpoint = None;
    session.record(Event::new("activity_entered").with_activity(entered).with_optional_data("visit", visit), now);
    if let Some(published) = params.progress_published.filter(|_| entered != TERMINAL) {
        session.record(Event::new("progress_published").with_activity(entered).with_data("published", published), now);
    }
    if entered == TERMINAL || entered == COMPLETE {
        session.status = Status::Completed;
        session.record(Event::new("workflow_completed"), now);
    } else {
        session.status = Status::Running;
    }
    session.advance(now);
    warnings.extend(artifact_warnings(call, params)?);
    call.warnings.append(&mut warnings);
    Ok(())
}

/// The first outcome reported for an activity stays.
fn record_outcomes(session: &mut Session, params: &Params, now: Timestamp) {
    for entry in params.activity_manifest.iter().flatten() {
        let known = session
            .history
            .iter()
            .any(|event| event.kind() == "activity_outcome" && event.activity() == entry.activity_id);
        if !known && !entry.outcome.trim().is_empty() {
            let event = Event::new("activity_outcome")
                .with_activity(&entry.activity_id)
                .with_data("outcome", entry.outcome.as_str())
                .with_optional_data("transitionCondition", entry.transition_condition.as_deref());
            session.record(event, now);
        }
    }
}

fn record_steps(session: &mut Session, params: &Params, left: &Left, now: Timestamp) {
    for (step, output) in params.manifest().into_iter().flatten() {
        if output.trim().is_empty() {
            continue;
        }
        let known = left.activity.as_ref().and_then(|activity| activity.find_step(step));
        let id = known.map_or_else(|| step.to_owned(), |known| known.qualified_id);
        let event = Event::new("step_completed")
            .with_activity(&left.id)
            .with_data("stepId", id)
            .with_optional_data("agentId", params.agent_id.as_deref());
        session.record(event, now);
    }
}

/// A new entry without a path keeps the old one.
fn merge_artifacts(session: &mut Session, params: &Params) {
    for entry in params.artifacts_produced.iter().flatten() {
        match session.declared_artifacts.iter_mut().find(|known| known.id == entry.id) {
            Some(known) => {
                known.name.clone_from(&entry.name);
                known.path = entry.path().map(str::to_owned).or_else(|| known.path.take());
            }
            None => session.declared_artifacts.push(DeclaredArtifact {
                id: entry.id.clone(),
                name: entry.name.clone(),
                path: entry.path().map(str::to_owned),
                extra: Map::new(),
            }),
        }
    }
}

fn artifact_warnings(call: &Call<'_>, params: &Params) -> Result<Vec<Warning>, Refusal> {
    let (Some(entries), Some(family)) = (&params.artifacts_produced, call.workset.families.first()) else {
        return Ok(Vec::new());
    };
    let folder = &family.folder;
    let mut warnings: Vec<Warning> = entries
        .iter()
        .filter_map(|entry| validation::artifact_outside(&entry.id, entry.path()?, &folder.path))
        .collect();
    let declared = &call.session()?.declared_artifacts;
    warnings.extend(validation::artifacts_undeclared(&call.env.registry.files_in(folder), declared));
    Ok(warnings)
}

/// What is answered.
struct Answer {
    entered: String,
    name: String,
    session_index: String,
    tokens: trace::Tokens,
    batch: Option<Map<String, Value>>,
    /// What to do when this was the end of a child.
    next: Option<String>,
    already_done: bool,
}

impl Answer {
    fn of(call: &Call<'_>, entered: &str, name: &str) -> Result<Self, Refusal> {
        let session_index = call.session()?.session_index.clone();
        let tokens = trace::mint(call.env, &session_index, entered);
        Ok(Self {
            entered: entered.to_owned(),
            name: name.to_owned(),
            session_index,
            tokens,
            batch: None,
            next: None,
            already_done: false,
        })
    }

    fn reply(self) -> Reply {
        let mut members = Map::new();
        members.insert("activity_id".to_owned(), self.entered.into());
        members.insert("name".to_owned(), self.name.into());
        members.insert("session_index".to_owned(), self.session_index.as_str().into());
        members.insert("trace_ref".to_owned(), self.tokens.reference.as_str().into());
        if let Some(batch) = &self.batch {
            members.insert("batch".to_owned(), Value::Object(batch.clone()));
        }
        if let Some(next) = self.next {
            members.insert("next".to_owned(), next.into());
        }
        if self.already_done {
            members.insert("already_done".to_owned(), true.into());
        }
        let mut reply = Reply::json(&self.session_index, members);
        if let Some(batch) = self.batch {
            reply.meta.insert("batch".to_owned(), Value::Object(batch));
        }
        reply.meta.extend(self.tokens.meta());
        reply
    }
}
