//! `start_session`: opens a session by its slug, new or resumed, with or without a parent (spec 03 §1.5–§1.9, §5.4).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use workflow_corpus::{META, Workflow};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool, TraceEntry, index, lineage, repo,
    schema::input_schema,
    slug,
    state::{ContextMode, FreshSession, Session, Status},
    trace, variable,
};

pub(crate) static TOOL: Tool = Tool {
    name: "start_session",
    title: "Start or resume a session",
    description: "Starts a session, or resumes the one that planning_slug names, and returns its session_index, which every \
                  other call takes. planning_slug is the name of the planning folder that keeps the work: the same slug \
                  resumes the same session, in whatever state it is, after any interruption. Without a slug a transitional \
                  one is minted and returned as planning_slug. workflow_id (default meta) counts for a new session only; a \
                  resume continues the recorded workflow and keeps its variables. parent_planning_slug makes the new session \
                  a child of that one, in a planning folder of its own; dispatch_child instead keeps the child in the \
                  parent's folder. agent_id is the session's own agent, usually the orchestrator; a resume without it changes \
                  nothing. context_mode: 'persistent' only if one context walks the whole session, since content that it \
                  already received is then replaced by markers; omit it when workers start fresh. planning_folder, an \
                  absolute path whose last segment is the slug, is accepted instead of planning_slug. The answer says \
                  resumed, and planning_folder_path for a durable session. Next call: get_workflow, or get_workflow_status \
                  after a resume.",
    annotations: Annotations { read_only: false, idempotent: false },
    gated: false,
    retryable: true,
    traced: true,
    schema: input_schema::<Params>,
    target,
    run,
};

/// Agent of a new session when none is named.
const ORCHESTRATOR: &str = "orchestrator";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Who owns the session. Default for a new one: 'orchestrator'; on a resume it replaces the recorded agent.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
    /// Workflow of a new session, an id from list_workflows. Default: 'meta'. Ignored on a resume.
    #[serde(default)]
    #[schemars(length(min = 1))]
    workflow_id: Option<String>,
    /// Name of the planning folder, such as '2026-07-13-topic'; the same name resumes the session. Omit it when no name
    /// is known yet.
    #[serde(default)]
    #[schemars(length(min = 1))]
    planning_slug: Option<String>,
    /// planning_slug of the session that dispatches this one.
    #[serde(default)]
    #[schemars(length(min = 1))]
    parent_planning_slug: Option<String>,
    /// How content is delivered; replaces the recorded mode on a resume.
    #[serde(default)]
    context_mode: Option<Context>,
    /// Absolute path in place of planning_slug; only its last segment counts.
    #[serde(default)]
    #[schemars(length(min = 1))]
    planning_folder: Option<String>,
    /// Repository the work belongs to: owner/name, or its URL.
    #[serde(default)]
    #[schemars(length(min = 1))]
    repo: Option<String>,
    /// The user's request in their words; kept as variable user_request and handed to children.
    #[serde(default)]
    user_request: Option<String>,
}

/// Delivery model of a session, as sent.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Context {
    /// one context holds everything it was sent, so repetitions become markers
    Persistent,
    /// every call is answered in full
    Fresh,
}

impl From<Context> for ContextMode {
    fn from(context: Context) -> Self {
        match context {
            Context::Persistent => Self::Persistent,
            Context::Fresh => Self::Fresh,
        }
    }
}

impl Params {
    fn read(arguments: &Arguments) -> Result<Self, Refusal> {
        let params: Self = arguments.decode(TOOL.name)?;
        for (name, value) in [("agent_id", &params.agent_id), ("workflow_id", &params.workflow_id)] {
            refuse_blank(TOOL.name, name, value.as_deref())?;
        }
        Ok(params)
    }

    /// The slug that was sent, in either form.
    fn slug(&self) -> Result<Option<String>, Refusal> {
        let folder = self.planning_folder.as_deref().map(slug::of_folder).transpose()?;
        if let Some(slug) = &self.planning_slug {
            slug::check(slug)?;
        }
        match (&self.planning_slug, folder) {
            (Some(slug), Some((last, _))) if *slug != last => Err(Refusal::new(
                "SLUG_CONFLICT",
                format!(
                    "planning_slug '{slug}' and the last segment of planning_folder, '{last}', name different folders; sent \
                     together they must be equal. Send one of the two, or omit both for a meta bootstrap."
                ),
            )
            .with("planning_slug", slug.as_str())
            .with("planning_folder", last)),
            (Some(slug), _) => Ok(Some(slug.clone())),
            (None, Some((last, _))) => Ok(Some(last)),
            (None, None) => Ok(None),
        }
    }
}

/// Refuses a parameter that was sent as an empty text.
pub(super) fn refuse_blank(tool: &str, name: &str, value: Option<&str>) -> Result<(), Refusal> {
    match value {
        Some("") => Err(Refusal::invalid_params(tool, &format!("{name}: must not be empty; omit it for its default"))),
        _ => Ok(()),
    }
}

fn target(env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params = Params::read(arguments)?;
    let sent = params.slug()?;
    if let Some(parent) = &params.parent_planning_slug {
        slug::check(parent)?;
        if sent.as_ref() == Some(parent) {
            return Err(Refusal::new(
                "SLUG_CONFLICT",
                format!(
                    "planning_slug and parent_planning_slug are both '{parent}', but no session is its own parent. Pass \
                     another planning_slug for the child, or omit parent_planning_slug to resume '{parent}'."
                ),
            )
            .with("planning_slug", parent.as_str()));
        }
    }
    let minted = sent.is_none();
    let slug = sent.unwrap_or_else(|| slug::minted(&env.randomness.uuid()));
    let transient = minted && params.workflow_id.as_deref().is_none_or(|id| id == META);
    Ok(Target::Slug { slug, minted, transient, parent: params.parent_planning_slug })
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params = Params::read(call.arguments)?;
    let folder = call.workset.families.first().map(|family| family.folder.clone()).ok_or_else(nothing_open)?;
    if let Some(sent) = &params.planning_folder {
        let (_, normal) = slug::of_folder(sent)?;
        if normal != folder.path {
            call.warn(
                "W_PATH_HINT",
                format!(
                    "planning_folder names {normal}, but this server keeps the session in {}. Only the last segment of \
                     planning_folder counts; put artifacts into the folder named here.",
                    folder.path
                ),
            );
        }
    }
    let is_new = call.workset.session().is_none();
    let (workflow, traces) = if is_new { open(call, &params)? } else { resume(call, &params)? };
    call.warn_degraded(&workflow);
    let depth = lineage::of(call.workset).len();
    if let Some(message) = lineage::check_depth(depth)? {
        call.warn("W_DEPTH", message);
    }
    let session = call.session()?;
    let mut members = Map::new();
    members.insert("workflow".to_owned(), header(&workflow));
    members.insert("session_index".to_owned(), session.session_index.as_str().into());
    members.insert("planning_slug".to_owned(), folder.slug.as_str().into());
    if !folder.transient {
        members.insert("planning_folder_path".to_owned(), folder.path.as_str().into());
    }
    if let Some(repo) = &session.repo {
        members.insert("repo".to_owned(), repo.as_str().into());
    }
    if let Some(mode) = session.context_mode {
        members.insert("context_mode".to_owned(), mode.as_str().into());
    }
    members.insert("resumed".to_owned(), (!is_new).into());
    if session.status != Status::Running {
        let next = format!(
            "this session is over ({}): get_workflow_status shows what came of it; for another piece of work take another \
             planning_slug",
            session.status.as_str()
        );
        members.insert("next".to_owned(), next.into());
    }
    let mut reply = Reply::json(&session.session_index, members);
    reply.traces = traces;
    Ok(reply)
}

/// What a session needs to begin or go on: its definition, and what its parent's trace says of it.
type Opened = (Arc<Workflow>, Vec<TraceEntry>);

/// Begins a session (spec 03 §1.7).
fn open(call: &mut Call<'_>, params: &Params) -> Result<Opened, Refusal> {
    let env = call.env;
    let folder = call.workset.families.first().map(|family| family.folder.clone()).ok_or_else(nothing_open)?;
    if params.slug()?.is_some() {
        if slug::is_minted(&folder.slug) {
            return Err(minted_elsewhere(&folder.slug));
        }
        slug::check_new(&folder.slug)?;
    }
    let parent = call.workset.families.get(1).and_then(|family| family.root.as_ref());
    if let (Some(slug), None) = (&params.parent_planning_slug, parent) {
        return Err(parent_not_found(slug));
    }
    let workflow = call.load_workflow(params.workflow_id.as_deref().unwrap_or(META))?;
    let repo = match &params.repo {
        Some(sent) => Some(repo::normalise(sent)?),
        None => parent.and_then(|parent| parent.repo.clone()),
    };
    let inherited = parent.and_then(|parent| parent.variables.get("user_request")).and_then(Value::as_str);
    let session_index = index::mint(env, call.workset, &[], &folder.path);
    let session = Session::fresh(
        FreshSession {
            workflow: &workflow,
            agent_id: params.agent_id.as_deref().unwrap_or(ORCHESTRATOR),
            session_index: &session_index,
            planning_folder_path: (!folder.transient).then_some(folder.path.as_str()),
            repo: repo.as_deref(),
            context_mode: params.context_mode.map(Into::into),
            parent_session: parent.map(|parent| Box::new(lineage::snapshot(parent))),
            user_request: params.user_request.as_deref().or(inherited),
        },
        env.now,
    );
    let mut traces = Vec::new();
    if let Some(parent) = call.workset.families.get_mut(1).and_then(|family| family.root.as_mut()) {
        lineage::link(parent, &session, None, env.now);
        parent.advance(env.now);
        traces.push(trace::link_event(env, parent, &session));
    }
    if let Some(family) = call.workset.families.first_mut() {
        family.root = Some(session);
    }
    Ok((workflow, traces))
}

/// Takes a session up again: only what was sent changes (spec 03 §1.6).
fn resume(call: &mut Call<'_>, params: &Params) -> Result<Opened, Refusal> {
    let env = call.env;
    let workflow = call.workflow()?;
    let repo = params.repo.as_deref().map(repo::normalise).transpose()?;
    let folder = call.workset.families.first().map(|family| family.folder.clone()).ok_or_else(nothing_open)?;
    ignored_workflow(call, params)?;
    let traces = relink(call, params)?;

    let session = call.session_mut()?;
    let mut changed = lineage::converge(env, session);
    let mut rebound = None;
    if let Some(agent) = params.agent_id.as_ref().filter(|agent| **agent != session.agent_id) {
        if let Some(active) = &session.active_checkpoint {
            rebound = Some(format!(
                "The session's agent is now '{agent}' instead of '{}', while checkpoint '{}' waits for an answer. Deliveries \
                 and the batch bound follow the new agent.",
                session.agent_id, active.checkpoint_id
            ));
        }
        session.agent_id.clone_from(agent);
        changed = true;
    }
    if let Some(mode) = params.context_mode.map(ContextMode::from)
        && session.context_mode != Some(mode)
    {
        if mode == ContextMode::Fresh && session.context_mode == Some(ContextMode::Persistent) {
            let agent = session.agent_id.clone();
            session.delivered_content.shift_remove(&agent);
        }
        session.context_mode = Some(mode);
        changed = true;
    }
    if !folder.transient && session.planning_folder_path.as_ref() != Some(&folder.path) {
        session.planning_folder_path = Some(folder.path);
        changed = true;
    }
    if let Some(repo) = repo {
        changed |= repo::bind(session, &repo)?;
    }
    if let Some(request) = &params.user_request
        && session.variables.get("user_request").and_then(Value::as_str) != Some(request)
    {
        let mistyped = variable::write(
            session,
            &workflow,
            variable::Write {
                name: "user_request",
                value: request.as_str().into(),
                activity: "",
                source: "user_request",
            },
            env.now,
        );
        call.warnings.extend(mistyped);
        changed = true;
    }
    if changed {
        call.advance();
    }
    if let Some(message) = rebound {
        call.warn("W_AGENT_REBOUND", message);
    }
    Ok((workflow, traces))
}

fn ignored_workflow(call: &mut Call<'_>, params: &Params) -> Result<(), Refusal> {
    let recorded = call.session()?.workflow_id.clone();
    if let Some(sent) = params.workflow_id.as_ref().filter(|sent| **sent != recorded) {
        call.warn(
            "W_WORKFLOW_ID_IGNORED",
            format!(
                "This session walks workflow '{recorded}' and goes on with it; workflow_id '{sent}' was ignored. For \
                 another workflow choose another planning_slug, or call dispatch_child."
            ),
        );
    }
    Ok(())
}

/// Completes the link between a resumed child and its parent: the recorded one, or one that was named now.
fn relink(call: &mut Call<'_>, params: &Params) -> Result<Vec<TraceEntry>, Refusal> {
    let Some(named) = params.parent_planning_slug.as_deref() else {
        return Ok(lineage::complete_link(call.env, call.workset).into_iter().collect());
    };
    let [child, rest @ ..] = call.workset.families.as_mut_slice() else { return Err(nothing_open()) };
    let child = child.root.as_ref().ok_or_else(nothing_open)?;
    let Some(parent) = rest.first_mut().and_then(|family| family.root.as_mut()) else {
        if !call.workset.warnings.iter().any(|warning| warning.code == "W_PARENT_NOT_FOUND") {
            call.warn(
                "W_PARENT_NOT_FOUND",
                format!(
                    "No session was found under parent_planning_slug '{named}'; this one goes on without that link."
                ),
            );
        }
        return Ok(Vec::new());
    };
    let index = parent.session_index.as_str();
    let recorded = child.parent_session.as_ref().map(|parent| parent.session_index.as_str());
    let obstacle = if lineage::holds(child, index) || lineage::is_linked(child, index) {
        Some("that session is a descendant of this one".to_owned())
    } else {
        recorded.filter(|recorded| *recorded != index).map(|recorded| format!("the recorded parent is {recorded}"))
    };
    if let Some(obstacle) = obstacle {
        call.warn("W_PARENT_LINK", format!("parent_planning_slug '{named}' was ignored: {obstacle}."));
        return Ok(Vec::new());
    }
    Ok(lineage::join(call.env, parent, child).into_iter().collect())
}

fn header(workflow: &Workflow) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), workflow.id().into());
    members.insert("version".to_owned(), workflow.version.as_str().into());
    members.insert("title".to_owned(), workflow.title.as_str().into());
    if let Some(description) = &workflow.description {
        members.insert("description".to_owned(), json!(description));
    }
    Value::Object(members)
}

fn nothing_open() -> Refusal {
    Refusal::new("SESSION_NOT_FOUND", "no folder was opened for this call; call start_session again")
}

fn minted_elsewhere(slug: &str) -> Refusal {
    Refusal::new(
        "SESSION_NOT_FOUND",
        format!(
            "Nothing is found under '{slug}', a slug that this server mints itself. The session may have been removed or \
             belongs to another state directory. Omit planning_slug for a new session, or pass the slug of an existing one."
        ),
    )
    .with("slug", slug)
}

fn parent_not_found(slug: &str) -> Refusal {
    Refusal::new(
        "PARENT_NOT_FOUND",
        format!(
            "No session was found under parent_planning_slug '{slug}', neither among the transient sessions nor in a \
             planning folder of that name. Nothing was created. Pass planning_slug exactly as start_session returned it \
             for the parent."
        ),
    )
    .with("parent_planning_slug", slug)
}

#[cfg(test)]
mod tests;
