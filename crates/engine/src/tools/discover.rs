//! `discover`: who the server is and how to begin (spec 03 §5.1).

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool, reply::Content, schema::input_schema,
    tools::NoParams,
};

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
    schema: input_schema::<NoParams>,
    target,
    run,
};

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    arguments.decode(TOOL.name).map(|NoParams {}| Target::Nothing)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let NoParams {} = call.arguments.decode(TOOL.name)?;
    let settings = call.env.settings;
    let mut text = format!("server: {}\nversion: {}\n", settings.server_name, settings.server_version);
    if let Some(bootstrap) = call.env.corpus.bootstrap() {
        text.push('\n');
        text.push_str(&bootstrap);
        text.push_str(if bootstrap.ends_with('\n') { "" } else { "\n" });
    }
    let listing = call.env.corpus.list();
    let ids: Vec<&str> = listing.startable().collect();
    text.push_str("\nworkflow ids: ");
    text.push_str(if ids.is_empty() { "none" } else { "" });
    text.push_str(&ids.join(", "));
    Ok(Reply::of(None, Content::Text(text)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Content, workspace::Workspace};

    /// `discover` is plain text, `list_workflows` YAML, `health_check` JSON.
    #[test]
    fn trap_03_14_34_each_bootstrap_tool_has_its_format() {
        let workspace = Workspace::new();
        let render = |tool: &str| workspace.call(tool, json!({})).render();
        let discover = render("discover");
        assert_eq!(
            discover.text,
            format!(
                "server: workflow-server\nversion: {}\n\n---\nid: bootstrap-protocol\nversion: 1.0.0\n---\n\n# Begin here\n\n\
                 Call list_workflows.\n\nworkflow ids: bare, mini",
                env!("CARGO_PKG_VERSION")
            )
        );
        let list = workflow_yaml::parse(&render("list_workflows").text).root.to_value();
        assert_eq!(list[0]["id"], "bare");
        let health: serde_json::Value = serde_json::from_str(&render("health_check").text).unwrap();
        assert_eq!(health["status"], "healthy");
        for tool in ["discover", "list_workflows", "health_check"] {
            assert_eq!(render(tool).meta, None, "{tool}");
            assert_eq!(workspace.refusal(tool, json!({"session_index": "NU7LON"})).code, "INVALID_PARAMS");
        }
    }

    /// What cannot be started is neither named nor counted (spec 03 §5.1, §5.3).
    #[test]
    fn only_what_can_be_started_counts() {
        let workspace = Workspace::over(&[
            ("good/workflow.yaml", "id: good\nversion: 1.0.0\ntitle: Good\ninitialActivity: a\n"),
            ("good/activities/01-a.yaml", "id: a\nversion: 1.0.0\nname: A\nsteps:\n  - kind: action\n    id: s\n"),
            ("unlisted/workflow.yaml", "id: [\n"),
            ("broken/workflow.yaml", "id: broken\nversion: 1.0.0\ntitle: Broken\nvariables: 1\n"),
        ]);
        assert_eq!(workspace.json("health_check", json!({}))["workflows_available"], 1);
        assert!(workspace.call("discover", json!({})).plain_text().ends_with("\nworkflow ids: good"));
        // The text alone says where, because many clients show nothing else.
        for (id, place) in [("unlisted", "unlisted/workflow.yaml:1:5"), ("broken", "broken/workflow.yaml:4:12")] {
            let refusal = workspace.refusal("start_session", json!({"workflow_id": id, "planning_slug": "a"}));
            assert_eq!(refusal.code, "WORKFLOW_INVALID", "{id}");
            assert!(refusal.message.contains(place), "{}", refusal.message);
        }
    }

    #[test]
    fn without_a_protocol_the_header_and_the_ids_remain() {
        let workspace = Workspace::over(&[]);
        let reply = workspace.call("discover", json!({}));
        let Content::Text(text) = &reply.content else { panic!("no text") };
        assert!(text.ends_with("\n\nworkflow ids: none"), "{text}");
    }
}
