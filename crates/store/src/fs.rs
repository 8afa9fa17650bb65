//! The one door to the disk: every file operation of this crate is a call of [`FileSystem`].
//!
//! Operations are primitive, so that a test can count them and fail at each. Store code goes through [`Disk`], which
//! repeats interrupted operations and turns short writes into whole ones.

use std::{
    ffi::OsString,
    fmt::Debug,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, not followed.
    Symlink,
    /// Anything else.
    Other,
}

/// What is known about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Size in bytes.
    pub len: u64,
    /// Permission bits, where the platform has them.
    pub mode: Option<u32>,
    /// Numeric user, where the platform has one.
    pub owner: Option<u32>,
    /// Device and inode, where the platform has them.
    pub identity: Option<(u64, u64)>,
    /// Time of the last change of the content.
    pub modified: Option<SystemTime>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What it is; links are not followed.
    pub kind: Kind,
}

/// How a file is opened for writing or locking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Created; an existing file or link of that name is an error. Only the owner may read it.
    New,
    /// Created when missing, written at its end. Only the owner may read it.
    Append,
    /// Created when missing, never written. Only the owner may read it.
    Lock,
    /// Existing, for reading or locking.
    Existing,
}

/// Whether a lock excludes everybody or only writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One holder.
    Exclusive,
    /// Any number of holders.
    Shared,
}

/// An open file. Dropping it closes it and gives up its lock.
pub trait OpenFile: Send + Debug {
    /// Writes a part of the bytes and says how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Brings the content to the medium.
    fn sync(&mut self) -> io::Result<()>;
    /// Takes the advisory lock if it is free.
    fn try_lock(&mut self, sharing: Sharing) -> io::Result<bool>;
    /// What is known about it.
    fn stat(&self) -> io::Result<Stat>;
}

/// The file operations this crate needs.
pub trait FileSystem: Send + Sync + Debug {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>>;
    /// Reads a file from an offset in bytes to its end.
    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>>;
    /// What a path leads to, links followed.
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// What a path is, links not followed.
    fn stat_link(&self, path: &Path) -> io::Result<Stat>;
    /// Entries of a directory.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;
    /// Creates one directory that only its owner may enter.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Renames, replacing the target.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name; an existing file of that name is an error.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Brings names in a directory to the medium.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The absolute path without links.
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf>;
    /// The time, for comparison with the times of files.
    fn now(&self) -> SystemTime;
}

/// Most bytes that are read of one file, far above every limit of what this crate writes. A guard of the memory.
const MAX_READ: u64 = 256 * 1024 * 1024;

/// The real disk. Only regular files are opened, and none is waited for: a pipe or a device under the name of a state,
/// a seal or a lock would hold the call for ever. No link is followed to a file: it may lead anywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFileSystem;

impl OpenFile for fs::File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }

    fn try_lock(&mut self, sharing: Sharing) -> io::Result<bool> {
        let taken = match sharing {
            Sharing::Exclusive => Self::try_lock(self),
            Sharing::Shared => Self::try_lock_shared(self),
        };
        match taken {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn stat(&self) -> io::Result<Stat> {
        self.metadata().map(|metadata| known(&metadata))
    }
}

impl FileSystem for OsFileSystem {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let mut options = fs::OpenOptions::new();
        match how {
            Open::New => options.write(true).create_new(true),
            Open::Append => options.append(true).create(true),
            Open::Lock => options.read(true).write(true).create(true).truncate(false),
            Open::Existing => options.read(true),
        };
        private(&mut options);
        Ok(Box::new(open_regular(&mut options, path)?))
    }

    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        use std::io::{Read as _, Seek as _};

        let mut file = open_regular(fs::OpenOptions::new().read(true), path)?;
        if offset > 0 {
            file.seek(io::SeekFrom::Start(offset))?;
        }
        let mut bytes = Vec::new();
        file.take(MAX_READ + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_READ {
            let reason = format!("it has more than {MAX_READ} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        }
        Ok(bytes)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        fs::metadata(path).map(|metadata| known(&metadata))
    }

    fn stat_link(&self, path: &Path) -> io::Result<Stat> {
        fs::symlink_metadata(path).map(|metadata| known(&metadata))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        fs::read_dir(path)?
            .map(|entry| entry.and_then(|entry| Ok(Entry { kind: kind(entry.file_type()?), name: entry.file_name() })))
            .collect()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        private_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    #[cfg(unix)]
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

fn kind(file_type: fs::FileType) -> Kind {
    if file_type.is_symlink() {
        Kind::Symlink
    } else if file_type.is_dir() {
        Kind::Directory
    } else if file_type.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}

#[cfg(unix)]
fn known(metadata: &fs::Metadata) -> Stat {
    use std::os::unix::fs::MetadataExt as _;

    Stat {
        kind: kind(metadata.file_type()),
        len: metadata.len(),
        mode: Some(metadata.mode() & 0o7777),
        owner: Some(metadata.uid()),
        identity: Some((metadata.dev(), metadata.ino())),
        modified: metadata.modified().ok(),
    }
}

#[cfg(not(unix))]
fn known(metadata: &fs::Metadata) -> Stat {
    Stat {
        kind: kind(metadata.file_type()),
        len: metadata.len(),
        mode: None,
        owner: None,
        identity: None,
        modified: metadata.modified().ok(),
    }
}

fn open_regular(options: &mut fs::OpenOptions, path: &Path) -> io::Result<fs::File> {
    at_once(options);
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    Err(if kind.is_dir() {
        io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")
    } else {
        io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")
    })
}

#[cfg(unix)]
fn private(options: &mut fs::OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;

    options.mode(0o600);
}

#[cfg(not(unix))]
fn private(_options: &mut fs::OpenOptions) {}

/// Opening follows no link and does not wait for the other end of a pipe.
#[cfg(unix)]
fn at_once(options: &mut fs::OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;

    options.custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed());
}

#[cfg(not(unix))]
fn at_once(_options: &mut fs::OpenOptions) {}

#[cfg(unix)]
fn private_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn private_dir(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Whether a file belongs to the user of this process; always so where the platform has no numeric users.
pub(crate) fn is_own(stat: &Stat) -> bool {
    #[cfg(unix)]
    let own = Some(rustix::process::geteuid().as_raw());
    #[cfg(not(unix))]
    let own = None;
    stat.owner == own
}

/// A file system as the store uses it.
#[derive(Clone, Debug)]
pub(crate) struct Disk(pub(crate) Arc<dyn FileSystem>);

/// Repeats an operation that a signal interrupted.
fn uninterrupted<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

impl Disk {
    pub(crate) fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        uninterrupted(|| self.0.open(path, how))
    }

    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read_from(path, 0)
    }

    pub(crate) fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        uninterrupted(|| self.0.read_from(path, offset))
    }

    /// Reads a file that may be missing.
    pub(crate) fn read_if_there(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match self.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn stat(&self, path: &Path) -> io::Result<Stat> {
        uninterrupted(|| self.0.stat(path))
    }

    pub(crate) fn stat_link(&self, path: &Path) -> io::Result<Stat> {
        uninterrupted(|| self.0.stat_link(path))
    }

    pub(crate) fn is_there(&self, path: &Path) -> bool {
        self.stat_link(path).is_ok()
    }

    pub(crate) fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        uninterrupted(|| self.0.list(path))
    }

    /// Creates a directory with its missing ancestors; says whether it was missing.
    pub(crate) fn create_dirs(&self, path: &Path) -> io::Result<bool> {
        match uninterrupted(|| self.0.create_dir(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match self.stat(path)?.kind {
                Kind::Directory => Ok(false),
                Kind::File | Kind::Symlink | Kind::Other => Err(error),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).ok_or(error)?;
                self.create_dirs(parent)?;
                match uninterrupted(|| self.0.create_dir(path)) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                    outcome => outcome.map(|()| true),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// [`Disk::create_dirs`], and the names of path and ancestors below `root` are on the medium afterwards: those of
    /// directories that were there too, since whoever made them may have died before syncing.
    pub(crate) fn create_durable_dirs(&self, root: &Path, path: &Path) -> io::Result<bool> {
        let created = self.create_dirs(path)?;
        self.sync_above(root, path)?;
        Ok(created)
    }

    /// Brings the name of a path, and those of its ancestors below `root`, to the medium. Ancestors that this user may
    /// not list were made by somebody else.
    pub(crate) fn sync_above(&self, root: &Path, path: &Path) -> io::Result<()> {
        for above in path.ancestors().skip(1).take_while(|above| above.starts_with(root)) {
            match self.sync_dir(above) {
                Err(error) if is_forbidden(&error) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        uninterrupted(|| self.0.rename(from, to))
    }

    pub(crate) fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        uninterrupted(|| self.0.hard_link(from, to))
    }

    /// Removes a file that may be missing.
    pub(crate) fn remove_file(&self, path: &Path) -> io::Result<()> {
        match uninterrupted(|| self.0.remove_file(path)) {
            Err(error) if is_missing(&error) => Ok(()),
            outcome => outcome,
        }
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        uninterrupted(|| self.0.remove_dir(path))
    }

    /// Syncs a directory; file systems that cannot do that are taken as they are.
    pub(crate) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match uninterrupted(|| self.0.sync_dir(path)) {
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            outcome => outcome,
        }
    }

    pub(crate) fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        uninterrupted(|| self.0.canonicalize(path))
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.0.now()
    }

    /// Creates a file with the bytes; on failure nothing of it stays.
    pub(crate) fn create(&self, path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        let mut file = self.open(path, Open::New)?;
        let written = write_all(file.as_mut(), bytes)
            .and_then(|()| check_length(file.as_ref(), bytes.len()))
            .and_then(|()| if durable { uninterrupted(|| file.sync()) } else { Ok(()) });
        drop(file);
        if written.is_err() {
            let _ignored = self.remove_file(path);
        }
        written
    }

    /// Puts the bytes at a path in one step, by a file beside it that is renamed.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        let staged = staging(path);
        self.create(&staged, bytes, durable)?;
        let renamed = self.rename(&staged, path);
        if renamed.is_err() {
            let _ignored = self.remove_file(&staged);
        }
        renamed
    }
}

/// Takes a lock if it is free.
pub(crate) fn try_lock(file: &mut dyn OpenFile, sharing: Sharing) -> io::Result<bool> {
    uninterrupted(|| file.try_lock(sharing))
}

/// What is known about an open file.
pub(crate) fn stat_open(file: &dyn OpenFile) -> io::Result<Stat> {
    uninterrupted(|| file.stat())
}

/// A write that failed after it was done, and was repeated, leaves more than was meant.
fn check_length(file: &dyn OpenFile, expected: usize) -> io::Result<()> {
    let found = stat_open(file)?.len;
    if found == expected as u64 {
        return Ok(());
    }
    let reason = format!("{expected} bytes were written, but the file has {found}");
    Err(io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// Writes all bytes, however few go at a time.
pub(crate) fn write_all(file: &mut dyn OpenFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match uninterrupted(|| file.write(bytes))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => bytes = bytes.get(n..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Whether a directory is none of this user's business.
pub(crate) fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Part of the names of files that this program stages and has not renamed yet.
pub(crate) const STAGED: &str = ".tmp.w-";

/// A name beside a file, unused so far: `<name>.tmp.w-<process>-<random>`.
pub(crate) fn staging(path: &Path) -> PathBuf {
    let mut random = [0_u8; 6];
    // Without randomness the process number still tells processes apart, and creation is exclusive.
    let _ignored = getrandom::fill(&mut random);
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(format!("{STAGED}{}-{}", std::process::id(), data_encoding::HEXLOWER.encode(&random)));
    path.with_file_name(name)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_none_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "text").unwrap();
        symlink("file", path("link")).unwrap();
        fs::create_dir(path("dir")).unwrap();
        symlink("/dev/zero", path("device")).unwrap();
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let check = |name: &str, opens: bool| {
            let read = OsFileSystem.read_from(&path(name), 0);
            assert_eq!(read.is_ok(), opens, "{name}: {read:?}");
            for how in [Open::Append, Open::Lock, Open::Existing] {
                let opened = OsFileSystem.open(&path(name), how);
                assert_eq!(opened.is_ok(), opens, "{name}, {how:?}: {opened:?}");
            }
        };
        check("file", true);
        for name in ["link", "dir", "device", "pipe"] {
            check(name, false);
        }
    }
}
