//! What each context has received, by content hash (spec 02 §9).
//!
//! Every channel is recorded in every mode; only looking up depends on the mode of the call. A scope sees its own
//! entries and no other's.

use data_encoding::HEXLOWER;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::state::Session;

/// Version of the hash input, followed by a newline: a changed encoding must not produce a false "unchanged".
const FORMAT: &[u8] = b"wsd1\n";

/// First 16 lower-case hex digits of SHA-256 over the format version and the UTF-8 bytes of `text` (spec 02 §9.1).
pub(crate) fn content_hash(text: &str) -> String {
    let digest = Sha256::new().chain_update(FORMAT).chain_update(text.as_bytes()).finalize();
    HEXLOWER.encode(&digest[..8])
}

/// `{delivery: unchanged, content_hash}`, which stands where the value stood (spec 02 §9.3).
pub(crate) fn marker(hash: &str) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("delivery".to_owned(), "unchanged".into());
    members.insert("content_hash".to_owned(), hash.into());
    members
}

/// Keys of a technique: by name (the last hash) and by content; a match of either collapses (spec 02 §9.2, T-12).
pub(crate) fn technique_keys(resolved_id: &str, hash: &str) -> [String; 2] {
    [format!("technique:{resolved_id}"), format!("technique:{resolved_id}@{hash}")]
}

/// The ledger of one scope during one response.
pub(crate) struct Ledger {
    held: IndexMap<String, String>,
    sent: IndexMap<String, String>,
    refer_back: bool,
}

impl Ledger {
    /// Opens the ledger of a scope; without `refer_back` nothing is ever found in it.
    pub(crate) fn open(session: &Session, scope: &str, refer_back: bool) -> Self {
        let held = if refer_back { session.delivered_content.get(scope).cloned() } else { None };
        Self { held: held.unwrap_or_default(), sent: IndexMap::new(), refer_back }
    }

    /// Whether the scope received this content before this response.
    pub(crate) fn held_before(&self, key: &str, hash: &str) -> bool {
        self.refer_back && self.held.get(key).is_some_and(|held| held == hash)
    }

    /// The same, counting what this response has already sent in full (spec 02 §9.5).
    pub(crate) fn held(&self, key: &str, hash: &str) -> bool {
        self.held_before(key, hash) || self.refer_back && self.sent.get(key).is_some_and(|sent| sent == hash)
    }

    /// Notes content that is sent in full.
    pub(crate) fn record(&mut self, key: impl Into<String>, hash: &str) {
        self.sent.insert(key.into(), hash.to_owned());
    }

    /// Merges what was sent into the session, over existing entries.
    pub(crate) fn save(self, session: &mut Session, scope: &str) {
        if !self.sent.is_empty() {
            session.delivered_content.entry(scope.to_owned()).or_default().extend(self.sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{content_hash, technique_keys};

    #[test]
    fn hash_input_starts_with_the_format_version() {
        assert_eq!(content_hash("hello"), "621974e68c906192");
        assert_ne!(content_hash("hello"), content_hash("hello\n"));
    }

    #[test]
    fn a_technique_has_a_key_by_name_and_one_by_content() {
        assert_eq!(
            technique_keys("intake::classify", "00ff"),
            ["technique:intake::classify".to_owned(), "technique:intake::classify@00ff".to_owned()]
        );
    }
}
