//! Lenient, schema-driven reading of tool arguments (spec 03 §4.2, design §5 "Arguments").
//!
//! What a caller sent is read against the tool's own input schema: slips of the pen are mended and reported as
//! `W_ARGUMENT_READ`, everything else is refused with all causes at once. Free values (`variables_changed`, `usage` and
//! whatever a schema leaves open) are taken as sent.

mod echo;
mod shape;

use serde_json::{Map, Value};
use workflow_engine::{Arguments, Refusal, Settings, Tool, Warning, check_arguments};

pub(crate) use echo::shortened;
use shape::Reader;
pub(crate) use shape::nearest;

/// Parameters for which a blank text is a value.
const BLANK_IS_A_VALUE: &[&str] = &["transition_condition"];

/// Parameters for which a blank text is refused instead of being taken as absent.
const BLANK_IS_REFUSED: &[&str] = &[
    "planning_slug",
    "parent_planning_slug",
    "planning_folder",
    "workflow_id",
    "agent_id",
    "option_id",
    "checkpoint_handle",
];

/// Flags that are given by `true` and by nothing else.
const GIVEN_BY_TRUE: &[&str] = &["auto_advance", "condition_not_met"];

/// Reads the arguments of one call.
///
/// # Errors
/// `INVALID_PARAMS` with every cause, `INVALID_SESSION_INDEX` when that is the only one, `PARAM_TOO_LARGE`,
/// `CHECKPOINT_ADDRESS_CONFLICT` when a bare index stands in `checkpoint_handle` beside another `session_index`.
pub fn read(tool: &Tool, sent: &Map<String, Value>, settings: &Settings) -> Result<Arguments, Refusal> {
    let schema = (tool.schema)();
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut reader = Reader::new(tool.name);
    let mut read = Map::new();
    for (name, value) in sent {
        match properties.get(name) {
            None => reader.unknown(name, properties),
            Some(parameter) => {
                let named = (name.as_str(), required.iter().any(|required| *required == name.as_str()));
                if let Some(value) = parameter_value(&mut reader, named, parameter, value) {
                    read.insert(name.clone(), value);
                }
            }
        }
    }
    reader.required("", &schema, &read);
    let warnings = reader.finish()?;
    check_arguments(&read, settings)?;
    let mut arguments = Arguments { sent: sent.clone(), read, warnings };
    index_in_handle(&mut arguments, properties)?;
    Ok(arguments)
}

/// One parameter: absent, refused (the cause is noted), or its value.
fn parameter_value(
    reader: &mut Reader,
    (name, required): (&str, bool),
    schema: &Value,
    value: &Value,
) -> Option<Value> {
    if value.is_null() {
        return None;
    }
    if GIVEN_BY_TRUE.contains(&name) {
        return flag(reader, name, value);
    }
    if value.as_str() == Some("") && !BLANK_IS_A_VALUE.contains(&name) {
        if BLANK_IS_REFUSED.contains(&name) {
            reader.cause(name, "must not be empty; leave it out when there is nothing to say");
        } else if required {
            reader.cause(name, &format!("must not be empty: {}", shape::expectation(schema)));
        } else {
            reader.note(format!("`{name}` was empty and is taken as not given."));
        }
        return None;
    }
    reader.value(name, schema, value)
}

/// `true` and `"true"` give the flag, a false form does not, anything else is refused.
fn flag(reader: &mut Reader, name: &str, value: &Value) -> Option<Value> {
    match value {
        Value::Bool(true) => Some(Value::Bool(true)),
        Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => {
            reader.note(format!("`{name}` was empty and is taken as not given."));
            None
        }
        Value::String(text) if text == "true" => {
            reader.note(format!("`{name}` was sent as a text and read as true; send the JSON value true."));
            Some(Value::Bool(true))
        }
        Value::String(text) if text.eq_ignore_ascii_case("false") => None,
        other => {
            reader.cause(name, &format!("expected true, or nothing; received {}", shape::received(other)));
            None
        }
    }
}

/// A session index that was sent as a handle is taken as the index it is (spec 03 §4.4).
fn index_in_handle(arguments: &mut Arguments, properties: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(handle) = arguments.read.get("checkpoint_handle").and_then(Value::as_str).map(str::to_owned) else {
        return Ok(());
    };
    if !shape::is_session_index(&handle) || !properties.contains_key("session_index") {
        return Ok(());
    }
    if let Some(index) = arguments.read.get("session_index").and_then(Value::as_str).filter(|index| *index != handle) {
        return Err(Refusal::new(
            "CHECKPOINT_ADDRESS_CONFLICT",
            format!(
                "checkpoint_handle holds the session index {handle}, session_index says {index}. Send one of them: the \
                 handle that yield_checkpoint returned, or the session_index of the session that is waiting."
            ),
        )
        .with("checkpoint_handle", handle.as_str())
        .with("session_index", index));
    }
    arguments.read.shift_remove("checkpoint_handle");
    arguments.read.insert("session_index".to_owned(), handle.as_str().into());
    arguments.warnings.push(Warning {
        code: "W_HANDLE_WAS_INDEX",
        message: format!(
            "checkpoint_handle held the session index {handle} and was read as session_index; the handle is the text \
             beginning with \"cp1.\" that yield_checkpoint returned."
        ),
    });
    Ok(())
}

#[cfg(test)]
mod tests;
