//! The list of workflows with their state (spec 01 §10.2, FIX-40).

use std::fmt;

use crate::Corpus;

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

pub(crate) fn list(_corpus: &Corpus) -> Listing {
    Listing::default()
}
