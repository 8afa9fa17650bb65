//! How much of what a caller sent a refusal repeats.

use serde_json::{Map, Value};
use workflow_engine::Refusal;

/// Longest piece of a long text that is repeated, in characters.
const SHOWN: usize = 60;

/// Texts of at most this many bytes are repeated as they are.
const REPEATED: usize = 400;

/// Most long texts that are looked for in a refusal.
const MOST_LONG: usize = 64;

/// What was sent and is repeated in a refusal, with texts and names too long to be read back cut short.
pub(crate) fn shortened(refusal: Refusal, tool: &str, sent: &Map<String, Value>) -> Refusal {
    let mut long = Vec::new();
    push_long(tool, &mut long);
    collect_long(sent, &mut long);
    if long.is_empty() {
        return refusal;
    }
    // A text may stand in another; the longest first.
    long.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let cut = |text: &str| {
        long.iter().fold(text.to_owned(), |shown, long| {
            if shown.len() < long.len() { shown } else { shown.replace(long, &headed(long)) }
        })
    };
    let details = refusal.details.into_iter().map(|(key, value)| (key, cut_value(value, &cut))).collect();
    Refusal { message: cut(&refusal.message), details, ..refusal }
}

fn cut_value(value: Value, cut: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&text)),
        Value::Array(entries) => entries.into_iter().map(|entry| cut_value(entry, cut)).collect(),
        Value::Object(members) => members.into_iter().map(|(key, member)| (key, cut_value(member, cut))).collect(),
        other => other,
    }
}

/// Names and texts longer than a message repeats, and the last segments of such paths.
fn collect_long<'a>(members: &'a Map<String, Value>, long: &mut Vec<&'a str>) {
    for (name, value) in members {
        push_long(name, long);
        collect_long_in(value, long);
    }
}

fn collect_long_in<'a>(value: &'a Value, long: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => push_long(text, long),
        Value::Array(entries) => entries.iter().for_each(|entry| collect_long_in(entry, long)),
        Value::Object(members) => collect_long(members, long),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn push_long<'a>(text: &'a str, long: &mut Vec<&'a str>) {
    let last = text.rsplit(['/', '\\']).next().filter(|last| last.len() < text.len());
    for text in [Some(text), last].into_iter().flatten() {
        if text.len() > REPEATED && long.len() < MOST_LONG {
            long.push(text);
        }
    }
}

fn headed(text: &str) -> String {
    let head: String = text.chars().take(SHOWN).collect();
    format!("{head}… ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_repeats_the_beginning_of_a_long_text() {
        let long = "é".repeat(5_000);
        let cut = format!("{}… (10000 bytes)", "é".repeat(60));
        let check = |tool: &str, sent: Value| {
            let message = format!("no step `{long}`; valid: a, b. Call again with one of these.");
            let refusal =
                Refusal::new("STEP_NOT_FOUND", message).with("step_id", long.as_str()).with("valid", vec!["a"]);
            let shown = shortened(refusal, tool, sent.as_object().unwrap());
            assert_eq!(shown.message, format!("no step `{cut}`; valid: a, b. Call again with one of these."));
            assert_eq!(Value::Object(shown.details), json!({"step_id": cut, "valid": ["a"]}));
        };
        check("t", json!({"step_id": long}));
        check("t", json!({"planning_folder": format!("/x/{long}")}));
        check("t", json!({"step_manifest": [{"step_id": long}]}));
        check("t", json!({long.as_str(): 1}));
        check(&long, json!({}));
    }

    #[test]
    fn short_texts_stand_as_they_are() {
        let refusal = Refusal::new("STEP_NOT_FOUND", "no step `abc`").with("step_id", "abc");
        let sent = json!({"step_id": "abc"});
        assert_eq!(shortened(refusal.clone(), "t", sent.as_object().unwrap()), refusal);
    }
}
