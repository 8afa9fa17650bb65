//! `get_workflow`: what an orchestrator needs of its workflow (spec 02 §5; spec 03 §5.10).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use workflow_corpus::{Activity, ActivityLoadError, Bundle, Workflow};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool,
    delivery::{SEPARATOR, hashes, refers_back, yaml},
    ledger::{Ledger, content_hash, marker},
    schema::input_schema,
};

pub(crate) static TOOL: Tool = Tool {
    name: "get_workflow",
    title: "Get workflow",
    description: "Loads the structure of the session's workflow: an orchestrator's first call after start_session. The \
                  text begins with the technique bundle of the orchestrator (techniques, rules, unresolved); below the \
                  line '---' stand the workflow's rules, its variables, initialActivity and one line for each \
                  activity. Then call next_activity with initialActivity. The details of an activity go to its worker \
                  with get_activity. In a persistent session the bundle is replaced by a marker once this agent has \
                  received it.",
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
}

const NOTE: &str = "The session's agent already received this bundle in full, with the same hash, above the line '---' \
                    of an earlier get_workflow.";

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Target::session(&params.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let workflow = call.workflow()?;
    let bundle = call.env.corpus.workflow_bundle(&workflow);
    call.warn_drift(&workflow)?;
    call.warnings.extend(bundle.warnings.iter().cloned());
    let session = call.session()?;
    let scope = session.agent_id.clone();
    let mut ledger = Ledger::open(session, &scope, refers_back(None, session));
    let above = yaml(collapse(members(bundle), &mut ledger));
    let index = session.session_index.clone();
    let mut summary = summary(&workflow);
    summary.insert("session_index".to_owned(), index.clone().into());
    if let Some(path) = planning_folder_path(call) {
        summary.insert("planning_folder_path".to_owned(), path.into());
    }
    ledger.save(call.session_mut()?, &scope);
    call.advance();
    Ok(Reply::text(&index, above + SEPARATOR + &yaml(summary)))
}

/// Techniques, rules and unresolved references (spec 02 §3.2).
fn members(bundle: Bundle) -> Map<String, Value> {
    let mut members = Map::new();
    let techniques: Map<String, Value> =
        bundle.techniques.into_iter().map(|(name, body)| (name, Value::Object(body))).collect();
    if !techniques.is_empty() {
        members.insert("techniques".to_owned(), techniques.into());
    }
    if !bundle.rules.is_empty() {
        let rules: Vec<Value> = bundle.rules.into_iter().map(|(name, text)| vec![name, text].into()).collect();
        members.insert("rules".to_owned(), rules.into());
    }
    if !bundle.unresolved.is_empty() {
        members.insert("unresolved".to_owned(), bundle.unresolved.into());
    }
    members
}

/// The bundle with its hash, recorded, or one marker for all of it. An empty bundle is neither.
fn collapse(mut bundle: Map<String, Value>, ledger: &mut Ledger) -> Map<String, Value> {
    if bundle.is_empty() {
        return bundle;
    }
    let hash = content_hash(&yaml(bundle.clone()));
    let key = format!("workflow_bundle:{hash}");
    if ledger.held_before(&key, &hash) {
        let mut marker = marker(&hash);
        marker.insert("note".to_owned(), NOTE.into());
        return marker;
    }
    ledger.record(key, &hash);
    bundle.insert("content_hashes".to_owned(), hashes("workflow_bundle", &hash));
    bundle
}

/// The lightweight description of the workflow; absent members are left out.
fn summary(workflow: &Workflow) -> Map<String, Value> {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("id", workflow.id().into());
    put("version", workflow.version.clone().into());
    put("title", workflow.title.clone().into());
    if let Some(description) = &workflow.description {
        put("description", description.clone().into());
    }
    let rules: Vec<Value> =
        workflow.rules.workflow.iter().chain(&workflow.rules.universal).map(|rule| rule.clone().into()).collect();
    if !rules.is_empty() {
        put("rules", rules.into());
    }
    if !workflow.variables.is_empty() {
        put(
            "variables",
            workflow.variables.iter().map(|variable| Value::Object(variable.declaration.clone())).collect(),
        );
    }
    if let Some(initial) = &workflow.initial_activity {
        put("initialActivity", initial.clone().into());
    }
    put("activities", workflow.activities.iter().map(|activity| stub(activity)).collect());
    if !workflow.load_errors.is_empty() {
        put("activity_load_errors", workflow.load_errors.iter().map(load_error).collect());
    }
    members
}

fn stub(activity: &Activity) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), activity.id.clone().into());
    members.insert("name".to_owned(), activity.name.clone().into());
    members.insert("required".to_owned(), activity.required.into());
    if let Some(prefix) = &activity.artifact_prefix {
        members.insert("artifactPrefix".to_owned(), prefix.clone().into());
    }
    members.into()
}

/// The folder that holds the session, the real one of a transient session too (spec 03 §1.4); an embedded child lives in
/// that of its top session.
fn planning_folder_path(call: &Call<'_>) -> Option<String> {
    call.workset.families.first().map(|family| family.folder.path.clone())
}

fn load_error(error: &ActivityLoadError) -> Value {
    json!({
        "file": error.file,
        "line": error.line,
        "column": error.column,
        "code": error.code,
        "activity_id": error.activity_id,
        "error": error.error,
    })
}
