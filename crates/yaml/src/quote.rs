//! One-line scalars: when text needs quotes, and which (spec 02 §4.1).

use std::fmt::Write as _;

use crate::scalar::{Core, classify};

/// Writes text as a one-line scalar, plain where that is unambiguous and quoted otherwise (spec 02 §4.1).
///
/// Good for a key or for a value on the line of its key. Line breaks become escapes.
pub fn scalar(text: &str) -> String {
    let escapes = text.chars().any(needs_escape);
    if !escapes && is_plain(text) {
        return text.to_owned();
    }
    if !escapes && text.contains('"') && !text.contains('\'') {
        return format!("'{text}'");
    }
    double_quoted(text)
}

/// Returns whether the character can only be written as an escape in a one-line scalar.
///
/// Beyond control characters these are the ones other readers take for line breaks, the byte order mark, and the code
/// points YAML does not count as printable.
pub(crate) fn needs_escape(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Writes text in double quotes with the escapes of JSON.
pub(crate) fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other if needs_escape(other) => {
                write!(out, "\\u{:04x}", u32::from(other)).expect("writing to a string does not fail");
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Returns whether text without escapes reads back as the same string without quotes.
fn is_plain(text: &str) -> bool {
    let ambiguous = text.is_empty()
        || text == "."
        || text.starts_with(' ')
        || text.ends_with(' ')
        || text.ends_with(':')
        || text.contains(": ")
        || text.contains(" #")
        || text.starts_with("---")
        || text.starts_with("...")
        || starts_with_indicator(text);
    !ambiguous && classify(text) == Core::String
}

fn starts_with_indicator(text: &str) -> bool {
    const INDICATORS: [char; 18] =
        [':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', '\u{feff}'];
    text.starts_with(INDICATORS) || matches!(text, "-" | "?") || text.starts_with("- ") || text.starts_with("? ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unambiguous_text_stays_plain() {
        let plain = [
            "a",
            "1.0.0",
            "2026-01-01",
            "a, b",
            "a#b",
            "it's \"x\"",
            "yes",
            "no",
            "on",
            "off",
            "y",
            "-a",
            "?a",
            "--",
            "-1a",
            "a:b",
            "a::b",
            "..",
            "1_000",
            "<<",
            "=",
            "a - b",
            "(x)",
            "/path",
            "$x",
            "~/x",
            "é",
            "😀",
            "a\\b",
            "a 'b'",
            "nULL",
        ];
        for text in plain {
            assert_eq!(scalar(text), text);
        }
    }

    #[test]
    fn ambiguous_text_is_quoted() {
        let quoted = [
            "", " a", "a ", " ", "- a", "-", "? a", "?", ":", ":a", ",a", "[a", "]", "{a", "}", "#a", "&a", "*a", "!a",
            "|", ">", "'a", "%a", "@a", "`a`", "a: b", "a #b", "a:", "null", "~", "Null", "true", "False", "1", "-1",
            "1.0", ".5", "1e3", "0x1F", "0o17", ".inf", "-.inf", ".nan", "1e999", ".", "---", "--- a", "---a", "...",
            "...a", "012",
        ];
        for text in quoted {
            assert_eq!(scalar(text), format!("\"{text}\""));
        }
    }

    #[test]
    fn single_quotes_only_for_double_quotes_without_apostrophes() {
        assert_eq!(scalar("\"a\""), "'\"a\"'");
        assert_eq!(scalar("a: \"b\""), "'a: \"b\"'");
        assert_eq!(scalar("\"it's\""), "\"\\\"it's\\\"\"");
        assert_eq!(scalar("\"\t\""), "\"\\\"\\t\\\"\"");
    }

    #[test]
    fn characters_that_cannot_stand_for_themselves_are_escaped() {
        let table = [
            ("a\tb", r#""a\tb""#),
            ("a\nb", r#""a\nb""#),
            ("a\r", r#""a\r""#),
            ("\u{8}\u{c}", r#""\b\f""#),
            ("\0\u{1b}", r#""\u0000\u001b""#),
            ("\u{7f}\u{85}\u{9b}", r#""\u007f\u0085\u009b""#),
            ("\u{2028}\u{2029}\u{feff}", r#""\u2028\u2029\ufeff""#),
            ("\u{fffe}\u{ffff}", r#""\ufffe\uffff""#),
            ("\\\t", r#""\\\t""#),
        ];
        for (text, expected) in table {
            assert_eq!(scalar(text), expected);
        }
    }
}
