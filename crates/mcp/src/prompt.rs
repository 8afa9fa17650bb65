//! What an agent is told before its first call: the server's instructions, and one prompt per workflow (spec 04 §11.2).

use serde_json::{Map, Value};
use workflow_corpus::{Corpus, ListedWorkflow};

/// Parameters of every prompt with what they are for; all optional (spec 04 §7.2).
pub(crate) const PARAMETERS: &[(&str, &str)] = &[
    ("planning_slug", "Name of the planning folder: an existing one is resumed, a new one is created."),
    ("user_request", "What the work is about, in the user's words."),
];

/// The two sentences that every agent needs; the procedure itself comes from `discover`, so it never goes stale.
const BOOTSTRAP: &str = "Whenever the user asks to start, create, continue or resume a workflow, call `discover` before \
                         anything else and carry out what it returns. Pass the `session_index` that `start_session` \
                         returns with every later call.";

/// `instructions` of the server.
pub(crate) fn instructions() -> String {
    format!(
        "This server serves workflows and keeps their sessions: what has been done, what comes next, and which \
         decisions belong to the user. {BOOTSTRAP} A refusal says what to call instead; at a checkpoint the user \
         decides, not you."
    )
}

/// The workflow that a prompt of this name starts.
pub(crate) fn find(corpus: &Corpus, name: &str) -> Option<ListedWorkflow> {
    corpus.list().workflows.into_iter().find(|workflow| workflow.id == name)
}

/// The text of a workflow's prompt.
pub(crate) fn text(workflow: &ListedWorkflow, arguments: &Map<String, Value>) -> String {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let mut text = format!("Run the workflow `{}` ({}). {BOOTSTRAP}", workflow.id, workflow.title);
    match given("planning_slug") {
        Some(slug) => {
            text.push_str(" Use the planning slug `");
            text.push_str(slug);
            text.push_str("`; if a session of that name exists, resume it.");
        }
        None => text.push_str(" If a session for this work exists already, resume it instead of starting another."),
    }
    if let Some(request) = given("user_request") {
        text.push_str("\n\nThe request, to be passed on as `user_request`:\n\n");
        text.push_str(request);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use workflow_corpus::Status;

    use super::*;

    fn workflow() -> ListedWorkflow {
        ListedWorkflow {
            id: "mini".to_owned(),
            title: "Mini".to_owned(),
            version: "1.0.0".to_owned(),
            tags: Vec::new(),
            status: Status::Ok,
            errors: 0,
            warnings: 0,
            source: "test".to_owned(),
        }
    }

    #[test]
    fn a_prompt_names_the_workflow_and_the_bootstrap() {
        let text = text(&workflow(), &Map::new());
        assert!(text.contains("`mini`") && text.contains("`discover`") && text.contains("`session_index`"), "{text}");
    }

    #[test]
    fn a_prompt_passes_its_arguments_on() {
        let arguments = json!({"planning_slug": "2026-07-13-alpha", "user_request": "Fix it.", "other": 1});
        let text = text(&workflow(), arguments.as_object().unwrap());
        assert!(text.contains("`2026-07-13-alpha`") && text.ends_with("Fix it."), "{text}");
    }
}
