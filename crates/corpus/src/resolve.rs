//! From a reference to a file (spec 01 §8.2; spec 02 §1.3, §1.5, §1.6).

use std::sync::Arc;

use crate::near::nearest;
use crate::reference::{CONTAINER, Reference};
use crate::snapshot::{Corpus, Has};
use crate::source::SourceFile;
use crate::technique::Technique;
use crate::{FileId, META, Warning, WorkflowKey};

/// Where a reference stands.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The workflow whose techniques come first, and whose root contract applies: the session's, or for the steps and
    /// own `techniques` of a borrowed activity the one that its file lives in.
    pub executing: &'a WorkflowKey,
    /// For a step binding the activity; its group is tried first (spec 02 §1.5).
    pub activity: Option<&'a str>,
}

/// The file that a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The id that succeeded, normalised; ledger keys and events use it verbatim.
    pub id: String,
    /// The technique file. Two references with equal files are the same technique.
    pub file: FileId,
    /// The workflow that the file lives in.
    pub workflow: WorkflowKey,
    /// The reference named its workflow, so that workflow's root contract applies.
    pub prefixed: bool,
    /// Path below the `techniques` directory, without `.md` and without a final `TECHNIQUE`.
    pub segments: Vec<String>,
}

/// Why a reference names nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// As written.
    pub reference: String,
    /// The files that were tried; of those that exist code, place and message (FIX-28).
    pub reason: String,
}

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Technique not found: {} ({})", self.reference, self.reason)
    }
}

impl std::error::Error for Unresolved {}

/// A technique file that was found and read.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) resolved: Resolved,
    pub(crate) technique: Arc<Technique>,
}

/// What a search came across.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// Paths without a file.
    absent: Vec<String>,
    /// Malformed files, each described.
    pub(crate) malformed: Vec<String>,
    /// Why the reference could not be looked for at all.
    refused: Option<String>,
}

impl Search {
    /// What was tried, in one line.
    fn reason(&self) -> String {
        if let Some(refused) = &self.refused {
            return refused.clone();
        }
        let mut parts: Vec<String> = self.malformed.iter().map(|problem| format!("malformed: {problem}")).collect();
        if !self.absent.is_empty() {
            parts.push(format!("no such file: {}", self.absent.join(", ")));
        }
        parts.join("; ")
    }

    /// Warnings of a search that succeeded nevertheless (spec 02 §1.3).
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let warn = |problem: &String| Warning {
            code: "W_TECHNIQUE_MALFORMED",
            message: format!("a malformed technique file was passed over: {problem}"),
        };
        self.malformed.iter().map(warn).collect()
    }
}

impl Corpus {
    /// Resolves a reference to a technique; rules are not looked for.
    pub fn resolve(&self, reference: &str, scope: &Scope<'_>) -> Result<Resolved, Unresolved> {
        self.find(reference, scope).map(|(found, _)| found.resolved)
    }

    pub(crate) fn find(&self, reference: &str, scope: &Scope<'_>) -> Result<(Found, Search), Unresolved> {
        self.search(reference, scope).map_err(|search| Unresolved {
            reference: reference.to_owned(),
            reason: self.reason(reference, scope.executing, &search),
        })
    }

    /// Why a search found nothing, with the name that was perhaps meant.
    pub(crate) fn reason(&self, reference: &str, executing: &WorkflowKey, search: &Search) -> String {
        // A file that is there and malformed is the one that was meant.
        let near = Reference::parse(reference).ok().filter(|_| search.malformed.is_empty());
        let near = near.and_then(|reference| self.near_reference(&reference, executing));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("{}{near}", search.reason())
    }

    /// The same, with what was tried on failure.
    pub(crate) fn search(&self, text: &str, scope: &Scope<'_>) -> Result<(Found, Search), Search> {
        let mut search = Search::default();
        let reference = match Reference::parse(text) {
            Ok(reference) => reference,
            Err(reason) => return Err(Search { refused: Some(reason), ..search }),
        };
        if let (Some(activity), true) = (scope.activity, reference.bare) {
            let group = Reference::parse(activity).ok().filter(|group| group.bare);
            if let Some(mut longer) = group {
                longer.segments.extend(reference.segments.iter().cloned());
                if let Some(found) = self.locate(&longer, scope.executing, &mut search) {
                    return Ok((found, search));
                }
                search.absent.clear();
            }
        }
        if let Some(found) = self.locate(&reference, scope.executing, &mut search) {
            return Ok((found, search));
        }
        Err(search)
    }

    fn locate(&self, reference: &Reference, executing: &WorkflowKey, search: &mut Search) -> Option<Found> {
        let (prefix, rest) = self.split_prefix(reference, executing);
        let prefixed = prefix.is_some();
        self.bases(prefix, executing).into_iter().find_map(|workflow| {
            let (file, technique) = self.technique_file(&workflow, rest, search)?;
            let segments = rest.to_vec();
            let resolved = Resolved { id: reference.id(), file: file.id.clone(), workflow, prefixed, segments };
            Some(Found { resolved, technique })
        })
    }

    /// The workflow that a reference names, if it does, and the segments below its `techniques` directory.
    pub(crate) fn split_prefix<'r>(
        &self,
        reference: &'r Reference,
        executing: &WorkflowKey,
    ) -> (Option<WorkflowKey>, &'r [String]) {
        if let [first, rest @ ..] = reference.segments.as_slice()
            && !rest.is_empty()
            && let Some(prefix) = self.find_workflow_dir(executing.root, first, Has::Folder("techniques"))
        {
            return (Some(prefix), rest);
        }
        (None, &reference.segments)
    }

    /// Workflows to look in, in order: the named one alone, else the executing one, then `meta`.
    pub(crate) fn bases(&self, prefix: Option<WorkflowKey>, executing: &WorkflowKey) -> Vec<WorkflowKey> {
        if let Some(prefix) = prefix {
            return vec![prefix];
        }
        let meta = if executing.id == META { None } else { self.meta_for(executing.root) };
        std::iter::once(executing.clone()).chain(meta).collect()
    }

    /// The first well-formed file of `a/b.md` and `a/b/TECHNIQUE.md` in one workflow.
    pub(crate) fn technique_file(
        &self,
        workflow: &WorkflowKey,
        segments: &[String],
        search: &mut Search,
    ) -> Option<(&Arc<SourceFile>, Arc<Technique>)> {
        let stem = format!("{}/techniques/{}", workflow.id, segments.join("/"));
        let paths = [format!("{stem}.md"), format!("{stem}/{CONTAINER}.md")];
        paths.into_iter().find_map(|path| self.readable_technique(workflow.root, path, search))
    }

    /// The root contract of a workflow.
    pub(crate) fn root_contract(
        &self,
        workflow: &WorkflowKey,
        search: &mut Search,
    ) -> Option<(&Arc<SourceFile>, Arc<Technique>)> {
        self.readable_technique(workflow.root, format!("{}/techniques/{CONTAINER}.md", workflow.id), search)
    }

    fn readable_technique(
        &self,
        root: usize,
        path: String,
        search: &mut Search,
    ) -> Option<(&Arc<SourceFile>, Arc<Technique>)> {
        let Some(file) = self.file(root, &path) else {
            search.absent.push(path);
            return None;
        };
        if let Some(problem) = &file.problem {
            let (line, column) = problem.position();
            search.malformed.push(format!("{path}:{line}:{column} technique.parse {}", problem.message()));
            return None;
        }
        let parsed = file.technique();
        if let Some(technique) = &parsed.technique {
            return Some((file, Arc::clone(technique)));
        }
        let errors = parsed.issues.iter().filter(|issue| issue.severity == crate::Severity::Error);
        let texts: Vec<String> = errors
            .map(|issue| format!("{path}:{}:{} {} {}", issue.line, issue.column, issue.code, issue.message))
            .collect();
        search.malformed.push(texts.join(", "));
        None
    }

    /// The reference, among those of the workflows that were searched, that looks most like one that names nothing.
    fn near_reference(&self, reference: &Reference, executing: &WorkflowKey) -> Option<String> {
        let (prefix, rest) = self.split_prefix(reference, executing);
        let lead = prefix.as_ref().map(|prefix| format!("{}::", prefix.id)).unwrap_or_default();
        let names: Vec<String> = self
            .bases(prefix, executing)
            .iter()
            .flat_map(|workflow| self.technique_paths(workflow))
            .map(|segments| segments.join("::"))
            .collect();
        nearest(&rest.join("::"), names.iter().map(String::as_str)).map(|name| format!("{lead}{name}"))
    }

    /// Segments of every technique file of a workflow but its root contract; `README.md` is documentation.
    pub(crate) fn technique_paths(&self, workflow: &WorkflowKey) -> Vec<Vec<String>> {
        let directory = format!("{}/techniques/", workflow.id);
        let files = self.files_below(workflow.root, &directory);
        files
            .filter(|file| file.name() != "README.md")
            .filter_map(|file| file.id.path.strip_prefix(&directory)?.strip_suffix(".md"))
            .map(|path| path.strip_suffix("/TECHNIQUE").unwrap_or(path))
            .filter(|path| *path != CONTAINER)
            .map(|path| path.split('/').map(str::to_owned).collect())
            .collect()
    }
}
