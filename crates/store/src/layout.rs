//! Which directories hold what (spec 03 §1.1, 04 §3).

use std::path::{Path, PathBuf};

use workflow_engine::{Folder, Refusal};

use crate::{
    Options, containment,
    fs::{Disk, Kind},
    refusals,
};

pub(crate) const STATE: &str = "session.json";
pub(crate) const SEAL: &str = ".session-token";
pub(crate) const PENDING: &str = ".session-token.pending";
pub(crate) const LOCK: &str = ".session.lock";
/// State file of the formats before `session.json`.
pub(crate) const LEGACY_STATE: &str = "workflow-state.json";

const PLANNING: &str = ".engineering/artifacts/planning";
const PLANNING_IN_SPLIT: &str = "artifacts/planning";
const TRANSIENT: &str = "transient";

/// The directories of one server, links resolved.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    /// What seals call the workspace.
    pub(crate) workspace_id: String,
    /// Holds the planning root; exists.
    pub(crate) engineering: PathBuf,
    /// Holds the planning folders; may not exist yet.
    pub(crate) planning: PathBuf,
    /// State directory; may not exist yet.
    pub(crate) state: PathBuf,
    /// Holds the transient sessions.
    pub(crate) transient: PathBuf,
}

impl Roots {
    /// Finds the directories as they are now. Nothing is created.
    ///
    /// # Errors
    /// `WORKSPACE_INVALID`, `PATH_ESCAPE`.
    pub(crate) fn find(disk: &Disk, options: &Options) -> Result<Self, Refusal> {
        let workspace = existing_root(disk, &options.workspace)?;
        let (engineering, default) = match &options.engineering_dir {
            Some(dir) => (existing_root(disk, dir)?, PLANNING_IN_SPLIT),
            None => (workspace.clone(), PLANNING),
        };
        let chosen = options.planning_dir.as_deref().map(str::trim).filter(|dir| !dir.is_empty());
        let planning = containment::within(disk, &engineering, &engineering.join(chosen.unwrap_or(default)))?;
        if !options.state_dir.is_absolute() {
            return Err(refusals::workspace_invalid(&options.state_dir, "a state directory is an absolute path"));
        }
        let state = containment::resolved(disk, &options.state_dir)?;
        let workspace_id = match options.workspace_id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
            Some(id) => id.to_owned(),
            None => text_of(&workspace)
                .ok_or_else(|| refusals::workspace_invalid(&workspace, "its path is not UTF-8"))?
                .to_owned(),
        };
        let transient = containment::within(disk, &state, &state.join(TRANSIENT))?;
        Ok(Self { workspace_id, engineering, planning, state, transient })
    }

    /// Texts of the roots that sessions are looked for in.
    pub(crate) fn searched(&self) -> Vec<String> {
        vec![self.planning.display().to_string(), self.transient.display().to_string()]
    }

    /// A folder below the planning root, named as a segment.
    ///
    /// # Errors
    /// `PATH_ESCAPE`.
    pub(crate) fn planning_place(&self, disk: &Disk, slug: &str) -> Result<Place, Refusal> {
        let path = self.planning.join(slug);
        self.place(containment::within(disk, &self.planning, &path)?)
    }

    /// A transient session's folder.
    ///
    /// # Errors
    /// `PATH_ESCAPE`.
    pub(crate) fn transient_place(&self, disk: &Disk, slug: &str) -> Result<Place, Refusal> {
        let path = self.transient.join(slug);
        self.place(containment::within(disk, &self.transient, &path)?)
    }

    /// What a canonical path is to this server.
    ///
    /// # Errors
    /// `PATH_ESCAPE` when it is neither a planning nor a transient folder.
    pub(crate) fn place(&self, path: PathBuf) -> Result<Place, Refusal> {
        let (relative, transient) = match (path.strip_prefix(&self.planning), path.strip_prefix(&self.transient)) {
            (Ok(relative), _) => (relative, false),
            (_, Ok(relative)) => (relative, true),
            _ => return Err(refusals::path_escape(&path, &format!("it must lie inside {}", self.planning.display()))),
        };
        let segments: Option<Vec<&str>> = relative.iter().map(|segment| segment.to_str()).collect();
        match (segments, text_of(&path)) {
            (Some(segments), Some(text)) if !segments.is_empty() => {
                let relative = segments.join("/");
                Ok(Place {
                    text: text.to_owned(),
                    slug: segments.last().copied().unwrap_or_default().to_owned(),
                    sealed: if transient { format!("{TRANSIENT}/{relative}") } else { relative },
                    transient,
                    path,
                })
            }
            _ => Err(refusals::path_escape(&path, "a session's folder lies below the root and has a UTF-8 name")),
        }
    }
}

/// One session folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Canonical.
    pub(crate) path: PathBuf,
    /// The same as text.
    pub(crate) text: String,
    /// Last segment.
    pub(crate) slug: String,
    /// What seals call it: relative to the planning root, or `transient/<slug>`.
    pub(crate) sealed: String,
    /// Below the state directory.
    pub(crate) transient: bool,
}

impl Place {
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn folder(&self) -> Folder {
        Folder { slug: self.slug.clone(), path: self.text.clone(), transient: self.transient }
    }
}

fn existing_root(disk: &Disk, path: &Path) -> Result<PathBuf, Refusal> {
    if !path.is_absolute() {
        return Err(refusals::workspace_invalid(path, "it is not absolute"));
    }
    let canonical = disk.canonicalize(path).map_err(|error| refusals::workspace_invalid(path, &error.to_string()))?;
    match disk.stat(&canonical) {
        Ok(stat) if stat.kind == Kind::Directory => Ok(canonical),
        Ok(_) => Err(refusals::workspace_invalid(path, "it is not a directory")),
        Err(error) => Err(refusals::workspace_invalid(path, &error.to_string())),
    }
}

fn text_of(path: &Path) -> Option<&str> {
    path.to_str()
}
