//! The real disk, with its operations counted and without waiting for it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use workflow_store::{Entry, FileSystem, Open, OpenFile, OsFileSystem, Sharing, Stat};

#[derive(Clone, Debug, Default)]
pub(crate) struct Counting(Arc<AtomicUsize>);

impl Counting {
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn one(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct File(Box<dyn OpenFile>, Counting);

impl OpenFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.one();
        self.0.write(bytes)
    }

    /// These tests are about reading; what reaches the medium is tested elsewhere.
    fn sync(&mut self) -> io::Result<()> {
        self.1.one();
        Ok(())
    }

    fn try_lock(&mut self, sharing: Sharing) -> io::Result<bool> {
        self.1.one();
        self.0.try_lock(sharing)
    }

    fn stat(&self) -> io::Result<Stat> {
        self.1.one();
        self.0.stat()
    }
}

impl FileSystem for Counting {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        self.one();
        Ok(Box::new(File(OsFileSystem.open(path, how)?, self.clone())))
    }
    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        self.one();
        OsFileSystem.read_from(path, offset)
    }
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.one();
        OsFileSystem.stat(path)
    }
    fn stat_link(&self, path: &Path) -> io::Result<Stat> {
        self.one();
        OsFileSystem.stat_link(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.one();
        OsFileSystem.list(path)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.one();
        OsFileSystem.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.one();
        OsFileSystem.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.one();
        OsFileSystem.hard_link(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.one();
        OsFileSystem.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.one();
        OsFileSystem.remove_dir(path)
    }
    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        self.one();
        Ok(())
    }
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.one();
        OsFileSystem.canonicalize(path)
    }
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}
