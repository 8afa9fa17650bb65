//! Finding folders: by slug, by session index, by parent (spec 03 §1.5, §1.8).

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use serde_json::Value;
use workflow_engine::{StatePath, state::parse_text};

use crate::{
    fs::{Disk, Kind},
    layout::{LEGACY_STATE, Place, Roots, SEAL, STATE},
    seal,
};

/// How deep below a root folders are looked for.
const DEPTH: usize = 6;

/// A directory of the planning tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Canonical.
    pub(crate) path: PathBuf,
    /// Name under which it was met; of a link, the link's.
    pub(crate) name: String,
    /// Levels below the root, from 1.
    pub(crate) depth: usize,
    /// Reached under this name through a link or seen before: named, but not listed again.
    pub(crate) again: bool,
    pub(crate) has_state: bool,
    pub(crate) has_seal: bool,
    pub(crate) has_legacy_state: bool,
}

/// Everything that one walk met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    pub(crate) visits: Vec<Visit>,
    /// `path: why`.
    pub(crate) unreadable: Vec<String>,
    /// A directory that should be readable is not, so that what is missing here may yet exist.
    incomplete: bool,
    /// Names of those below the root that this user may not list; what lies in them is none of its business.
    closed: Vec<String>,
}

impl Walk {
    /// Whether a folder of this name may be there although it was not met.
    pub(crate) fn may_hide(&self, name: &str) -> bool {
        self.incomplete || self.closed.iter().any(|closed| closed == name)
    }
}

/// Walks a tree: six levels, no link that leaves it, no directory twice, no hidden one but those named `odd`.
pub(crate) fn walk(disk: &Disk, root: &Path, odd: Option<&str>) -> Walk {
    let mut walk = Walk::default();
    let mut seen: HashSet<PathBuf> = HashSet::new();
    let mut identities: HashSet<(u64, u64)> = HashSet::new();
    let mut waiting: Vec<(PathBuf, Option<String>, usize)> = vec![(root.to_path_buf(), None, 0)];
    while let Some((path, name, depth)) = waiting.pop() {
        let identity = disk.stat(&path).ok().and_then(|stat| stat.identity);
        let again = !seen.insert(path.clone()) | identity.is_some_and(|identity| !identities.insert(identity));
        let entries = match disk.list(&path) {
            Ok(entries) => entries,
            Err(error) => {
                let gone = crate::fs::is_missing(&error);
                match &name {
                    Some(name) if crate::fs::is_forbidden(&error) => walk.closed.push(name.clone()),
                    _ => walk.incomplete |= !gone,
                }
                if depth > 0 || !gone {
                    walk.unreadable.push(format!("{}: {error}", path.display()));
                }
                continue;
            }
        };
        let has = |file: &str| entries.iter().any(|entry| entry.name == *file);
        if let Some(name) = name {
            walk.visits.push(Visit {
                name,
                depth,
                again,
                has_state: has(STATE),
                has_seal: has(SEAL),
                has_legacy_state: has(LEGACY_STATE),
                path: path.clone(),
            });
        }
        if again || depth >= DEPTH {
            continue;
        }
        for entry in entries.iter().rev() {
            let Some(name) = entry.name.to_str() else { continue };
            if name.starts_with('.') && odd != Some(name) {
                continue;
            }
            let below = path.join(name);
            match entry.kind {
                Kind::Directory => waiting.push((below, Some(name.to_owned()), depth + 1)),
                Kind::Symlink => {
                    if let Ok(target) = disk.canonicalize(&below)
                        && target.starts_with(root)
                        && target != root
                        && disk.stat(&target).is_ok_and(|stat| stat.kind == Kind::Directory)
                    {
                        // Behind the plain directories, so that these keep their own names.
                        waiting.insert(0, (target, Some(name.to_owned()), depth + 1));
                    }
                }
                Kind::File | Kind::Other => {}
            }
        }
    }
    walk
}

/// What a `session.json` says about who is in it, unverified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Index of the root and of every embedded session.
    pub(crate) indexes: Vec<(String, StatePath)>,
    /// Index in `parentSession` of the root.
    pub(crate) parent: Option<String>,
    /// Folder that its envelope names.
    pub(crate) claimed_folder: Option<String>,
}

impl Summary {
    pub(crate) fn holds(&self, index: &str) -> bool {
        self.indexes.iter().any(|(held, _)| held == index)
    }

    pub(crate) fn root(&self) -> Option<&str> {
        self.indexes.iter().find(|(_, path)| path.0.is_empty()).map(|(index, _)| index.as_str())
    }
}

fn summarise(state: &Value, seal: Option<&[u8]>) -> Summary {
    let mut indexes = Vec::new();
    collect(state, &StatePath::default(), &mut indexes);
    let parent = state.get("parentSession").and_then(|parent| parent.get("sessionIndex")).and_then(Value::as_str);
    Summary { indexes, parent: parent.map(str::to_owned), claimed_folder: seal.and_then(seal::claimed_folder) }
}

fn collect(state: &Value, path: &StatePath, indexes: &mut Vec<(String, StatePath)>) {
    if let Some(index) = state.get("sessionIndex").and_then(Value::as_str) {
        indexes.push((index.to_owned(), path.clone()));
    }
    let children = state.get("triggeredWorkflows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (i, child) in children.iter().enumerate() {
        if let Some(state) = child.get("state") {
            let mut below = path.clone();
            below.0.push(i);
            collect(state, &below, indexes);
        }
    }
}

/// What tells whether a file is still the one that was read.
type Mark = (u64, Option<(u64, u64)>, Option<SystemTime>);

/// What a folder was when it was read: marks of state and seal, and the summary or why there is none.
type Read = ((Mark, Mark), Result<Arc<Summary>, String>);

#[derive(Debug, Default)]
struct Remembered {
    folders: HashMap<String, PathBuf>,
    summaries: HashMap<PathBuf, Read>,
}

/// What earlier calls found; every entry is checked before it is used.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Remembered>);

/// All session folders, with what could not be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) sessions: Vec<(Place, Arc<Summary>)>,
    pub(crate) unreadable: Vec<String>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Folder that held an index when it was last seen.
    pub(crate) fn folder_of(&self, index: &str) -> Option<PathBuf> {
        self.lock().folders.get(index).cloned()
    }

    pub(crate) fn learn(&self, index: &str, folder: &Path) {
        self.lock().folders.insert(index.to_owned(), folder.to_path_buf());
    }

    pub(crate) fn forget(&self, index: &str) {
        self.lock().folders.remove(index);
    }

    /// Remembers every index that one folder holds, so that the next one asked for needs no survey of its own.
    fn learn_from(&self, survey: &Survey) {
        let mut holders: HashMap<&str, Option<&Path>> = HashMap::new();
        for (place, summary) in &survey.sessions {
            for (index, _) in &summary.indexes {
                let holder = holders.entry(index).or_insert(Some(&place.path));
                if holder.is_some_and(|holder| holder != place.path) {
                    *holder = None;
                }
            }
        }
        let mut remembered = self.lock();
        for (index, holder) in holders {
            if let Some(folder) = holder
                && remembered.folders.get(index).is_none_or(|known| known != folder)
            {
                remembered.folders.insert(index.to_owned(), folder.to_path_buf());
            }
        }
    }

    /// The summary of one folder, read again when one of its files changed.
    pub(crate) fn summary(&self, disk: &Disk, folder: &Path) -> Result<Arc<Summary>, String> {
        let mark = |name: &str| {
            let stat = disk.stat(&folder.join(name)).ok();
            stat.map_or((0, None, None), |stat| (stat.len, stat.identity, stat.modified))
        };
        let marks = (mark(STATE), mark(SEAL));
        if let Some((known, summary)) = self.lock().summaries.get(folder)
            && *known == marks
        {
            return summary.clone();
        }
        let summary = disk
            .read(&folder.join(STATE))
            .map_err(|error| error.to_string())
            .and_then(|bytes| parse_text(&bytes).map_err(|error| error.to_string()))
            .map(|state| Arc::new(summarise(&state, disk.read(&folder.join(SEAL)).ok().as_deref())));
        self.lock().summaries.insert(folder.to_path_buf(), (marks, summary.clone()));
        summary
    }

    /// Looks at every session below the roots.
    pub(crate) fn survey(&self, disk: &Disk, roots: &Roots) -> Survey {
        let mut survey = Survey::default();
        for root in [&roots.planning, &roots.transient] {
            let walk = walk(disk, root, None);
            survey.unreadable.extend(walk.unreadable);
            for visit in walk.visits.iter().filter(|visit| visit.has_state && !visit.again) {
                let place = match roots.place(visit.path.clone()) {
                    Ok(place) => place,
                    Err(refusal) => {
                        survey.unreadable.push(format!("{}: {}", visit.path.display(), refusal.code));
                        continue;
                    }
                };
                match self.summary(disk, &place.path) {
                    Ok(summary) => survey.sessions.push((place, summary)),
                    Err(why) => survey.unreadable.push(format!("{}: {why}", place.text)),
                }
            }
        }
        survey.sessions.sort_by(|(left, _), (right, _)| left.text.cmp(&right.text));
        self.learn_from(&survey);
        survey
    }
}
