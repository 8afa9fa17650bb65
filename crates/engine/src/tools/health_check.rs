//! `health_check`: whether the server can work (spec 03 §5.3).

use serde_json::Map;

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool, reply::Content, schema::input_schema,
    tools::NoParams,
};

pub(crate) static TOOL: Tool = Tool {
    name: "health_check",
    title: "Check health",
    description: "Says whether the server can work: status (healthy, or degraded with a list of problems), server name, \
                  version, number of workflows available and uptime in seconds. Takes no parameters and no session. Call \
                  it when other calls fail unexpectedly; it changes nothing.",
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
    let env = call.env;
    let problems = (env.problems)();
    let mut members = Map::new();
    members.insert("status".to_owned(), if problems.is_empty() { "healthy" } else { "degraded" }.into());
    members.insert("server".to_owned(), env.settings.server_name.as_str().into());
    members.insert("version".to_owned(), env.settings.server_version.as_str().into());
    members.insert("workflows_available".to_owned(), env.corpus.list().startable().count().into());
    members.insert("uptime_seconds".to_owned(), env.uptime_seconds.into());
    if !problems.is_empty() {
        members.insert("problems".to_owned(), problems.into());
    }
    Ok(Reply::of(None, Content::Json(members)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::workspace::Workspace;

    #[test]
    fn problems_degrade_the_health() {
        let mut workspace = Workspace::new();
        let healthy = json!({"status": "healthy", "server": "workflow-server", "version": env!("CARGO_PKG_VERSION"),
                             "workflows_available": 2, "uptime_seconds": 12});
        assert_eq!(Value::Object(workspace.json("health_check", json!({}))), healthy);
        workspace.problems = vec!["key: not readable".to_owned()];
        let answer = workspace.json("health_check", json!({}));
        assert_eq!((&answer["status"], &answer["problems"]), (&json!("degraded"), &json!(["key: not readable"])));
    }
}
