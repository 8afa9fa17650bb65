//! What stands below the separator of `get_activity`: one YAML mapping made of several small documents and the text of
//! the activity file (spec 02 §6.3–§6.7).

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use workflow_corpus::{Activity, Artifact, StepKind};

use crate::delivery::{yaml, yaml_member};

/// Names that the response itself writes beside the activity's own.
const RESERVED: [&str; 8] = [
    "session_index",
    "artifact_prefix",
    "activity_rules",
    "content_hashes",
    "enforcement_notes",
    "artifacts",
    "next",
    "batch",
];

/// The line that ends an activity without any route.
const NEXT: &str = "next: 'when done, call next_activity {activity_id: \"__terminal__\"}'\n";

/// The parts below the separator, without `batch` and `validation`.
pub(crate) struct Sections<'a> {
    /// Header line.
    pub(crate) session_index: &'a str,
    /// The activity.
    pub(crate) activity: &'a Activity,
    /// `activity_rules` with its hash, or a marker; empty without rules.
    pub(crate) activity_rules: Map<String, Value>,
    /// Who acts where the server does not; may be empty.
    pub(crate) enforcement_notes: &'a Map<String, Value>,
    /// What the activity's techniques write.
    pub(crate) artifacts: &'a [Artifact],
}

impl Sections<'_> {
    /// The text, ending with a newline.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("session_index: {}\n", self.session_index);
        if let Some(prefix) = &self.activity.artifact_prefix {
            text.push_str("artifact_prefix: ");
            text.push_str(prefix);
            text.push('\n');
        }
        text.push('\n');
        if !self.activity_rules.is_empty() {
            text.push_str(&yaml(self.activity_rules.clone()));
            text.push_str("\n\n");
        }
        if !self.enforcement_notes.is_empty() {
            text.push_str(&yaml_member("enforcement_notes", self.enforcement_notes.clone().into()));
            text.push_str("\n\n");
        }
        text.push_str(&joinable(&self.activity.body));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if !self.artifacts.is_empty() {
            text.push('\n');
            text.push_str(&yaml_member("artifacts", artifact_list(self.artifacts)));
        }
        if !self.activity.has_route() {
            text.push('\n');
            text.push_str(NEXT);
        }
        text
    }
}

/// The artifacts as `[{id, name, audience?}]`.
pub(crate) fn artifact_list(artifacts: &[Artifact]) -> Value {
    artifacts
        .iter()
        .map(|artifact| {
            let mut members = Map::new();
            members.insert("id".to_owned(), artifact.id.clone().into());
            members.insert("name".to_owned(), artifact.name.clone().into());
            if let Some(audience) = &artifact.audience {
                members.insert("audience".to_owned(), audience.clone().into());
            }
            Value::Object(members)
        })
        .collect()
}

/// Who acts where the server does not (spec 02 §6.4); empty when nothing of that kind is in the activity.
pub(crate) fn enforcement_notes(activity: &Activity) -> Map<String, Value> {
    let mut notes = Map::new();
    let steps = activity.flat_steps();
    let acts = steps.iter().any(|flat| match &flat.step.kind {
        StepKind::Action { .. } => true,
        StepKind::Technique { actions, .. } => !actions.is_empty(),
        StepKind::Checkpoint(_) | StepKind::Loop(_) => false,
    });
    let times = steps
        .iter()
        .any(|flat| matches!(&flat.step.kind, StepKind::Checkpoint(gate) if gate.auto_advance_ms.is_some()));
    if acts {
        notes.insert("actions".to_owned(), ACTIONS_NOTE.into());
    }
    if times {
        notes.insert("auto_advance".to_owned(), AUTO_ADVANCE_NOTE.into());
    }
    notes
}

const ACTIONS_NOTE: &str = "You carry out action verbs yourself. The server records that the step ran; it applies no \
                            verb and sets no variable from it.";

const AUTO_ADVANCE_NOTE: &str = "The server keeps the time of autoAdvanceMs when respond_checkpoint is called with \
                                 auto_advance: true, and then applies defaultOption. blocking is advice to the \
                                 orchestrator.";

/// The body as it can stand between the other documents. It is written anew only if its layout or one of its names
/// would break the whole: flow style, indentation, or a member that the response writes itself.
fn joinable(body: &str) -> Cow<'_, str> {
    let starts_member = |line: &str| !line.starts_with([' ', '\t', '{', '?', '-', '"', '\'', '&', '!']);
    let first = body.lines().find(|line| !line.trim_start().is_empty() && !line.trim_start().starts_with('#'));
    let reserved = |line: &str| {
        RESERVED.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':')))
    };
    if first.is_some_and(starts_member) && !body.lines().any(reserved) {
        return Cow::Borrowed(body);
    }
    match workflow_yaml::parse(body).root.to_value() {
        Value::Object(mut members) => {
            for name in RESERVED {
                members.shift_remove(name);
            }
            Cow::Owned(yaml(members))
        }
        other => Cow::Owned(yaml_member("activity", json!(other))),
    }
}
