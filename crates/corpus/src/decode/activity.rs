//! One activity from the tree (spec 01 §4).

use serde_json::{Map, Value};
use workflow_yaml::Node;

use super::check::{Context, check};
use super::condition::condition;
use super::shape::Shape;
use super::sink::{Path, Sink};
use super::steps::{StepNote, StepReader, boolean, delivered, text, texts, whole};
use super::tables::ACTIVITY;
use crate::body;
use crate::fragment::FragmentScope;
use crate::{Activity, Branch, Decision, FileId, Transition, Trigger, WorkflowKey};

/// Where an activity comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) source: WorkflowKey,
    /// Absent for an activity that a manifest holds.
    pub(crate) file: Option<FileId>,
    pub(crate) prefix: Option<String>,
}

/// Reads an activity and reports what is wrong with it; `None` when it has to be excluded.
pub(crate) fn activity(
    node: &Node,
    path: &Path<'_>,
    origin: Origin,
    fragments: &FragmentScope<'_>,
    sink: &mut Sink<'_>,
) -> Option<Activity> {
    let errors_before = errors(sink);
    let context = Context { code: "activity.schema", meta: false };
    check(node, &Shape::Object(&ACTIVITY), path, context, sink);
    let mut reader = StepReader { fragments, sink, notes: Vec::new() };
    let steps = match node.get("steps") {
        Some(list) => reader.steps(list, &path.key("steps"), "the steps of the activity"),
        None => Vec::new(),
    };
    let notes = reader.notes;
    if errors(sink) > errors_before {
        return None;
    }
    let body = body_of(node, &notes, &origin, sink.text());
    Some(Activity {
        id: text(node, "id")?,
        version: text(node, "version")?,
        name: text(node, "name")?,
        description: text(node, "description"),
        techniques: texts(node, "techniques"),
        bundle_max_chars: node.get("bundleTechniques").and_then(|limits| limits.get("maxChars")).and_then(whole),
        steps,
        decisions: items(node, "decisions").iter().map(decision).collect(),
        transitions: items(node, "transitions").iter().map(transition).collect(),
        triggers: items(node, "triggers").iter().map(trigger).collect(),
        outcome: texts(node, "outcome"),
        required: boolean(node, "required").unwrap_or(true),
        rules: texts(node, "rules"),
        artifact_prefix: origin.prefix,
        source: origin.source,
        file: origin.file,
        body,
    })
}

fn errors(sink: &Sink<'_>) -> usize {
    sink.found.iter().filter(|diagnostic| diagnostic.severity == crate::Severity::Error).count()
}

fn items<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.get(key).and_then(Node::as_sequence).unwrap_or_default()
}

fn decision(node: &Node) -> Decision {
    Decision {
        id: text(node, "id").unwrap_or_default(),
        name: text(node, "name").unwrap_or_default(),
        description: text(node, "description"),
        branches: items(node, "branches").iter().map(branch).collect(),
    }
}

fn branch(node: &Node) -> Branch {
    Branch {
        id: text(node, "id").unwrap_or_default(),
        label: text(node, "label").unwrap_or_default(),
        condition: node.get("condition").and_then(condition),
        transition_to: text(node, "transitionTo"),
        is_default: boolean(node, "isDefault").unwrap_or_default(),
    }
}

fn transition(node: &Node) -> Transition {
    Transition {
        to: text(node, "to").unwrap_or_default(),
        condition: node.get("condition").and_then(condition),
        is_default: boolean(node, "isDefault").unwrap_or_default(),
    }
}

fn trigger(node: &Node) -> Trigger {
    Trigger {
        workflow: text(node, "workflow").unwrap_or_default(),
        description: text(node, "description"),
        pass_context: texts(node, "passContext"),
    }
}

/// The text that is served: the file edited in place where that is possible, else the value written anew.
fn body_of(node: &Node, notes: &[StepNote<'_>], origin: &Origin, file_text: &str) -> String {
    let mut rest = notes.iter();
    let mut value = Map::new();
    for entry in node.as_mapping().unwrap_or_default() {
        let member = if entry.key == "steps" { delivered(&entry.value, &mut rest) } else { entry.value.to_value() };
        value.insert(entry.key.clone(), member);
    }
    let value = Value::Object(value);
    let edited = if origin.file.is_some() { body::edited(file_text, node, notes) } else { None };
    edited.filter(|text| body::reads_as(text, &value)).unwrap_or_else(|| workflow_yaml::to_string(&value))
}
