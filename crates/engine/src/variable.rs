//! Writing the variable bag (spec 03 §9).

use serde_json::Value;
use workflow_corpus::{ValueType, Warning, Workflow};

use crate::{
    Timestamp,
    state::{Event, Session},
    validation,
};

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Write<'a> {
    /// Any JSON key.
    pub(crate) name: &'a str,
    /// Replaces the whole value.
    pub(crate) value: Value,
    /// Activity it belongs to; `""` for none.
    pub(crate) activity: &'a str,
    /// `setVariable`, `variables_changed` or `user_request`.
    pub(crate) source: &'static str,
}

/// Writes and records a variable. A value of another type than declared is stored all the same, marked in the event,
/// and warned about; a `{template}` passes.
pub(crate) fn write(session: &mut Session, workflow: &Workflow, write: Write<'_>, now: Timestamp) -> Option<Warning> {
    let Write { name, value, activity, source } = write;
    let declared = workflow.variable(name).map(|variable| variable.kind);
    let is_new = declared.is_none() && !session.variables.contains_key(name);
    let meant = if is_new { misspelt(name, workflow) } else { None };
    let wrong = declared.filter(|declared| type_name(*declared) != type_of(&value) && !is_template(&value));
    let found = type_of(&value);
    let mut event = Event::new("variable_set")
        .with_activity(activity)
        .with_data("name", name)
        .with_data("value", value.clone())
        .with_data("source", source);
    if let Some(declared) = wrong {
        event = event
            .with_data("declaredType", type_name(declared))
            .with_data("valueType", found)
            .with_data("typeMismatch", true);
    }
    session.record(event, now);
    session.variables.insert(name.to_owned(), value);
    wrong
        .map(|declared| validation::variable_type(source, name, found, declared))
        .or_else(|| meant.map(|meant| validation::variable_misspelt(source, name, meant)))
}

/// The declared variable that a name of none was probably meant to be. Names of their own are free, so only a slip of a
/// letter or two in a name of some length counts.
fn misspelt<'w>(name: &str, workflow: &'w Workflow) -> Option<&'w str> {
    let slips = name.chars().count() / 6;
    let mut declared = workflow.variables.iter().map(|variable| variable.name.as_str());
    declared.find(|declared| strsim::damerau_levenshtein(declared, name) <= slips.min(2))
}

/// JSON name of a declared type.
pub(crate) fn type_name(declared: ValueType) -> &'static str {
    match declared {
        ValueType::String => "string",
        ValueType::Number => "number",
        ValueType::Boolean => "boolean",
        ValueType::Array => "array",
        ValueType::Object => "object",
    }
}

/// JSON type of a value.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Exactly `{…}` without inner braces: passed on for the agent to fill, never substituted here.
fn is_template(value: &Value) -> bool {
    let inner = value.as_str().and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.contains(['{', '}']))
}
