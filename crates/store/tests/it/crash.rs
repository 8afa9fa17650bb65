//! Spec 03 Appendix B: death at every operation leaves the old pair or the new one.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use workflow_engine::Target;
use workflow_store::{Entry, FileSystem, Open, OpenFile, OsFileSystem, SessionStore as _, Sharing, Stat};

use crate::support::*;

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process dies before it.
    DieBefore,
    /// The process dies after it.
    DieAfter,
    /// A write brings half of its bytes to the file, then the process dies; any other operation dies before.
    DieHalfway,
    /// It fails and does nothing.
    Refuse(std::io::ErrorKind),
    /// It is done, and reported as failed.
    DoneButFailed(std::io::ErrorKind),
}

/// Counts the operations that change something, and does the fault at one of them.
#[derive(Debug)]
pub(crate) struct Faulty {
    counter: Arc<Counter>,
}

#[derive(Debug)]
pub(crate) struct Counter {
    fault: Fault,
    at: usize,
    done: AtomicUsize,
}

impl Faulty {
    pub(crate) fn new(fault: Fault, at: usize) -> (Arc<Self>, Arc<Counter>) {
        let counter = Arc::new(Counter { fault, at, done: AtomicUsize::new(0) });
        (Arc::new(Self { counter: Arc::clone(&counter) }), counter)
    }
}

impl Counter {
    /// Whether the chosen operation has come.
    pub(crate) fn has_struck(&self) -> bool {
        self.done.load(Ordering::SeqCst) > self.at
    }

    fn is_dead(&self) -> bool {
        self.has_struck() && matches!(self.fault, Fault::DieBefore | Fault::DieAfter | Fault::DieHalfway)
    }

    fn dead<T>(&self) -> std::io::Result<T> {
        Err(std::io::Error::other(format!("{:?} at {}", self.fault, self.at)))
    }

    /// An operation that only looks.
    fn look<T>(&self, operation: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
        if self.is_dead() { self.dead() } else { operation() }
    }

    /// An operation that changes something.
    fn change<T>(&self, operation: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
        if self.is_dead() {
            return self.dead();
        }
        if self.done.fetch_add(1, Ordering::SeqCst) != self.at {
            return operation();
        }
        match self.fault {
            Fault::DieBefore | Fault::DieHalfway => self.dead(),
            Fault::DieAfter => operation().and_then(|_| self.dead()),
            Fault::Refuse(kind) => Err(kind.into()),
            Fault::DoneButFailed(kind) => operation().and_then(|_| Err(kind.into())),
        }
    }
}

#[derive(Debug)]
struct FaultyFile {
    counter: Arc<Counter>,
    file: Box<dyn OpenFile>,
}

impl OpenFile for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let file = &mut self.file;
        if self.counter.fault == Fault::DieHalfway && self.counter.done.load(Ordering::SeqCst) == self.counter.at {
            self.counter.done.fetch_add(1, Ordering::SeqCst);
            file.write(&bytes[..bytes.len() / 2])?;
            return self.counter.dead();
        }
        // Short writes are the rule here.
        let part = &bytes[..bytes.len().min(700)];
        self.counter.change(|| file.write(part))
    }

    fn sync(&mut self) -> std::io::Result<()> {
        let file = &mut self.file;
        self.counter.change(|| file.sync())
    }

    fn try_lock(&mut self, sharing: Sharing) -> std::io::Result<bool> {
        let file = &mut self.file;
        self.counter.look(|| file.try_lock(sharing))
    }

    fn stat(&self) -> std::io::Result<Stat> {
        self.counter.look(|| self.file.stat())
    }
}

impl FileSystem for Faulty {
    fn open(&self, path: &Path, how: Open) -> std::io::Result<Box<dyn OpenFile>> {
        let open = || OsFileSystem.open(path, how);
        let file = if how == Open::Existing { self.counter.look(open) } else { self.counter.change(open) }?;
        Ok(Box::new(FaultyFile { counter: Arc::clone(&self.counter), file }))
    }
    fn read_from(&self, path: &Path, offset: u64) -> std::io::Result<Vec<u8>> {
        self.counter.look(|| OsFileSystem.read_from(path, offset))
    }
    fn stat(&self, path: &Path) -> std::io::Result<Stat> {
        self.counter.look(|| OsFileSystem.stat(path))
    }
    fn stat_link(&self, path: &Path) -> std::io::Result<Stat> {
        self.counter.look(|| OsFileSystem.stat_link(path))
    }
    fn list(&self, path: &Path) -> std::io::Result<Vec<Entry>> {
        self.counter.look(|| OsFileSystem.list(path))
    }
    fn create_dir(&self, path: &Path) -> std::io::Result<()> {
        self.counter.change(|| OsFileSystem.create_dir(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.counter.change(|| OsFileSystem.rename(from, to))
    }
    fn hard_link(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.counter.change(|| OsFileSystem.hard_link(from, to))
    }
    fn remove_file(&self, path: &Path) -> std::io::Result<()> {
        self.counter.change(|| OsFileSystem.remove_file(path))
    }
    fn remove_dir(&self, path: &Path) -> std::io::Result<()> {
        self.counter.change(|| OsFileSystem.remove_dir(path))
    }
    fn sync_dir(&self, path: &Path) -> std::io::Result<()> {
        self.counter.change(|| OsFileSystem.sync_dir(path))
    }
    fn canonicalize(&self, path: &Path) -> std::io::Result<PathBuf> {
        self.counter.look(|| OsFileSystem.canonicalize(path))
    }
    fn now(&self) -> SystemTime {
        OsFileSystem.now()
    }
}

const DEATHS: [Fault; 3] = [Fault::DieBefore, Fault::DieAfter, Fault::DieHalfway];

/// Runs `scenario` with a death at each operation in turn, until one run needs no more operations.
fn at_every_point(mut scenario: impl FnMut(Fault, usize, &dyn Fn() -> (Arc<Faulty>, Arc<Counter>)) -> bool) {
    for fault in DEATHS {
        let mut point = 0;
        while scenario(fault, point, &|| Faulty::new(fault, point)) {
            point += 1;
            assert!(point < 500, "this never ends");
        }
        assert!(point > 5, "{fault:?} struck only {point} times");
    }
}

fn no_leftovers(folder: &Path) {
    let left: Vec<String> =
        names(folder).into_iter().filter(|name| name.contains(".tmp.") || name.ends_with(".pending")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn hazard_h06_a_write_that_dies_leaves_the_old_pair_or_the_new_one() {
    at_every_point(|fault, point, faulty| {
        let bench = Bench::new();
        let index = start(&bench.store(), "alpha").unwrap();
        advance(&bench.store(), &index).unwrap();
        let (file_system, counter) = faulty();
        let outcome = advance(&bench.store_on(file_system), &index);
        let found = read(&bench.store(), &index).unwrap_or_else(|r| panic!("{fault:?} {point}: {}", r.text())).seq;
        assert!(found == 1 || found == 2, "{fault:?} {point}: seq {found}");
        if outcome.is_ok() {
            assert_eq!(found, 2, "{fault:?} {point}: acknowledged and not kept");
        }
        assert_eq!(advance(&bench.store(), &index).unwrap(), found + 1, "{fault:?} {point}");
        no_leftovers(&bench.folder("alpha"));
        counter.has_struck()
    });
}

#[test]
fn a_first_write_that_dies_leaves_nothing_or_a_session() {
    at_every_point(|fault, point, faulty| {
        let bench = Bench::new();
        let (file_system, counter) = faulty();
        let outcome = start(&bench.store_on(file_system), "alpha");
        let again = start(&bench.store(), "alpha").unwrap_or_else(|r| panic!("{fault:?} {point}: {}", r.text()));
        if let Ok(index) = outcome {
            assert_eq!(index, again);
        }
        assert_eq!(advance(&bench.store(), &again).unwrap(), 1, "{fault:?} {point}");
        no_leftovers(&bench.folder("alpha"));
        counter.has_struck()
    });
}

#[test]
fn a_promotion_that_dies_keeps_one_session() {
    at_every_point(|fault, point, faulty| {
        let bench = Bench::new();
        let minted = "transition-0e7a1c2d-1111-4222-8333-444455556666";
        let transient = Target::Slug { slug: minted.to_owned(), minted: true, transient: true, parent: None };
        let index = start_at(&bench.store(), &transient, "meta").unwrap();
        let (file_system, counter) = faulty();
        let promote = |store: &workflow_store::FileStore| {
            let target = Target::Dispatch { index: index.clone(), slug: None, fallback: "2026-work".to_owned() };
            store.transaction(&target, &mut |workset| {
                if workset.families.len() == 2 {
                    let mut root = workset.families[0].root.take().unwrap();
                    root.advance(NOW);
                    workset.families[1].root = Some(root);
                }
                Ok(reply())
            })
        };
        let outcome = promote(&bench.store_on(file_system));
        let found = read(&bench.store(), &index).unwrap_or_else(|r| panic!("{fault:?} {point}: {}", r.text())).seq;
        assert!(outcome.is_err() || found == 1, "{fault:?} {point}: acknowledged and not kept");
        promote(&bench.store()).unwrap_or_else(|r| panic!("{fault:?} {point}: {}", r.text()));
        let by_slug = start_at(&bench.store(), &slug(minted), "meta").unwrap();
        assert_eq!(by_slug, index, "{fault:?} {point}");
        let places: Vec<bool> = bench.store().sessions().unwrap().iter().map(|listing| listing.transient).collect();
        assert_eq!(places, [false], "{fault:?} {point}");
        assert!(advance(&bench.store(), &index).unwrap() >= 2);
        counter.has_struck()
    });
}

#[test]
fn a_key_that_dies_while_it_is_made_is_made_anew() {
    at_every_point(|fault, point, faulty| {
        let bench = Bench::new();
        let (file_system, counter) = faulty();
        let first = start(&bench.store_on(file_system), "alpha");
        let key = bench.options.key_dir.join("secret");
        assert!(!key.exists() || std::fs::read(&key).unwrap().len() == 32, "{fault:?} {point}");
        start(&bench.store(), "alpha").unwrap_or_else(|r| panic!("{fault:?} {point}: {} {first:?}", r.text()));
        counter.has_struck()
    });
}
