//! How conditions see bag values: paths, strict equality, conversion to numbers (spec 01 §5.1, §5.2).

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Looks a dotted path up in the bag: through maps, and through lists by decimal position or `length`.
pub(crate) fn lookup<'a>(bag: &'a Map<String, Value>, path: &str) -> Option<std::borrow::Cow<'a, Value>> {
    use std::borrow::Cow;
    let mut segments = path.split('.');
    let mut current = Cow::Borrowed(bag.get(segments.next()?)?);
    for segment in segments {
        current = match current {
            Cow::Borrowed(Value::Object(map)) => Cow::Borrowed(map.get(segment)?),
            Cow::Borrowed(Value::Array(list)) if segment == "length" => Cow::Owned(Value::from(list.len())),
            Cow::Borrowed(Value::Array(list)) => Cow::Borrowed(list.get(position(segment)?)?),
            Cow::Borrowed(_) | Cow::Owned(_) => return None,
        };
    }
    Some(current)
}

/// A list position as written in a path: decimal, without leading zeros.
fn position(segment: &str) -> Option<usize> {
    let digits = segment.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = segment == "0" || !segment.starts_with('0');
    if digits && canonical { segment.parse().ok() } else { None }
}

/// Equality without conversion. Maps and lists never equal anything; `1` and `1.0` are the same number.
pub(crate) fn strictly_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Some(Ordering::Equal),
        _ => false,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Does `left operator right` hold for one of `> < >= <=`? False unless both are finite.
pub(crate) fn ordered(left: Option<f64>, operator: &str, right: Option<f64>) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return false };
    if !left.is_finite() || !right.is_finite() {
        return false;
    }
    match operator {
        ">" => left > right,
        "<" => left < right,
        ">=" => left >= right,
        "<=" => left <= right,
        _ => false,
    }
}

/// The number a string stands for: surrounding blanks ignored, empty is 0, `0x`, `0o`, `0b` and exponents accepted.
pub(crate) fn number_of_text(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.is_empty() {
        return Some(0.0);
    }
    for (prefixes, radix) in [(["0x", "0X"], 16), (["0o", "0O"], 8), (["0b", "0B"], 2)] {
        if let Some(digits) = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)) {
            let mut sum = 0.0;
            for digit in digits.chars() {
                sum = sum * f64::from(radix) + f64::from(digit.to_digit(radix)?);
            }
            return (!digits.is_empty()).then_some(sum);
        }
    }
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if text.chars().all(plain) { text.parse().ok() } else { None }
}
