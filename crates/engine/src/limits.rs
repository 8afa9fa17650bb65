//! How large arguments and sessions may be (spec 03 §3.3, §3.8).

use serde_json::{Map, Value};

use crate::{Refusal, Settings, state::Session};

/// Checks the arguments of a call.
///
/// # Errors
/// `PARAM_TOO_LARGE` naming parameter, size and limit.
pub fn check_arguments(arguments: &Map<String, Value>, settings: &Settings) -> Result<(), Refusal> {
    arguments.iter().try_for_each(|(name, value)| check_argument(name, value, settings))
}

fn check_argument(name: &str, value: &Value, settings: &Settings) -> Result<(), Refusal> {
    let (depth, longest) = measure(value);
    let refuse = |what: &str, size: usize, limit: usize, unit: &str| {
        Err(Refusal::new(
            "PARAM_TOO_LARGE",
            format!(
                "`{name}` {what} {size} {unit}; at most {limit} are taken. Nothing was changed. Shorten it, keep the \
                 long form in a file of the planning folder and pass its path, or split the call."
            ),
        )
        .with("parameter", name)
        .with("size", size)
        .with("limit", limit))
    };
    if depth > settings.max_nesting {
        return refuse("nests", depth, settings.max_nesting, "levels");
    }
    if longest > settings.max_string_bytes {
        return refuse("holds a text of", longest, settings.max_string_bytes, "bytes");
    }
    if let Some(items) = value.as_array()
        && items.len() > settings.max_array_entries
    {
        return refuse("has", items.len(), settings.max_array_entries, "entries");
    }
    if value.is_object() || value.is_array() {
        let bytes = value.to_string().len();
        if bytes > settings.max_map_bytes {
            return refuse("has", bytes, settings.max_map_bytes, "bytes");
        }
    }
    Ok(())
}

/// Levels of nesting and the longest text, without recursion.
fn measure(value: &Value) -> (usize, usize) {
    let (mut depth, mut longest) = (0, 0);
    let mut open = vec![(value, 0_usize)];
    while let Some((value, level)) = open.pop() {
        match value {
            Value::String(text) => longest = longest.max(text.len()),
            Value::Array(items) => {
                depth = depth.max(level + 1);
                open.extend(items.iter().map(|item| (item, level + 1)));
            }
            Value::Object(members) => {
                depth = depth.max(level + 1);
                for (key, item) in members {
                    longest = longest.max(key.len());
                    open.push((item, level + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    (depth, longest)
}

/// Checks a state that is about to be written; says so when it has become large.
///
/// # Errors
/// `SESSION_TOO_LARGE`, unless the call only brings the session to its end (`ending`).
pub(crate) fn check_session(root: &Session, ending: bool, settings: &Settings) -> Result<Option<String>, Refusal> {
    let bytes = root.canonical_text().len();
    if bytes > settings.max_session_bytes && !ending {
        return Err(Refusal::new(
            "SESSION_TOO_LARGE",
            format!(
                "the state of this session would have {bytes} bytes; it must not grow beyond {}. Nothing was changed. \
                 Still possible: respond_checkpoint, resume_checkpoint, next_activity to `__terminal__` or `complete`, \
                 and the read-only tools. End this session and continue in a new one.",
                settings.max_session_bytes
            ),
        )
        .with("size", bytes)
        .with("limit", settings.max_session_bytes));
    }
    Ok((bytes > settings.large_session_bytes).then(|| {
        format!(
            "the state of this session has grown to {bytes} bytes (calls are refused above {}); finish it and go on in \
             a new session, or keep long values in files and store their paths",
            settings.max_session_bytes
        )
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings() -> Settings {
        Settings {
            max_nesting: 3,
            max_string_bytes: 20,
            max_array_entries: 4,
            max_map_bytes: 60,
            ..Settings::default()
        }
    }

    #[track_caller]
    fn check(value: Value, refused: Option<(u64, u64)>) {
        let mut arguments = Map::new();
        arguments.insert("given".to_owned(), value);
        match (check_arguments(&arguments, &settings()), refused) {
            (Ok(()), None) => {}
            (Err(refusal), Some((size, limit))) => {
                assert_eq!(refusal.code, "PARAM_TOO_LARGE");
                assert_eq!(refusal.details["parameter"], "given");
                assert_eq!(
                    (refusal.details["size"].as_u64(), refusal.details["limit"].as_u64()),
                    (Some(size), Some(limit))
                );
            }
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn arguments_have_limits() {
        check(json!("x".repeat(20)), None);
        check(json!("x".repeat(21)), Some((21, 20)));
        check(json!({"a": {"b": "y".repeat(21)}}), Some((21, 20)));
        check(json!([1, 2, 3, 4]), None);
        check(json!([1, 2, 3, 4, 5]), Some((5, 4)));
        check(json!([[[1]]]), None);
        check(json!([[[[]]]]), Some((4, 3)));
        check(
            json!({"a": "0123456789012345678", "b": "0123456789012345678", "c": "0123456789012345678"}),
            Some((79, 60)),
        );
    }

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let settings = Settings::default();
        assert_eq!(settings.max_nesting, 64);
        assert_eq!(settings.max_map_bytes, 1024 * 1024);
        assert_eq!(settings.max_string_bytes, 256 * 1024);
        assert_eq!(settings.max_array_entries, 1000);
        assert_eq!(settings.large_session_bytes, 8 * 1024 * 1024);
        assert_eq!(settings.max_session_bytes, 64 * 1024 * 1024);
    }
}
