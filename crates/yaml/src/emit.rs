//! Value to text: the block style of spec 02 §4.1.

use serde_json::{Map, Value};

use crate::number::number_to_string;
use crate::quote::{double_quoted, needs_escape, scalar};

/// A key longer than this is written after `? `, since readers look no further than 1024 characters for its colon.
const LONGEST_SIMPLE_KEY: usize = 1000;

/// Writes a value as YAML text that ends with exactly one newline (spec 02 §4.1).
///
/// Block style, two spaces per level, lists indented under their key, no folding, no anchors; keys in the order of the
/// map. Reading the text back gives an equal value.
pub fn to_string(value: &Value) -> String {
    let mut emitter = Emitter { out: String::new(), last: last_string(value) };
    match value {
        Value::Object(map) if !map.is_empty() => emitter.mapping(map, 0),
        Value::Array(items) if !items.is_empty() => emitter.sequence(items, 0),
        // An indentation indicator counts from the parent, and readers differ on where the parent of the root is.
        Value::String(text) if first_line_is_indented(text) => {
            emitter.out.push_str(&double_quoted(text));
            emitter.out.push('\n');
        }
        other => emitter.inline(other, 2),
    }
    emitter.out
}

struct Emitter<'a> {
    out: String,
    /// The string that ends the text. Kept newlines at its end would be extra newlines at the end of the text.
    last: Option<&'a str>,
}

impl Emitter<'_> {
    /// Writes the entries of a mapping; the cursor already stands at its column.
    fn mapping(&mut self, map: &Map<String, Value>, indent: usize) {
        for (index, (key, value)) in map.iter().enumerate() {
            if index > 0 {
                self.spaces(indent);
            }
            let key = scalar(key);
            if key.chars().count() > LONGEST_SIMPLE_KEY {
                self.out.push_str("? ");
                self.out.push_str(&key);
                self.out.push('\n');
                self.spaces(indent);
            } else {
                self.out.push_str(&key);
            }
            self.out.push(':');
            match value {
                Value::Object(map) if !map.is_empty() => {
                    self.out.push('\n');
                    self.spaces(indent + 2);
                    self.mapping(map, indent + 2);
                }
                Value::Array(items) if !items.is_empty() => {
                    self.out.push('\n');
                    self.spaces(indent + 2);
                    self.sequence(items, indent + 2);
                }
                other => {
                    self.out.push(' ');
                    self.inline(other, indent + 2);
                }
            }
        }
    }

    /// Writes the items of a sequence; the cursor already stands at its column.
    fn sequence(&mut self, items: &[Value], indent: usize) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.spaces(indent);
            }
            self.out.push_str("- ");
            match item {
                Value::Object(map) if !map.is_empty() => self.mapping(map, indent + 2),
                Value::Array(items) if !items.is_empty() => self.sequence(items, indent + 2),
                other => self.inline(other, indent + 2),
            }
        }
    }

    /// Writes a value that starts on the current line, and the line break after it.
    fn inline(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => self.out.push_str(&number_to_string(number)),
            Value::Array(_) => self.out.push_str("[]"),
            Value::Object(_) => self.out.push_str("{}"),
            Value::String(text) if self.fits_literal(text) => return self.literal(text, indent),
            Value::String(text) => self.out.push_str(&scalar(text)),
        }
        self.out.push('\n');
    }

    /// Returns whether text is to be written as a literal block.
    fn fits_literal(&self, text: &str) -> bool {
        if !text.contains('\n') || text.chars().any(|c| needs_escape(c) && !matches!(c, '\n' | '\t')) {
            return false;
        }
        // Kept newlines would be extra newlines at the end of the text.
        if text.ends_with("\n\n") && self.last.is_some_and(|last| std::ptr::eq(last, text)) {
            return false;
        }
        // A tab where the reader looks for the indentation of the block is refused by some readers.
        if text.trim_start_matches(['\n', ' ']).starts_with('\t') {
            return false;
        }
        let content = text.trim_end_matches('\n');
        let last_line = content.rsplit('\n').next().unwrap_or(content);
        last_line.contains(|c| !matches!(c, ' ' | '\t'))
    }

    /// Writes a literal block with its content at `indent`.
    fn literal(&mut self, text: &str, indent: usize) {
        self.out.push('|');
        if first_line_is_indented(text) {
            self.out.push('2');
        }
        let body = if text.ends_with("\n\n") {
            self.out.push('+');
            text.strip_suffix('\n').unwrap_or(text)
        } else if let Some(body) = text.strip_suffix('\n') {
            body
        } else {
            self.out.push('-');
            text
        };
        self.out.push('\n');
        for line in body.split('\n') {
            if !line.is_empty() {
                self.spaces(indent);
                self.out.push_str(line);
            }
            self.out.push('\n');
        }
    }

    fn spaces(&mut self, count: usize) {
        self.out.extend(std::iter::repeat_n(' ', count));
    }
}

/// Returns whether the indentation of the first line that has any cannot be told from that of the block.
fn first_line_is_indented(text: &str) -> bool {
    text.contains('\n') && text.trim_start_matches('\n').starts_with(' ')
}

/// Returns the string whose text comes last, if a string comes last.
fn last_string(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(items) => items.last().and_then(last_string),
        Value::Object(map) => map.values().next_back().and_then(last_string),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
