//! Lines of JSON on a stream: bounded reading, and what is wrong with a line that is no JSON.

use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::Value;

/// Longest line that is read, in bytes.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// Levels of lists and objects that a line may nest; what a tool takes of it is limited further (spec 03 §3.3).
const MAX_LEVELS: usize = 512;

/// Stands where a line holds a value that JSON can write and no text or number can hold. A noncharacter.
const MARK: char = '\u{FDD0}';

/// How far an overlong line is searched for its [`Head`], in multiples of what is read.
const SEARCHED: u64 = 2;

/// One line as it came.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// Without its line end; never only white space.
    Text(Vec<u8>),
    /// More than [`MAX_LINE`] bytes; skipped to its end.
    TooLong(Head),
}

/// What an answer to a message that is not taken has to know: otherwise the sender would wait for it for ever.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub struct Head {
    /// The request's id, where it can be found.
    pub id: Option<Value>,
    /// The request's method.
    pub method: Option<String>,
}

impl Head {
    /// Everything but the two is skipped, in constant space and without recursion.
    fn of(text: impl Read) -> Self {
        serde_json::from_reader(io::BufReader::new(text)).unwrap_or_default()
    }
}

/// Reads the next line that is not blank and has no more than `max` bytes; `None` at the end of the stream. A last line
/// needs no line end. In memory it takes a few multiples of `max`, however long the line.
///
/// # Errors
/// The stream's.
pub fn next_line(input: &mut impl BufRead, max: usize) -> io::Result<Option<Line>> {
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
        let used = input.by_ref().take(limit).read_until(b'\n', &mut line)?;
        if used > max && line.last() != Some(&b'\n') {
            let mut rest = UntilLineEnd { input, ended: false };
            let head = Head::of(line.as_slice().chain(&mut rest).take(limit.saturating_mul(SEARCHED)));
            io::copy(&mut rest, &mut io::sink())?;
            return Ok(Some(Line::TooLong(head)));
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            return Ok(Some(Line::Text(text.to_vec())));
        }
        if used == 0 {
            return Ok(None);
        }
    }
}

/// The rest of a line; its end is taken and not given.
struct UntilLineEnd<'a, R> {
    input: &'a mut R,
    ended: bool,
}

impl<R: BufRead> Read for UntilLineEnd<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let available = self.input.fill_buf()?;
        let end = available.iter().take(buffer.len()).position(|byte| *byte == b'\n');
        let given = end.unwrap_or_else(|| available.len().min(buffer.len()));
        buffer[..given].copy_from_slice(&available[..given]);
        self.ended = end.is_some();
        self.input.consume(given + usize::from(self.ended));
        Ok(given)
    }
}

/// What a line holds.
#[derive(Debug, PartialEq)]
pub enum Decoded {
    /// A JSON value.
    Value(Value),
    /// No JSON; why.
    Malformed(String),
    /// Nested deeper than this many levels.
    TooDeep(usize, Head),
    /// JSON with a number or a text that cannot be represented; the value with marks, and the path of the first.
    Unrepresentable(Value, String),
}

/// Parses a line; never fails otherwise than by saying so.
pub fn decode(line: &[u8]) -> Decoded {
    let text = match std::str::from_utf8(line) {
        Ok(text) => text.trim_start_matches('\u{FEFF}'),
        Err(error) => return Decoded::Malformed(format!("not UTF-8 at byte {}", error.valid_up_to() + 1)),
    };
    if levels(text) > MAX_LEVELS {
        return Decoded::TooDeep(MAX_LEVELS, Head::of(text.as_bytes()));
    }
    match parse(text) {
        Ok(value) => Decoded::Value(value),
        Err(error) => match parse(&marked(text)).ok().map(|value| (path_of_mark(&value), value)) {
            Some((Some(path), value)) => Decoded::Unrepresentable(value, path),
            _ => Decoded::Malformed(error.to_string()),
        },
    }
}

/// Parses without the parser's own nesting limit; the caller has counted.
fn parse(text: &str) -> serde_json::Result<Value> {
    let mut parser = serde_json::Deserializer::from_str(text);
    parser.disable_recursion_limit();
    let value = serde::Deserialize::deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

/// How deep brackets nest, outside of strings.
fn levels(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The text with a mark for every escape of half a surrogate pair and every number beyond the range of a double.
fn marked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut quoted = false;
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '"' => {
                quoted = !quoted;
                out.push(next);
                1
            }
            '\\' if quoted => escape(rest, &mut out),
            '-' | '0'..='9' if !quoted => number(rest, &mut out),
            other => {
                out.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// Copies one escape, or two that belong together; returns how many bytes it took.
fn escape(rest: &str, out: &mut String) -> usize {
    let unit = |text: &str| {
        text.strip_prefix("\\u").and_then(|hex| hex.get(..4)).and_then(|hex| u16::from_str_radix(hex, 16).ok())
    };
    let length = match unit(rest) {
        Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => 12,
        Some(0xD800..=0xDFFF) => {
            out.push(MARK);
            return 6;
        }
        Some(_) => 6,
        None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
    };
    out.push_str(&rest[..length]);
    length
}

fn number(rest: &str, out: &mut String) -> usize {
    let length = rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')).unwrap_or(rest.len());
    let literal = &rest[..length];
    if literal.parse::<f64>().is_ok_and(f64::is_infinite) {
        out.push('"');
        out.push(MARK);
        out.push('"');
    } else {
        out.push_str(literal);
    }
    length
}

fn path_of_mark(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.contains(MARK).then(String::new),
        Value::Array(entries) => entries
            .iter()
            .enumerate()
            .find_map(|(position, entry)| path_of_mark(entry).map(|path| format!("[{position}]{path}"))),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            if key.contains(MARK) {
                return Some(".<a name>".to_owned());
            }
            path_of_mark(member).map(|path| format!(".{key}{path}"))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_lines(input: &[u8], max: usize, expected: &[Line]) {
        let mut reader = io::BufReader::with_capacity(4, input);
        let mut found = Vec::new();
        while let Some(line) = next_line(&mut reader, max).unwrap() {
            found.push(line);
        }
        assert_eq!(found, expected);
    }

    fn text(line: &str) -> Line {
        Line::Text(line.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_bounded_and_blank_ones_skipped() {
        check_lines(b"", 10, &[]);
        check_lines(b"\n  \r\n\n", 10, &[]);
        check_lines(b"a\r\n\nb", 10, &[text("a"), text("b")]);
        check_lines(b"0123456789\nx\n", 10, &[text("0123456789"), text("x")]);
        check_lines(b"0123456789a\nx\n", 10, &[Line::TooLong(Head::default()), text("x")]);
        check_lines(b"0123456789abcdefghijklmnop", 10, &[Line::TooLong(Head::default())]);
    }

    #[test]
    fn a_line_that_is_not_taken_says_whose_it_is() {
        let head = |id: Value| Head { id: Some(id), method: Some("m".to_owned()) };
        let long = r#"{"params":{"a":"bcdefghijklmnopqrstuvwxyz\n"},"method":"m","id":"seven"}"#;
        check_lines(format!("{long}\nx").as_bytes(), 40, &[Line::TooLong(head(json!("seven"))), text("x")]);
        // Too far away to be looked for.
        check_lines(format!("{long}\nx").as_bytes(), 10, &[Line::TooLong(Head::default()), text("x")]);
        let deep = format!(r#"{{"id":7,"params":{}{},"method":"m"}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(decode(deep.as_bytes()), Decoded::TooDeep(512, head(json!(7))));
    }

    #[track_caller]
    fn check_decoded(line: &str, expected: &Value) {
        assert_eq!(decode(line.as_bytes()), Decoded::Value(expected.clone()), "{line}");
    }

    #[test]
    fn lines_are_decoded() {
        check_decoded(r#"{"a":[1,"\ud83d\ude00"]}"#, &json!({"a": [1, "😀"]}));
        check_decoded("\u{FEFF}[]", &json!([]));
        assert!(matches!(decode(b"{nope"), Decoded::Malformed(_)));
        assert!(matches!(decode(b"\xff"), Decoded::Malformed(reason) if reason.contains("byte 1")));
        assert!(matches!(decode(b"1 2"), Decoded::Malformed(_)));
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(matches!(decode(deep(512).as_bytes()), Decoded::Value(_)));
        assert_eq!(decode(deep(513).as_bytes()), Decoded::TooDeep(512, Head::default()));
    }

    #[test]
    fn what_cannot_be_represented_is_named() {
        let path = |line: &str| match decode(line.as_bytes()) {
            Decoded::Unrepresentable(_, path) => path,
            other => panic!("{other:?}"),
        };
        assert_eq!(path(r#"{"a":{"b":["x","\ud800"]}}"#), ".a.b[1]");
        assert_eq!(path(r#"{"a":"\ude00\ud83d"}"#), ".a");
        assert_eq!(path(r#"{"a":[1,-1e999]}"#), ".a[1]");
        assert_eq!(path(r#"{"\ud800":1}"#), ".<a name>");
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_decoded_or_refused(line in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _decoded = decode(&line);
        }

        #[test]
        fn any_text_like_json_is_decoded_or_refused(line in r#"([\[\]{}",:0-9eE.+-]|\\u[dD][89a-fA-F][0-9a-f]{2}|\\|é){0,60}"#) {
            let _decoded = decode(line.as_bytes());
        }
    }
}
