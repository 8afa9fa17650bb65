//! Sessions driven through the tools in memory: checkpoints, transitions, advisory checks, retries.

mod checkpoint;
mod handles;
mod hazards;
mod machine;
mod retries;
mod state;
mod transition;
mod validation;
mod visits;

use serde_json::{Map, Value, json};
use workflow_corpus::Activity;

use crate::{
    Refusal, Reply, Timestamp,
    state::{Event, Session},
    workspace::Workspace,
};

/// Definitions that use every part of the checkpoint machine.
const FILES: &[(&str, &str)] = &[
    ("walk/workflow.yaml", include_str!("walk/workflow.yaml")),
    ("walk/activities/01-plan.yaml", include_str!("walk/plan.yaml")),
    ("walk/activities/02-review.yaml", include_str!("walk/review.yaml")),
    ("walk/activities/03-spin.yaml", include_str!("walk/spin.yaml")),
    ("walk/activities/04-steps.yaml", include_str!("walk/steps.yaml")),
    ("walk/activities/05-ship.yaml", include_str!("walk/ship.yaml")),
    ("walk/activities/06-complete.yaml", include_str!("walk/complete.yaml")),
    ("walk/activities/07-a.yaml", include_str!("walk/a.yaml")),
    ("walk/activities/08-a-b.yaml", include_str!("walk/a-b.yaml")),
    ("walk/techniques/TECHNIQUE.md", TECHNIQUE),
    ("walk/techniques/greet.md", TECHNIQUE),
    ("walk/techniques/other.md", TECHNIQUE),
    ("walk/techniques/steps/grouped.md", TECHNIQUE),
    ("walk/techniques/steps/greet.md", TECHNIQUE),
    ("meta/workflow.yaml", "id: meta\nversion: 1.0.0\ntitle: Meta\ninitialActivity: look\n"),
    (
        "meta/activities/01-look.yaml",
        "id: look\nversion: 1.0.0\nname: Look\nsteps:\n  - { kind: action, id: search_it }\n",
    ),
];

const TECHNIQUE: &str =
    "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nDoes it.\n\n## Protocol\n\n### 1. Do\n\n- Do it.\n";

/// One session of the workflow `walk`.
struct Run {
    ws: Workspace,
    index: String,
}

impl Run {
    /// A session that is in no activity yet.
    fn new() -> Self {
        Self::in_slug("2026-07-13-alpha")
    }

    fn in_slug(slug: &str) -> Self {
        let ws = Workspace::over(FILES);
        let opened = ws.json("start_session", json!({"workflow_id": "walk", "planning_slug": slug}));
        let index = opened["session_index"].as_str().expect("an index").to_owned();
        Self { ws, index }
    }

    /// A session in this activity.
    fn at(activity: &str) -> Self {
        let run = Self::new();
        run.go(activity);
        run
    }

    /// The same with the default minimum response time.
    fn patient(activity: &str) -> Self {
        let mut run = Self::at(activity);
        run.ws.settings.checkpoint_min_response_ms = 3000;
        run
    }

    /// Adds `session_index` and calls.
    fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.ws.call(tool, self.addressed(arguments))
    }

    fn json(&self, tool: &str, arguments: Value) -> Map<String, Value> {
        self.ws.json(tool, self.addressed(arguments))
    }

    fn refused(&self, tool: &str, arguments: Value) -> Refusal {
        self.ws.refusal(tool, self.addressed(arguments))
    }

    fn addressed(&self, mut arguments: Value) -> Value {
        arguments["session_index"] = self.index.as_str().into();
        arguments
    }

    fn go(&self, activity: &str) -> Reply {
        self.call("next_activity", json!({"activity_id": activity}))
    }

    /// Yields and says what came of it: `yielded`, or the option that was replayed.
    fn stop(&self, checkpoint: &str) -> String {
        let answer = self.json("yield_checkpoint", json!({"checkpoint_id": checkpoint}));
        let option = answer.get("resolved_option").unwrap_or(&answer["status"]);
        option.as_str().expect("a text").to_owned()
    }

    fn answer(&self, option: &str) -> Map<String, Value> {
        self.json("respond_checkpoint", json!({"option_id": option}))
    }

    /// Yields, which must ask, and answers.
    fn ask(&self, checkpoint: &str, option: &str) -> Map<String, Value> {
        assert_eq!(self.stop(checkpoint), "yielded", "{checkpoint}");
        self.answer(option)
    }

    fn session(&self) -> Session {
        self.ws.session(&self.index)
    }

    fn events(&self, kind: &str) -> Vec<Event> {
        self.session().history.into_iter().filter(|event| event.kind() == kind).collect()
    }

    /// Lets this many milliseconds pass; every call takes another second by itself.
    fn wait(&self, milliseconds: i64) {
        self.ws.now.set(Timestamp(self.ws.now.get().0 + milliseconds));
    }

    fn activity(&self, id: &str) -> std::sync::Arc<Activity> {
        let workflow = self.ws.corpus.workflow("walk").expect("the workflow loads");
        assert!(workflow.load_errors.is_empty(), "{:?}", workflow.load_errors);
        workflow.activity(id).expect("the activity").clone()
    }
}

fn codes(reply: &Reply) -> Vec<&'static str> {
    Workspace::codes(reply)
}
