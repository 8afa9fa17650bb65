//! Rotation of the server key, with a death and a failure at every operation (spec 03 §3.5).

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::SystemTime,
};

use workflow_store::{Entry, FileSystem, KeyFile, Open, OpenFile, OsFileSystem, SessionStore as _, Stat};

use crate::{
    crash::{Fault, Faulty},
    support::*,
};

fn key(bench: &Bench) -> Vec<u8> {
    fs::read(bench.options.key_dir.join("secret")).unwrap()
}

fn ids(files: &[KeyFile]) -> Vec<&str> {
    files.iter().map(|file| file.id.as_deref().unwrap()).collect()
}

#[test]
fn a_rotated_key_seals_and_the_old_one_verifies_until_the_next_write() {
    let bench = Bench::new();
    let store = bench.store();
    assert_eq!(store.rotate_key().unwrap_err().code, "KEY_MISSING");
    assert_eq!(store.key_report().current, None, "nothing was made");
    let index = start(&store, "a").unwrap();
    let untouched = start(&store, "b").unwrap();
    let before = key(&bench);
    let old = store.key_report().current.unwrap().id.unwrap();
    let done = bench.store().rotate_key().unwrap();
    assert_eq!((done.old.as_str(), done.path.as_path()), (old.as_str(), store.key_path().as_path()));
    assert_ne!(key(&bench), before);
    assert_eq!(fs::read(&done.kept).unwrap(), before);
    let report = store.key_report();
    assert_eq!(report.current.unwrap().id, Some(done.new));
    assert_eq!(ids(&report.previous), [old.as_str()]);

    assert_eq!(warnings(&bench.store(), &index), ["W_KEY_PREVIOUS"]);
    advance(&bench.store(), &index).unwrap();
    assert!(warnings(&bench.store(), &index).is_empty());
    assert_eq!(warnings(&bench.store(), &untouched), ["W_KEY_PREVIOUS"]);
    fs::remove_file(&done.kept).unwrap();
    assert!(read(&bench.store(), &index).is_ok(), "what was written since needs the old key no more");
    assert_eq!(read(&bench.store(), &untouched).unwrap_err().code, "SEAL_MISMATCH");
}

/// A process that loaded the key before goes on: it reads what was sealed since, and seals with the new key.
#[test]
fn a_running_process_takes_the_new_key() {
    let bench = Bench::new();
    let running = bench.store();
    let index = start(&running, "a").unwrap();
    for seq in 1..4 {
        let done = bench.store().rotate_key().unwrap();
        advance(&bench.store(), &index).unwrap();
        assert_eq!(read(&running, &index).unwrap().seq, seq * 2 - 1);
        advance(&running, &index).unwrap();
        assert!(warnings(&bench.store(), &index).is_empty(), "sealed with {}", done.new);
    }
    assert_eq!(bench.store().key_report().previous.len(), 3);
}

/// The disk, with something that happens when a call is about to take the lock of a folder: it has its keys by then.
struct Interrupted(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupted")
    }
}

impl FileSystem for Interrupted {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        if how == Open::Lock
            && path.ends_with(".session.lock")
            && let Some(happens) = self.0.lock().unwrap().take()
        {
            happens();
        }
        OsFileSystem.open(path, how)
    }
    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        OsFileSystem.read_from(path, offset)
    }
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        OsFileSystem.stat(path)
    }
    fn stat_link(&self, path: &Path) -> io::Result<Stat> {
        OsFileSystem.stat_link(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        OsFileSystem.list(path)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFileSystem.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFileSystem.hard_link(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.remove_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.sync_dir(path)
    }
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        OsFileSystem.canonicalize(path)
    }
    fn now(&self) -> SystemTime {
        OsFileSystem.now()
    }
}

/// Rotated, and written by somebody else, after a call took its keys and before it read the folder.
#[test]
fn a_rotation_before_a_folder_is_read_is_no_mismatch() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let (other, of) = (bench.store(), index.clone());
    let happens = move || {
        other.rotate_key().unwrap();
        assert_eq!(advance(&other, &of).unwrap(), 1);
    };
    let running = bench.store_on(Arc::new(Interrupted(Mutex::new(Some(Box::new(happens))))));
    assert_eq!(advance(&running, &index).unwrap(), 2);
    assert!(warnings(&bench.store(), &index).is_empty());
}

/// Rotated while a call has the folder: it is sealed with the key that the call began with, which goes on to verify.
#[test]
fn a_rotation_during_a_call_is_no_mismatch() {
    let bench = Bench::new();
    let running = bench.store();
    let index = start(&running, "a").unwrap();
    let outcome = running.transaction(&at(&index), &mut |workset| {
        bench.store().rotate_key().unwrap();
        workset.session_mut().unwrap().advance(NOW);
        Ok(reply())
    });
    outcome.unwrap();
    assert_eq!(warnings(&bench.store(), &index), ["W_KEY_PREVIOUS"]);
    assert_eq!(advance(&running, &index).unwrap(), 2);
    assert!(warnings(&bench.store(), &index).is_empty());
}

/// What holds after any death or failure: there is a key, it is the old or the new one, and everything opens.
fn check_whole(bench: &Bench, index: &str, old: &str, context: &str) {
    let store = bench.store();
    let report = store.key_report();
    let current = report.current.unwrap();
    assert_eq!(current.problem, None, "{context}");
    let id = current.id.unwrap();
    assert!(report.previous.iter().all(|file| file.problem.is_none()), "{context}");
    assert!(id == old || ids(&report.previous).contains(&old), "{context}: the old key is gone");
    let found = read(&store, index).unwrap_or_else(|refusal| panic!("{context}: {}", refusal.text())).seq;
    assert_eq!(advance(&store, index).unwrap(), found + 1, "{context}");
    let done = store.rotate_key().unwrap_or_else(|refusal| panic!("{context}: {}", refusal.text()));
    assert_eq!(done.old, id, "{context}");
    assert!(read(&bench.store(), index).is_ok(), "{context}");
    let left: Vec<String> = names(&bench.options.key_dir).into_iter().filter(|name| name.contains(".tmp.")).collect();
    assert!(left.is_empty(), "{context}: {left:?}");
}

#[test]
fn a_rotation_that_dies_or_fails_anywhere_leaves_a_key_that_verifies() {
    use std::io::ErrorKind::{Other, PermissionDenied, ReadOnlyFilesystem, StorageFull};

    let mut faults = vec![Fault::DieBefore, Fault::DieAfter, Fault::DieHalfway];
    for kind in [Other, PermissionDenied, ReadOnlyFilesystem, StorageFull] {
        faults.extend([Fault::Refuse(kind), Fault::DoneButFailed(kind)]);
    }
    for fault in faults {
        let mut points = 0;
        loop {
            let bench = Bench::new();
            let index = start(&bench.store(), "a").unwrap();
            let old = bench.store().key_report().current.unwrap().id.unwrap();
            let (file_system, counter) = Faulty::new(fault, points);
            let outcome = bench.store_on(file_system).rotate_key();
            let context = format!("{fault:?} at {points}");
            let now = bench.store().key_report().current.unwrap().id.unwrap();
            match &outcome {
                Ok(done) => assert_eq!(now, done.new, "{context}"),
                Err(refusal) if refusal.details.get("changed") == Some(&false.into()) && !dies(fault) => {
                    assert_eq!(now, old, "{context}: {}", refusal.text());
                }
                Err(_) => {}
            }
            check_whole(&bench, &index, &old, &context);
            if !counter.has_struck() {
                break;
            }
            points += 1;
            assert!(points < 100, "this never ends");
        }
        assert!(points > 5, "{fault:?} struck only {points} times");
    }
}

fn dies(fault: Fault) -> bool {
    matches!(fault, Fault::DieBefore | Fault::DieAfter | Fault::DieHalfway)
}

#[cfg(unix)]
#[test]
fn what_cannot_be_replaced_is_not_rotated() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let bench = Bench::new();
    start(&bench.store(), "a").unwrap();
    let secret = bench.options.key_dir.join("secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(bench.store().rotate_key().unwrap_err().code, "KEY_PERMISSIONS");
    let file = bench.store().key_report().current.unwrap();
    assert_eq!((file.id, file.mode), (None, Some(0o644)));
    assert!(file.exposure.unwrap().contains("0644") && file.problem.is_some());

    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&secret, bench.base().join("mounted")).unwrap();
    symlink(bench.base().join("mounted"), &secret).unwrap();
    let mut open = bench.options.clone();
    open.allow_open_key = true;
    let store = workflow_store::FileStore::open(open).unwrap();
    let refused = store.rotate_key().unwrap_err();
    assert_eq!(refused.code, "KEY_PERMISSIONS");
    assert!(refused.message.contains("where it comes from"), "{}", refused.message);
    let file = store.key_report().current.unwrap();
    assert!(file.id.is_some() && file.exposure.is_some() && file.problem.is_none(), "{file:?}");

    fs::remove_file(&secret).unwrap();
    fs::write(&secret, [7; 31]).unwrap();
    crate::key::restrict(&secret);
    assert_eq!(bench.store().rotate_key().unwrap_err().code, "KEY_INVALID");
    assert_eq!(fs::read(&secret).unwrap().len(), 31);
}
