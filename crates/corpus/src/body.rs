//! The text of an activity as it is served: the file, with derived ids and checkpoint fragments written into it by
//! span, so that comments and layout stay (spec 01 §4.3, §6, §10.1; 02 §6.5, §6.6).

use serde_json::{Map, Value};
use workflow_yaml::{Entry, Node, Span, Style};

use crate::decode::steps::{StepNote, fragment_members};

/// A replacement in the text of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// The edited text, or `None` where the root is not a block map at column 0 that stands alone in the file.
pub(crate) fn edited(text: &str, root: &Node, notes: &[StepNote<'_>]) -> Option<String> {
    if root.style != Style::Block || column(text, root.span.start) != Some(0) {
        return None;
    }
    let mut edits = Vec::new();
    for note in notes {
        let entries = note.node.as_mapping()?;
        if let Some(id) = &note.derived_id {
            edits.push(id_edit(text, note.node, entries, id)?);
        }
        if let Some(fragment) = &note.fragment {
            let entry = note.node.entry("ref")?;
            let members = fragment_members(fragment);
            edits.push(match note.node.style {
                Style::Flow => Edit { start: entry.key_span.start, end: entry.value.span.end, text: flow(&members) },
                _ => block_edit(text, entry, members)?,
            });
        }
    }
    edits.sort();
    // Steps behind an alias are edited where they are written, once.
    edits.dedup();
    if edits.windows(2).any(|pair| pair[1].start < pair[0].end) {
        return None;
    }
    // The last line belongs to the content with its comment, which an edit may have taken along.
    let last = edits.last().map_or(0, |edit| edit.end).max(root.span.end);
    let end = last + line_rest(text.get(last..)?).len();
    let content = apply(text, Span::new(root.span.start, end), &edits)?;
    let (head, tail) = (outer_lines(text.get(..root.span.start)?)?, outer_lines(text.get(end..)?)?);
    Some(finish(&format!("{head}{content}{tail}")))
}

/// The rest of the line, without its end.
fn line_rest(text: &str) -> &str {
    text.split(['\n', '\r']).next().unwrap_or_default()
}

/// Does the text stand for this value?
pub(crate) fn reads_as(text: &str, value: &Value) -> bool {
    let document = workflow_yaml::parse(text);
    !document.has_errors() && document.root.to_value() == *value
}

fn id_edit(text: &str, step: &Node, entries: &[Entry], id: &str) -> Option<Edit> {
    let flow = step.style == Style::Flow;
    let scalar = if flow { quoted(id) } else { workflow_yaml::scalar(id) };
    if let Some(empty) = step.get("id") {
        return Some(Edit { start: empty.span.start, end: empty.span.end, text: scalar });
    }
    let first = entries.first()?.key_span.start;
    let text =
        if flow { format!("id: {scalar}, ") } else { format!("id: {scalar}\n{}", " ".repeat(column(text, first)?)) };
    Some(Edit { start: first, end: first, text })
}

/// The body in place of a `ref` line. What follows the reference on its line, a comment, stays on the first line.
fn block_edit(text: &str, entry: &Entry, members: Map<String, Value>) -> Option<Edit> {
    let (start, end) = (entry.key_span.start, entry.value.span.end);
    let rest = line_rest(text.get(end..)?);
    let indent = " ".repeat(column(text, start)?);
    let emitted = workflow_yaml::to_string(&Value::Object(members));
    let mut written = String::new();
    for (position, line) in emitted.trim_end_matches('\n').split('\n').enumerate() {
        if position > 0 {
            written.push('\n');
            written.push_str(if line.is_empty() { "" } else { &indent });
        }
        written.push_str(line);
        if position == 0 {
            written.push_str(rest.trim_end());
        }
    }
    Some(Edit { start, end: end + rest.len(), text: written })
}

/// Members of a flow map, without braces.
fn flow(members: &Map<String, Value>) -> String {
    members.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>().join(", ")
}

/// A string that can stand in a flow map.
fn quoted(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if plain { workflow_yaml::scalar(text) } else { Value::from(text).to_string() }
}

/// Characters between the start of the line and an offset.
fn column(text: &str, offset: usize) -> Option<usize> {
    let before = text.get(..offset)?;
    let line = &before[before.rfind(['\n', '\r']).map_or(0, |at| at + 1)..];
    Some(line.trim_start_matches('\u{feff}').chars().count())
}

fn apply(text: &str, span: Span, edits: &[Edit]) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut at = span.start;
    for edit in edits {
        out.push_str(text.get(at..edit.start)?);
        out.push_str(&edit.text);
        at = edit.end;
    }
    out.push_str(text.get(at..span.end)?);
    Some(out)
}

/// The lines around the root: comments and blank lines; directives and document markers are left out. `None` when
/// anything else stands there.
fn outer_lines(text: &str) -> Option<String> {
    let mut out = String::new();
    let text = unified(text.trim_start_matches('\u{feff}'));
    for line in text.split_inclusive('\n') {
        let marker = ["---", "..."].iter().find_map(|marker| line.strip_prefix(marker));
        let kept = match marker {
            Some(rest) if rest.starts_with(char::is_whitespace) || rest.is_empty() => {
                rest.trim_start_matches([' ', '\t'])
            }
            _ if line.starts_with('%') => continue,
            _ => line,
        };
        if marker.is_some() && kept.trim().is_empty() {
            continue;
        }
        if !kept.trim().is_empty() && !kept.trim_start().starts_with('#') {
            return None;
        }
        out.push_str(kept);
    }
    Some(out)
}

/// Line ends as `\n`.
fn unified(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn finish(text: &str) -> String {
    let text = unified(text);
    format!("{}\n", text.trim_end_matches([' ', '\t', '\n']))
}

#[cfg(test)]
mod tests;
