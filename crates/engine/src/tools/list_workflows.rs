//! `list_workflows`: what can be started (spec 03 §5.2).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use workflow_corpus::{ListError, ListedWorkflow};

use crate::{Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool, reply::Content, schema::input_schema};

pub(crate) static TOOL: Tool = Tool {
    name: "list_workflows",
    title: "List workflows",
    description: "Lists the workflows that can be started, as YAML: id, title, version and tags to match the user's goal \
                  against, status (ok, degraded or broken, with the number of errors and warnings in the definition) and \
                  source (which corpus it comes from). Takes no parameters and no session. Pass the id you choose to \
                  start_session or dispatch_child as workflow_id; a broken workflow cannot be started. If a definition \
                  cannot even be listed, the answer is a mapping with workflows and load_errors.",
    annotations: Annotations { read_only: true, idempotent: true },
    gated: false,
    retryable: false,
    traced: false,
    schema: input_schema::<Params>,
    target,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    arguments.decode::<Params>(TOOL.name).map(|_| Target::Nothing)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let Params {} = call.arguments.decode(TOOL.name)?;
    let listing = call.env.corpus.list();
    let workflows: Vec<Value> = listing.workflows.iter().map(item).collect();
    let answer = if listing.load_errors.is_empty() {
        Value::Array(workflows)
    } else {
        let errors: Vec<Value> = listing.load_errors.iter().map(load_error).collect();
        json!({"workflows": workflows, "load_errors": errors})
    };
    for message in listing.warnings {
        call.warn("W_WORKFLOW_DIR", message);
    }
    Ok(Reply::of(None, Content::Text(workflow_yaml::to_string(&answer))))
}

fn item(workflow: &ListedWorkflow) -> Value {
    json!({
        "id": workflow.id,
        "title": workflow.title,
        "version": workflow.version,
        "tags": workflow.tags,
        "status": workflow.status.as_str(),
        "errors": workflow.errors,
        "warnings": workflow.warnings,
        "source": workflow.source,
    })
}

fn load_error(error: &ListError) -> Value {
    json!({
        "file": error.file,
        "line": error.line,
        "column": error.column,
        "code": error.code,
        "error": error.error,
    })
}
