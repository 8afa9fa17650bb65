//! `get_technique`: one composed technique on demand (spec 02 §11; spec 03 §5.11).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use workflow_corpus::{Activity, Composed, Scope, StepKind, Unresolved, Workflow};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool,
    delivery::{BundleMode, Delivery, Projection, chars, refers_back, yaml},
    dispatch,
    ledger::{Ledger, marker},
    schema::input_schema,
    state::Event,
};

pub(crate) static TOOL: Tool = Tool {
    name: "get_technique",
    title: "Get technique",
    description: "Loads one technique, fully composed: its own contract merged with that of its group and workflow, \
                  their Initial and Final blocks around its protocol. With step_id the technique of that step, where \
                  each input says its source, each remapped output its destination. Without step_id the first \
                  technique of the current activity, or before any activity the first of the workflow. Needed for \
                  steps that get_activity did not list under step_techniques. In a persistent session a technique \
                  that this agent already received unchanged is answered by a marker with its hash; full: true sends \
                  it again. bundle: 'reference' or 'full' chooses per call.",
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
    /// A step of the current activity, loop bodies included. Of steps with equal ids the bare id means the first, and
    /// 'id~2' the second.
    #[serde(default)]
    step_id: Option<String>,
    /// Everything in full, for a context that no longer holds what it received.
    #[serde(default)]
    full: Option<bool>,
    /// 'reference' or 'full' for this call; full: true wins. Default: as the session.
    #[serde(default)]
    bundle: Option<BundleMode>,
    /// The identity your dispatch gave you.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
    /// The activity you believe to be current; refused when the session has moved on.
    #[serde(default)]
    activity_id: Option<String>,
}

const NOTE: &str = "This agent already received exactly this; the full copy carries the same content_hash. If it is no \
                    longer in your context, call get_technique with full: true.";

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Target::session(&params.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params: Params = call.arguments.decode(TOOL.name)?;
    let scope = call.scope(params.agent_id.as_deref())?;
    let selection = select(call, &params)?;
    let composed = selection.composed;
    let technique = composed.resolved.id.as_str();

    let session = call.session()?;
    let choice = if params.full == Some(true) { Some(BundleMode::Full) } else { params.bundle };
    let mut ledger = Ledger::open(session, &scope, refers_back(choice, session));
    let projection = Projection::of(technique, &composed.value);
    let index = session.session_index.clone();
    let (delivery, text) = if projection.held(&ledger) {
        let mut stub = Map::new();
        stub.insert("id".to_owned(), technique.into());
        stub.extend(marker(&projection.hash));
        stub.insert("note".to_owned(), NOTE.into());
        (Delivery::Unchanged, format!("session_index: {index}\n\n{}", yaml(stub)))
    } else {
        let full = yaml(projection.deliver(&mut ledger));
        (Delivery::Full, format!("session_index: {index}\ntechnique_id: {technique}\n\n{full}"))
    };

    call.warnings.extend(composed.warnings.iter().chain(&composed.dangling).cloned());
    let now = call.now();
    let session = call.session_mut()?;
    ledger.save(session, &scope);
    technique.clone_into(&mut session.current_technique);
    dispatch::record_arrival(session, &scope, now);
    let event = Event::new("technique_fetched")
        .with_activity(&session.current_activity)
        .with_data("techniqueId", technique)
        .with_optional_data("stepId", selection.step.as_deref())
        .with_data("agentId", scope.as_str())
        .with_data("chars", chars(&text))
        .with_data("delivery", delivery.as_str());
    session.record(event, now);
    if let Some(step) = &selection.step {
        dispatch::record_step(session, &scope, step, now);
    }
    call.advance();

    let mut reply = Reply::text(&index, text);
    if delivery == Delivery::Unchanged {
        reply.meta.insert("delivery".to_owned(), delivery.as_str().into());
    }
    Ok(reply)
}

struct Selection {
    composed: Arc<Composed>,
    /// Qualified id of the step whose technique this is.
    step: Option<String>,
}

/// Which technique is meant (spec 02 §11.1).
fn select(call: &mut Call<'_>, params: &Params) -> Result<Selection, Refusal> {
    let current = call.session()?.current_activity.clone();
    if let Some(asked) = params.activity_id.as_deref().filter(|asked| *asked != current) {
        return Err(moved(asked, &current));
    }
    if current.is_empty() && params.step_id.is_none() {
        let workflow = call.workflow()?;
        call.warn_drift(&workflow)?;
        let Some(reference) = workflow.techniques.workflow.first() else {
            return Err(Refusal::new(
                "NO_WORKFLOW_TECHNIQUE",
                format!(
                    "Workflow '{}' declares no techniques for the orchestrator, and no activity is current. Call \
                     next_activity first, then get_technique with a step_id.",
                    workflow.id()
                ),
            )
            .with("workflow_id", workflow.id()));
        };
        let scope = Scope { executing: &workflow.key, activity: None };
        let composed =
            call.env.corpus.technique(reference, &scope).map_err(|unresolved| not_found(&unresolved, None))?;
        return Ok(Selection { composed, step: None });
    }
    let workflow = call.workflow()?;
    call.warn_drift(&workflow)?;
    let activity = call.activity()?;
    match &params.step_id {
        Some(step) => step_technique(call, &workflow, &activity, step),
        None => first_technique(call, &workflow, &activity),
    }
}

fn step_technique(
    call: &Call<'_>,
    workflow: &Workflow,
    activity: &Activity,
    step_id: &str,
) -> Result<Selection, Refusal> {
    let Some(step) = activity.find_step(step_id) else {
        let ids: Vec<Value> = activity.flat_steps().into_iter().map(|flat| flat.qualified_id.into()).collect();
        let listed = listed(&ids);
        return Err(Refusal::new(
            "STEP_NOT_FOUND",
            format!("Activity '{}' has no step '{step_id}'. Call get_technique with one of: {listed}.", activity.id),
        )
        .with("activity_id", activity.id.as_str())
        .with("step_ids", ids));
    };
    if !matches!(step.step.kind, StepKind::Technique { .. }) {
        let ids: Vec<Value> = activity
            .flat_steps()
            .into_iter()
            .filter(|flat| matches!(flat.step.kind, StepKind::Technique { .. }))
            .map(|flat| flat.qualified_id.into())
            .collect();
        let listed = listed(&ids);
        return Err(Refusal::new(
            "STEP_HAS_NO_TECHNIQUE",
            format!(
                "Step '{}' of activity '{}' binds no technique: carry it out as the activity describes it. Steps with \
                 a technique: {listed}.",
                step.qualified_id, activity.id
            ),
        )
        .with("activity_id", activity.id.as_str())
        .with("step_ids", ids));
    }
    let composed = call
        .env
        .corpus
        .step_technique(workflow, activity, &step)
        .map_err(|unresolved| not_found(&unresolved, Some(&step.qualified_id)))?;
    Ok(Selection { composed, step: Some(step.qualified_id) })
}

fn first_technique(call: &Call<'_>, workflow: &Workflow, activity: &Activity) -> Result<Selection, Refusal> {
    let Some(reference) = activity.techniques.first() else {
        return Err(Refusal::new(
            "NO_ACTIVITY_TECHNIQUE",
            format!(
                "Activity '{}' lists no techniques of its own. Call get_technique with the step_id of one of its steps.",
                activity.id
            ),
        )
        .with("activity_id", activity.id.as_str()));
    };
    let scope = Scope { executing: &activity.source, activity: Some(&activity.id) };
    let composed = call
        .env
        .corpus
        .technique_for(&workflow.key, reference, &scope)
        .map_err(|unresolved| not_found(&unresolved, None))?;
    Ok(Selection { composed, step: None })
}

fn listed(ids: &[Value]) -> String {
    if ids.is_empty() {
        return "none".to_owned();
    }
    ids.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn moved(asked: &str, current: &str) -> Refusal {
    let now = if current.is_empty() { "no activity is current".to_owned() } else { format!("'{current}' is current") };
    Refusal::new(
        "ACTIVITY_MOVED",
        format!(
            "get_technique was asked for activity '{asked}', but {now}. Do not retry without activity_id: report to \
             the orchestrator that the session has moved."
        ),
    )
    .with("asked", asked)
    .with("current_activity", current)
}

fn not_found(unresolved: &Unresolved, step: Option<&str>) -> Refusal {
    let whose = step.map(|step| format!(" of step '{step}'")).unwrap_or_default();
    Refusal::new(
        "TECHNIQUE_NOT_FOUND",
        format!(
            "Technique not found: {}{whose} ({}). Report it to the orchestrator; the workflow definition must be \
             corrected.",
            unresolved.reference, unresolved.reason
        ),
    )
    .with("reference", unresolved.reference.as_str())
}
