//! The corpus at one moment, and the library that takes such snapshots (spec 01 §1, §10.1).

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::derived::Derived;
use crate::diagnostic::Diagnostic;
use crate::listing::Listing;
use crate::scan::{RootFiles, scan};
use crate::source::{Root, SourceFile};
use crate::{META, Workflow, WorkflowKey};

/// The layered roots, with what is remembered between snapshots.
#[derive(Debug)]
pub struct Library {
    roots: Arc<[Root]>,
    lookup: usize,
    quiet: Vec<usize>,
    last: Mutex<Option<Arc<Corpus>>>,
}

impl Library {
    /// A library over `roots`, nearest first. Of `fallback` only `meta` is used, and only while no root has one.
    pub fn new(mut roots: Vec<Root>, fallback: Option<Root>) -> Self {
        let lookup = roots.len();
        roots.extend(fallback);
        Self { roots: roots.into(), lookup, quiet: Vec::new(), last: Mutex::new(None) }
    }

    /// The root at `position` is a default layer: that it does not exist is no warning (spec 01 §1).
    #[must_use]
    pub fn optional(mut self, position: usize) -> Self {
        self.quiet.push(position);
        self
    }

    /// The definitions as they are on disk now. While nothing changes this is the same `Arc`; a changed file gives a
    /// new snapshot in which all other files are shared with the last one.
    pub fn snapshot(&self) -> Arc<Corpus> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = Vec::with_capacity(self.roots.len());
        let mut changed = last.is_none();
        for (position, root) in self.roots.iter().enumerate() {
            let before = last.as_ref().and_then(|corpus| corpus.files.get(position));
            let (now, differs) = scan(root, position, before.map(Arc::as_ref));
            changed |= differs;
            files.push(Arc::new(now));
        }
        if let (Some(corpus), false) = (last.as_ref(), changed) {
            return Arc::clone(corpus);
        }
        let corpus = Arc::new(Corpus {
            roots: Arc::clone(&self.roots),
            lookup: self.lookup,
            quiet: self.quiet.clone(),
            files,
            workflows: Mutex::default(),
            listing: OnceLock::new(),
            derived: Derived::default(),
        });
        *last = Some(Arc::clone(&corpus));
        corpus
    }
}

/// What a workflow directory must have to count in [`Corpus::find_workflow_dir`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has<'a> {
    /// A manifest, or a legacy file of that name.
    Manifest,
    /// A folder of this name.
    Folder(&'a str),
}

type Loaded = Arc<OnceLock<Result<Arc<Workflow>, WorkflowError>>>;

/// The definitions at one moment; never changes.
#[derive(Debug)]
pub struct Corpus {
    roots: Arc<[Root]>,
    /// Roots from here on are the fallback.
    lookup: usize,
    quiet: Vec<usize>,
    files: Vec<Arc<RootFiles>>,
    workflows: Mutex<HashMap<WorkflowKey, Loaded>>,
    listing: OnceLock<Listing>,
    /// Compositions, bundles and what else is worked out on demand.
    pub(crate) derived: Derived,
}

/// Why there is no workflow of that id.
#[derive(Clone, Debug)]
pub enum WorkflowError {
    /// No root has it.
    NotFound {
        /// As asked for.
        id: String,
        /// Ids that exist.
        available: Vec<String>,
    },
    /// Not a plain name, so it cannot be a directory of the corpus (FIX-1, FIX-4).
    InvalidId {
        /// As asked for.
        id: String,
    },
    /// The manifest does not load.
    Invalid {
        /// Directory name.
        id: String,
        /// Everything found while loading, errors and warnings.
        issues: Vec<Diagnostic>,
    },
}

impl fmt::Display for WorkflowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { id, available } if available.is_empty() => {
                write!(f, "Workflow not found: {id} (no workflow is available)")
            }
            Self::NotFound { id, available } => {
                write!(f, "Workflow not found: {id} (available: {})", available.join(", "))
            }
            Self::InvalidId { id } => {
                write!(f, "Workflow not found: {id} (an id is a plain name: no slash, not starting with a dot)")
            }
            Self::Invalid { id, issues } => {
                write!(f, "Workflow validation failed for {id}: ")?;
                let errors = issues.iter().filter(|issue| issue.severity == crate::Severity::Error);
                let joined: Vec<String> = errors.map(Diagnostic::issue).collect();
                f.write_str(&joined.join(", "))
            }
        }
    }
}

impl std::error::Error for WorkflowError {}

/// May this be one segment of a path inside a root (FIX-4)?
pub(crate) fn is_plain_segment(segment: &str) -> bool {
    !segment.is_empty() && segment != "." && segment != ".." && !segment.contains(['/', '\\', '\0'])
}

impl Corpus {
    /// The file at a path below a root, if it is there. A file without usable text is there too; see its `problem`.
    pub(crate) fn file(&self, root: usize, path: &str) -> Option<&Arc<SourceFile>> {
        self.files.get(root)?.files.get(path)
    }

    /// All files below a directory (deeper ones included), in byte order of their paths. An empty prefix is the root.
    pub(crate) fn files_below(&self, root: usize, dir_prefix: &str) -> impl Iterator<Item = &Arc<SourceFile>> {
        let prefix = if dir_prefix.is_empty() || dir_prefix.ends_with('/') {
            dir_prefix.to_owned()
        } else {
            format!("{dir_prefix}/")
        };
        let files = self.files.get(root).map(|files| &files.files);
        let from = prefix.clone();
        files
            .into_iter()
            .flat_map(move |files| files.range(from.clone()..))
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .map(|(_, file)| file)
    }

    /// Is there a directory of this path below the root?
    pub(crate) fn has_directory(&self, root: usize, dir: &str) -> bool {
        self.files.get(root).is_some_and(|files| files.dirs.contains(dir))
    }

    /// Names of the directories directly in a directory of a root, in byte order. An empty path is the root.
    pub(crate) fn directories_in<'a>(&'a self, root: usize, dir: &'a str) -> impl Iterator<Item = &'a str> {
        let dirs = self.files.get(root).map(|files| &files.dirs);
        dirs.into_iter().flatten().filter_map(move |path| {
            let rest = if dir.is_empty() { path.as_str() } else { path.strip_prefix(dir)?.strip_prefix('/')? };
            (!rest.contains('/')).then_some(rest)
        })
    }

    /// How many roots take part in lookups; the fallback does not count.
    pub fn root_count(&self) -> usize {
        self.lookup
    }

    /// The name of a root.
    pub fn root_label(&self, root: usize) -> &str {
        self.roots.get(root).map_or("", Root::label)
    }

    /// Where a file that a diagnostic names lies on disk: in the root that has it, `from_root` first, then nearest first.
    /// What is compiled in lies nowhere.
    pub fn disk_path(&self, from_root: usize, file: &str) -> Option<PathBuf> {
        let has = |root: &usize| {
            let known = |files: &Arc<RootFiles>| {
                files.files.contains_key(file) || files.problems.iter().any(|problem| problem.file == file)
            };
            self.files.get(*root).is_some_and(known)
        };
        let root = self.lookup_order(from_root).chain(self.lookup..self.files.len()).find(has).unwrap_or(from_root);
        match self.roots.get(root)? {
            Root::Directory { path, .. } => Some(path.join(file)),
            Root::Embedded { .. } => None,
        }
    }

    /// Entries of the roots that could not be followed, or read (FIX-2); `workflow` is the first path segment.
    pub fn entry_problems(&self) -> impl Iterator<Item = &Diagnostic> {
        self.files.iter().flat_map(|files| &files.problems)
    }

    pub(crate) fn root_problems(&self, root: usize) -> &[Diagnostic] {
        self.files.get(root).map_or(&[], |files| &files.problems)
    }

    /// Warnings about whole roots: explicit ones that do not exist (spec 01 §1).
    pub(crate) fn root_warnings(&self) -> Vec<String> {
        let named = self.roots.iter().zip(&self.files).enumerate();
        named
            .filter(|(position, _)| !self.quiet.contains(position))
            .filter_map(|(_, (root, files))| {
                let reason = files.unusable.as_ref()?;
                let place = match root {
                    Root::Directory { path, .. } => path.display().to_string(),
                    Root::Embedded { label, .. } => label.clone(),
                };
                Some(format!("the workflow directory `{place}` gives no workflows: {reason}"))
            })
            .collect()
    }

    /// Path of the manifest of a workflow in one root: `X/workflow.yaml`, `X/workflow.yml`, `X.yaml`, `X.yml`.
    pub(crate) fn manifest(&self, root: usize, id: &str) -> Option<&Arc<SourceFile>> {
        if !is_plain_segment(id) || id.starts_with('.') {
            return None;
        }
        [format!("{id}/workflow.yaml"), format!("{id}/workflow.yml"), format!("{id}.yaml"), format!("{id}.yml")]
            .iter()
            .find_map(|path| self.file(root, path))
    }

    /// Roots in the order of a lookup that starts in `from_root`: itself, then the others nearest first.
    fn lookup_order(&self, from_root: usize) -> impl Iterator<Item = usize> {
        std::iter::once(from_root).chain((0..self.lookup).filter(move |root| *root != from_root))
    }

    /// The directory of another workflow, looked for in the own root first, then in the others nearest first
    /// (spec 01 §1). Only `meta` is ever found in the fallback root.
    pub fn find_workflow_dir(&self, from_root: usize, id: &str, has: Has<'_>) -> Option<WorkflowKey> {
        if !is_plain_segment(id) || id.starts_with('.') {
            return None;
        }
        let holds = |root: usize| match has {
            Has::Manifest => self.manifest(root, id).is_some(),
            Has::Folder(folder) => self.has_directory(root, &format!("{id}/{folder}")),
        };
        let key = |root| WorkflowKey { root, id: id.to_owned() };
        let found =
            self.lookup_order(from_root).filter(|root| *root < self.lookup || id == META).find(|root| holds(*root));
        if found.is_none() && id == META {
            let any = (0..self.lookup).any(|root| self.has_meta(root));
            return (!any).then(|| (self.lookup..self.files.len()).find(|root| holds(*root)).map(key)).flatten();
        }
        found.map(key)
    }

    fn has_meta(&self, root: usize) -> bool {
        self.manifest(root, META).is_some() || self.has_directory(root, META)
    }

    /// The `meta` that serves a root: its own, else that of the others nearest first, else the fallback's.
    pub fn meta_for(&self, root: usize) -> Option<WorkflowKey> {
        let found =
            self.lookup_order(root).chain(self.lookup..self.files.len()).find(|candidate| self.has_meta(*candidate))?;
        Some(WorkflowKey { root: found, id: META.to_owned() })
    }

    /// Ids of all workflows but `meta`, ascending in byte order; dot names are left out (FIX-1).
    pub fn workflow_ids(&self) -> Vec<String> {
        self.workflow_keys().into_iter().map(|key| key.id).filter(|id| id != META).collect()
    }

    /// Every workflow that a lookup by id can find, `meta` included, by id; the nearest root wins.
    pub(crate) fn workflow_keys(&self) -> Vec<WorkflowKey> {
        let mut keys = std::collections::BTreeMap::new();
        for root in 0..self.lookup {
            for id in self.workflow_names(root) {
                keys.entry(id).or_insert(root);
            }
        }
        if !keys.contains_key(META)
            && let Some(key) = (self.lookup..self.files.len()).find(|root| self.manifest(*root, META).is_some())
        {
            keys.insert(META.to_owned(), key);
        }
        keys.into_iter().map(|(id, root)| WorkflowKey { root, id }).collect()
    }

    fn workflow_names(&self, root: usize) -> Vec<String> {
        let Some(files) = self.files.get(root) else { return Vec::new() };
        let dirs = files.dirs.iter().filter(|dir| !dir.contains('/') && self.manifest(root, dir).is_some());
        let legacy = files.files.keys().filter(|path| !path.contains('/')).filter_map(|path| path.rsplit_once('.'));
        dirs.cloned().chain(legacy.map(|(stem, _)| stem.to_owned())).collect()
    }

    /// The workflow of this id from the nearest root that holds it; loaded once per snapshot.
    pub fn workflow(&self, id: &str) -> Result<Arc<Workflow>, WorkflowError> {
        if !is_plain_segment(id) || id.starts_with('.') {
            return Err(WorkflowError::InvalidId { id: id.to_owned() });
        }
        let order = (0..self.lookup).chain(if id == META { self.lookup..self.files.len() } else { 0..0 });
        match order.into_iter().find(|root| self.manifest(*root, id).is_some()) {
            Some(root) => self.workflow_at(&WorkflowKey { root, id: id.to_owned() }),
            None => Err(WorkflowError::NotFound { id: id.to_owned(), available: self.workflow_ids() }),
        }
    }

    /// The workflow in a given root; loaded once per snapshot.
    pub fn workflow_at(&self, key: &WorkflowKey) -> Result<Arc<Workflow>, WorkflowError> {
        let cell = {
            let mut workflows = self.workflows.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(workflows.entry(key.clone()).or_default())
        };
        cell.get_or_init(|| self.load(key)).clone()
    }

    fn load(&self, key: &WorkflowKey) -> Result<Arc<Workflow>, WorkflowError> {
        if self.manifest(key.root, &key.id).is_none() {
            return Err(WorkflowError::NotFound { id: key.id.clone(), available: self.workflow_ids() });
        }
        crate::workflow::load(self, key).map(Arc::new)
    }

    /// All workflows but `meta`, with their state (spec 01 §10.2).
    pub fn list(&self) -> Listing {
        self.listing.get_or_init(|| crate::listing::list(self)).clone()
    }
}

#[cfg(test)]
mod tests;
