//! The rules of an activity's bundle: the list whole, or under reference delivery what the scope lacks of it.

use indexmap::IndexMap;
use serde_json::{Map, Value};
use workflow_yaml::to_string;

use super::chars;
use crate::ledger::{Ledger, content_hash, marker};

/// Name of the member that holds the rules, and of its hash in `content_hashes`.
const RULES: &str = "rules";

/// The list of `[name, text]` pairs as it goes out, and the hashes that stand beside it in `content_hashes`.
///
/// One marker replaces a list that the scope holds whole. Of another list, the rules of an owner that it holds are
/// replaced by one pair `[owner, marker]` in the place of the first: an activity that brings a rule of its own would
/// otherwise repeat all the others (spec 02 §16, W-2). Full copies carry the hash of the list as `rules` and that of an
/// owner's rules as `rules/<owner>`.
pub(crate) fn rules(rules: &[(String, String)], ledger: &mut Ledger) -> (Value, Map<String, Value>) {
    let whole = hash(rules.iter());
    if ledger.held_before(&key(&whole), &whole) {
        return (marker(&whole).into(), Map::new());
    }
    let mut owners: IndexMap<&str, Vec<&(String, String)>> = IndexMap::new();
    for rule in rules {
        owners.entry(owner(rule)).or_default().push(rule);
    }
    let mut hashes = Map::new();
    hashes.insert(RULES.to_owned(), whole.clone().into());
    let mut held: IndexMap<&str, Option<Value>> = IndexMap::new();
    for (owner, rules) in owners {
        let hash = hash(rules.iter().copied());
        let reference = Value::from(vec![owner.into(), Value::from(marker(&hash))]);
        // Referring to one short rule would cost more than repeating it.
        if owner.is_empty() || size(&vec![reference.clone()].into()) >= size(&list(rules.iter().copied())) {
            continue;
        }
        if ledger.held_before(&key(&hash), &hash) {
            held.insert(owner, Some(reference));
        } else {
            ledger.record(key(&hash), &hash);
            hashes.insert(format!("{RULES}/{owner}"), hash.into());
        }
    }
    ledger.record(key(&whole), &whole);
    let mut sent = Vec::new();
    for rule in rules {
        match held.get_mut(owner(rule)) {
            Some(reference) => sent.extend(reference.take()),
            None => sent.push(pair(rule)),
        }
    }
    (sent.into(), hashes)
}

/// Key of a list of rules, whole or of one owner (spec 02 §9.2).
fn key(hash: &str) -> String {
    format!("bundle:{RULES}:{hash}")
}

/// Whose rule this is: its name without the last part.
fn owner(rule: &(String, String)) -> &str {
    rule.0.rsplit_once("::").map_or("", |(owner, _)| owner)
}

fn pair((name, text): &(String, String)) -> Value {
    vec![name.as_str(), text.as_str()].into()
}

fn list<'r>(rules: impl Iterator<Item = &'r (String, String)>) -> Value {
    rules.map(pair).collect()
}

fn hash<'r>(rules: impl Iterator<Item = &'r (String, String)>) -> String {
    content_hash(&to_string(&list(rules)))
}

fn size(value: &Value) -> u64 {
    chars(&to_string(value))
}
