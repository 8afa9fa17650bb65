//! Reading the text of a state (spec 03 §3.3).

use serde::Deserialize as _;
use serde_json::Value;

/// How deep a state may nest: each child or parent snapshot adds up to three levels.
const MAX_DEPTH: usize = 512;

/// A text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct NotJson {
    /// From 1.
    pub line: usize,
    /// From 1, in bytes.
    pub column: usize,
    /// What the reader met there.
    pub problem: String,
}

/// Reads the bytes of a state.
///
/// # Errors
/// [`NotJson`] with the position; also when it nests deeper than 512 levels, and for an escaped lone surrogate, which
/// is JSON but no text.
pub fn parse_text(bytes: &[u8]) -> Result<Value, NotJson> {
    if let Some(offset) = too_deep(bytes) {
        let (line, column) = position(bytes, offset);
        return Err(NotJson { line, column, problem: format!("more than {MAX_DEPTH} nested levels") });
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| {
        let text = error.to_string();
        let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_owned();
        NotJson { line: error.line().max(1), column: error.column().max(1), problem }
    })
}

/// Offset of the bracket that opens one level too many.
fn too_deep(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (offset, byte) in bytes.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(offset);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn position(bytes: &[u8], offset: usize) -> (usize, usize) {
    let before = &bytes[..offset];
    let line = before.split(|byte| *byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_03_14_07_a_lone_surrogate_is_not_text_and_says_where() {
        let error = parse_text(b"{\n  \"a\": \"\\ud800\"\n}").unwrap_err();
        assert_eq!(error.line, 2, "{error}");
        assert!(error.problem.contains("surrogate") || error.problem.contains("hex escape"), "{error}");
        assert!(parse_text("\"\\ud83d\\ude00\"".as_bytes()).is_ok());
    }

    #[test]
    fn nesting_is_bounded_before_anything_is_read() {
        let nested = |n: usize| [b"[".repeat(n), b"]".repeat(n)].concat();
        assert!(parse_text(&nested(512)).is_ok());
        let error = parse_text(&nested(513)).unwrap_err();
        assert_eq!((error.line, error.column), (1, 513));
        assert!(parse_text(&b"[".repeat(2_000_000)).is_err());
        assert!(parse_text(format!("\"{}\"", "[".repeat(1000)).as_bytes()).is_ok(), "brackets in a string do not nest");
    }
}
