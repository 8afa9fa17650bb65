//! Structured conditions: evaluation, rendering, and what counts as the same claim (spec 01 §4.8, §5.1).

use serde_json::{Map, Value};

use crate::Condition;
use crate::value::{lookup, number_of_text, ordered, strictly_equal};

/// Operators of a simple condition.
pub(crate) const OPERATORS: [&str; 8] = ["==", "!=", ">", "<", ">=", "<=", "exists", "notExists"];

impl Condition {
    /// The text that transition lists show and that clients claim (spec 01 §4.8). Parts are joined without
    /// parentheses.
    pub fn text(&self) -> String {
        match self {
            Self::Simple { variable, operator, value } => match value {
                Some(value) => format!("{variable} {operator} {value}"),
                None if is_presence_test(operator) => format!("{variable} {operator}"),
                None => format!("{variable} {operator} undefined"),
            },
            Self::And(parts) => joined(parts, " AND "),
            Self::Or(parts) => joined(parts, " OR "),
            Self::Not(inner) => format!("NOT ({})", inner.text()),
        }
    }

    /// The condition as it is written in a definition.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        let mut member = |name: &str, value: Value| {
            map.insert(name.to_owned(), value);
        };
        match self {
            Self::Simple { variable, operator, value } => {
                member("type", "simple".into());
                member("variable", variable.as_str().into());
                member("operator", operator.as_str().into());
                if let Some(value) = value {
                    member("value", value.clone());
                }
            }
            Self::And(parts) => {
                member("type", "and".into());
                member("conditions", parts.iter().map(Self::to_value).collect());
            }
            Self::Or(parts) => {
                member("type", "or".into());
                member("conditions", parts.iter().map(Self::to_value).collect());
            }
            Self::Not(inner) => {
                member("type", "not".into());
                member("condition", inner.to_value());
            }
        }
        Value::Object(map)
    }

    /// Does it hold for these variables (spec 01 §5.1)?
    pub fn holds(&self, bag: &Map<String, Value>) -> bool {
        match self {
            Self::Simple { variable, operator, value } => simple_holds(variable, operator, value.as_ref(), bag),
            Self::And(parts) => parts.iter().all(|part| part.holds(bag)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(bag)),
            Self::Not(inner) => !inner.holds(bag),
        }
    }

    /// Every path it reads, with whether its *value* is read (not only its presence), in order.
    pub fn reads(&self) -> Vec<(&str, bool)> {
        match self {
            Self::Simple { variable, operator, .. } => vec![(variable.as_str(), !is_presence_test(operator))],
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::reads).collect(),
            Self::Not(inner) => inner.reads(),
        }
    }
}

fn is_presence_test(operator: &str) -> bool {
    matches!(operator, "exists" | "notExists")
}

fn joined(parts: &[Condition], with: &str) -> String {
    parts.iter().map(Condition::text).collect::<Vec<_>>().join(with)
}

fn simple_holds(variable: &str, operator: &str, value: Option<&Value>, bag: &Map<String, Value>) -> bool {
    let found = lookup(bag, variable);
    let equal = match (&found, value) {
        (None, None) => true,
        (Some(found), Some(value)) => strictly_equal(found, value),
        _ => false,
    };
    match operator {
        "exists" => found.is_some_and(|found| !found.is_null()),
        "notExists" => found.is_none_or(|found| found.is_null()),
        "==" => equal,
        "!=" => !equal,
        _ => ordered(found.as_deref().and_then(comparable), operator, value.and_then(comparable)),
    }
}

/// Numbers and strings that are numbers; booleans and null are not.
fn comparable(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number_of_text(text),
        _ => None,
    }
}

/// Is the claimed condition text the declared one? Exact, but a presence test may end in `undefined` as the original
/// prints it (FIX-9): `ticket exists` and `ticket exists undefined` are one claim, also inside and/or parts.
pub fn claims_match(declared: &str, claimed: &str) -> bool {
    declared == claimed || without_undefined(declared) == without_undefined(claimed)
}

/// Drops ` undefined` behind a presence test, outside JSON strings.
fn without_undefined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let end = string_end(rest);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else if let Some(after) = ends_presence_test(rest, &out) {
            rest = after;
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

fn ends_presence_test<'a>(rest: &'a str, before: &str) -> Option<&'a str> {
    let after = rest.strip_prefix(" undefined")?;
    let bounded = after.is_empty() || after.starts_with(" AND ") || after.starts_with(" OR ") || after.starts_with(')');
    let presence = before.ends_with(" exists") || before.ends_with(" notExists");
    (bounded && presence).then_some(after)
}

/// Byte length of the JSON string at the start of `text`, its quotes included.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn simple(variable: &str, operator: &str, value: Option<Value>) -> Condition {
        Condition::Simple { variable: variable.to_owned(), operator: operator.to_owned(), value }
    }

    fn bag(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    #[test]
    fn evaluation_follows_the_reference() {
        #[track_caller]
        #[expect(clippy::needless_pass_by_value, reason = "the values are literals at the calls")]
        fn check(operator: &str, value: Option<Value>, variables: Value, expected: bool) {
            let condition = simple("x", operator, value.clone());
            assert_eq!(condition.holds(&bag(variables.clone())), expected, "x {operator} {value:?} with {variables}");
        }
        check("==", Some(json!(null)), json!({}), false);
        check("!=", Some(json!(null)), json!({}), true);
        check(">", Some(json!(0)), json!({"x": true}), false);
        check(">=", Some(json!(0)), json!({"x": ""}), true);
        check("==", Some(json!(1)), json!({"x": "1"}), false);
        check("==", Some(json!(1)), json!({"x": 1.0}), true);
        check(">", Some(json!(3)), json!({"x": "10"}), true);
        check(">", Some(json!(3)), json!({"x": " 0x10 "}), true);
        check(">", Some(json!(3)), json!({"x": "1e2"}), true);
        check(">", Some(json!(3)), json!({"x": "Infinity"}), false);
        check(">", Some(json!("nan")), json!({"x": 1}), false);
        check("==", None, json!({}), true);
        check("==", None, json!({"x": null}), false);
        check("exists", None, json!({"x": null}), false);
        check("exists", None, json!({"x": 0}), true);
        check("notExists", None, json!({"x": null}), true);
        check("==", Some(json!("a")), json!({"x": ["a"]}), false);
        check("==", Some(json!(9_007_199_254_740_993_i64)), json!({"x": 9_007_199_254_740_992_i64}), false);
    }

    #[test]
    fn paths_walk_maps_and_lists_only() {
        #[track_caller]
        #[expect(clippy::needless_pass_by_value, reason = "the values are literals at the calls")]
        fn check(path: &str, variables: Value, expected: Option<Value>) {
            assert_eq!(lookup(&bag(variables), path).map(std::borrow::Cow::into_owned), expected, "{path}");
        }
        check("x.length", json!({"x": [1, 2]}), Some(json!(2)));
        check("x.0", json!({"x": [5]}), Some(json!(5)));
        check("x.00", json!({"x": [5]}), None);
        check("x.length", json!({"x": "abc"}), None);
        check("x.length.y", json!({"x": [1]}), None);
        check("a.b", json!({"a.b": 1}), None);
        check("a.b", json!({"a": {"b": 1}}), Some(json!(1)));
        check("a..b", json!({"a": {"": {"b": 1}}}), Some(json!(1)));
    }

    #[test]
    fn trap_01_14_13_presence_tests_render_short_and_match_both_forms() {
        let text = simple("ticket", "exists", None).text();
        assert_eq!(text, "ticket exists");
        assert!(claims_match(&text, "ticket exists"));
        assert!(claims_match(&text, "ticket exists undefined"));
        assert!(!claims_match(&text, "ticket  exists"));
        assert!(!claims_match(&text, "(ticket exists)"));
        assert!(!claims_match(&text, "ticket exists null"));
        assert_eq!(simple("ticket", "==", None).text(), "ticket == undefined");
        assert!(!claims_match("ticket == undefined", "ticket =="));
        let inside = "NOT (a exists) OR b notExists AND c == \"x exists undefined AND y\"";
        assert!(claims_match(
            inside,
            "NOT (a exists undefined) OR b notExists undefined AND c == \"x exists undefined AND y\""
        ));
        assert!(!claims_match(inside, "NOT (a exists) OR b notExists AND c == \"x exists AND y\""));
    }

    #[test]
    fn trap_01_14_14_and_inside_or_renders_without_parentheses() {
        let a = simple("a", "==", Some(json!(1)));
        let b = simple("b", "==", Some(json!(2)));
        let c = simple("c", "==", Some(json!(3)));
        let condition = Condition::Or(vec![Condition::And(vec![a.clone(), b]), c]);
        assert_eq!(condition.text(), "a == 1 AND b == 2 OR c == 3");
        assert_eq!(Condition::Not(Box::new(a)).text(), "NOT (a == 1)");
        assert_eq!(simple("m", "!=", Some(json!("x"))).text(), "m != \"x\"");
    }

    #[test]
    fn values_are_written_back_as_read() {
        let condition = Condition::Not(Box::new(simple("a", "exists", None)));
        assert_eq!(
            condition.to_value(),
            json!({"type": "not", "condition": {"type": "simple", "variable": "a", "operator": "exists"}})
        );
    }
}
