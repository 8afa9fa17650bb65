//! Threads and processes on one session: acknowledged = kept (spec 03 §3.7, Appendix A).

use std::{
    env,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use workflow_engine::Target;
use workflow_store::{FileStore, Options, SessionStore as _};

use crate::support::*;

const WRITES: u64 = 25;

#[test]
fn hazard_h05_threads_lose_no_write() {
    let bench = Bench::new();
    let shared = bench.store();
    let index = start(&shared, "one").unwrap();
    let acknowledged = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (bench, shared, index, acknowledged) = (&bench, &shared, &index, &acknowledged);
            scope.spawn(move || {
                let own = bench.store();
                let store = if thread % 2 == 0 { shared } else { &own };
                for _ in 0..WRITES {
                    advance(store, index).unwrap();
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                    read(store, index).unwrap();
                }
            });
        }
    });
    assert_eq!(read(&bench.store(), &index).unwrap().seq, acknowledged.load(Ordering::SeqCst));
}

#[test]
fn hazard_h05_processes_lose_no_write() {
    let bench = Bench::new();
    let index = start(&bench.store(), "two").unwrap();
    let mut writers: Vec<_> = (0..3)
        .map(|_| {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", "race::writer_process"])
                .env("STORE_TEST_WORKSPACE", &bench.options.workspace)
                .env("STORE_TEST_STATE", &bench.options.state_dir)
                .env("STORE_TEST_INDEX", &index)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }
    assert_eq!(read(&bench.store(), &index).unwrap().seq, 3 * WRITES);
}

/// The body of the other process; does nothing when run as a test of its own.
#[test]
fn writer_process() {
    let (Ok(workspace), Ok(state), Ok(index)) =
        (env::var("STORE_TEST_WORKSPACE"), env::var("STORE_TEST_STATE"), env::var("STORE_TEST_INDEX"))
    else {
        println!("only the body of another process's part of a test");
        return;
    };
    let store = FileStore::open(Options::new(workspace, state)).unwrap();
    for _ in 0..WRITES {
        advance(&store, &index).unwrap();
    }
}

#[test]
fn one_slug_started_by_many_is_one_session() {
    // Each round begins without a planning root, which all of them make.
    for _ in 0..20 {
        let bench = Bench::new();
        let indexes: Vec<String> = thread::scope(|scope| {
            let starts: Vec<_> = (0..6).map(|_| scope.spawn(|| start(&bench.store(), "same").unwrap())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(indexes.iter().all(|index| *index == indexes[0]), "{indexes:?}");
    }
}

#[test]
fn refused_starts_leave_no_folder_and_no_broken_lock() {
    let bench = Bench::new();
    thread::scope(|scope| {
        for thread in 0..6 {
            let bench = &bench;
            scope.spawn(move || {
                let store = bench.store();
                for _ in 0..10 {
                    if thread % 2 == 0 {
                        let refuse = workflow_engine::Refusal::new("WORKFLOW_NOT_FOUND", "no such workflow");
                        let refused = store.transaction(&slug("same"), &mut |_| Err(refuse.clone())).unwrap_err();
                        assert_eq!(refused.code, "WORKFLOW_NOT_FOUND");
                    } else {
                        let index = start(&store, "same").unwrap();
                        advance(&store, &index).unwrap();
                    }
                }
            });
        }
    });
    let store = bench.store();
    assert_eq!(read(&store, &start(&store, "same").unwrap()).unwrap().seq, 30);
}

#[test]
fn two_folders_are_held_in_one_order() {
    let bench = Bench::new();
    let parent = start(&bench.store(), "parent").unwrap();
    let child = |name: &str| Target::Slug {
        slug: name.to_owned(),
        minted: false,
        transient: false,
        parent: Some("parent".to_owned()),
    };
    thread::scope(|scope| {
        for thread in 0..4 {
            let (bench, parent, child) = (&bench, &parent, &child);
            scope.spawn(move || {
                let store = bench.store();
                for _ in 0..10 {
                    // `a…` sorts before the parent, `z…` behind it.
                    let target = child(if thread % 2 == 0 { "a-child" } else { "z-child" });
                    store
                        .transaction(&target, &mut |workset| {
                            begin(&store, "mini", workset);
                            workset.families[1].root.as_mut().unwrap().advance(NOW);
                            Ok(reply())
                        })
                        .unwrap();
                    read(&store, parent).unwrap();
                }
            });
        }
    });
    assert_eq!(read(&bench.store(), &parent).unwrap().seq, 40);
}
