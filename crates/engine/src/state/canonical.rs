//! The exact text of a session (spec 03 §3.3).

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Members of a root session that come first, in this order; everything else is sorted.
const HEAD: [&str; 21] = [
    "schemaVersion",
    "status",
    "workflowId",
    "workflowVersion",
    "agentId",
    "sessionIndex",
    "planningFolderPath",
    "currentActivity",
    "currentTechnique",
    "condition",
    "activeCheckpoint",
    "seq",
    "ts",
    "startedAt",
    "completedActivities",
    "skippedActivities",
    "variables",
    "checkpointResponses",
    "history",
    "triggeredWorkflows",
    "parentSession",
];

/// Indented text with all keys sorted by UTF-16 code units, strings and numbers as ECMAScript prints them.
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Some(0), &[]);
    out
}

/// The same on one line without any white space.
pub fn compact_canonical(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, None, &[]);
    out
}

/// Canonical text of a root state: the known head members first.
pub(super) fn state_text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Some(0), &HEAD);
    out
}

/// A JSON string literal, as ECMAScript's `JSON.stringify` writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

fn write(out: &mut String, value: &Value, indent: Option<usize>, head: &[&str]) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => write_string(out, text),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                separate(out, position, indent);
                write(out, item, indent.map(|depth| depth + 1), &[]);
            }
            line(out, indent);
            out.push(']');
        }
        Value::Object(members) if members.is_empty() => out.push_str("{}"),
        Value::Object(members) => {
            out.push('{');
            for (position, key) in ordered(members, head).into_iter().enumerate() {
                separate(out, position, indent);
                write_string(out, key);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write(out, &members[key], indent.map(|depth| depth + 1), &[]);
            }
            line(out, indent);
            out.push('}');
        }
    }
}

fn separate(out: &mut String, position: usize, indent: Option<usize>) {
    if position > 0 {
        out.push(',');
    }
    line(out, indent.map(|depth| depth + 1));
}

fn line(out: &mut String, indent: Option<usize>) {
    if let Some(depth) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

fn ordered<'a>(members: &'a Map<String, Value>, head: &[&str]) -> Vec<&'a str> {
    let mut keys: Vec<&str> = members.keys().map(String::as_str).collect();
    let rank = |key: &str| head.iter().position(|known| *known == key).unwrap_or(head.len());
    keys.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| utf16_order(a, b)));
    keys
}

/// Order of two texts by UTF-16 code units.
fn utf16_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                const HEX: [char; 16] =
                    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
                out.push_str("\\u00");
                out.push(HEX[(c as usize) >> 4]);
                out.push(HEX[(c as usize) & 15]);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A number as ECMAScript prints it; integers that fit 64 bits keep their digits.
fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_text(float),
        _ => number.to_string(),
    }
}

fn float_text(float: f64) -> String {
    if float == 0.0 || !float.is_finite() {
        return "0".to_owned();
    }
    // `{:e}` gives the shortest digits that read back as the same number: d.ddde±x
    let scientific = format!("{:e}", float.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent.parse::<i32>().unwrap_or(0).saturating_add(1);
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    let body = if (count..=21).contains(&point) {
        format!("{digits}{}", zeros(point - count))
    } else if (1..=21).contains(&point) {
        let (whole, rest) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{whole}.{rest}")
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let sign = if point > 0 { '+' } else { '-' };
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{sign}{}", (point - 1).abs())
    };
    if float < 0.0 { format!("-{body}") } else { body }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(json: &str, compact: &str) {
        let value: Value = serde_json::from_str(json).unwrap();
        assert_eq!(compact_canonical(&value), compact);
    }

    #[test]
    fn trap_03_14_05_keys_are_sorted_by_utf16_units() {
        check("{\"\u{FFFD}\":1,\"😀\":2}", "{\"😀\":2,\"\u{FFFD}\":1}");
    }

    #[test]
    fn trap_03_14_06_numbers_are_printed_as_ecmascript_does() {
        for (input, output) in [
            ("1.0", "1"),
            ("1e21", "1e+21"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1e20", "100000000000000000000"),
            ("123456789012345680000", "123456789012345680000"),
            ("0.1", "0.1"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1.5e-9", "1.5e-9"),
            ("1.25e30", "1.25e+30"),
            ("-12.50", "-12.5"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
        ] {
            check(input, output);
        }
    }

    #[test]
    fn strings_escape_only_what_must_be() {
        check(
            "\"\\u0000\\b\\f\\n\\r\\t\\u001f\\\"\\\\\\/\u{2028}\u{7f}é\"",
            "\"\\u0000\\b\\f\\n\\r\\t\\u001f\\\"\\\\/\u{2028}\u{7f}é\"",
        );
    }

    #[test]
    fn the_text_is_indented_by_two_and_ends_without_a_newline() {
        let value = json!({"b": [1, {"x": []}], "a": {}});
        assert_eq!(
            canonical_json(&value),
            "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"x\": []\n    }\n  ]\n}"
        );
    }

    #[test]
    fn the_head_of_a_state_comes_first_and_only_at_the_top() {
        let value =
            json!({"agentId": "a", "zeta": 1, "schemaVersion": 1, "alpha": {"status": 1, "agentId": 2}, "status": "x"});
        let text = state_text(&value);
        assert_eq!(
            text.lines().filter(|line| line.starts_with("  \"")).map(str::trim).collect::<Vec<_>>(),
            ["\"schemaVersion\": 1,", "\"status\": \"x\",", "\"agentId\": \"a\",", "\"alpha\": {", "\"zeta\": 1"]
        );
        assert!(text.find("\"agentId\": 2").unwrap() < text.find("\"status\": 1").unwrap());
    }
}
