//! Links, pipes and swapped folders in every place that a call looks at: nothing outside is read into an answer, written
//! or removed.

#![cfg(unix)]

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use workflow_engine::state::Session;
use workflow_store::{Entry, FileStore, FileSystem, Open, OpenFile, OsFileSystem, Stat};

use crate::support::*;

const FILES: [&str; 4] = ["session.json", ".session-token", ".session-token.pending", ".session.lock"];

/// Every file below a directory with its bytes.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            found.extend(snapshot(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}

fn all_calls(store: &FileStore, index: &str) -> Vec<Result<(), String>> {
    let text = |refused: workflow_engine::Refusal| format!("{refused:?}");
    vec![
        read(store, index).map(drop).map_err(text),
        advance(store, index).map(drop).map_err(text),
        start(store, "a").map(drop).map_err(text),
        store.adoption("a").map(drop).map_err(text),
        store.sessions().map(drop).map_err(text),
    ]
}

/// Each file of a session as a link to its own content outside, to a secret, to nothing, and as a directory.
#[test]
fn hazard_h01_no_file_of_a_session_is_read_or_written_through_a_link() {
    for name in FILES {
        for kind in ["moved", "secret", "dangling", "directory"] {
            let bench = Bench::new();
            let index = start(&bench.store(), "a").unwrap();
            let outside = bench.base().join("outside");
            fs::create_dir(&outside).unwrap();
            let secret = "5ec2e7".repeat(11)[..64].to_owned();
            fs::write(outside.join("secret"), &secret).unwrap();
            let path = bench.folder("a").join(name);
            let was_there = fs::read(&path).ok();
            drop(fs::remove_file(&path));
            fs::write(outside.join("moved"), was_there.unwrap_or_default()).unwrap();
            match kind {
                "directory" => fs::create_dir(&path).unwrap(),
                name => symlink(outside.join(name), &path).unwrap(),
            }
            let before = snapshot(&outside);
            for outcome in all_calls(&bench.store(), &index) {
                if let Err(told) = outcome {
                    assert!(!told.contains(&secret), "{name} {kind}: {told}");
                }
            }
            assert_eq!(snapshot(&outside), before, "{name} {kind}");
            if name == "session.json" {
                assert!(read(&bench.store(), &index).is_err(), "{kind}");
            }
        }
    }
}

/// The places in the state directory whose names a caller influences.
#[test]
fn hazard_h01_no_trace_note_or_record_is_written_through_a_link() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let outside = bench.base().join("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["trace", "seen", "moved"] {
        fs::write(outside.join(name), name).unwrap();
    }
    let state = &bench.options.state_dir;
    fs::create_dir_all(state.join("trace")).unwrap();
    symlink(outside.join("trace"), state.join("trace").join(format!("{index}.jsonl"))).unwrap();
    let seen = state.join("seen").join(format!("{index}.json"));
    fs::remove_file(&seen).unwrap();
    symlink(outside.join("seen"), &seen).unwrap();
    fs::create_dir_all(state.join("transient")).unwrap();
    symlink(outside.join("moved"), state.join("transient/a.moved")).unwrap();
    let before = snapshot(&outside);
    let store = bench.store();
    assert!(store.append_trace(&index, &serde_json::json!({"name": "x"})).is_err());
    assert!(workflow_engine::TraceLog::read(&store, &index).events.is_empty());
    assert_eq!(advance(&store, &index).unwrap(), 1);
    assert_eq!(start(&store, "a").unwrap(), index);
    for name in ["../../outside/trace", "ABCDE", "ABCDE2/../../outside", ""] {
        assert!(store.append_trace(name, &serde_json::json!({})).is_err(), "{name}");
    }
    assert_eq!(snapshot(&outside), before);
}

/// The real disk, on which somebody puts a link to another folder into the place of a session's at the n-th operation.
#[derive(Debug)]
struct Swapping {
    folder: PathBuf,
    outside: PathBuf,
    at: usize,
    done: AtomicUsize,
}

impl Swapping {
    fn step(&self) {
        if self.done.fetch_add(1, Ordering::SeqCst) == self.at {
            fs::rename(&self.folder, self.folder.with_extension("away")).unwrap();
            symlink(&self.outside, &self.folder).unwrap();
        }
    }
}

impl FileSystem for Swapping {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        self.step();
        OsFileSystem.open(path, how)
    }

    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        self.step();
        OsFileSystem.read_from(path, offset)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.step();
        OsFileSystem.stat(path)
    }

    fn stat_link(&self, path: &Path) -> io::Result<Stat> {
        self.step();
        OsFileSystem.stat_link(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.step();
        OsFileSystem.list(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.step();
        OsFileSystem.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step();
        OsFileSystem.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step();
        OsFileSystem.hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step();
        OsFileSystem.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.step();
        OsFileSystem.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step();
        OsFileSystem.sync_dir(path)
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.step();
        OsFileSystem.canonicalize(path)
    }

    fn now(&self) -> SystemTime {
        OsFileSystem.now()
    }
}

/// Whenever the swap happens, no state or seal outside changes, and no answer shows what lies there.
#[test]
fn hazard_h01_a_folder_swapped_for_a_link_between_check_and_use_changes_nothing_outside() {
    let mut swapped = 0;
    for at in 0..400 {
        let bench = Bench::new();
        let index = start(&bench.store(), "a").unwrap();
        let outside = bench.base().join("outside");
        fs::create_dir(&outside).unwrap();
        let other = session("BBBBBB", "secret-workflow").canonical_text();
        fs::write(outside.join("session.json"), &other).unwrap();
        fs::write(outside.join(".session-token"), "0".repeat(64)).unwrap();
        let swapping =
            Arc::new(Swapping { folder: bench.folder("a"), outside: outside.clone(), at, done: AtomicUsize::new(0) });
        let file_system: Arc<dyn FileSystem> = swapping.clone();
        let store = bench.store_on(file_system);
        let told =
            format!("{:?} {:?}", advance(&store, &index), read(&store, &index).map(|session: Session| session.seq));
        assert!(!told.contains("secret-workflow"), "{at}: {told}");
        assert_eq!(fs::read_to_string(outside.join("session.json")).unwrap(), other, "{at}");
        assert_eq!(fs::read_to_string(outside.join(".session-token")).unwrap(), "0".repeat(64), "{at}");
        if swapping.done.load(Ordering::SeqCst) <= at {
            break;
        }
        swapped += 1;
    }
    assert!((20..400).contains(&swapped), "{swapped}");
}

/// Nothing that is made is open to other users.
#[test]
fn whatever_is_made_is_private() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    advance(&store, &index).unwrap();
    store.append_trace(&index, &serde_json::json!({"name": "x"})).unwrap();
    let mut waiting = vec![bench.options.workspace.join(".engineering"), bench.options.state_dir.clone()];
    let mut looked = 0;
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
        if metadata.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        looked += 1;
    }
    assert!(looked >= 10, "{looked}");
}
