//! Real files: every YAML file of the corpora named by an environment variable reads without errors and round-trips.

use std::fs;
use std::path::{Path, PathBuf};

use workflow_yaml::{Kind, Node, Style, parse, to_string};

/// Names the corpus directories, separated by colons.
const CORPORA: &str = "WORKFLOW_TEST_CORPORA";

#[test]
fn corpora_read_without_errors_and_round_trip() {
    let Ok(directories) = std::env::var(CORPORA) else {
        println!("skipped: {CORPORA} is not set, so there are no corpora to read");
        return;
    };
    for directory in directories.split(':').filter(|directory| !directory.is_empty()) {
        let mut files = Vec::new();
        collect(Path::new(directory), &mut files);
        assert!(!files.is_empty(), "no YAML files in {directory}");
        for file in &files {
            let text = fs::read_to_string(file).unwrap();
            let document = parse(&text);
            assert_eq!(document.problems, [], "{}", file.display());
            check_spans(&document.root, &text);
            let value = document.root.to_value();
            let again = parse(&to_string(&value));
            assert_eq!(again.problems, [], "{}", file.display());
            assert_eq!(again.root.to_value(), value, "{}", file.display());
        }
        println!("{directory}: {} files", files.len());
    }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory can be read") {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            files.push(path);
        }
    }
}

/// Checks that one-line scalars slice back to what they hold.
fn check_spans(node: &Node, text: &str) {
    let own = node.span.slice(text).expect("spans lie in the text");
    match &node.kind {
        Kind::Scalar(value) => {
            if let (Style::Plain, Some(value), false) = (node.style, value.as_str(), own.contains('\n')) {
                assert_eq!(own, value);
            }
        }
        Kind::Sequence(items) => items.iter().for_each(|item| check_spans(item, text)),
        Kind::Mapping(entries) => {
            for entry in entries {
                let key = entry.key_span.slice(text).expect("spans lie in the text");
                assert_eq!(key.trim_matches(['"', '\'']), entry.key);
                check_spans(&entry.value, text);
            }
        }
    }
}
