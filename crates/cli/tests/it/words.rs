//! What the sources say: no message names a command that does not exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{repository, sandbox};

/// Every source file that is part of the product, with its text.
pub(crate) fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for krate in fs::read_dir(repository().join("crates")).unwrap() {
        collect(&krate.unwrap().path().join("src"), &mut files);
    }
    collect(&repository().join("corpus"), &mut files);
    files
}

fn collect(directory: &Path, files: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            files.push((path.display().to_string(), text));
        }
    }
}

/// The command that begins here: one word, or two when the first has commands of its own.
fn command(text: &str) -> Option<Vec<String>> {
    let mut words = text.split(' ').map(|word| {
        let end = word.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(word.len());
        (&word[..end], end == word.len())
    });
    let (first, whole) = words.next().filter(|(word, _)| word.starts_with(|c: char| c.is_ascii_lowercase()))?;
    let mut command = vec![first.to_owned()];
    if first == "session" && whole {
        let (second, _) = words.next()?;
        command.push(second.to_owned());
    }
    command.iter().all(|word| !word.is_empty()).then_some(command)
}

#[test]
fn every_command_that_is_named_exists() {
    let mut named: BTreeSet<Vec<String>> = BTreeSet::new();
    for (_, text) in sources() {
        // As messages write them: the whole command line, or the words in quotes.
        for start in ["workflow-server session ", "`session ", "the command session "] {
            for (position, _) in text.match_indices(start) {
                let rest = &text[position + start.len()..];
                named.extend(command(&format!("session {rest}")));
            }
        }
        for start in ["`workflow-server ", "run: workflow-server ", "run workflow-server "] {
            for (position, _) in text.match_indices(start) {
                named.extend(command(&text[position + start.len()..]));
            }
        }
    }
    assert!(named.iter().any(|command| command == &["session", "adopt"]), "{named:?}");
    let sandbox = sandbox();
    for command in named {
        let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let output = sandbox.run(&arguments);
        assert!(output.status.success(), "a message names `workflow-server {}`", command.join(" "));
    }
}
