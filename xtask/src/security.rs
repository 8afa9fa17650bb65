//! What `SECURITY.md` promises is shown by tests: every line of its tables names at least one that exists.

use std::{collections::BTreeSet, fs, path::Path};

use crate::traps::rust_files;

/// Names of all functions of the workspace.
fn functions(root: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in rust_files(&root.join("crates")).unwrap() {
        let text = fs::read_to_string(&file).unwrap();
        let signatures = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
        names.extend(signatures.filter_map(|rest| rest.split('(').next()).map(str::to_owned));
    }
    names
}

/// Texts between backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_promise_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let functions = functions(&root);
    let fuzzed: Vec<String> = fs::read_dir(root.join("fuzz/fuzz_targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let mut promises = 0;
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let &[promise, .., shown] = cells.as_slice() else { panic!("a line of one cell: {line}") };
        if promise.starts_with("---") || shown == "shown by" {
            continue;
        }
        let named = quoted(shown);
        assert!(!named.is_empty(), "nothing shows it: {promise}");
        for name in named {
            let target = name.strip_prefix("fuzz ").is_some_and(|target| fuzzed.iter().any(|known| known == target));
            assert!(target || functions.contains(name), "{name}: there is no such test");
        }
        promises += 1;
    }
    assert!(promises >= 30, "{promises}");
}
