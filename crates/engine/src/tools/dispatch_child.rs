//! `dispatch_child`: a child session embedded in its parent's file; a transient parent is promoted to a planning folder
//! first (spec 03 §1.9, §5.5).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use workflow_corpus::Workflow;

use super::start_session::{Context, refuse_blank};
use crate::{
    Annotations, Arguments, Call, Environment, Family, Folder, Refusal, Reply, StatePath, Target, Tool, index, lineage,
    repo,
    schema::input_schema,
    slug,
    state::{FreshSession, Session, Status},
};

pub(crate) static TOOL: Tool = Tool {
    name: "dispatch_child",
    title: "Dispatch a child workflow",
    description: "Creates a child session of another workflow inside the parent's planning folder and returns the child's \
                  session_index, to be handed to whoever orchestrates it. session_index is the parent's. The child starts \
                  with its own workflow's defaults plus the parent's user_request; nothing else is copied, and the parent's \
                  variables stay as they are. When the child ends, the parent's reference to it becomes completed. A parent \
                  that was started without a slug has no planning folder yet: it is moved to one named planning_slug \
                  (default: today's date and workflow_id) and keeps its session_index. If a session already lives in that \
                  folder the call is refused; on_existing: 'resume' answers with that session's child instead, 'replace' \
                  sets it aside under a backup name. context_mode: 'persistent' only if one context walks the whole child; \
                  omit it when workers start fresh. To give the child a planning folder of its own, call start_session with \
                  parent_planning_slug. Possible while a checkpoint of the parent is open. Next call: get_workflow with the \
                  returned session_index.",
    annotations: Annotations { read_only: false, idempotent: false },
    gated: false,
    retryable: false,
    traced: true,
    schema: input_schema::<Params>,
    target,
    run,
};

/// Agent of a child when none is named.
const WORKER: &str = "worker";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The parent session.
    session_index: String,
    /// Workflow of the child, an id from list_workflows.
    #[schemars(length(min = 1))]
    workflow_id: String,
    /// The child session's own agent. Default: 'worker'.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
    /// Planning folder for a parent that has none yet; ignored otherwise.
    #[serde(default)]
    #[schemars(length(min = 1))]
    planning_slug: Option<String>,
    /// How content is delivered to the child.
    #[serde(default)]
    context_mode: Option<Context>,
    /// Repository the work belongs to: owner/name, or its URL. Default: the parent's.
    #[serde(default)]
    #[schemars(length(min = 1))]
    repo: Option<String>,
    /// What to do when planning_slug holds a session already. Default: 'refuse'.
    #[serde(default)]
    on_existing: Option<OnExisting>,
}

/// What happens to a session that lives where a parent is promoted to.
#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum OnExisting {
    /// nothing is changed
    Refuse,
    /// the answer names the newest child of that workflow in there
    Resume,
    /// the existing files are renamed to a backup
    Replace,
}

impl Params {
    fn read(arguments: &Arguments) -> Result<Self, Refusal> {
        let params: Self = arguments.decode(TOOL.name)?;
        refuse_blank(TOOL.name, "workflow_id", Some(&params.workflow_id))?;
        refuse_blank(TOOL.name, "agent_id", params.agent_id.as_deref())?;
        Ok(params)
    }
}

fn target(env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params = Params::read(arguments)?;
    let index = crate::target::valid_index(&params.session_index)?.to_owned();
    if let Some(slug) = &params.planning_slug {
        slug::check(slug)?;
    }
    let fallback = slug::made_of(&format!("{}-{}", env.now.date(), params.workflow_id));
    Ok(Target::Dispatch { index, slug: params.planning_slug, fallback })
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params = Params::read(call.arguments)?;
    let workflow = call.load_workflow(&params.workflow_id)?;
    call.warn_degraded(&workflow);
    let depth = lineage::of(call.workset).len() + 1;
    let deep = lineage::check_depth(depth)?;
    let repo = params.repo.as_deref().map(repo::normalise).transpose()?;
    // in `complete` the session is completed, but its steps still run
    if call.session()?.is_over() || call.session()?.status == Status::Aborted {
        call.warn(
            "W_PARENT_COMPLETED",
            format!(
                "The parent {} has already ended ({}); the child runs, but nobody may be waiting for it.",
                params.session_index,
                call.session()?.status.as_str()
            ),
        );
    }
    if let Some(message) = deep {
        call.warn("W_DEPTH", message);
    }
    let parent_is_transient = call.workset.families.first().is_some_and(|family| family.folder.transient);
    if !parent_is_transient {
        if params.planning_slug.is_some() {
            call.warn(
                "W_SLUG_IGNORED",
                "planning_slug was ignored: the parent already has a planning folder, and the child lives in it. For a \
                 folder of its own call start_session with parent_planning_slug.",
            );
        }
        return embed(call, &params, &workflow, repo.as_deref(), &Place::Own);
    }
    let target = call.workset.families.get(1).ok_or_else(no_folder)?;
    if let Some(occupant) = &target.root {
        match params.on_existing.unwrap_or(OnExisting::Refuse) {
            OnExisting::Refuse => return Err(slug_in_use(&target.folder, occupant, &params.workflow_id)),
            OnExisting::Resume => return join(call, &params, &workflow),
            OnExisting::Replace => {}
        }
    } else {
        slug::check_new(&target.folder.slug)?;
    }
    let place = promote(call)?;
    embed(call, &params, &workflow, repo.as_deref(), &place)
}

/// Where the parent is when it gets the child.
enum Place {
    /// In the folder it was found in.
    Own,
    /// In the folder it was promoted to, in which these indexes have become free.
    Promoted(Vec<String>),
}

impl Place {
    fn freed(&self) -> &[String] {
        match self {
            Self::Own => &[],
            Self::Promoted(freed) => freed,
        }
    }

    fn family(&self) -> usize {
        usize::from(matches!(self, Self::Promoted(_)))
    }
}

/// Moves the transient parent to the planning folder; an occupant is set aside, and its indexes can be given again.
fn promote(call: &mut Call<'_>) -> Result<Place, Refusal> {
    let [from, to, ..] = call.workset.families.as_mut_slice() else { return Err(no_folder()) };
    let mut root = from.root.take().ok_or_else(no_folder)?;
    root.planning_folder_path = Some(to.folder.path.clone());
    let occupant = to.root.replace(root);
    to.replaced = occupant.is_some();
    let freed = occupant.iter().flat_map(Session::walk).map(|(_, session)| session.session_index.clone());
    Ok(Place::Promoted(freed.collect()))
}

/// Appends the child to the addressed session, which is in this family now.
fn embed(
    call: &mut Call<'_>,
    params: &Params,
    workflow: &Arc<Workflow>,
    repo: Option<&str>,
    place: &Place,
) -> Result<Reply, Refusal> {
    let env = call.env;
    let family = place.family();
    let parent_path = call.workset.path.clone();
    let (folder, child_path) = {
        let Family { folder, root, .. } = call.workset.families.get(family).ok_or_else(no_folder)?;
        let parent = root.as_ref().and_then(|root| root.at(&parent_path)).ok_or_else(no_folder)?;
        let mut path = parent_path.clone();
        path.0.push(parent.triggered_workflows.len());
        (folder.clone(), path)
    };
    let session_index = index::mint(env, call.workset, place.freed(), &index::place(&folder.path, &child_path));
    let parent = parent_at(call, family, &parent_path)?;
    if let Some(repo) = repo {
        repo::bind(parent, repo)?;
    }
    let child = Session::fresh(
        FreshSession {
            workflow,
            agent_id: params.agent_id.as_deref().unwrap_or(WORKER),
            session_index: &session_index,
            planning_folder_path: None,
            repo: parent.repo.as_deref(),
            context_mode: params.context_mode.map(Into::into),
            parent_session: None,
            user_request: parent.variables.get("user_request").and_then(Value::as_str),
        },
        env.now,
    );
    lineage::link(parent, &child, Some(child.clone()), env.now);
    parent.advance(env.now);
    Ok(answer(&session_index, workflow, &folder, matches!(place, Place::Promoted(_))))
}

fn parent_at<'a>(call: &'a mut Call<'_>, family: usize, path: &StatePath) -> Result<&'a mut Session, Refusal> {
    let family = call.workset.families.get_mut(family);
    family.and_then(|family| family.root.as_mut()).and_then(|root| root.at_mut(path)).ok_or_else(no_folder)
}

/// Answers with the child that already lives in the target folder; only the parent's link is written.
fn join(call: &mut Call<'_>, params: &Params, workflow: &Workflow) -> Result<Reply, Refusal> {
    let now = call.now();
    let target = call.workset.families.get(1).ok_or_else(no_folder)?;
    let occupant = target.root.as_ref().ok_or_else(no_folder)?;
    let Some(child) = child_of(occupant, &params.workflow_id).cloned() else {
        return Err(slug_in_use(&target.folder, occupant, &params.workflow_id));
    };
    let folder = target.folder.clone();
    let parent = call.session_mut()?;
    if !lineage::is_linked(parent, &child.session_index) {
        lineage::link(parent, &child, None, now);
        parent.advance(now);
    }
    Ok(answer(&child.session_index, workflow, &folder, true))
}

/// The newest embedded session of a workflow, else the root itself when it walks that workflow.
fn child_of<'a>(root: &'a Session, workflow_id: &str) -> Option<&'a Session> {
    let mut children = root.triggered_workflows.iter().rev().filter_map(|reference| reference.state.as_deref());
    children
        .find(|child| child.workflow_id == workflow_id)
        .or_else(|| (root.workflow_id == workflow_id).then_some(root))
}

fn answer(session_index: &str, workflow: &Workflow, folder: &Folder, promoted: bool) -> Reply {
    let mut header = json!({"id": workflow.id(), "version": workflow.version});
    if let (Value::Object(header), Some(first)) = (&mut header, &workflow.initial_activity) {
        header.insert("initialActivity".to_owned(), first.as_str().into());
    }
    let mut members = Map::new();
    members.insert("session_index".to_owned(), session_index.into());
    members.insert("workflow".to_owned(), header);
    if promoted {
        members.insert("planning_slug".to_owned(), folder.slug.as_str().into());
    }
    members.insert("planning_folder_path".to_owned(), folder.path.as_str().into());
    let next = format!(
        "hand session_index {session_index} to the child's orchestrator, who begins with get_workflow {{session_index: \
         \"{session_index}\"}}"
    );
    members.insert("next".to_owned(), next.into());
    Reply::json(session_index, members)
}

fn slug_in_use(folder: &Folder, occupant: &Session, workflow_id: &str) -> Refusal {
    let child = child_of(occupant, workflow_id).filter(|child| child.session_index != occupant.session_index);
    let inside = child.map_or_else(String::new, |child| {
        format!(", which holds session {} of workflow '{workflow_id}'", child.session_index)
    });
    let mut refusal = Refusal::new(
        "SLUG_IN_USE",
        format!(
            "Planning folder '{slug}' already holds session {} of workflow '{}'{inside}. Nothing was changed. Resume it with \
             start_session {{planning_slug: \"{slug}\"}}, or call dispatch_child again with another planning_slug \
             (on_existing: 'resume' answers with the existing child, 'replace' sets the old session aside).",
            occupant.session_index,
            occupant.workflow_id,
            slug = folder.slug,
        ),
    )
    .with("slug", folder.slug.as_str())
    .with("workflow_id", occupant.workflow_id.as_str())
    .with("session_index", occupant.session_index.as_str());
    if let Some(child) = child {
        refusal = refusal.with("child_session_index", child.session_index.as_str());
    }
    refusal
}

fn no_folder() -> Refusal {
    Refusal::new(
        "SESSION_NOT_FOUND",
        "the parent session is not open for this call; call start_session with its planning slug",
    )
}

#[cfg(test)]
mod tests;
