//! What the log says about a call (spec 03 §4.3, spec 04 §8): ids, enums and flags as they are, all else by its size.

use serde_json::{Map, Value};

/// Parameters whose values are names, not content.
const SHOWN: &[&str] = &[
    "activity",
    "activity_id",
    "agent_id",
    "auto_advance",
    "basis",
    "bundle",
    "checkpoint_id",
    "child_index",
    "condition_not_met",
    "context_mode",
    "context_tokens",
    "full",
    "on_existing",
    "option_id",
    "parent_planning_slug",
    "planning_slug",
    "progress_published",
    "resource_id",
    "session_index",
    "step_id",
    "variable",
    "view",
    "workflow_id",
];

/// Longest name that is repeated, in bytes.
const LONGEST: usize = 200;

/// Characters from which on a text in a message is a repetition and no coincidence.
const REPEATED: usize = 8;

/// Codes whose messages repeat what was sent.
const QUOTING: &[&str] = &["INVALID_PARAMS", "VALUE_NOT_JSON"];

/// Arguments as the log shows them.
pub(crate) fn parameters(arguments: &Map<String, Value>, full: bool) -> Map<String, Value> {
    let shown = |(name, value): (&String, &Value)| {
        let value =
            if full || (SHOWN.contains(&name.as_str()) && is_short(value)) { value.clone() } else { size(value) };
        (name.clone(), value)
    };
    arguments.iter().map(shown).collect()
}

/// What the log says about a refusal besides its code. Nothing, when it repeats what the arguments hold besides names.
pub(crate) fn message(code: &str, message: &str, arguments: &Map<String, Value>, full: bool) -> Option<String> {
    if full {
        return Some(message.to_owned());
    }
    let mut content = Vec::new();
    for (name, value) in arguments {
        if !SHOWN.contains(&name.as_str()) || !is_short(value) {
            texts(value, &mut content);
        }
    }
    let repeats = |text: &&str| text.chars().count() >= REPEATED && message.contains(beginning(text));
    if QUOTING.contains(&code) || content.iter().any(repeats) {
        return None;
    }
    let masked = message.split(' ').map(|word| if word.contains("cp1.") { "<handle>" } else { word });
    Some(masked.collect::<Vec<_>>().join(" "))
}

/// Every text in a value, names of members included.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(entries) => entries.iter().for_each(|entry| texts(entry, found)),
        Value::Object(members) => {
            for (name, member) in members {
                found.push(name);
                texts(member, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// As much of a text as a message that shortens it still repeats.
fn beginning(text: &str) -> &str {
    text.char_indices().nth(REPEATED).map_or(text, |(end, _)| &text[..end])
}

/// Names have no blanks; what has some is content in the wrong place.
fn is_short(value: &Value) -> bool {
    match value {
        Value::Bool(_) | Value::Number(_) | Value::Null => true,
        Value::String(text) => text.len() <= LONGEST && !text.contains(|c: char| c.is_whitespace() || c.is_control()),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn size(value: &Value) -> Value {
    let size = match value {
        Value::String(text) => format!("<{} bytes>", text.len()),
        Value::Array(entries) => format!("<{} entries, {} bytes>", entries.len(), value.to_string().len()),
        Value::Object(members) => format!("<{} members, {} bytes>", members.len(), value.to_string().len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => "<a value>".to_owned(),
    };
    size.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_is_shown_by_its_size() {
        let arguments = json!({
            "session_index": "ABCDE2", "user_request": "secret wish", "variables_changed": {"token": "hunter2"},
            "step_manifest": [{"step_id": "a", "output": "text"}], "checkpoint_handle": "cp1.ABCDE2.x", "full": true,
            "progress_published": false, "message": "why", "activity_id": "x".repeat(300)
        });
        let shown = Value::Object(parameters(arguments.as_object().unwrap(), false));
        assert_eq!(
            shown,
            json!({
                "session_index": "ABCDE2", "user_request": "<11 bytes>", "variables_changed": "<1 members, 19 bytes>",
                "step_manifest": "<1 entries, 33 bytes>", "checkpoint_handle": "<12 bytes>", "full": true,
                "progress_published": false, "message": "<3 bytes>", "activity_id": "<300 bytes>"
            })
        );
        assert_eq!(Value::Object(parameters(arguments.as_object().unwrap(), true)), arguments);
    }

    #[test]
    fn messages_are_masked() {
        let none = Map::new();
        assert_eq!(message("INVALID_PARAMS", "received \"hunter2\"", &none, false), None);
        assert_eq!(message("X", "handle cp1.ABCDE2.abc. Then", &none, false).as_deref(), Some("handle <handle> Then"));
        assert_eq!(message("INVALID_PARAMS", "all", &none, true).as_deref(), Some("all"));
        let sent = json!({
            "message": "a secret wish", "variables_changed": {"my_password": ["correct horse"]}, "option_id": "plain_name",
            "activity_id": "a secret in the wrong place", "usage": "short"
        });
        let sent = sent.as_object().unwrap();
        for (text, shown) in [
            ("the option plain_name is unknown, short", true),
            ("received 'a secret wish'", false),
            ("received 'a secret…'", false),
            ("received correct horse", false),
            ("unknown: my_password", false),
            ("no activity a secret in", false),
        ] {
            assert_eq!(message("X", text, sent, false).is_some(), shown, "{text}");
        }
    }
}
