//! The list of workflows with their state (spec 01 §10.2, FIX-40).

use std::fmt;

use serde_json::{Value, json};

use crate::decode::manifest::CODE;
use crate::decode::sink::{Path, Sink};
use crate::decode::steps::{text, texts};
use crate::diagnostic::{Diagnostic, Severity};
use crate::snapshot::{Corpus, WorkflowError};
use crate::source::SourceFile;
use crate::{META, WorkflowKey};

/// Does a listed workflow load?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It loads without error diagnostics.
    Ok,
    /// It loads, with error diagnostics or excluded parts.
    Degraded,
    /// It is listed, but does not load.
    Broken,
}

impl Status {
    /// `ok`, `degraded` or `broken`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Broken => "broken",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What can be started, and what could not be listed.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// By id, ascending in byte order; `meta` is left out.
    pub workflows: Vec<ListedWorkflow>,
    /// Manifests without a usable id, title or version.
    pub load_errors: Vec<ListError>,
    /// Roots that do not exist, entries that cannot be followed.
    pub warnings: Vec<String>,
}

impl Listing {
    /// Ids of the listed workflows that can be started: all that load.
    pub fn startable(&self) -> impl Iterator<Item = &str> {
        self.workflows.iter().filter(|workflow| workflow.status != Status::Broken).map(|workflow| workflow.id.as_str())
    }
}

/// One item of the list.
#[derive(Clone, Debug)]
pub struct ListedWorkflow {
    /// Directory name.
    pub id: String,
    /// As written.
    pub title: String,
    /// As written.
    pub version: String,
    /// Empty when the manifest has none.
    pub tags: Vec<String>,
    /// Does it load?
    pub status: Status,
    /// Diagnostics of severity error.
    pub errors: usize,
    /// Diagnostics of severity warning.
    pub warnings: usize,
    /// Label of its root.
    pub source: String,
}

impl ListedWorkflow {
    /// As `list_workflows` and the command line show it.
    pub fn to_value(&self) -> Value {
        json!({
            "id": self.id,
            "title": self.title,
            "version": self.version,
            "tags": self.tags,
            "status": self.status.as_str(),
            "errors": self.errors,
            "warnings": self.warnings,
            "source": self.source,
        })
    }
}

/// A manifest that cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    /// File below its root.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// Diagnostic code.
    pub code: String,
    /// What is wrong.
    pub error: String,
}

/// Lists every workflow but `meta`.
pub(crate) fn list(corpus: &Corpus) -> Listing {
    let mut listing = Listing { warnings: corpus.root_warnings(), ..Listing::default() };
    for key in corpus.workflow_keys() {
        if key.id == META {
            continue;
        }
        let Some(file) = corpus.manifest(key.root, &key.id) else { continue };
        match heading(&key, file) {
            Ok((title, version, tags)) => {
                let (status, errors, warnings) = state(corpus, &key);
                let source = corpus.root_label(key.root).to_owned();
                listing.workflows.push(ListedWorkflow {
                    id: key.id,
                    title,
                    version,
                    tags,
                    status,
                    errors,
                    warnings,
                    source,
                });
            }
            Err(problem) => listing.load_errors.push(ListError {
                file: problem.file.clone(),
                line: problem.line.unwrap_or(1),
                column: problem.column.unwrap_or(1),
                code: problem.code.to_owned(),
                error: problem.issue(),
            }),
        }
    }
    let outside = corpus.entry_problems().filter(|problem| !problem.file.contains('/'));
    listing.warnings.extend(outside.map(|problem| format!("`{}`: {}", problem.file, problem.message)));
    listing
}

/// Title, version and tags, or the first reason why the manifest cannot be listed.
fn heading(key: &WorkflowKey, file: &SourceFile) -> Result<(String, String, Vec<String>), Box<Diagnostic>> {
    let mut sink = Sink::new(&key.id, file);
    let root = &file.yaml().root;
    if sink.take_parse_problems("manifest.parse") {
        sink.found.clear();
        if root.as_mapping().is_none() {
            sink.error(CODE, root.span, &Path::Root, "the manifest is no map of keys".to_owned());
        }
        for name in ["id", "title", "version"] {
            let place = Path::Root.key(name);
            match root.get(name).map(|node| (node.span, node.as_str())) {
                Some((_, Some(text))) if !text.is_empty() => {}
                Some((span, _)) => {
                    sink.error(CODE, span, &place, "expected a string that is not empty".to_owned());
                }
                None => {
                    sink.error(CODE, root.span, &place, format!("the key `{name}` is missing"));
                }
            }
        }
    }
    match sink.found.into_iter().find(|found| found.severity == Severity::Error) {
        Some(problem) => Err(Box::new(problem)),
        None => Ok((
            text(root, "title").unwrap_or_default(),
            text(root, "version").unwrap_or_default(),
            texts(root, "tags"),
        )),
    }
}

/// Status and the counts of its diagnostics.
fn state(corpus: &Corpus, key: &WorkflowKey) -> (Status, usize, usize) {
    let count = |found: &[Diagnostic], severity| found.iter().filter(|found| found.severity == severity).count();
    match corpus.workflow_at(key) {
        Ok(workflow) => {
            let techniques = corpus.technique_diagnostics(&workflow);
            let of = |severity| count(&workflow.diagnostics, severity) + count(&techniques, severity);
            let errors = of(Severity::Error);
            let whole = errors == 0 && workflow.load_errors.is_empty();
            (if whole { Status::Ok } else { Status::Degraded }, errors, of(Severity::Warning))
        }
        Err(WorkflowError::Invalid { issues, .. }) => {
            (Status::Broken, count(&issues, Severity::Error), count(&issues, Severity::Warning))
        }
        Err(WorkflowError::NotFound { .. } | WorkflowError::InvalidId { .. }) => (Status::Broken, 1, 0),
    }
}
