//! Which crate may know which (design §3).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::repository;

/// What each crate may depend on, tests aside; a crate that is not here may not exist.
const ALLOWED: &[(&str, &[&str])] = &[
    ("workflow-yaml", &[]),
    ("workflow-corpus", &["workflow-yaml"]),
    ("workflow-engine", &["workflow-yaml", "workflow-corpus"]),
    ("workflow-store", &["workflow-corpus", "workflow-engine"]),
    ("workflow-mcp", &["workflow-yaml", "workflow-corpus", "workflow-engine", "workflow-store"]),
    ("workflow-server", &["workflow-yaml", "workflow-corpus", "workflow-engine", "workflow-store", "workflow-mcp"]),
    ("testkit", &[]),
    ("xtask", &["workflow-yaml", "workflow-corpus", "workflow-engine", "workflow-store", "workflow-mcp"]),
];

/// Crates that would bring what a layer must not know, with those that may use them.
const RESERVED: &[(&str, &[&str])] = &[
    ("rmcp", &["workflow-mcp"]),
    ("tokio", &["workflow-mcp"]),
    ("clap", &["workflow-server", "xtask"]),
    ("anyhow", &["workflow-server", "xtask"]),
];

/// Direct dependencies that are not only for tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(repository())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let used = package["dependencies"].as_array().unwrap().iter().filter(|used| used["kind"] != "dev");
            let names = used.map(|used| used["name"].as_str().unwrap().to_owned()).collect();
            (package["name"].as_str().unwrap().to_owned(), names)
        })
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    let found = dependencies();
    let crates: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(found.keys().map(String::as_str).collect::<BTreeSet<_>>(), crates);
    for (name, allowed) in ALLOWED {
        for used in found[*name].iter().filter(|used| crates.contains(used.as_str())) {
            assert!(allowed.contains(&used.as_str()), "{name} must not know {used}");
        }
    }
    for (reserved, users) in RESERVED {
        for (name, used) in &found {
            assert!(!used.contains(*reserved) || users.contains(&name.as_str()), "{name} must not use {reserved}");
        }
    }
}

#[test]
fn only_one_room_names_the_sdk() {
    for (path, text) in crate::words::sources() {
        let inside = path.contains("crates/mcp/src/sdk");
        assert!(inside || !text.contains("use rmcp"), "{path} names the SDK");
    }
}
