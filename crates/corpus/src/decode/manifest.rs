//! One manifest from the tree (spec 01 §3).

use serde_json::{Map, Value};
use workflow_yaml::Node;

use super::check::{Context, check};
use super::shape::Shape;
use super::sink::{Path, Sink};
use super::steps::{report_fragment, text, texts};
use super::tables::MANIFEST;
use crate::fragment::FragmentScope;
use crate::{AudienceRules, META, TechniqueRefs, ValueType, Variable, Workflow, WorkflowKey};

/// Code of problems without a code of their own.
pub(crate) const CODE: &str = "manifest.schema";

/// Reads a manifest and reports what is wrong with it. The workflow has no activities yet; it must not be used when
/// the sink has errors of the codes `manifest.*` or `variable.name`.
pub(crate) fn manifest(root: &Node, key: &WorkflowKey, fragments: &FragmentScope<'_>, sink: &mut Sink<'_>) -> Workflow {
    let meta = key.id == META;
    check(root, &Shape::Object(&MANIFEST), &Path::Root, Context { code: CODE, meta }, sink);
    let techniques = root.get("techniques");
    let references =
        |node: &Node| TechniqueRefs { workflow: texts(node, "workflow"), activity: texts(node, "activity") };
    let core = techniques.and_then(|techniques| techniques.get("core")).filter(|_| meta);
    let workflow = Workflow {
        key: key.clone(),
        declared_id: text(root, "id").unwrap_or_default(),
        version: text(root, "version").unwrap_or_default(),
        title: text(root, "title").unwrap_or_default(),
        description: text(root, "description"),
        author: text(root, "author"),
        tags: texts(root, "tags"),
        rules: rules(root, fragments, sink),
        variables: variables(root, sink),
        techniques: techniques.map(references).unwrap_or_default(),
        core: core.map(references),
        initial_activity: text(root, "initialActivity"),
        activities: Vec::new(),
        load_errors: Vec::new(),
        diagnostics: Vec::new(),
    };
    if let Some(id) = root.get("id")
        && id.as_str().is_some_and(|declared| declared != key.id)
    {
        let message = format!("the workflow calls itself `{}`, but its name is `{}`", workflow.declared_id, key.id);
        let help = format!("write `id: {}`; clients use the name of the directory", key.id);
        sink.warning("manifest.id-mismatch", id.span, &Path::Root.key("id"), message).help = Some(help);
    }
    workflow
}

fn rules(root: &Node, fragments: &FragmentScope<'_>, sink: &mut Sink<'_>) -> AudienceRules {
    let mut list = |audience: &str| -> Vec<String> {
        let rules_path = Path::Root.key("rules");
        let path = rules_path.key(audience);
        let items = root.get("rules").and_then(|rules| rules.get(audience)).and_then(Node::as_sequence);
        let mut texts = Vec::new();
        for (position, item) in items.unwrap_or_default().iter().enumerate() {
            if let Some(text) = item.as_str() {
                texts.push(text.to_owned());
            } else if let Some((node, reference)) = item.get("ref").and_then(|node| Some((node, node.as_str()?))) {
                match fragments.rules(reference) {
                    Ok(found) => texts.extend(found),
                    Err(error) => {
                        let place = path.item(position);
                        report_fragment(&error, reference, "rule", node, &place.key("ref"), sink);
                    }
                }
            }
        }
        texts
    };
    AudienceRules { workflow: list("workflow"), activity: list("activity"), universal: list("universal") }
}

fn variables(root: &Node, sink: &mut Sink<'_>) -> Vec<Variable> {
    let list_path = Path::Root.key("variables");
    let mut variables: Vec<Variable> = Vec::new();
    let items = root.get("variables").and_then(Node::as_sequence).unwrap_or_default();
    for (position, item) in items.iter().enumerate() {
        let path = list_path.item(position);
        let (Some(name), Some(kind)) = (text(item, "name"), item.get("type").and_then(Node::as_str)) else { continue };
        let Some(kind) = value_type(kind) else { continue };
        if variables.iter().any(|earlier| earlier.name == name)
            && let Some(node) = item.get("name")
        {
            let message = format!("the variable `{name}` is declared twice; the last default wins");
            sink.warning("variable.duplicate", node.span, &path.key("name"), message);
        }
        let default = item.get("defaultValue");
        if let Some(node) = default
            && !kind.admits(&node.to_value())
        {
            let message =
                format!("the default of `{name}` is of type {}, declared is {}", node.type_name(), kind.as_str());
            sink.warning("variable.default-type", node.span, &path.key("defaultValue"), message);
        }
        let default = default.map(Node::to_value);
        variables.push(Variable { name, kind, default, declaration: declaration(item) });
    }
    variables
}

fn declaration(item: &Node) -> Map<String, Value> {
    let mut map = Map::new();
    for key in ["name", "type", "description", "defaultValue"] {
        if let Some(node) = item.get(key) {
            map.insert(key.to_owned(), node.to_value());
        }
    }
    let required = item.get("required").map_or(Value::Bool(false), Node::to_value);
    map.insert("required".to_owned(), required);
    map
}

fn value_type(name: &str) -> Option<ValueType> {
    let all = [ValueType::String, ValueType::Number, ValueType::Boolean, ValueType::Array, ValueType::Object];
    all.into_iter().find(|kind| kind.as_str() == name)
}

impl ValueType {
    /// The name used in declarations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Is the value of this type? `null` is of none; a string that is one brace token stands for any (spec 01 §3.2).
    pub fn admits(self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::Bool(_) => self == Self::Boolean,
            Value::Number(_) => self == Self::Number,
            Value::Array(_) => self == Self::Array,
            Value::Object(_) => self == Self::Object,
            Value::String(text) => self == Self::String || is_brace_token(text),
        }
    }
}

/// Exactly one `{…}` without braces inside.
fn is_brace_token(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(['{', '}']))
}
