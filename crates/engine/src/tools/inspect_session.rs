//! `inspect_session`: projections of a session's state (spec 03 §5.7).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool,
    reply::Content,
    schema::input_schema,
    state::{ChildReference, Event, Session},
    usage,
};

pub(crate) static TOOL: Tool = Tool {
    name: "inspect_session",
    title: "Inspect a session",
    description: "Shows a part of a session's recorded state as JSON, chosen by view: summary (default; all of the following \
                  but usage), identity (workflow, agent, position), variables (all, or the one that variable names), \
                  checkpoints (every recorded answer), activities (completed, skipped, current, outcomes), history (number \
                  of events by type, and the milestones), children (one line per dispatched child), usage (recorded cost). \
                  child_index shows that child of the session instead; for deeper ones pass the child's own session_index. \
                  agent_id narrows history and usage to one agent. Changes nothing, and works while a checkpoint waits.",
    annotations: Annotations { read_only: true, idempotent: true },
    gated: false,
    retryable: false,
    traced: false,
    schema: input_schema::<Params>,
    target,
    run,
};

/// Events that mark the course of a session.
const MILESTONES: [&str; 6] = [
    "activity_entered",
    "activity_exited",
    "checkpoint_reached",
    "checkpoint_response",
    "workflow_triggered",
    "workflow_completed",
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The session, as returned by start_session or dispatch_child.
    session_index: String,
    /// What to show. Default: 'summary'.
    #[serde(default)]
    view: Option<View>,
    /// Position of a child, from 0, as in view 'children'.
    #[serde(default)]
    child_index: Option<u64>,
    /// With view 'variables': one variable only.
    #[serde(default)]
    variable: Option<String>,
    /// With view 'history' or 'usage': one agent only.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum View {
    Summary,
    Identity,
    Variables,
    Checkpoints,
    Activities,
    History,
    Children,
    Usage,
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Target::session(&params.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params: Params = call.arguments.decode(TOOL.name)?;
    let addressed = call.session()?.session_index.clone();
    let session = match params.child_index {
        Some(position) => child(call, position)?,
        None => call.session()?.clone(),
    };
    let agent = params.agent_id.as_deref();
    let view = params.view.unwrap_or(View::Summary);
    if params.variable.is_some() && view != View::Variables {
        call.warn("W_VARIABLE_IGNORED", "variable was ignored: it narrows view 'variables' only.");
    }
    let content = match view {
        View::Summary => json!({
            "identity": identity(&session),
            "activities": activities(&session),
            "variables": session.variables,
            "checkpoints": checkpoints(&session),
            "history": history(&session, agent),
            "children": children(call, &session),
        }),
        View::Identity => identity(&session),
        View::Variables => variables(&session, params.variable.as_deref())?,
        View::Checkpoints => checkpoints(&session),
        View::Activities => activities(&session),
        View::History => history(&session, agent),
        View::Children => children(call, &session),
        View::Usage => Value::Object(usage::view(&session, agent, child_costs(call, &session))),
    };
    Ok(match content {
        Value::Object(members) if !members.contains_key("validation") => Reply::json(&addressed, members),
        other => {
            let text = serde_json::to_string_pretty(&other).unwrap_or_default();
            Reply::of(Some(&addressed), Content::Text(text))
        }
    })
}

/// The child at a position: the embedded state, or the session that the reference names.
fn child(call: &Call<'_>, position: u64) -> Result<Session, Refusal> {
    let session = call.session()?;
    let count = session.triggered_workflows.len();
    let reference = usize::try_from(position).ok().and_then(|position| session.triggered_workflows.get(position));
    let refuse = |cause: String| {
        let refusal = Refusal::new(
            "CHILD_NOT_FOUND",
            format!(
                "{cause} Call inspect_session with view 'children' for the list, or pass the child's own session_index."
            ),
        );
        Err(refusal.with("child_index", position).with("children", count))
    };
    let Some(reference) = reference else {
        return refuse(format!(
            "Session {} has {count} children, counted from 0; there is none at child_index {position}.",
            session.session_index
        ));
    };
    match state_of(call, reference) {
        Some(state) => Ok(state),
        None => refuse(format!(
            "Child {position}, session {} of workflow '{}', keeps its state in another folder, which could not be read.",
            reference.session_index, reference.workflow_id
        )),
    }
}

fn state_of(call: &Call<'_>, reference: &ChildReference) -> Option<Session> {
    match &reference.state {
        Some(state) => Some((**state).clone()),
        None => call.env.registry.find(&reference.session_index)?.session().cloned(),
    }
}

fn identity(session: &Session) -> Value {
    let mut members = Map::new();
    members.insert("workflowId".to_owned(), session.workflow_id.as_str().into());
    members.insert("workflowVersion".to_owned(), session.workflow_version.as_str().into());
    members.insert("sessionIndex".to_owned(), session.session_index.as_str().into());
    members.insert("agentId".to_owned(), session.agent_id.as_str().into());
    members.insert("status".to_owned(), session.status.as_str().into());
    members.insert("currentActivity".to_owned(), session.current_activity.as_str().into());
    members.insert("currentTechnique".to_owned(), session.current_technique.as_str().into());
    members.insert("startedAt".to_owned(), session.started_at.as_str().into());
    members.insert("seq".to_owned(), session.seq.into());
    if let Some(repo) = &session.repo {
        members.insert("repo".to_owned(), repo.as_str().into());
    }
    if let Some(path) = &session.planning_folder_path {
        members.insert("planningFolderPath".to_owned(), path.as_str().into());
    }
    Value::Object(members)
}

fn variables(session: &Session, name: Option<&str>) -> Result<Value, Refusal> {
    let Some(name) = name else { return Ok(Value::Object(session.variables.clone())) };
    if let Some(value) = session.variables.get(name) {
        return Ok(value.clone());
    }
    let close = close_names(session, name);
    let hint = if close.is_empty() {
        "No name is close to it.".to_owned()
    } else {
        format!("Close names: {}.", close.join(", "))
    };
    Err(Refusal::new(
        "VARIABLE_NOT_FOUND",
        format!(
            "Session {} has no variable '{name}'; it may not have been set yet. {hint} Call inspect_session with view \
             'variables' and no variable for all of them.",
            session.session_index
        ),
    )
    .with("variable", name)
    .with("close", close))
}

/// Up to three names of the bag that a typing error may have missed.
fn close_names(session: &Session, name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let mut rated: Vec<(f64, &String)> =
        session.variables.keys().map(|key| (strsim::jaro_winkler(&wanted, &key.to_lowercase()), key)).collect();
    rated.retain(|(likeness, _)| *likeness >= 0.8);
    rated.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    rated.into_iter().take(3).map(|(_, key)| key.clone()).collect()
}

fn checkpoints(session: &Session) -> Value {
    let answers = session.checkpoint_responses.iter().map(|(key, response)| {
        let set = response.effects.as_ref().and_then(|effects| effects.get("variablesSet")).cloned();
        let answer = json!({
            "optionId": response.option_id,
            "respondedAt": response.responded_at,
            "variablesSet": set.unwrap_or_else(|| json!({})),
        });
        (key.clone(), answer)
    });
    Value::Object(answers.collect())
}

fn activities(session: &Session) -> Value {
    let outcomes: Vec<Value> = session
        .history
        .iter()
        .filter(|event| event.kind() == "activity_outcome")
        .map(|event| {
            let mut members = Map::new();
            members.insert("activity".to_owned(), event.activity().into());
            members.insert("outcome".to_owned(), event.data("outcome").cloned().unwrap_or(Value::Null));
            if let Some(condition) = event.data("transitionCondition") {
                members.insert("transitionCondition".to_owned(), condition.clone());
            }
            Value::Object(members)
        })
        .collect();
    let (unpublished, unreported) = progress_marks(session);
    json!({
        "completed": session.completed_activities,
        "skipped": session.skipped_activities,
        "current": session.current_activity,
        "outcomes": outcomes,
        "progress_mark_unpublished": unpublished,
        "progress_mark_unreported": unreported,
    })
}

/// Entered activities whose newest progress report says no, and those without any report.
fn progress_marks(session: &Session) -> (Vec<&str>, Vec<&str>) {
    let mut entered: Vec<&str> = Vec::new();
    for event in session.history.iter().filter(|event| event.kind() == "activity_entered") {
        if event.activity() != workflow_corpus::TERMINAL && !entered.contains(&event.activity()) {
            entered.push(event.activity());
        }
    }
    let newest = |activity: &str| {
        let mut reports = session.history.iter().rev();
        reports
            .find(|event| event.kind() == "progress_published" && event.activity() == activity)
            .and_then(|event| event.data("published")?.as_bool())
    };
    let marked = |wanted: Option<bool>| entered.iter().copied().filter(|id| newest(id) == wanted).collect();
    (marked(Some(false)), marked(None))
}

fn history(session: &Session, agent: Option<&str>) -> Value {
    let events =
        || session.history.iter().filter(|event| agent.is_none_or(|agent| event.data_text("agentId") == Some(agent)));
    let mut by_type: Map<String, Value> = Map::new();
    for event in events() {
        let count = by_type.get(event.kind()).and_then(Value::as_u64).unwrap_or(0);
        by_type.insert(event.kind().to_owned(), (count + 1).into());
    }
    let milestones: Vec<Value> = events().filter(|event| MILESTONES.contains(&event.kind())).map(milestone).collect();
    json!({"count": events().count(), "byType": by_type, "milestones": milestones})
}

fn milestone(event: &Event) -> Value {
    let mut members = Map::new();
    for (key, text) in [("type", event.kind()), ("activity", event.activity()), ("checkpoint", event.checkpoint())] {
        if !text.is_empty() {
            members.insert(key.to_owned(), text.into());
        }
    }
    Value::Object(members)
}

/// One line per child; a child that cannot be read shows what the link says, with a warning.
fn children(call: &mut Call<'_>, session: &Session) -> Value {
    let mut lines = Vec::new();
    for (position, reference) in session.triggered_workflows.iter().enumerate() {
        let state = state_of(call, reference);
        let mut members = child_header(position, reference, state.as_ref());
        match &state {
            Some(state) => {
                members.insert("currentActivity".to_owned(), state.current_activity.as_str().into());
                members.insert("completed".to_owned(), json!(state.completed_activities));
                members.extend(usage::digest(state).map(|(key, value)| (key.to_owned(), value)));
            }
            None => warn_unreadable(call, reference),
        }
        lines.push(Value::Object(members));
    }
    Value::Array(lines)
}

/// What children cost, apart from the totals of their parent.
fn child_costs(call: &mut Call<'_>, session: &Session) -> Vec<Value> {
    let mut costs = Vec::new();
    for (position, reference) in session.triggered_workflows.iter().enumerate() {
        let state = state_of(call, reference);
        let mut members = child_header(position, reference, state.as_ref());
        match &state {
            Some(state) => members.extend(usage::digest(state).map(|(key, value)| (key.to_owned(), value))),
            None => warn_unreadable(call, reference),
        }
        costs.push(Value::Object(members));
    }
    costs
}

fn child_header(position: usize, reference: &ChildReference, state: Option<&Session>) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("index".to_owned(), position.into());
    members.insert("sessionIndex".to_owned(), reference.session_index.as_str().into());
    members.insert("workflowId".to_owned(), reference.workflow_id.as_str().into());
    let status = state.map_or(reference.status.as_str(), |state| state.status.as_str());
    members.insert("status".to_owned(), status.into());
    members
}

fn warn_unreadable(call: &mut Call<'_>, reference: &ChildReference) {
    call.warn(
        "W_CHILD_UNREADABLE",
        format!("Child session {} could not be read; only what its parent recorded is shown.", reference.session_index),
    );
}

#[cfg(test)]
mod tests;
