//! What the server offers to read besides its tools (spec 04 §7.2): schemas, definitions, the list of sessions.

use serde_json::{Map, Value, json};
use workflow_corpus::{Corpus, Scope, Workflow, schema};
use workflow_engine::Refusal;

use crate::definition;

/// Scheme of every address.
const SCHEME: &str = "workflow-server://";

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MARKDOWN: &str = "text/markdown";

/// Schemas that `workflow-server://schemas` combines; the one of the file as a whole stands alone.
const COMBINED: &[&str] = &["workflow", "activity", "condition", "technique", "state"];

/// Something that is listed, or a family of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) description: &'static str,
    pub(crate) mime: &'static str,
}

/// A resource as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) mime: &'static str,
    pub(crate) text: String,
}

/// The fixed resources, the six of the original first.
pub(crate) fn list() -> Vec<Entry> {
    let schema = |id: &str| Entry {
        uri: format!("{SCHEME}schemas/{id}"),
        name: format!("schema-{id}"),
        description: "JSON Schema of a kind of definition or state.",
        mime: JSON,
    };
    let mut entries: Vec<Entry> = COMBINED.iter().map(|id| schema(id)).collect();
    entries.push(Entry {
        uri: format!("{SCHEME}schemas"),
        name: "schemas".to_owned(),
        description: "All schemas in one object.",
        mime: JSON,
    });
    entries.push(schema("session-file"));
    entries.push(Entry {
        uri: format!("{SCHEME}sessions"),
        name: "sessions".to_owned(),
        description: "The sessions of this workspace: folder, index, workflow, activity, status.",
        mime: JSON,
    });
    entries
}

/// Addresses of what there is many of.
pub(crate) fn templates() -> Vec<Entry> {
    let template = |path: &str, name: &str, description, mime| Entry {
        uri: format!("{SCHEME}workflows/{path}"),
        name: name.to_owned(),
        description,
        mime,
    };
    vec![
        template("{id}", "workflow", "A workflow: its activities, variables and rules.", YAML),
        template("{id}/activities/{activity}", "activity", "An activity as it is served.", YAML),
        template("{id}/techniques/{+path}", "technique", "A technique, composed; `::` is written as `/`.", YAML),
        template("{id}/resources/{slug}", "resource", "A resource of a workflow.", MARKDOWN),
    ]
}

/// Reads an address; `sessions` supplies the list of sessions. An error says what is not there.
pub(crate) fn read(
    uri: &str,
    corpus: &Corpus,
    sessions: &dyn Fn() -> Result<Value, Refusal>,
) -> Result<Document, String> {
    let unknown = || format!("Resource {uri} not found");
    let path = uri.strip_prefix(SCHEME).ok_or_else(unknown)?;
    let segments: Vec<String> = path.split('/').map(decoded).collect::<Option<_>>().ok_or_else(unknown)?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["schemas"] => {
            let all: Map<String, Value> = schema::schemas()
                .into_iter()
                .filter(|(id, _)| COMBINED.contains(id))
                .map(|(id, schema)| (id.to_owned(), schema))
                .collect();
            Ok(json_document(&Value::Object(all)))
        }
        ["schemas", id] => schema::schemas()
            .into_iter()
            .find(|(known, _)| known == id)
            .map(|(_, schema)| json_document(&schema))
            .ok_or_else(unknown),
        ["sessions"] => {
            let sessions = sessions().map_err(|refusal| refusal.text())?;
            Ok(json_document(&json!({"sessions": sessions})))
        }
        ["workflows", id] => {
            let workflow = workflow(corpus, id, uri)?;
            Ok(yaml_document(&definition::workflow(&workflow)))
        }
        ["workflows", id, "activities", activity] => {
            let workflow = workflow(corpus, id, uri)?;
            let activity = workflow.activity(activity).ok_or_else(unknown)?;
            Ok(Document { mime: YAML, text: activity.body.clone() })
        }
        ["workflows", id, "techniques", path @ ..] if !path.is_empty() => {
            let workflow = workflow(corpus, id, uri)?;
            let scope = Scope { executing: &workflow.key, activity: None };
            let composed = corpus
                .technique(&path.join("::"), &scope)
                .map_err(|missing| format!("{}: {}", unknown(), missing.reason))?;
            Ok(yaml_document(&Value::Object(composed.value.clone())))
        }
        ["workflows", id, "resources", slug] => {
            let workflow = workflow(corpus, id, uri)?;
            let resource = corpus.resource(&workflow, slug).map_err(|error| format!("{}: {error}", unknown()))?;
            Ok(Document { mime: MARKDOWN, text: resource.content })
        }
        _ => Err(unknown()),
    }
}

fn workflow(corpus: &Corpus, id: &str, uri: &str) -> Result<std::sync::Arc<Workflow>, String> {
    corpus.workflow(id).map_err(|error| format!("Resource {uri} not found: {error}"))
}

fn json_document(value: &Value) -> Document {
    Document { mime: JSON, text: serde_json::to_string_pretty(value).unwrap_or_default() }
}

fn yaml_document(value: &Value) -> Document {
    Document { mime: YAML, text: workflow_yaml::to_string(value) }
}

/// Resolves percent escapes; `None` for what is no text afterwards.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                rest = tail;
            }
            (b'%', _) => return None,
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_six_schemas_come_first() {
        let uris: Vec<String> = list().into_iter().map(|entry| entry.uri).collect();
        let expected =
            ["workflow", "activity", "condition", "technique", "state"].map(|id| format!("{SCHEME}schemas/{id}"));
        assert_eq!(uris[..5], expected);
        assert_eq!(uris[5], "workflow-server://schemas");
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(decoded("a%20b%C3%A9").as_deref(), Some("a bé"));
        assert_eq!(decoded("%"), None);
        assert_eq!(decoded("%zz"), None);
        assert_eq!(decoded("%ff"), None);
    }
}
