//! `list_workflows`: what can be started (spec 03 §5.2).

use serde_json::{Value, json};
use workflow_corpus::{ListError, ListedWorkflow};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool, reply::Content, schema::input_schema,
    tools::NoParams,
};

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
    schema: input_schema::<NoParams>,
    target,
    run,
};

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    arguments.decode(TOOL.name).map(|NoParams {}| Target::Nothing)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let NoParams {} = call.arguments.decode(TOOL.name)?;
    let listing = call.env.corpus.list();
    let workflows: Vec<Value> = listing.workflows.iter().map(ListedWorkflow::to_value).collect();
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

fn load_error(error: &ListError) -> Value {
    json!({
        "file": error.file,
        "line": error.line,
        "column": error.column,
        "code": error.code,
        "error": error.error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    fn listed(workspace: &Workspace) -> Value {
        workflow_yaml::parse(&workspace.call("list_workflows", json!({})).plain_text()).root.to_value()
    }

    #[test]
    fn every_workflow_but_meta_is_an_item() {
        let item = |id: &str, title: &str, version: &str, tags: Value| {
            json!({"id": id, "title": title, "version": version, "tags": tags, "status": "ok", "errors": 0, "warnings": 0,
                   "source": "test"})
        };
        let mut list = listed(&Workspace::new());
        for entry in list.as_array_mut().unwrap() {
            entry["warnings"] = 0.into();
        }
        let expected =
            [item("bare", "Bare", "0.1.0", json!([])), item("mini", "Mini", "1.2.0", json!(["small", "test"]))];
        assert_eq!(list, json!(expected));
    }

    #[test]
    fn a_manifest_that_cannot_be_listed_makes_it_a_mapping() {
        let workspace = Workspace::over(&[
            ("good/workflow.yaml", "id: good\nversion: 1.0.0\ntitle: Good\ninitialActivity: a\n"),
            ("good/activities/01-a.yaml", "id: a\nversion: 1.0.0\nname: A\nsteps:\n  - kind: action\n    id: s\n"),
            ("bad/workflow.yaml", "id: [\n"),
        ]);
        let list = listed(&workspace);
        assert_eq!(list["workflows"][0]["id"], "good");
        let error = &list["load_errors"][0];
        assert_eq!(error["file"], "bad/workflow.yaml");
        for member in ["line", "column", "code", "error"] {
            assert!(!error[member].is_null(), "{member}");
        }
    }
}
