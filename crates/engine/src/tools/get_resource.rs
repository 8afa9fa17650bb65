//! `get_resource`: the body of a resource, whole or one section (spec 02 §12; spec 03 §5.12).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;
use workflow_corpus::{Resource, ResourceError, Workflow};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool,
    delivery::{BundleMode, Delivery, chars, yaml},
    dispatch,
    ledger::{Ledger, content_hash, marker},
    reply::Content,
    schema::input_schema,
    state::Event,
};

pub(crate) static TOOL: Tool = Tool {
    name: "get_resource",
    title: "Get resource",
    description: "Loads the text of a resource that a technique or an activity refers to: reference material, templates, \
                  checklists. resource_id is 'slug' for the session's workflow, 'workflow/slug' for another one, with \
                  '#section' for one section only. Fetch a resource when a step needs it. Always answered in full, \
                  unless bundle: 'reference' asks for a marker in place of what this agent already received.",
    annotations: Annotations { read_only: false, idempotent: true },
    gated: true,
    retryable: false,
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
    /// '[workflow/]slug[#section]', as written in a link or a resources list; '.md' after the slug is tolerated.
    resource_id: String,
    /// The identity your dispatch gave you.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
    /// 'reference': a marker if you already received exactly this under the same resource_id. Default: full.
    #[serde(default)]
    bundle: Option<BundleMode>,
    /// true wins over bundle: 'reference'.
    #[serde(default)]
    full: Option<bool>,
}

const NOTE: &str = "This agent already received exactly this under the same resource_id. If it is no longer in your \
                    context, call get_resource with full: true.";

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Target::session(&params.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params: Params = call.arguments.decode(TOOL.name)?;
    let scope = call.scope(params.agent_id.as_deref())?;
    let workflow = call.workflow()?;
    call.warn_drift(&workflow)?;
    let requested = params.resource_id.as_str();
    let resource = call.env.corpus.resource(&workflow, requested).map_err(|error| refusal(&workflow, error))?;

    let session = call.session()?;
    let index = session.session_index.clone();
    let reference = params.bundle == Some(BundleMode::Reference) && params.full != Some(true);
    let mut ledger = Ledger::open(session, &scope, reference);
    let full = text(requested, &resource, &index);
    let hash = content_hash(&full);
    let key = format!("resource:{requested}");
    let delivery = if ledger.held_before(&key, &hash) { Delivery::Unchanged } else { Delivery::Full };
    let text = match delivery {
        Delivery::Full => {
            ledger.record(key, &hash);
            full
        }
        Delivery::Unchanged => stub(requested, &hash, &index),
    };

    let now = call.now();
    let session = call.session_mut()?;
    ledger.save(session, &scope);
    dispatch::record_arrival(session, &scope, now);
    let event = Event::new("resource_fetched")
        .with_activity(&session.current_activity)
        .with_data("resourceId", requested)
        .with_data("agentId", scope.as_str())
        .with_data("chars", chars(&text))
        .with_data("delivery", delivery.as_str());
    session.record(event, now);
    call.advance();

    let mut reply = Reply::of(Some(&index), Content::Resource(text));
    if delivery == Delivery::Unchanged {
        reply.meta.insert("delivery".to_owned(), delivery.as_str().into());
    }
    Ok(reply)
}

/// The full text, session index included: it is what is hashed (T-30).
fn text(requested: &str, resource: &Resource, index: &str) -> String {
    let version = resource.version.as_ref().map(|version| format!("version: {version}\n")).unwrap_or_default();
    format!("resource_id: {requested}\nid: {}\n{version}session_index: {index}\n\n{}", resource.id, resource.content)
}

fn stub(requested: &str, hash: &str, index: &str) -> String {
    let mut members = Map::new();
    members.insert("resource_id".to_owned(), requested.into());
    members.extend(marker(hash));
    members.insert("note".to_owned(), NOTE.into());
    format!("session_index: {index}\n\n{}", yaml(members))
}

/// Why the resource is not served, and what to do.
fn refusal(workflow: &Workflow, error: ResourceError) -> Refusal {
    let text = error.to_string();
    match error {
        ResourceError::InvalidId { id } => {
            Refusal::new("RESOURCE_ID_INVALID", format!("{text}. Pass the id as the technique or activity writes it."))
                .with("resource_id", id)
        }
        ResourceError::NotFound { id, workflow: place, near, .. } => Refusal::new(
            "RESOURCE_NOT_FOUND",
            format!(
                "{text}. A bare id means workflow '{}'; call get_resource with 'workflow/slug' for another one, or go \
                 on without it and report the missing resource.",
                workflow.id()
            ),
        )
        .with("resource_id", id)
        .with("workflow_id", place)
        .with("near", near),
        ResourceError::SectionNotFound { section, resource, available } => Refusal::new(
            "SECTION_NOT_FOUND",
            format!("{text}. Call get_resource with one of these sections, or without '#' for the whole resource."),
        )
        .with("resource_id", resource)
        .with("section", section)
        .with("available", available),
    }
}
