//! The store of files: what it holds in memory, and its simple answers.

use std::{
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::AtomicBool},
};

use workflow_engine::{
    Folder, Purpose, Refusal, Registry, Reply, Signer, StatePath, Target, TraceLog, TraceSlice, Workset, state::Session,
};

use crate::{
    Options,
    fs::{Disk, FileSystem, Kind, OsFileSystem},
    key::{Key, KeyRing},
    layout::{Place, Roots},
    lock::{Patience, Queues, hold_shared},
    lookup::Memory,
    pair::{self, Judge, Opened},
    refusals,
    seen::SeenTable,
    trace::Traces,
};

const HANDLE_LABEL: &str = "workflow-server/checkpoint-handle/v1";

/// Sessions, wherever they are kept.
pub trait SessionStore: Send + Sync {
    /// Opens and holds the sessions of a target, lets `apply` change them in memory, and commits what changed.
    ///
    /// `apply` may run again, on freshly read sessions, when something that takes no lock wrote in between.
    ///
    /// # Errors
    /// `apply`'s, and those of spec 03 §11 B. Nothing was changed then, unless the message says otherwise.
    fn transaction(
        &self,
        target: &Target,
        apply: &mut dyn FnMut(&mut Workset) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal> {
        self.transaction_unless(target, &|| false, apply)
    }

    /// [`SessionStore::transaction`], given up without effect when `is_cancelled` before the commit.
    ///
    /// # Errors
    /// As for `transaction`; `CANCELLED`.
    fn transaction_unless(
        &self,
        target: &Target,
        is_cancelled: &dyn Fn() -> bool,
        apply: &mut dyn FnMut(&mut Workset) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal>;

    /// Reads the session of a target without holding it; nothing is created or repaired.
    ///
    /// # Errors
    /// Those of spec 03 §11 B.
    fn read(&self, target: &Target) -> Result<Workset, Refusal>;
}

/// Sessions in files beside the work (spec 03 §3).
#[derive(Debug)]
pub struct FileStore {
    pub(crate) options: Options,
    pub(crate) disk: Disk,
    pub(crate) queues: Queues,
    pub(crate) memory: Memory,
    pub(crate) traces: Traces,
    /// The planning root's `.gitignore` has been looked after by this process.
    pub(crate) gitignore_kept: AtomicBool,
    keys: Mutex<Option<Arc<KeyRing>>>,
    stand_in: OnceLock<Option<Key>>,
}

/// What one call works with: the directories as they are now, and the keys.
pub(crate) struct View {
    pub(crate) roots: Roots,
    pub(crate) keys: Arc<KeyRing>,
    pub(crate) seen: SeenTable,
}

impl View {
    pub(crate) fn judge(&self) -> Judge<'_> {
        Judge { keys: &self.keys, workspace: &self.roots.workspace_id, seen: &self.seen }
    }
}

impl FileStore {
    /// Opens a store. The disk is not touched before the first call; the key is loaded, or made, when it is needed.
    ///
    /// # Errors
    /// `WORKSPACE_INVALID` for a path that is not absolute.
    pub fn open(options: Options) -> Result<Self, Refusal> {
        Self::open_on(options, Arc::new(OsFileSystem))
    }

    /// [`FileStore::open`] on another file system, such as one that fails where a test wants it to.
    ///
    /// # Errors
    /// As [`FileStore::open`].
    pub fn open_on(options: Options, file_system: Arc<dyn FileSystem>) -> Result<Self, Refusal> {
        for root in [Some(&options.workspace), options.engineering_dir.as_ref(), Some(&options.state_dir)] {
            if let Some(root) = root.filter(|root| !root.is_absolute()) {
                return Err(refusals::workspace_invalid(root, "it is not absolute"));
            }
        }
        Ok(Self {
            traces: Traces::new(options.trace_capacity),
            options,
            disk: Disk(file_system),
            queues: Queues::default(),
            memory: Memory::default(),
            gitignore_kept: AtomicBool::new(false),
            keys: Mutex::new(None),
            stand_in: OnceLock::new(),
        })
    }

    pub(crate) fn keys(&self) -> Result<Arc<KeyRing>, Refusal> {
        let mut slot = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = &*slot {
            let Some(reloaded) = keys.reloaded(&self.disk, &self.options.key_dir, self.options.allow_open_key) else {
                return Ok(Arc::clone(keys));
            };
            let keys = Arc::new(reloaded);
            *slot = Some(Arc::clone(&keys));
            return Ok(keys);
        }
        let keys = Arc::new(KeyRing::load(&self.disk, &self.options.key_dir, self.options.allow_open_key)?);
        *slot = Some(Arc::clone(&keys));
        Ok(keys)
    }

    pub(crate) fn roots(&self) -> Result<Roots, Refusal> {
        Roots::find(&self.disk, &self.options)
    }

    pub(crate) fn view(&self) -> Result<View, Refusal> {
        let roots = self.roots()?;
        let seen = SeenTable { disk: self.disk.clone(), dir: roots.state.join("seen") };
        Ok(View { keys: self.keys()?, roots, seen })
    }

    /// Does something with the keys as they are now; once more when the key was rotated before the folder was read.
    pub(crate) fn viewing<T>(&self, mut run: impl FnMut(&View) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let view = self.view()?;
        match run(&view) {
            Err(refusal) if refusal.code == "SEAL_MISMATCH" && !Arc::ptr_eq(&view.keys, &self.keys()?) => {
                run(&self.view()?)
            }
            outcome => outcome,
        }
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience::of(self.options.lock_deadline)
    }

    /// What makes the store unusable: roots, key, state directory. Makes nothing (spec 04 §14).
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        match self.roots() {
            Err(refusal) => problems.push(refusal.text()),
            Ok(roots) => {
                let mut check = |path: &Path, what: &str| match self.disk.list(path) {
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => problems.push(format!("{what} {} cannot be read: {error}", path.display())),
                };
                check(&roots.planning, "planning root");
                check(&roots.state, "state directory");
            }
        }
        problems.extend(KeyRing::probe(&self.disk, &self.options.key_dir, self.options.allow_open_key));
        problems
    }

    /// Where the server key lies, or would be made.
    pub fn key_path(&self) -> std::path::PathBuf {
        self.options.key_dir.join("secret")
    }

    /// Opens without the exclusive lock; with `wait`, at last under the shared one.
    pub(crate) fn open_unlocked(&self, view: &View, place: &Place, wait: bool) -> Result<Option<Opened>, Refusal> {
        match pair::read_unlocked(&self.disk, place, view.judge()) {
            Err(refusal) if wait && refusal.code != "SESSION_SCHEMA_UNSUPPORTED" => {
                // A folder that cannot be locked is judged by what was read.
                let Ok(held) = hold_shared(&self.disk, place, self.patience()) else { return Err(refusal) };
                let pair = pair::read_locked(&self.disk, place)?;
                drop(held);
                pair::verify(place, view.judge(), &pair)
            }
            outcome => outcome,
        }
    }

    /// Reads the session that holds an index, without the exclusive lock.
    pub(crate) fn read_index(&self, view: &View, index: &str, wait: bool) -> Result<Workset, Refusal> {
        for _ in 0..3 {
            let located = self.locate(view, index)?;
            let opened = self.open_unlocked(view, &located.place, wait)?;
            if let Some(opened) = opened
                && let Some(path) = position(&located.place, &opened.root, index)?
            {
                let warnings = view.opening_warnings(&opened);
                return Ok(workset(vec![(located.place, Some(opened.root))], path, warnings));
            }
            self.memory.forget(index);
        }
        Err(self.index_not_found(view, index))
    }
}

/// Address of the session that holds an index below a root; two of them are a collision.
pub(crate) fn position(place: &Place, root: &Session, index: &str) -> Result<Option<StatePath>, Refusal> {
    let mut paths = root.walk().filter(|(_, session)| session.session_index == index).map(|(path, _)| path);
    let first = paths.next();
    if paths.next().is_some() {
        return Err(refusals::index_collision(index, &[place.text.clone(), place.text.clone()]));
    }
    Ok(first)
}

pub(crate) fn workset(
    families: Vec<(Place, Option<Session>)>,
    path: StatePath,
    warnings: Vec<workflow_engine::Warning>,
) -> Workset {
    let families = families
        .into_iter()
        .map(|(place, root)| workflow_engine::Family { folder: place.folder(), root, replaced: false })
        .collect();
    Workset { families, path, warnings }
}

impl Signer for FileStore {
    /// The MAC under the server key. Without a key, which transactions refuse beforehand, it is one that never
    /// verifies anywhere else.
    fn mac(&self, purpose: Purpose, message: &[u8]) -> [u8; 32] {
        let compute = |key: &Key| match purpose {
            Purpose::SessionIndex | Purpose::TraceToken => key.mac(message),
            Purpose::CheckpointHandle => key.mac_for(HANDLE_LABEL, message),
        };
        match self.keys() {
            Ok(keys) => compute(&keys.current),
            Err(_) => self.stand_in.get_or_init(|| Key::random().ok()).as_ref().map_or([0; 32], compute),
        }
    }
}

impl Registry for FileStore {
    fn is_taken(&self, index: &str) -> bool {
        self.roots()
            .is_ok_and(|roots| self.memory.survey(&self.disk, &roots).sessions.iter().any(|(_, s)| s.holds(index)))
    }

    fn find(&self, index: &str) -> Option<Workset> {
        self.view().and_then(|view| self.read_index(&view, index, false)).ok()
    }

    fn children_of(&self, index: &str) -> Vec<String> {
        let Ok(view) = self.view() else { return Vec::new() };
        let survey = self.memory.survey(&self.disk, &view.roots);
        let claimants = survey.sessions.iter().filter(|(_, summary)| summary.parent.as_deref() == Some(index));
        claimants
            .filter_map(|(place, _)| self.open_unlocked(&view, place, false).ok().flatten())
            .filter(|opened| opened.root.parent_session.as_ref().is_some_and(|parent| parent.session_index == index))
            .map(|opened| opened.root.session_index)
            .collect()
    }

    fn files_in(&self, folder: &Folder) -> Vec<String> {
        let entries = self.disk.list(Path::new(&folder.path)).unwrap_or_default();
        let files = entries.into_iter().filter(|entry| entry.kind == Kind::File);
        let mut names: Vec<String> = files.map(|entry| entry.name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

impl TraceLog for FileStore {
    fn read(&self, session_index: &str) -> TraceSlice {
        let Ok(roots) = self.roots() else { return TraceSlice::default() };
        crate::trace::read(&self.disk, &roots.state, session_index)
    }
}

impl FileStore {
    /// Appends an event to a session's trace, without waiting for the disk (spec 03 §8.2). To be called after the
    /// commit; a failure is worth one log line and fails no call.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn append_trace(&self, session_index: &str, event: &serde_json::Value) -> Result<(), Refusal> {
        let state = self.roots()?.state;
        self.traces
            .append(&self.disk, &state, session_index, event)
            .map_err(|error| refusals::write_failed(&state.join("trace"), &error))
    }
}
