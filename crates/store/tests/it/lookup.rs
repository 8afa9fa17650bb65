//! Finding and making folders (spec 03 §1.2, §1.5, §1.8, §1.10).

use std::fs;

use proptest::prelude::*;
use workflow_engine::{Refusal, Registry as _, Target};
use workflow_store::{FileStore, SessionStore as _};

use crate::support::*;

#[test]
fn files_are_private_and_git_is_told() {
    let bench = Bench::new();
    fs::create_dir_all(bench.planning()).unwrap();
    fs::write(bench.planning().join(".gitignore"), "*.log\n.session.lock").unwrap();
    start(&bench.store(), "a").unwrap();
    let ignored = fs::read_to_string(bench.planning().join(".gitignore")).unwrap();
    assert_eq!(ignored, "*.log\n.session.lock\n.session-token.pending\n*.tmp.*\n");
    start(&bench.store(), "b").unwrap();
    assert_eq!(fs::read_to_string(bench.planning().join(".gitignore")).unwrap(), ignored);
    assert_eq!(names(&bench.folder("a")), [".session-token", ".session.lock", "session.json"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(bench.folder("a")), 0o700);
        for name in names(&bench.folder("a")) {
            assert_eq!(mode(bench.folder("a").join(&name)), 0o600, "{name}");
        }
    }
}

#[test]
fn slugs_of_new_folders_are_plain_and_have_no_twin() {
    let bench = Bench::new();
    start(&bench.store(), "Alpha").unwrap();
    for (name, code) in [
        ("", "INVALID_SLUG"),
        ("..", "INVALID_SLUG"),
        ("a/b", "INVALID_SLUG"),
        ("two words", "INVALID_SLUG"),
        ("dot.", "INVALID_SLUG"),
        ("NUL", "INVALID_SLUG"),
        ("com1.txt", "INVALID_SLUG"),
        ("alpha", "INVALID_SLUG"),
        ("transition-0e7a1c2d-1111-4222-8333-444455556666", "SESSION_NOT_FOUND"),
    ] {
        assert_eq!(start(&bench.store(), name).unwrap_err().code, code, "{name}");
    }
    let twin = start(&bench.store(), "ALPHA").unwrap_err();
    assert_eq!(detail(&twin, "twin"), "Alpha");
    assert_eq!(names(&bench.planning()), [".gitignore", "Alpha"]);
}

#[test]
fn odd_folders_that_exist_are_resumed() {
    let bench = Bench::new();
    for odd in ["two words", ".hidden", "\u{fc}ber"] {
        start(&bench.store(), "plain").unwrap();
        fs::rename(bench.folder("plain"), bench.folder(odd)).unwrap();
        bench.store().adopt(odd).unwrap();
        let index = start(&bench.store(), odd).unwrap();
        assert_eq!(bench.store().read(&slug(odd)).unwrap().session().unwrap().session_index, index);
    }
}

#[test]
fn one_slug_at_two_depths_is_a_collision() {
    let bench = Bench::new();
    let index = start(&bench.store(), "x").unwrap();
    fs::create_dir_all(bench.folder("group")).unwrap();
    fs::rename(bench.folder("x"), bench.folder("group/x")).unwrap();
    bench.store().adopt("group/x").unwrap();
    assert_eq!(start(&bench.store(), "x").unwrap(), index, "found by name at any depth");
    copy_dir(&bench.folder("group/x"), &bench.folder("x"));
    let refused = start(&bench.store(), "x").unwrap_err();
    assert_eq!(refused.code, "SLUG_COLLISION");
    for folder in [bench.folder("x"), bench.folder("group/x")] {
        assert!(refused.message.contains(folder.to_str().unwrap()), "{}", refused.message);
    }
}

#[test]
fn two_bare_copies_are_a_collision() {
    let bench = Bench::new();
    let index = start(&bench.store(), "x").unwrap();
    bench.store().migrate_to_original("x").unwrap();
    copy_dir(&bench.folder("x"), &bench.folder("y"));
    for refused in [read(&bench.store(), &index).unwrap_err(), advance(&bench.store(), &index).unwrap_err()] {
        assert_eq!(refused.code, "SESSION_COLLISION");
        assert!(refused.message.contains("workflow-server session adopt"), "{}", refused.message);
    }
    // A write through the slug envelopes one of them; then the other one is the copy.
    assert_eq!(start(&bench.store(), "x").unwrap(), index);
    bench
        .store()
        .transaction(&slug("x"), &mut |workset| {
            workset.session_mut().unwrap().advance(NOW);
            Ok(reply())
        })
        .unwrap();
    assert_eq!(advance(&bench.store(), &index).unwrap(), 2);
}

#[cfg(unix)]
#[test]
fn links_out_of_the_planning_root_are_refused() {
    use std::os::unix::fs::symlink;

    let bench = Bench::new();
    fs::create_dir_all(bench.planning()).unwrap();
    let outside = bench.base().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, bench.folder("away")).unwrap();
    symlink(bench.base().join("nowhere"), bench.folder("dangling")).unwrap();
    for name in ["away", "dangling"] {
        assert_eq!(start(&bench.store(), name).unwrap_err().code, "PATH_ESCAPE", "{name}");
    }
    assert!(names(&outside).is_empty());
    let mut elsewhere = bench.options.clone();
    elsewhere.planning_dir = Some("../outside".to_owned());
    assert_eq!(start(&FileStore::open(elsewhere).unwrap(), "a").unwrap_err().code, "PATH_ESCAPE");
}

#[test]
fn roots_must_be_absolute_and_there() {
    let bench = Bench::new();
    let mut options = bench.options.clone();
    options.workspace = "relative".into();
    assert_eq!(FileStore::open(options.clone()).unwrap_err().code, "WORKSPACE_INVALID");
    options.workspace = bench.base().join("missing");
    let store = FileStore::open(options).unwrap();
    assert_eq!(start(&store, "a").unwrap_err().code, "WORKSPACE_INVALID");
    assert_eq!(store.problems().len(), 1);
    // A file where a folder should be is as bad.
    fs::create_dir_all(bench.planning().parent().unwrap()).unwrap();
    fs::write(bench.planning(), "").unwrap();
    assert_eq!(bench.store().problems().len(), 1);
    assert_eq!(start(&bench.store(), "a").unwrap_err().code, "WRITE_FAILED");
}

#[test]
fn a_refused_call_leaves_no_folder() {
    let bench = Bench::new();
    let refusal = Refusal::new("WORKFLOW_NOT_FOUND", "no such workflow");
    let outcome = bench.store().transaction(&slug("a"), &mut |_| Err(refusal.clone()));
    assert_eq!(outcome.unwrap_err(), refusal);
    assert!(!bench.folder("a").exists());
    fs::create_dir_all(bench.folder("b")).unwrap();
    fs::write(bench.folder("b").join("notes.md"), "mine").unwrap();
    assert!(bench.store().transaction(&slug("b"), &mut |_| Err(refusal.clone())).is_err());
    assert!(bench.folder("b").join("notes.md").exists());
    assert!(start(&bench.store(), "b").is_ok());
}

#[test]
fn a_cancelled_call_has_no_effect() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    let cancelled = store.transaction_unless(&at(&index), &|| true, &mut |workset| {
        workset.session_mut().unwrap().advance(NOW);
        Ok(reply())
    });
    assert_eq!(cancelled.unwrap_err().code, "CANCELLED");
    assert_eq!(read(&store, &index).unwrap().seq, 0);
}

#[test]
fn a_call_cancelled_after_its_commit_has_its_effect() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    let asked = std::cell::Cell::new(0);
    // The client gives up as soon as it has been asked for the last time.
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() > 1
    };
    let outcome = store.transaction_unless(&at(&index), &cancelled, &mut |workset| {
        workset.session_mut().unwrap().advance(NOW);
        Ok(reply())
    });
    outcome.unwrap();
    assert_eq!((asked.get(), read(&bench.store(), &index).unwrap().seq), (1, 1));
}

#[test]
fn what_does_not_change_is_not_written() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    bench.store().migrate_to_original("a").unwrap();
    let before = seal(&bench.folder("a"));
    store.transaction(&at(&index), &mut |_| Ok(reply())).unwrap();
    assert_eq!(seal(&bench.folder("a")), before, "a bare seal is replaced by a real write only");
    advance(&store, &index).unwrap();
    assert!(seal(&bench.folder("a")).starts_with("wst1."));
}

/// Something that takes no lock writes between reading and committing.
#[test]
fn a_state_that_moved_is_read_again_and_then_refused() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    let folder = bench.folder("a");
    let (mut calls, mut seen) = (0, Vec::new());
    let saved = bench.base().join("saved");
    advance(&store, &index).unwrap();
    copy_dir(&folder, &saved);
    advance(&store, &index).unwrap();
    let outcome = store.transaction(&at(&index), &mut |workset| {
        calls += 1;
        let session = workset.session_mut().unwrap();
        seen.push(session.seq);
        session.advance(NOW);
        if calls == 1 {
            copy_dir(&saved, &folder);
        }
        Ok(reply())
    });
    outcome.unwrap();
    assert_eq!(seen, [2, 1]);
    assert_eq!(read(&store, &index).unwrap().seq, 2);
    let mut turn = 0;
    let refused = store
        .transaction(&at(&index), &mut |workset| {
            turn += 1;
            workset.session_mut().unwrap().advance(NOW);
            let file = folder.join(".session-token");
            fs::write(&file, format!("{}\n", fs::read_to_string(&file).unwrap())).unwrap();
            Ok(reply())
        })
        .unwrap_err();
    assert_eq!((refused.code, refused.retryable, turn), ("STATE_MOVED", true, 3));
    assert_eq!(names(&folder), [".session-token", ".session.lock", "session.json"]);
}

#[test]
fn own_folder_children_are_found_by_their_parent() {
    let bench = Bench::new();
    let store = bench.store();
    let parent = start(&store, "parent").unwrap();
    let target =
        Target::Slug { slug: "child".to_owned(), minted: false, transient: false, parent: Some("parent".to_owned()) };
    let mut child = String::new();
    store
        .transaction(&target, &mut |workset| {
            assert_eq!(workset.families.len(), 2);
            child = begin(&store, "mini", workset);
            let snapshot = workset.families[1].root.clone().map(Box::new);
            workset.families[0].root.as_mut().unwrap().parent_session = snapshot;
            Ok(reply())
        })
        .unwrap();
    assert_eq!(bench.store().children_of(&parent), [child.clone()]);
    assert_eq!(bench.store().find(&child).unwrap().session().unwrap().session_index, child);
    // The parent comes along when the child may end, and when it is resumed.
    for target in [Target::Session { index: child.clone(), parent: true }, slug("child"), target.clone()] {
        let mut slugs = Vec::new();
        bench
            .store()
            .transaction(&target, &mut |workset| {
                slugs = workset.families.iter().map(|family| family.folder.slug.clone()).collect();
                Ok(reply())
            })
            .unwrap();
        assert_eq!(slugs, ["child", "parent"], "{target:?}");
    }
    // A parent that does not open keeps no child from working.
    fs::remove_file(bench.folder("parent/.session-token")).unwrap();
    let ending = Target::Session { index: child.clone(), parent: true };
    bench
        .store()
        .transaction(&ending, &mut |workset| {
            assert_eq!(workset.families.len(), 1);
            Ok(reply())
        })
        .unwrap();
    let orphan = |name: &str, parent: &str| Target::Slug {
        slug: name.to_owned(),
        minted: false,
        transient: false,
        parent: Some(parent.to_owned()),
    };
    assert_eq!(start_at(&bench.store(), &orphan("other", "parent"), "mini").unwrap_err().code, "SEAL_MISSING");
    assert_eq!(start_at(&bench.store(), &orphan("other", "nobody"), "mini").unwrap_err().code, "PARENT_NOT_FOUND");
    assert!(!bench.folder("other").exists());
    let mut codes = Vec::new();
    bench
        .store()
        .transaction(&orphan("child", "nobody"), &mut |workset| {
            codes = workset.warnings.iter().map(|warning| warning.code).collect();
            Ok(reply())
        })
        .unwrap();
    assert_eq!(codes, ["W_PARENT_NOT_FOUND"]);
}

#[test]
fn the_registry_answers_inside_a_transaction() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    store
        .transaction(&at(&index), &mut |workset| {
            assert!(store.is_taken(&index));
            assert_eq!(store.find(&index).unwrap().session(), workset.session());
            assert!(store.find("ABCDEF").is_none());
            Ok(reply())
        })
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Spec 04 §3.3: every folder we create is found by a fresh process started with the same configuration.
    #[test]
    fn every_folder_we_create_is_found_by_a_fresh_store(
        name in "[A-Za-z0-9][A-Za-z0-9._-]{0,30}",
        split in any::<bool>(),
        planning in proptest::option::of("[a-z]{1,8}(/[a-z]{1,8}){0,3}"),
        transient in any::<bool>(),
    ) {
        let mut bench = Bench::new();
        if split {
            let engineering = bench.base().join("engineering");
            fs::create_dir(&engineering).unwrap();
            bench.options.engineering_dir = Some(engineering);
        }
        bench.options.planning_dir = planning;
        let target = if transient {
            let slug = "transition-0e7a1c2d-1111-4222-8333-444455556666".to_owned();
            Target::Slug { slug, minted: true, transient, parent: None }
        } else {
            slug(&name)
        };
        if let Ok(index) = start_at(&bench.store(), &target, "mini") {
            prop_assert_eq!(&read(&bench.store(), &index).unwrap().session_index, &index);
            let Target::Slug { slug: used, .. } = target else { unreachable!() };
            prop_assert_eq!(start(&bench.store(), &used).unwrap(), index.clone());
            prop_assert_eq!(advance(&bench.store(), &index).unwrap(), 1);
            prop_assert_eq!(bench.store().sessions().unwrap().len(), 1);
        } else {
            prop_assert!(!transient && workflow_engine::slug::check_new(&name).is_err());
        }
    }
}
