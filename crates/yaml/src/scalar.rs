//! The core schema: what the text of a scalar means (spec 01 §2).

use serde_json::{Number, Value};

use crate::number::number_to_string;

/// What a plain text means in the YAML 1.2 core schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Core {
    Null,
    Bool(bool),
    Number(Number),
    /// An infinity, a not-a-number, or a float too large: a number that JSON cannot hold.
    NotFinite,
    String,
}

/// The tag of a scalar, as far as it matters for its meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tag {
    None,
    /// `!`, which makes any scalar a string.
    NonSpecific,
    /// A tag of the core schema: `str`, `int`, `float`, `bool`, `null`, `map`, `seq`.
    Core(String),
    /// Any other tag, as written.
    Unknown(String),
}

/// Returns the value of a scalar, and a warning where it may not be what its author meant.
pub(crate) fn resolve(text: &str, is_plain: bool, tag: &Tag) -> (Value, Option<String>) {
    let string = || Value::String(text.to_owned());
    let name = match tag {
        Tag::None if is_plain => return resolve_plain(text),
        Tag::None | Tag::NonSpecific => return (string(), None),
        Tag::Unknown(tag) => return (string(), Some(format!("unknown tag `{tag}`"))),
        Tag::Core(name) => name.as_str(),
    };
    // An explicit tag reads quoted text too: `!!int '3'` is a number.
    match (name, classify(text)) {
        ("str", _) => (string(), None),
        ("null", Core::Null) => (Value::Null, None),
        ("bool", Core::Bool(value)) => (Value::Bool(value), None),
        ("int", Core::Number(value)) if !value.is_f64() || !text.contains(['.', 'e', 'E']) => {
            (Value::Number(value), None)
        }
        ("float", Core::Number(value)) => (Value::Number(value), None),
        ("float", Core::NotFinite) => resolve_plain(text),
        _ => (string(), Some(format!("the value does not fit the tag `!!{name}`"))),
    }
}

/// Returns the text of a scalar that is used as a key: non-string keys become what JavaScript makes of them.
pub(crate) fn key_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number_to_string(&number),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

fn resolve_plain(text: &str) -> (Value, Option<String>) {
    match classify(text) {
        Core::Null => (Value::Null, None),
        Core::Bool(value) => (Value::Bool(value), None),
        Core::Number(value) => (Value::Number(value), None),
        Core::NotFinite => {
            (Value::String(text.to_owned()), Some(format!("`{text}` is not a finite number and is kept as a string")))
        }
        Core::String => (Value::String(text.to_owned()), None),
    }
}

/// Returns what a plain text means.
pub(crate) fn classify(text: &str) -> Core {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Core::Null,
        "true" | "True" | "TRUE" => return Core::Bool(true),
        "false" | "False" | "FALSE" => return Core::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Core::NotFinite,
        _ => {}
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return based_integer(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return based_integer(digits, 16);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Core::NotFinite;
    }
    if is_integer(unsigned) {
        return integer(text);
    }
    if is_float(unsigned) { text.parse().map_or(Core::String, float) } else { Core::String }
}

fn is_integer(unsigned: &str) -> bool {
    !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit())
}

/// Matches `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|text| is_integer(text.strip_prefix(['-', '+']).unwrap_or(text)));
    mantissa_fits && exponent_fits
}

/// Reads a decimal integer: exact in 64 bits, a float beyond.
fn integer(text: &str) -> Core {
    if let Ok(value) = text.parse::<i64>() {
        return Core::Number(Number::from(value));
    }
    if let Ok(value) = text.parse::<u64>() {
        return Core::Number(Number::from(value));
    }
    text.parse().map_or(Core::String, float)
}

fn based_integer(digits: &str, base: u32) -> Core {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return Core::String;
    }
    if let Ok(value) = u64::from_str_radix(digits, base) {
        return Core::Number(Number::from(value));
    }
    float(digits.chars().fold(0.0, |sum, digit| sum * f64::from(base) + f64::from(digit.to_digit(base).unwrap_or(0))))
}

/// Wraps a float; a whole one becomes an integer, because `1.0` and `1` are the same number (spec 01 §2).
fn float(value: f64) -> Core {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "the value is whole and within 2^53")]
        return Core::Number(Number::from(value as i64));
    }
    Number::from_f64(value).map_or(Core::NotFinite, Core::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        assert_eq!(&resolve_plain(text).0, expected, "{text:?}");
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for text in ["", "~", "null", "Null", "NULL"] {
            check(text, &Value::Null);
        }
        for text in ["true", "True", "TRUE"] {
            check(text, &json!(true));
        }
        for text in ["false", "False", "FALSE"] {
            check(text, &json!(false));
        }
        let strings = [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "nULL",
            "tRUE",
            "1_000",
            "2026-01-02",
            "1.0.0",
            "0b101",
            "190:20:30",
            "0o",
            "0o8",
            "0x",
            "0xg",
            "-0x1",
            "-0o7",
            "0X1F",
            ".",
            "+",
            "-",
            "e3",
            ".e3",
            "1e",
            "1e+",
            "1.5e3.2",
            "+-1",
            "--1",
            "1 ",
            "٣",
            "inf",
            "nan",
            "+.nan",
            "<<",
            "infinity",
            "NaN",
        ];
        for text in strings {
            check(text, &json!(text));
        }
        let numbers = [
            ("0", json!(0)),
            ("-0", json!(0)),
            ("-0.0", json!(0)),
            ("+7", json!(7)),
            ("-7", json!(-7)),
            ("012", json!(12)),
            ("0755", json!(755)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("0xff", json!(255)),
            ("1e3", json!(1000)),
            ("1E+3", json!(1000)),
            (".5", json!(0.5)),
            ("-.5", json!(-0.5)),
            ("1.0", json!(1)),
            ("1.", json!(1)),
            ("1.25", json!(1.25)),
            ("1e-7", json!(1e-7)),
            ("9007199254740993", json!(9_007_199_254_740_993_u64)),
            ("9223372036854775807", json!(i64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
            ("-9223372036854775809", json!(-9_223_372_036_854_775_809.0)),
            ("0xFFFFFFFFFFFFFFFF", json!(u64::MAX)),
            ("0x10000000000000000", json!(18_446_744_073_709_551_616.0)),
            ("1e21", json!(1e21)),
        ];
        for (text, expected) in numbers {
            check(text, &expected);
        }
    }

    #[test]
    fn numbers_that_json_cannot_hold_stay_text_with_a_warning() {
        for text in [".inf", "-.inf", "+.INF", ".Inf", ".nan", ".NaN", ".NAN", "1e999", "-1e999"] {
            let (value, warning) = resolve_plain(text);
            assert_eq!(value, json!(text));
            assert!(warning.is_some(), "{text}");
        }
    }

    #[test]
    fn tags_override_the_schema() {
        let core = |name: &str| Tag::Core(name.to_owned());
        let table = [
            ("3", true, core("str"), json!("3"), false),
            ("", true, core("str"), json!(""), false),
            ("3", false, core("int"), json!(3), false),
            ("x", true, core("int"), json!("x"), true),
            ("1.5", true, core("int"), json!("1.5"), true),
            ("99999999999999999999", true, core("int"), json!(99_999_999_999_999_999_999.0), false),
            ("1", true, core("float"), json!(1), false),
            ("1.5", false, core("float"), json!(1.5), false),
            (".inf", true, core("float"), json!(".inf"), true),
            ("true", false, core("bool"), json!(true), false),
            ("yes", true, core("bool"), json!("yes"), true),
            ("", true, core("null"), json!(null), false),
            ("x", true, core("null"), json!("x"), true),
            ("x", true, core("seq"), json!("x"), true),
            ("12", true, Tag::NonSpecific, json!("12"), false),
            ("12", true, Tag::Unknown("!foo".to_owned()), json!("12"), true),
            ("12", false, Tag::None, json!("12"), false),
        ];
        for (text, is_plain, tag, expected, warns) in table {
            let (value, warning) = resolve(text, is_plain, &tag);
            assert_eq!((value, warning.is_some()), (expected, warns), "{text:?} {tag:?}");
        }
    }

    #[test]
    fn keys_become_text() {
        assert_eq!(key_text(json!(1)), "1");
        assert_eq!(key_text(json!(1.5)), "1.5");
        assert_eq!(key_text(json!(true)), "true");
        assert_eq!(key_text(json!(null)), "");
        assert_eq!(key_text(json!("a")), "a");
    }
}
