//! The tree that parsing yields.

use serde_json::{Map, Value};

use crate::position::Span;

/// What was read: always a tree, and everything that was found wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The root value. A null scalar when the text holds no value; as much as was understood after a syntax error.
    pub root: Node,
    /// The problems, in the order they were found.
    pub problems: Vec<Problem>,
}

impl Document {
    /// Returns whether the text breaks the dialect. The tree of such a text is good for navigation, not for execution.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The text must not be used.
    Error,
    /// The text has a meaning, but perhaps not the one its author had in mind.
    Warning,
}

/// Something wrong with the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, as a sentence fragment without a full stop.
    pub message: String,
    /// Where it is.
    pub span: Span,
    /// What to do about it, where that is known.
    pub help: Option<String>,
}

/// A value and the text it came from.
///
/// The value of an alias has the alias as its own span, so that a problem with it points at the place of use; what is
/// inside it keeps the spans of the anchored text.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value's own text: a scalar with its quotes, a block scalar from its indicator, a collection from the first
    /// to the last byte of its content. Tags and anchors are not part of it. Empty for a value that was left out.
    pub span: Span,
    /// The value.
    pub kind: Kind,
    /// How the value was written.
    pub style: Style,
}

/// How a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// A scalar without quotes.
    Plain,
    /// A scalar in single quotes.
    SingleQuoted,
    /// A scalar in double quotes.
    DoubleQuoted,
    /// A block scalar after `|`.
    Literal,
    /// A block scalar after `>`.
    Folded,
    /// A collection by indentation.
    Block,
    /// A collection in brackets.
    Flow,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A string, number, boolean or null, never a collection.
    Scalar(Value),
    /// A list.
    Sequence(Vec<Node>),
    /// A map in the order of the text, without duplicate keys.
    Mapping(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as a string; `1` and `true` become their text, null becomes the empty string (spec 01 §2).
    pub key: String,
    /// The key's own text, with its quotes.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Makes the null that stands for a value that is not there.
    pub(crate) fn null(span: Span) -> Self {
        Self { span, kind: Kind::Scalar(Value::Null), style: Style::Plain }
    }

    /// Returns the data without spans and styles.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::Sequence(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Mapping(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// Returns the value of a key, if the node is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the entry of a key, if the node is a mapping that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.as_mapping()?.iter().find(|entry| entry.key == key)
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        self.as_scalar()?.as_str()
    }

    /// Returns the entries of a mapping.
    pub fn as_mapping(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Mapping(entries) => Some(entries),
            Kind::Scalar(_) | Kind::Sequence(_) => None,
        }
    }

    /// Returns the items of a sequence.
    pub fn as_sequence(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Sequence(items) => Some(items),
            Kind::Scalar(_) | Kind::Mapping(_) => None,
        }
    }

    /// Returns the value of a scalar.
    pub fn as_scalar(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Scalar(value) => Some(value),
            Kind::Sequence(_) | Kind::Mapping(_) => None,
        }
    }

    /// Returns whether the node is null, written or left out.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Scalar(Value::Null))
    }

    /// Returns the JSON name of the node's type, for messages.
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar(Value::Null) => "null",
            Kind::Scalar(Value::Bool(_)) => "boolean",
            Kind::Scalar(Value::Number(_)) => "number",
            Kind::Scalar(Value::String(_)) => "string",
            Kind::Sequence(_) | Kind::Scalar(Value::Array(_)) => "array",
            Kind::Mapping(_) | Kind::Scalar(Value::Object(_)) => "object",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::parse;

    #[test]
    fn accessors_answer_only_for_their_own_kind() {
        let root = parse("s: text\nn: 1\nb: true\nz:\nl: [a]\nm: {k: v}\n").root;
        let names: Vec<_> = root.as_mapping().unwrap().iter().map(|entry| entry.value.type_name()).collect();
        assert_eq!(names, ["string", "number", "boolean", "null", "array", "object"]);
        assert_eq!(root.get("s").unwrap().as_str(), Some("text"));
        assert_eq!(root.get("n").unwrap().as_str(), None);
        assert_eq!(root.get("n").unwrap().as_scalar(), Some(&json!(1)));
        assert!(root.get("z").unwrap().is_null());
        assert_eq!(root.get("l").unwrap().as_sequence().unwrap().len(), 1);
        assert!(root.get("l").unwrap().get("k").is_none());
        assert_eq!(root.entry("m").unwrap().key, "m");
        assert!(root.get("missing").is_none());
        assert_eq!(root.to_value(), json!({"s": "text", "n": 1, "b": true, "z": null, "l": ["a"], "m": {"k": "v"}}));
    }
}
