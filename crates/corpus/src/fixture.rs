//! Corpora for tests.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Corpus, Library, Root};

/// A snapshot of one root that holds these files.
pub(crate) fn corpus(files: &[(&str, &str)]) -> Arc<Corpus> {
    Library::new(vec![root("test", files)], None).snapshot()
}

/// An embedded root of these files.
pub(crate) fn root(label: &str, files: &[(&str, &str)]) -> Root {
    let keep = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let files: Vec<(&'static str, &'static str)> = files.iter().map(|(path, text)| (keep(path), keep(text))).collect();
    Root::Embedded { label: label.to_owned(), files: Box::leak(files.into_boxed_slice()) }
}

/// A manifest with an id, a version, a title and more lines.
pub(crate) fn manifest(id: &str, more: &str) -> String {
    format!("id: {id}\nversion: 1.0.0\ntitle: {id}\n{more}")
}

/// An activity with an id, a version, a name and more lines.
pub(crate) fn activity(id: &str, more: &str) -> String {
    format!("id: {id}\nversion: 1.0.0\nname: {id}\n{more}")
}

/// The directories named by `WORKFLOW_TEST_CORPORA`; says so and gives none when it is not set.
pub(crate) fn real_corpora() -> Vec<PathBuf> {
    match std::env::var("WORKFLOW_TEST_CORPORA") {
        Ok(list) => list.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
        Err(_) => {
            println!("skipped: WORKFLOW_TEST_CORPORA names no corpora");
            Vec::new()
        }
    }
}
