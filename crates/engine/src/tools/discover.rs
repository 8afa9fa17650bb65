//! `discover`: who the server is and how to begin (spec 03 §5.1).

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool, reply::Content, schema::input_schema};

pub(crate) static TOOL: Tool = Tool {
    name: "discover",
    title: "Discover the server",
    description: "Start here: returns the server's name and version, the procedure for finding, starting and resuming \
                  workflows, and the ids of the workflows that can be started. Takes no parameters and no session. Read \
                  the answer to its end and follow it; it says when to call list_workflows and start_session.",
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
    let settings = call.env.settings;
    let mut text = format!("server: {}\nversion: {}\n", settings.server_name, settings.server_version);
    if let Some(bootstrap) = call.env.corpus.bootstrap() {
        text.push('\n');
        text.push_str(&bootstrap);
        text.push_str(if bootstrap.ends_with('\n') { "" } else { "\n" });
    }
    let ids = call.env.corpus.workflow_ids();
    text.push_str("\nworkflow ids: ");
    text.push_str(if ids.is_empty() { "none" } else { "" });
    text.push_str(&ids.join(", "));
    Ok(Reply::of(None, Content::Text(text)))
}
