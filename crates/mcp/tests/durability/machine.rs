//! A machine in memory: a disk with a page cache, on which operations fail and the power goes off.
//!
//! Two states are kept of everything. The *cached* one is what processes see; it survives the death of a process. The
//! *durable* one is what the medium holds: the content of a file as it was last synced, the names of a directory as they
//! were last synced, and of what changed since, any subset. A rename is one change of one directory.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::{OsStr, OsString},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use workflow_store::{Entry, FileSystem, Kind, Open, OpenFile, OsFileSystem, Sharing, Stat};

type Id = usize;
type Names = BTreeMap<OsString, Id>;

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails and does nothing.
    Refuse(ErrorKind),
    /// It is done, and reported as failed.
    DoneButFailed(ErrorKind),
}

/// A defect of store or system that the tests must notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Defect {
    /// There is none.
    #[default]
    None,
    /// Syncs of this kind do nothing.
    Sync(String),
    /// The pending seal never reaches the medium, and dies with its process.
    Pending,
    /// Nobody sees the pending seal of another process.
    Recovery,
}

/// One operation of a dry run.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) what: String,
    /// It changes or syncs something.
    pub(crate) changes: bool,
    /// Of a sync, what it is there for.
    pub(crate) kind: Option<String>,
}

/// One change of the names in a directory.
#[derive(Clone, Debug)]
struct Change {
    kind: ChangeKind,
    /// What the tests say about it.
    label: String,
    /// Its loss hurts nobody: traces, what was seen, lock files.
    is_trifle: bool,
    /// A sync that the defect left out would have covered it.
    excused: bool,
}

#[derive(Clone, Debug)]
enum ChangeKind {
    Add(OsString, Id),
    Remove(OsString),
    Rename(OsString, OsString, Id),
}

#[derive(Clone, Debug)]
enum Content {
    File { cached: Arc<[u8]>, durable: Arc<[u8]> },
    Directory { cached: Names, durable: Names, changes: Vec<Change> },
}

#[derive(Clone, Debug)]
struct Node {
    content: Content,
    /// Class of its name when it was made.
    label: String,
    is_trifle: bool,
    modified: u64,
}

/// Everything that a machine holds.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    nodes: Vec<Node>,
    clock: u64,
}

#[derive(Debug)]
struct Inner {
    image: Image,
    fault: Option<(usize, Fault)>,
    defect: Defect,
    done: usize,
    operations: Vec<Operation>,
    /// The image after each operation that changed something, when asked for.
    images: Option<Vec<Image>>,
    /// Pending seals made by this process.
    own: BTreeSet<Id>,
    locks: HashMap<Id, usize>,
    owner: Option<u32>,
}

/// A process's view of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine(Arc<Mutex<Inner>>);

const ROOT: Id = 0;
const PENDING: &str = ".session-token.pending";

impl Image {
    /// An empty disk with one durable directory.
    pub(crate) fn with_directory(path: &Path) -> Self {
        let mut image = Self { nodes: vec![directory("root")], clock: 1_000 };
        image.make_durable_directory(path);
        image
    }

    /// Makes a durable directory with its ancestors.
    pub(crate) fn make_durable_directory(&mut self, path: &Path) {
        let mut above = ROOT;
        for name in path.iter().skip(1) {
            let known = self.names(above).unwrap().get(name).copied();
            let id = known.unwrap_or(self.nodes.len());
            if known.is_none() {
                self.nodes.push(directory("root"));
                if let Content::Directory { cached, durable, .. } = &mut self.nodes[above].content {
                    cached.insert(name.to_owned(), id);
                    durable.insert(name.to_owned(), id);
                }
            }
            above = id;
        }
    }

    fn names(&self, id: Id) -> io::Result<&Names> {
        match &self.nodes[id].content {
            Content::Directory { cached, .. } => Ok(cached),
            Content::File { .. } => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn lookup(&self, path: &Path) -> io::Result<Id> {
        let mut id = ROOT;
        for name in path.iter().skip(1) {
            id = *self.names(id)?.get(name).ok_or(ErrorKind::NotFound)?;
        }
        Ok(id)
    }

    /// What processes read.
    pub(crate) fn read(&self, path: &Path) -> Option<&[u8]> {
        match &self.nodes[self.lookup(path).ok()?].content {
            Content::File { cached, .. } => Some(cached),
            Content::Directory { .. } => None,
        }
    }

    /// Names in a directory, as processes see them.
    pub(crate) fn list(&self, path: &Path) -> Vec<String> {
        let names = self.lookup(path).and_then(|id| self.names(id).cloned());
        names.unwrap_or_default().into_keys().map(|name| name.into_string().unwrap()).collect()
    }

    /// Tells equal disks, whatever the numbers of their nodes.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash_below(ROOT, &mut hasher);
        hasher.finish()
    }

    fn hash_below(&self, id: Id, hasher: &mut DefaultHasher) {
        match &self.nodes[id].content {
            Content::File { cached, .. } => cached.hash(hasher),
            Content::Directory { cached, .. } => {
                for (name, below) in cached {
                    if matches!(name.to_str(), Some("seen" | "trace" | ".session.lock" | ".gitignore")) {
                        continue;
                    }
                    name.hash(hasher);
                    self.hash_below(*below, hasher);
                }
                "end".hash(hasher);
            }
        }
    }

    /// The process dies: what was cached stays, and so does what was not synced yet.
    pub(crate) fn after_death(&self, defect: &Defect) -> Self {
        let mut image = self.clone();
        if *defect == Defect::Pending {
            image.lose_pending();
        }
        image
    }

    fn lose_pending(&mut self) {
        for node in &mut self.nodes {
            if let Content::Directory { cached, durable, .. } = &mut node.content {
                cached.remove(OsStr::new(PENDING));
                durable.remove(OsStr::new(PENDING));
            }
        }
    }

    /// Disks that a power cut may leave: every subset of the names that were not synced, with every file that was not
    /// synced as it was synced last, half of what it should be, or whole.
    pub(crate) fn after_power_cut(&self, defect: &Defect) -> Vec<Self> {
        let mut doubtful = Vec::new();
        let mut dirty = Vec::new();
        for (id, node) in self.nodes.iter().enumerate() {
            match &node.content {
                Content::Directory { changes, .. } => {
                    let serious = changes.iter().enumerate().filter(|(_, change)| !change.is_trifle);
                    doubtful.extend(serious.map(|(nth, _)| (id, nth)));
                }
                Content::File { cached, durable } if cached != durable && !node.is_trifle => dirty.push(id),
                Content::File { .. } => {}
            }
        }
        let mut left = Vec::new();
        for kept in subsets(doubtful.len()) {
            let lost: BTreeSet<(Id, usize)> =
                doubtful.iter().zip(&kept).filter(|(_, kept)| !**kept).map(|(change, _)| *change).collect();
            for fate in 0..3_usize.pow(u32::try_from(dirty.len().min(3)).unwrap()) {
                let of = |id: Id| {
                    dirty
                        .iter()
                        .position(|other| *other == id)
                        .map(|nth| fate / 3_usize.pow(u32::try_from(nth.min(2)).unwrap()) % 3)
                };
                left.push(self.cut(&lost, &of, fate % 2 == 0, defect));
            }
        }
        left
    }

    fn cut(
        &self,
        lost: &BTreeSet<(Id, usize)>,
        fate: &dyn Fn(Id) -> Option<usize>,
        trifles: bool,
        defect: &Defect,
    ) -> Self {
        let mut image = self.clone();
        for (id, node) in image.nodes.iter_mut().enumerate() {
            match &mut node.content {
                Content::File { cached, durable } => {
                    let survivor = match (node.is_trifle, fate(id)) {
                        (true, _) if trifles => Arc::clone(cached),
                        (_, Some(1)) => Arc::from(&cached[..cached.len() / 2]),
                        (_, Some(2)) => Arc::clone(cached),
                        _ => Arc::clone(durable),
                    };
                    *cached = Arc::clone(&survivor);
                    *durable = survivor;
                }
                Content::Directory { cached, durable, changes } => {
                    for (nth, change) in changes.iter().enumerate() {
                        let keep = if change.is_trifle { trifles } else { !lost.contains(&(id, nth)) };
                        if keep {
                            change.kind.apply(durable);
                        }
                    }
                    changes.clear();
                    cached.clone_from(durable);
                }
            }
        }
        if *defect == Defect::Pending {
            image.lose_pending();
        }
        image
    }
}

/// All subsets of so many things; of many, those next to all, none, and every beginning.
fn subsets(count: usize) -> Vec<Vec<bool>> {
    if count <= 7 {
        return (0..1_usize << count).map(|mask| (0..count).map(|nth| mask >> nth & 1 == 1).collect()).collect();
    }
    let mut chosen: BTreeSet<Vec<bool>> = BTreeSet::new();
    for at in 0..=count {
        chosen.insert((0..count).map(|nth| nth < at).collect());
        chosen.insert((0..count).map(|nth| nth >= at).collect());
        chosen.insert((0..count).map(|nth| nth != at).collect());
        chosen.insert((0..count).map(|nth| nth == at).collect());
    }
    chosen.into_iter().collect()
}

impl ChangeKind {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Add(name, id) => {
                names.insert(name.clone(), *id);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
            Self::Rename(from, to, id) => {
                names.remove(from);
                names.insert(to.clone(), *id);
            }
        }
    }
}

fn directory(label: &str) -> Node {
    Node {
        content: Content::Directory { cached: Names::new(), durable: Names::new(), changes: Vec::new() },
        label: label.to_owned(),
        is_trifle: false,
        modified: 0,
    }
}

/// Name of a file without what differs from run to run.
fn class(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = match name.find(".tmp.") {
        Some(at) => format!("{}.tmp", &name[..at]),
        None => name.into_owned(),
    };
    if name.starts_with("transition-") {
        return if name.contains(".moved") { "note of a promotion".to_owned() } else { "folder".to_owned() };
    }
    match name.as_str() {
        "session.json.tmp" => "new state".to_owned(),
        "session.json" => "state".to_owned(),
        ".session-token.pending" => "pending seal".to_owned(),
        ".session-token" => "seal".to_owned(),
        "secret" | "secret.tmp" => "key".to_owned(),
        ".session.lock" => "lock".to_owned(),
        name if name.starts_with("session.") => "backup of the state".to_owned(),
        name if name.starts_with(".session-token.") => "backup of the seal".to_owned(),
        _ => "folder".to_owned(),
    }
}

fn is_trifle(path: &Path) -> bool {
    path.iter()
        .any(|part| matches!(part.to_str(), Some("seen" | "trace" | ".session.lock" | ".gitignore" | "secret.lock")))
}

impl Machine {
    /// A process on a machine; `record` keeps the image after every change.
    pub(crate) fn on(image: &Image, defect: &Defect, record: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            image: image.clone(),
            fault: None,
            defect: defect.clone(),
            done: 0,
            operations: Vec::new(),
            images: record.then(Vec::new),
            own: BTreeSet::new(),
            locks: HashMap::new(),
            owner: own_user(),
        })))
    }

    /// The operation of this number, from now on and from 0, goes wrong.
    pub(crate) fn fail(&self, at: usize, fault: Fault) {
        let mut inner = self.lock();
        inner.done = 0;
        inner.fault = Some((at, fault));
    }

    /// Moves a directory below another one, as a person does; both are on the medium then.
    pub(crate) fn move_below(&self, directory: &Path, above: &Path) {
        let mut inner = self.lock();
        inner.image.make_durable_directory(above);
        let (from, id) = (inner.parent(directory).unwrap(), inner.image.lookup(directory).unwrap());
        let to = inner.image.lookup(above).unwrap();
        let name = directory.file_name().unwrap();
        inner.sync(id);
        inner.sync(from);
        for (at, there) in [(from, false), (to, true)] {
            if let Content::Directory { cached, durable, .. } = &mut inner.image.nodes[at].content {
                for names in [cached, durable] {
                    let _known = if there { names.insert(name.to_owned(), id) } else { names.remove(name) };
                }
            }
        }
    }

    pub(crate) fn image(&self) -> Image {
        self.lock().image.clone()
    }

    pub(crate) fn operations(&self) -> Vec<Operation> {
        self.lock().operations.clone()
    }

    pub(crate) fn images(&self) -> Vec<Image> {
        self.lock().images.clone().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T>(&self, what: &str, path: &Path, operation: impl FnOnce(&mut Inner) -> io::Result<T>) -> io::Result<T> {
        self.perform(what, path, false, None, operation)
    }

    fn change<T>(&self, what: &str, path: &Path, operation: impl FnOnce(&mut Inner) -> io::Result<T>) -> io::Result<T> {
        self.perform(what, path, true, None, operation)
    }

    fn perform<T>(
        &self,
        what: &str,
        path: &Path,
        changes: bool,
        kind: Option<String>,
        operation: impl FnOnce(&mut Inner) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut inner = self.lock();
        let nth = inner.done;
        inner.done += 1;
        inner.operations.push(Operation { what: format!("{what} {}", path.display()), changes, kind });
        inner.image.clock += 1;
        if inner.defect == Defect::Recovery && path.file_name() == Some(OsStr::new(PENDING)) && !changes {
            let known = inner.image.lookup(path).is_ok_and(|id| inner.own.contains(&id));
            if !known {
                return Err(ErrorKind::NotFound.into());
            }
        }
        let outcome = match inner.fault {
            Some((at, Fault::Refuse(kind))) if at == nth => return Err(kind.into()),
            Some((at, Fault::DoneButFailed(kind))) if at == nth => operation(&mut inner).and(Err(kind.into())),
            _ => operation(&mut inner),
        };
        if changes {
            let Inner { image, images, .. } = &mut *inner;
            if let Some(images) = images {
                images.push(image.clone());
            }
        }
        outcome
    }
}

/// Who this process is, by a file that it made.
fn own_user() -> Option<u32> {
    let file = tempfile::NamedTempFile::new().unwrap();
    OsFileSystem.stat(file.path()).unwrap().owner
}

impl Inner {
    fn parent(&self, path: &Path) -> io::Result<Id> {
        let id = self.image.lookup(path.parent().ok_or(ErrorKind::InvalidInput)?)?;
        self.image.names(id).map(|_| id)
    }

    fn note(&mut self, directory: Id, path: &Path, kind: ChangeKind, verb: &str) {
        let change =
            Change { kind, label: format!("{verb} {}", class(path)), is_trifle: is_trifle(path), excused: false };
        self.image.nodes[directory].modified = self.image.clock;
        if let Content::Directory { cached, changes, .. } = &mut self.image.nodes[directory].content {
            change.kind.apply(cached);
            changes.push(change);
        }
    }

    fn add(&mut self, path: &Path, content: Content) -> io::Result<Id> {
        let parent = self.parent(path)?;
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
        if self.image.names(parent)?.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let id = self.image.nodes.len();
        let modified = self.image.clock;
        self.image.nodes.push(Node { content, label: class(path), is_trifle: is_trifle(path), modified });
        self.note(parent, path, ChangeKind::Add(name, id), "add");
        if path.file_name() == Some(OsStr::new(PENDING)) {
            self.own.insert(id);
        }
        Ok(id)
    }

    fn stat(&self, id: Id) -> Stat {
        let node = &self.image.nodes[id];
        let (kind, len) = match &node.content {
            Content::File { cached, .. } => (Kind::File, cached.len() as u64),
            Content::Directory { .. } => (Kind::Directory, 0),
        };
        Stat {
            kind,
            len,
            mode: Some(if kind == Kind::File { 0o600 } else { 0o700 }),
            owner: self.owner,
            identity: Some((1, id as u64)),
            modified: Some(UNIX_EPOCH + Duration::from_secs(node.modified)),
        }
    }

    /// What a sync of a file or directory is there for; `None` when nothing needs it.
    fn sync_kind(&self, id: Id) -> Option<String> {
        match &self.image.nodes[id].content {
            Content::File { cached, durable } => {
                let label = &self.image.nodes[id].label;
                (cached != durable).then(|| format!("content of: {label}"))
            }
            Content::Directory { changes, .. } => {
                let open = changes.iter().filter(|change| !change.is_trifle && !change.excused);
                let labels: BTreeSet<&str> = open.map(|change| change.label.as_str()).collect();
                let telling = [
                    "remove state",
                    "rename new state",
                    "add pending seal",
                    "rename pending seal",
                    "rename note of a promotion",
                    "add key",
                    "add folder",
                ];
                // Of all else it is no matter whether it survives, or a later sync is there for it.
                let telling = telling.into_iter().find(|label| labels.contains(label));
                telling.map(|label| format!("names: {label}"))
            }
        }
    }

    fn sync(&mut self, id: Id) {
        let kind = self.sync_kind(id);
        let left_out = kind.is_some_and(|kind| self.defect == Defect::Sync(kind));
        match &mut self.image.nodes[id].content {
            Content::File { cached, durable } if !left_out => durable.clone_from(cached),
            Content::File { .. } => {}
            Content::Directory { changes, .. } if left_out => {
                for change in changes {
                    change.excused = true;
                }
            }
            Content::Directory { cached, durable, changes } => {
                durable.clone_from(cached);
                changes.clear();
            }
        }
    }
}

#[derive(Debug)]
struct Handle {
    machine: Machine,
    path: PathBuf,
    id: Id,
    locked: bool,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.locked {
            *self.machine.lock().locks.entry(self.id).or_default() -= 1;
        }
    }
}

impl OpenFile for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Short writes are the rule here, so that every file has a first half at some time.
        let part = &bytes[..bytes.len().min((bytes.len() / 2).max(100))];
        let id = self.id;
        self.machine.change("write", &self.path, |inner| {
            let now = inner.image.clock;
            let node = &mut inner.image.nodes[id];
            node.modified = now;
            if let Content::File { cached, .. } = &mut node.content {
                *cached = [cached, part].concat().into();
            }
            Ok(part.len())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        let id = self.id;
        let kind = self.machine.lock().sync_kind(id);
        self.machine.perform("sync", &self.path, true, kind, |inner| {
            inner.sync(id);
            Ok(())
        })
    }

    fn try_lock(&mut self, _sharing: Sharing) -> io::Result<bool> {
        let id = self.id;
        let taken = self.machine.look("lock", &self.path, |inner| {
            let held = inner.locks.entry(id).or_default();
            let free = *held == 0;
            *held += usize::from(free);
            Ok(free)
        });
        self.locked |= matches!(taken, Ok(true));
        taken
    }

    fn stat(&self) -> io::Result<Stat> {
        let id = self.id;
        self.machine.look("stat of open", &self.path, |inner| Ok(inner.stat(id)))
    }
}

impl FileSystem for Machine {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let exists = self.lock().image.lookup(path).is_ok();
        let operation = |inner: &mut Inner| match inner.image.lookup(path) {
            Ok(_) if how == Open::New => Err(ErrorKind::AlreadyExists.into()),
            Ok(id) => Ok(id),
            Err(error) if how == Open::Existing => Err(error),
            Err(_) => inner.add(path, Content::File { cached: Arc::default(), durable: Arc::default() }),
        };
        let id = if exists { self.look("open", path, operation) } else { self.change("create", path, operation) }?;
        Ok(Box::new(Handle { machine: self.clone(), path: path.to_path_buf(), id, locked: false }))
    }

    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        self.look("read", path, |inner| match &inner.image.nodes[inner.image.lookup(path)?].content {
            Content::File { cached, .. } => Ok(cached[usize::try_from(offset).unwrap().min(cached.len())..].to_vec()),
            Content::Directory { .. } => Err(ErrorKind::IsADirectory.into()),
        })
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.look("stat", path, |inner| inner.image.lookup(path).map(|id| inner.stat(id)))
    }

    fn stat_link(&self, path: &Path) -> io::Result<Stat> {
        self.look("stat", path, |inner| inner.image.lookup(path).map(|id| inner.stat(id)))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.look("list", path, |inner| {
            let names = inner.image.names(inner.image.lookup(path)?)?;
            Ok(names.iter().map(|(name, id)| Entry { name: name.clone(), kind: inner.stat(*id).kind }).collect())
        })
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.change("make directory", path, |inner| inner.add(path, directory("").content).map(drop))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        assert_eq!(from.parent(), to.parent(), "a rename between directories is no atomic change of one");
        self.change("rename", from, |inner| {
            let (parent, id) = (inner.parent(from)?, inner.image.lookup(from)?);
            let (old, new) = (from.file_name().unwrap().to_owned(), to.file_name().unwrap().to_owned());
            let kind = ChangeKind::Rename(old, new, id);
            inner.note(parent, from, kind, "rename");
            Ok(())
        })
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change("link", to, |inner| {
            let (parent, id) = (inner.parent(to)?, inner.image.lookup(from)?);
            if inner.image.lookup(to).is_ok() {
                return Err(ErrorKind::AlreadyExists.into());
            }
            inner.note(parent, to, ChangeKind::Add(to.file_name().unwrap().to_owned(), id), "add");
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change("remove", path, |inner| {
            let (parent, _) = (inner.parent(path)?, inner.image.lookup(path)?);
            inner.note(parent, path, ChangeKind::Remove(path.file_name().unwrap().to_owned()), "remove");
            Ok(())
        })
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.change("remove directory", path, |inner| {
            let (parent, id) = (inner.parent(path)?, inner.image.lookup(path)?);
            if !inner.image.names(id)?.is_empty() {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            inner.note(parent, path, ChangeKind::Remove(path.file_name().unwrap().to_owned()), "remove");
            Ok(())
        })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let kind = {
            let inner = self.lock();
            inner.image.lookup(path).ok().and_then(|id| inner.sync_kind(id))
        };
        self.perform("sync directory", path, true, kind, |inner| {
            let id = inner.image.lookup(path)?;
            inner.sync(id);
            Ok(())
        })
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.look("resolve", path, |inner| inner.image.lookup(path).map(|_| path.to_path_buf()))
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.lock().image.clock)
    }
}
