//! How composed content is laid out on the wire and replaced by markers (spec 02 §4, §9.3–§9.5).

mod rules;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use workflow_yaml::to_string;

use crate::{
    ledger::{Ledger, content_hash, marker, technique_keys},
    state::{ContextMode, Session},
};

pub(crate) use rules::rules;

/// What stands between the bundle and the body of `get_workflow` and `get_activity`.
pub(crate) const SEPARATOR: &str = "\n\n---\n\n";

/// Whether a delivery was in full; the name goes into events and `_meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The content itself.
    Full,
    /// A marker for what the scope holds.
    Unchanged,
}

impl Delivery {
    /// Name on the wire and in events.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Length as budgets, `maxChars` and events count it: UTF-16 code units.
pub(crate) fn chars(text: &str) -> u64 {
    text.chars().map(|c| if u32::from(c) > 0xFFFF { 2 } else { 1 }).sum()
}

/// A mapping as block-style YAML.
pub(crate) fn yaml(members: Map<String, Value>) -> String {
    to_string(&Value::Object(members))
}

/// A mapping of one member as block-style YAML.
pub(crate) fn yaml_member(key: &str, value: Value) -> String {
    let mut members = Map::new();
    members.insert(key.to_owned(), value);
    yaml(members)
}

/// A technique measured and hashed as it would go out in full, before markers and hashes are put in.
pub(crate) struct Projection<'a> {
    resolved_id: &'a str,
    value: &'a Map<String, Value>,
    /// Size in full, which budgets and caps compare.
    pub(crate) chars: u64,
    /// Its content hash.
    pub(crate) hash: String,
}

impl<'a> Projection<'a> {
    /// Measures the projection of a technique (spec 02 §11.2).
    pub(crate) fn of(resolved_id: &'a str, value: &'a Map<String, Value>) -> Self {
        let text = yaml(value.clone());
        Self { resolved_id, value, chars: chars(&text), hash: content_hash(&text) }
    }

    /// Whether the scope received exactly this, be it earlier in the same response (spec 02 §9.4).
    pub(crate) fn held(&self, ledger: &Ledger) -> bool {
        technique_keys(self.resolved_id, &self.hash).iter().any(|key| ledger.held(key, &self.hash))
    }

    /// Members of a full copy, recorded: shared blocks that the scope holds are markers, the others carry their hashes
    /// (spec 02 §9.5).
    pub(crate) fn deliver(&self, ledger: &mut Ledger) -> Map<String, Value> {
        for key in technique_keys(self.resolved_id, &self.hash) {
            ledger.record(key, &self.hash);
        }
        let mut members = Map::new();
        let mut rules = None;
        for (name, value) in self.value {
            members.insert(
                name.clone(),
                match name.as_str() {
                    "inherited_inputs" | "inherited_outputs" => match block(name, value, ledger) {
                        Block::Held(marker) => marker,
                        Block::Sent(hash) => with_hash(value, &hash),
                    },
                    "rules" => match block(name, value, ledger) {
                        Block::Held(marker) => marker,
                        Block::Sent(hash) => {
                            rules = Some(hash);
                            value.clone()
                        }
                    },
                    _ => value.clone(),
                },
            );
        }
        if let Some(hash) = rules {
            members.insert("content_hashes".to_owned(), hashes("rules", &hash));
        }
        members.insert("content_hash".to_owned(), self.hash.clone().into());
        members
    }
}

enum Block {
    Held(Value),
    Sent(String),
}

/// Looks up and records one shared block of a technique.
fn block(name: &str, value: &Value, ledger: &mut Ledger) -> Block {
    let hash = content_hash(&yaml_member(name, value.clone()));
    let key = format!("technique:{name}:{hash}");
    if ledger.held(&key, &hash) {
        return Block::Held(marker(&hash).into());
    }
    ledger.record(key, &hash);
    Block::Sent(hash)
}

/// A mapping with its hash as the last member; other values stay as they are.
pub(crate) fn with_hash(value: &Value, hash: &str) -> Value {
    let mut value = value.clone();
    if let Value::Object(members) = &mut value {
        members.insert("content_hash".to_owned(), hash.into());
    }
    value
}

/// `{<name>: <hash>}`, for content that cannot carry its hash itself.
pub(crate) fn hashes(name: &str, hash: &str) -> Value {
    let mut members = Map::new();
    members.insert(name.to_owned(), hash.into());
    members.into()
}

/// The per-call choice between full and reference delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BundleMode {
    /// Content that this agent already received is replaced by a marker with its hash.
    Reference,
    /// Everything in full.
    Full,
}

/// Whether a call refers back: its own choice, else the session's context mode (spec 02 §6.2).
pub(crate) fn refers_back(choice: Option<BundleMode>, session: &Session) -> bool {
    match choice {
        Some(choice) => choice == BundleMode::Reference,
        None => session.context_mode == Some(ContextMode::Persistent),
    }
}

#[cfg(test)]
mod tests;
