//! Looking at the files of one root: what is there now, and has it changed since the last look.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::FileId;
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{FileProblem, MAX_FILE_BYTES, Root, SourceFile};

/// A file whose times are closer than this to the moment it was read is read again (spec 01 §10.1).
const YOUNG: Duration = Duration::from_secs(2);
/// Directories deeper than this below a root are reported, not entered.
const MAX_DEPTH: usize = 32;
/// Entries of a root that are looked at; links between directories can make a few of them into very many.
const MAX_ENTRIES: usize = 50_000;
/// Bytes of all files of a root that are read.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// What the file system says about a file without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fingerprint {
    len: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64),
    inode: u64,
}

impl Fingerprint {
    fn of(metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let (changed, inode) = {
            use std::os::unix::fs::MetadataExt as _;
            ((metadata.ctime(), metadata.ctime_nsec()), metadata.ino())
        };
        #[cfg(not(unix))]
        let (changed, inode) = ((0, 0), 0);
        Self { len: metadata.len(), modified: metadata.modified().ok(), changed, inode }
    }

    /// Could the file have been written again at `read_at` without its times moving?
    fn is_young(&self, read_at: SystemTime) -> bool {
        let recent = |time: SystemTime| read_at.duration_since(time).map_or(true, |age| age < YOUNG);
        let changed = u64::try_from(self.changed.0)
            .ok()
            .map(|seconds| SystemTime::UNIX_EPOCH + Duration::new(seconds, u32::try_from(self.changed.1).unwrap_or(0)));
        self.modified.is_none_or(recent) || changed.is_some_and(recent)
    }
}

/// A file as it was last read.
#[derive(Clone, Debug)]
struct Seen {
    fingerprint: Fingerprint,
    young: bool,
}

/// The files of one root at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct RootFiles {
    /// Path below the root → file, in byte order.
    pub(crate) files: BTreeMap<String, Arc<SourceFile>>,
    /// Every directory below the root.
    pub(crate) dirs: BTreeSet<String>,
    /// Entries that could not be followed.
    pub(crate) problems: Vec<Diagnostic>,
    /// Why the root as a whole gives nothing.
    pub(crate) unusable: Option<String>,
    seen: BTreeMap<String, Seen>,
}

impl RootFiles {
    fn same_content(&self, other: &Self) -> bool {
        self.dirs == other.dirs
            && self.problems == other.problems
            && self.unusable == other.unusable
            && self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|((a, x), (b, y))| a == b && Arc::ptr_eq(x, y))
    }
}

/// Looks at a root again. Unchanged files keep their `Arc`; the flag says whether anything changed.
pub(crate) fn scan(root: &Root, position: usize, before: Option<&RootFiles>) -> (RootFiles, bool) {
    let now = match (root, before) {
        (Root::Embedded { .. }, Some(before)) => return (before.clone(), false),
        (Root::Embedded { files, .. }, None) => embedded(files, position),
        (Root::Directory { path, .. }, _) => directory(path, position, before),
    };
    let changed = before.is_none_or(|before| !before.same_content(&now));
    (now, changed)
}

fn embedded(files: &[(&'static str, &'static str)], position: usize) -> RootFiles {
    let mut found = RootFiles::default();
    for (path, text) in files {
        let segments: Vec<&str> = path.split('/').collect();
        if segments.iter().any(|segment| segment.starts_with('.')) || !is_definition(path) {
            continue;
        }
        for end in 1..segments.len() {
            found.dirs.insert(segments[..end].join("/"));
        }
        let id = FileId { root: position, path: (*path).to_owned() };
        found.files.insert((*path).to_owned(), Arc::new(SourceFile::from_bytes(id, text.as_bytes().to_vec())));
    }
    found
}

fn directory(path: &Path, position: usize, before: Option<&RootFiles>) -> RootFiles {
    let mut walk = Walk { position, before, found: RootFiles::default(), top: PathBuf::new(), entries: 0, bytes: 0 };
    match fs::canonicalize(path) {
        Ok(top) if top.is_dir() => {
            walk.top.clone_from(&top);
            walk.enter(&top, "", &mut vec![top.clone()]);
        }
        Ok(_) => walk.found.unusable = Some("it is not a directory".to_owned()),
        Err(error) => walk.found.unusable = Some(error.to_string()),
    }
    walk.found
}

fn is_definition(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| matches!(extension.to_str(), Some("md" | "yaml" | "yml")))
}

/// What to do about a directory that cannot be listed.
const LISTABLE: &str = "let this user read it, or take it out of the directory of the workflows";

struct Walk<'a> {
    position: usize,
    before: Option<&'a RootFiles>,
    found: RootFiles,
    /// The root, canonical.
    top: PathBuf,
    /// How many entries were looked at.
    entries: usize,
    /// How many bytes the files have that were found.
    bytes: u64,
}

impl Walk<'_> {
    /// Lists one directory. `chain` holds the canonical paths from the root down to it.
    fn enter(&mut self, dir: &Path, below: &str, chain: &mut Vec<PathBuf>) {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) => return self.problem(below, format!("the directory cannot be listed: {error}"), LISTABLE),
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => names.push(entry.file_name()),
                Err(error) => {
                    self.problem(below, format!("the directory cannot be listed completely: {error}"), LISTABLE);
                }
            }
        }
        names.sort();
        for name in names {
            let Some(text) = name.to_str() else {
                let shown = join(below, &name.to_string_lossy());
                self.problem(&shown, "the name is not valid UTF-8; the entry is ignored".to_owned(), "rename it");
                continue;
            };
            if text.starts_with('.') {
                continue;
            }
            self.entry(&dir.join(text), &join(below, text), chain);
        }
    }

    fn entry(&mut self, path: &Path, below: &str, chain: &mut Vec<PathBuf>) {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            if self.entries == MAX_ENTRIES + 1 {
                self.problem(
                    below,
                    format!("the root has more than {MAX_ENTRIES} entries; from here on they are ignored"),
                    "name a directory that holds workflows and nothing else",
                );
            }
            return;
        }
        let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_symlink());
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return self.unreadable(below, &format!("the entry cannot be followed: {error}")),
        };
        let real = if is_link {
            match fs::canonicalize(path) {
                Ok(real) if real.starts_with(&self.top) => real,
                Ok(_) => return self.unreadable(below, "the link leads out of the corpus root"),
                Err(error) => return self.unreadable(below, &format!("the entry cannot be followed: {error}")),
            }
        } else {
            path.to_path_buf()
        };
        if metadata.is_dir() {
            if chain.contains(&real) {
                return self.problem(
                    below,
                    "the link leads back to a directory above it".to_owned(),
                    "remove the link",
                );
            }
            if chain.len() > MAX_DEPTH {
                return self.problem(below, format!("directories nest deeper than {MAX_DEPTH} levels"), "move it up");
            }
            self.found.dirs.insert(below.to_owned());
            chain.push(real.clone());
            self.enter(&real, below, chain);
            chain.pop();
        } else if metadata.is_file() && is_definition(below) && wanted(below) {
            self.file(&real, below, &metadata);
        }
    }

    fn file(&mut self, path: &Path, below: &str, metadata: &fs::Metadata) {
        self.bytes = self.bytes.saturating_add(metadata.len().min(MAX_FILE_BYTES));
        if self.bytes > MAX_BYTES {
            return self.unreadable(below, &format!("the files of the root have more than {MAX_BYTES} bytes together"));
        }
        let fingerprint = Fingerprint::of(metadata);
        let old = self.before.and_then(|before| Some((before.files.get(below)?, before.seen.get(below)?)));
        if let Some((file, seen)) = old
            && !seen.young
            && seen.fingerprint == fingerprint
        {
            self.found.files.insert(below.to_owned(), Arc::clone(file));
            self.found.seen.insert(below.to_owned(), seen.clone());
            return;
        }
        let id = FileId { root: self.position, path: below.to_owned() };
        let read_at = SystemTime::now();
        let fresh = match read(&self.top, path) {
            Ok(bytes) => SourceFile::from_bytes(id, bytes),
            Err(problem) => SourceFile::without_text(id, problem),
        };
        let file = match old {
            Some((file, _)) if file.hash == fresh.hash && file.problem == fresh.problem => Arc::clone(file),
            _ => Arc::new(fresh),
        };
        let young = fingerprint.is_young(read_at);
        self.found.files.insert(below.to_owned(), file);
        self.found.seen.insert(below.to_owned(), Seen { fingerprint, young });
    }

    /// An entry that is there by name only: a definition file stays listed, so that its absence is explained.
    fn unreadable(&mut self, below: &str, reason: &str) {
        self.problem(below, reason.to_owned(), FileProblem::Unreadable(String::new()).help());
        if is_definition(below) && wanted(below) {
            let id = FileId { root: self.position, path: below.to_owned() };
            let fresh = SourceFile::without_text(id, FileProblem::Unreadable(reason.to_owned()));
            let file = match self.before.and_then(|before| before.files.get(below)) {
                Some(file) if file.hash == fresh.hash && file.problem == fresh.problem => Arc::clone(file),
                _ => Arc::new(fresh),
            };
            self.found.files.insert(below.to_owned(), file);
        }
    }

    fn problem(&mut self, below: &str, message: String, help: &str) {
        let workflow = below.split('/').next().unwrap_or_default();
        let problem = Diagnostic::of_file("corpus.entry", Severity::Error, workflow, below, message);
        self.found.problems.push(problem.with_help(help));
    }
}

/// Markdown directly under the root belongs to no workflow.
fn wanted(below: &str) -> bool {
    below.contains('/') || Path::new(below).extension().is_some_and(|extension| extension != "md")
}

fn join(below: &str, name: &str) -> String {
    if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") }
}

/// Reads at most the limit, so that a file that grows while it is read cannot exceed it.
fn read(top: &Path, path: &Path) -> Result<Vec<u8>, FileProblem> {
    let unreadable = |error: io::Error| FileProblem::Unreadable(error.to_string());
    let file = open(top, path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(FileProblem::Unreadable("it is no regular file".to_owned()));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(FileProblem::TooLarge(metadata.len()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let read = bytes.len() as u64;
    if read > MAX_FILE_BYTES { Err(FileProblem::TooLarge(read)) } else { Ok(bytes) }
}

/// Opens a file below the root. No link is followed on the way and no pipe waited for: what stands there may have been
/// replaced since it was looked at.
#[cfg(unix)]
fn open(top: &Path, path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};

    let below = path.strip_prefix(top).map_err(io::Error::other)?;
    let mut opened = openat(CWD, top, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut names = below.components().peekable();
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else { return Err(io::ErrorKind::InvalidInput.into()) };
        let kind = if names.peek().is_some() { OFlags::DIRECTORY } else { OFlags::NONBLOCK };
        opened = openat(&opened, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | kind, Mode::empty())?;
    }
    Ok(opened.into())
}

#[cfg(not(unix))]
fn open(_top: &Path, path: &Path) -> io::Result<fs::File> {
    fs::File::open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What was a file when it was looked at is a link, a pipe or a directory now, or the way to it leads elsewhere.
    #[test]
    fn hazard_h01_what_is_swapped_for_a_link_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let top = base.join("root");
        fs::create_dir_all(top.join("in")).unwrap();
        fs::create_dir(base.join("out")).unwrap();
        for (path, text) in [("root/in/a.md", "inside"), ("out/a.md", "secret")] {
            fs::write(base.join(path), text).unwrap();
        }
        symlink(base.join("out/a.md"), top.join("in/link.md")).unwrap();
        symlink(top.join("in/a.md"), top.join("in/near.md")).unwrap();
        symlink(base.join("out"), top.join("away")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            top.join("in/pipe.md"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(read(&top, &top.join("in/a.md")), Ok(b"inside".to_vec()));
        for path in ["in/link.md", "in/near.md", "away/a.md", "in/pipe.md", "in", "../out/a.md", "in/gone.md"] {
            assert!(matches!(read(&top, &top.join(path)), Err(FileProblem::Unreadable(_))), "{path}");
        }
    }

    /// Directories that link to each other give every path through them once; a scan has an end all the same.
    #[test]
    fn hazard_h13_links_do_not_multiply_the_corpus() {
        let place = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..12).map(|n| format!("d{n}")).collect();
        for name in &names {
            fs::create_dir(place.path().join(name)).unwrap();
            fs::write(place.path().join(name).join("workflow.yaml"), "id: x\n").unwrap();
        }
        for name in &names {
            for other in names.iter().filter(|other| *other != name) {
                symlink(place.path().join(other), place.path().join(name).join(other)).unwrap();
            }
        }
        let root = Root::Directory { path: place.path().to_owned(), label: "test".to_owned() };
        let (found, _) = scan(&root, 0, None);
        assert!(found.files.len() <= MAX_ENTRIES);
        let told = found.problems.iter().filter(|problem| problem.message.contains("ignored")).count();
        assert_eq!(told, 1);
    }
}
