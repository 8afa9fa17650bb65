//! `DURABILITY.md` names the test behind each sentence, and each of them exists.

use std::fs;
use std::path::Path;

/// Tests that a text names as `path::function`.
fn named(text: &str) -> Vec<(&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.split_once("::")).filter(|(path, _)| path.starts_with("crates/")).collect()
}

#[test]
fn every_sentence_has_a_test_that_exists() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let text = fs::read_to_string(root.join("DURABILITY.md")).unwrap();
    let mut count = 0;
    for section in text.split("\n## ") {
        for sentence in section.split("\n- ").skip(1) {
            let sentence = sentence.split("\n\n").next().unwrap_or_default();
            let tests = named(sentence);
            assert!(!tests.is_empty(), "no test is behind: {sentence}");
            for (path, function) in tests {
                let source = fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
                let mut lines = source.lines().map(str::trim);
                let is_test = lines.any(|line| line == format!("fn {function}() {{"));
                assert!(is_test && source.contains("#[test]"), "{path} has no test {function}");
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count}");
}
