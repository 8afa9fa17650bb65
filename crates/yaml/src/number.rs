//! Numbers as text.

use serde_json::Number;

/// Prints a number as ECMAScript does (spec 03 §3.3): `1.0` is `1`, `-0` is `0`, `1e21` is `1e+21`.
///
/// Integers that fit 64 bits keep all their digits, where ECMAScript would round them.
pub fn number_to_string(n: &Number) -> String {
    if let Some(integer) = n.as_i64() {
        return integer.to_string();
    }
    if let Some(integer) = n.as_u64() {
        return integer.to_string();
    }
    n.as_f64().map_or_else(|| n.to_string(), float_to_string)
}

/// Lays out the shortest digits of a finite float the way `Number.prototype.toString` does.
fn float_to_string(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // `{:e}` gives the shortest digits that read back as the same float; only their layout differs.
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));

    let layout = if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{:+}", point - 1)
    };
    if value < 0.0 { format!("-{layout}") } else { layout }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_ecmascript_prints_them() {
        let table = [
            (1.0, "1"),
            (-1.0, "-1"),
            (0.0, "0"),
            (-0.0, "0"),
            (0.5, "0.5"),
            (-0.25, "-0.25"),
            (12.75, "12.75"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e3, "1000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e21, "1.5e+21"),
            (-1.25e300, "-1.25e+300"),
            (1e-6, "0.000001"),
            (1.5e-6, "0.0000015"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (9_223_372_036_854_775_808.0, "9223372036854776000"),
        ];
        for (value, expected) in table {
            let number = Number::from_f64(value).expect("the table holds finite numbers");
            assert_eq!(number_to_string(&number), expected);
        }
    }

    #[test]
    fn integers_keep_their_digits() {
        assert_eq!(number_to_string(&Number::from(i64::MIN)), "-9223372036854775808");
        assert_eq!(number_to_string(&Number::from(u64::MAX)), "18446744073709551615");
        assert_eq!(number_to_string(&Number::from(9_007_199_254_740_993_u64)), "9007199254740993");
    }
}
