//! Corpora in memory, for tests.

use std::sync::Arc;

use crate::{Corpus, Library, Root, Workflow, WorkflowKey};

/// One root with these files.
pub(crate) fn corpus(files: &[(&str, &str)]) -> Arc<Corpus> {
    corpora(&[files])
}

/// Several roots, nearest first.
pub(crate) fn corpora(roots: &[&[(&str, &str)]]) -> Arc<Corpus> {
    let roots = roots.iter().enumerate().map(|(position, files)| embedded(position, files)).collect();
    Library::new(roots, None).snapshot()
}

/// Files are static in an embedded root; a test may leak them.
pub(crate) fn embedded(position: usize, files: &[(&str, &str)]) -> Root {
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let files: Vec<(&'static str, &'static str)> = files.iter().map(|(path, text)| (leak(path), leak(text))).collect();
    Root::Embedded { label: format!("root {position}"), files: Box::leak(files.into_boxed_slice()) }
}

/// A manifest with further lines.
pub(crate) fn manifest(id: &str, more: &str) -> String {
    format!("id: {id}\nversion: 1.0.0\ntitle: {id}\n{more}")
}

/// An activity with further lines.
pub(crate) fn activity(id: &str, more: &str) -> String {
    format!("id: {id}\nversion: 1.0.0\nname: {id}\n{more}")
}

/// A technique file; `sections` follow its capability.
pub(crate) fn technique(sections: &str) -> String {
    format!("---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nDoes it.\n\n{sections}")
}

/// A workflow of the nearest root.
pub(crate) fn key(id: &str) -> WorkflowKey {
    WorkflowKey { root: 0, id: id.to_owned() }
}

/// A loaded workflow.
#[track_caller]
pub(crate) fn workflow(corpus: &Corpus, id: &str) -> Arc<Workflow> {
    corpus.workflow(id).unwrap_or_else(|error| panic!("{error}"))
}

/// The directories named by `WORKFLOW_TEST_CORPORA`; says so and gives none when it is not set.
pub(crate) fn real_corpora() -> Vec<std::path::PathBuf> {
    let Ok(list) = std::env::var("WORKFLOW_TEST_CORPORA") else {
        println!("skipped: WORKFLOW_TEST_CORPORA names no corpora");
        return Vec::new();
    };
    list.split(':').filter(|path| !path.is_empty()).map(std::path::PathBuf::from).collect()
}
