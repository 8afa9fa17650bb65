//! The answer to a call and how it becomes text and `_meta` (spec 03 §4.1).

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use workflow_corpus::Warning;

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What the model reads.
    pub content: Content,
    /// Members of `_meta` after `session_index` and `validation`, in order.
    pub meta: Map<String, Value>,
    /// `_meta.session_index`; absent for bootstrap tools, which then carry no `_meta` at all.
    pub session_index: Option<String>,
    /// Warnings of the call, shown in `_meta.validation` and in the text.
    pub warnings: Vec<Warning>,
    /// Trace events besides the call's own (a parent's link event).
    pub traces: Vec<TraceEntry>,
    /// The answer of an earlier call, repeated (spec 03 §4.2): nothing was changed and it makes no trace event.
    pub repeated: bool,
}

/// The text of an answer, by kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Pretty JSON; warnings become a `validation` array.
    Json(Map<String, Value>),
    /// YAML or plain text; warnings become a block at the end.
    Text(String),
    /// The body of a resource; a line `<!-- end of resource -->` parts it from warnings.
    Resource(String),
}

/// A trace event for a session other than the addressed one.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEntry {
    /// Whose trace.
    pub session_index: String,
    /// The event (spec 03 §8.1).
    pub event: Value,
}

/// Text and `_meta` as sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The one text item.
    pub text: String,
    /// `_meta`, if the tool carries one.
    pub meta: Option<Map<String, Value>>,
}

impl Reply {
    /// An answer in JSON.
    pub fn json(session_index: &str, members: Map<String, Value>) -> Self {
        Self::of(Some(session_index), Content::Json(members))
    }

    /// An answer in YAML or plain text.
    pub fn text(session_index: &str, text: String) -> Self {
        Self::of(Some(session_index), Content::Text(text))
    }

    /// An answer with any content; `session_index` is `None` for bootstrap tools.
    pub fn of(session_index: Option<&str>, content: Content) -> Self {
        Self {
            content,
            meta: Map::new(),
            session_index: session_index.map(str::to_owned),
            warnings: Vec::new(),
            traces: Vec::new(),
            repeated: false,
        }
    }

    /// The text without the warnings, as a retry repeats it and as sizes count it.
    pub fn plain_text(&self) -> String {
        match &self.content {
            Content::Json(members) => pretty(members),
            Content::Text(text) | Content::Resource(text) => text.clone(),
        }
    }

    /// Text with warnings, and `_meta`.
    pub fn render(&self) -> Rendered {
        let texts: Vec<&str> = self.warnings.iter().map(|warning| warning.message.as_str()).collect();
        let text = match &self.content {
            Content::Json(members) if texts.is_empty() => pretty(members),
            Content::Json(members) => {
                let mut members = members.clone();
                members.insert("validation".to_owned(), json!(texts));
                pretty(&members)
            }
            Content::Text(text) => with_block(text.clone(), "", &texts),
            Content::Resource(text) => with_block(text.clone(), "<!-- end of resource -->\n", &texts),
        };
        Rendered { text, meta: self.session_index.as_deref().map(|index| self.full_meta(index, &texts)) }
    }

    fn full_meta(&self, index: &str, texts: &[&str]) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("session_index".to_owned(), index.into());
        let status = if texts.is_empty() { "valid" } else { "warning" };
        meta.insert("validation".to_owned(), json!({"status": status, "warnings": texts}));
        if !texts.is_empty() {
            let detail: Vec<Value> =
                self.warnings.iter().map(|w| json!({"code": w.code, "message": w.message})).collect();
            meta.insert("warnings_detail".to_owned(), detail.into());
        }
        meta.extend(self.meta.clone());
        meta
    }
}

fn pretty(members: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(members).unwrap_or_default()
}

/// Appends the validation block: an empty line, `validation:`, one JSON string per warning.
fn with_block(mut text: String, lead: &str, warnings: &[&str]) -> String {
    if warnings.is_empty() {
        return text;
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(lead);
    text.push_str("\nvalidation:\n");
    for warning in warnings {
        let _ = writeln!(text, "- {}", Value::from(*warning));
    }
    text
}
