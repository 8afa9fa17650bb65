//! Transient sessions and their promotion (spec 03 §1.4, §5.5).

use std::{fs, time::Duration};

use workflow_engine::{Refusal, Reply, Target, Workset};
use workflow_store::{FileStore, SessionStore as _};

use crate::support::*;

const MINTED: &str = "transition-0e7a1c2d-1111-4222-8333-444455556666";

fn transient(store: &FileStore) -> String {
    let target = Target::Slug { slug: MINTED.to_owned(), minted: true, transient: true, parent: None };
    start_at(store, &target, "meta").unwrap()
}

fn dispatch(
    store: &FileStore,
    index: &str,
    slug: Option<&str>,
    apply: &mut dyn FnMut(&mut Workset) -> Result<Reply, Refusal>,
) -> Result<Reply, Refusal> {
    let target =
        Target::Dispatch { index: index.to_owned(), slug: slug.map(str::to_owned), fallback: "2026-work".to_owned() };
    store.transaction(&target, apply)
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a transaction applies")]
fn promote(workset: &mut Workset) -> Result<Reply, Refusal> {
    let mut root = workset.families[0].root.take().unwrap();
    root.planning_folder_path = Some(workset.families[1].folder.path.clone());
    root.advance(NOW);
    workset.families[1].root = Some(root);
    Ok(reply())
}

#[test]
fn a_transient_session_is_found_again_by_index_and_slug() {
    let bench = Bench::new();
    let index = transient(&bench.store());
    let folder = bench.options.state_dir.join("transient").join(MINTED);
    assert!(folder.join("session.json").exists());
    assert!(!bench.planning().exists());
    assert_eq!(start(&bench.store(), MINTED).unwrap(), index);
    assert_eq!(advance(&bench.store(), &index).unwrap(), 1);
}

#[test]
fn promotion_moves_the_session_and_keeps_slug_and_index() {
    let bench = Bench::new();
    let store = bench.store();
    let index = transient(&store);
    dispatch(&store, &index, Some("topic"), &mut promote).unwrap();
    assert_eq!(names(&bench.options.state_dir.join("transient")), [format!("{MINTED}.moved")]);
    for store in [&store, &bench.store()] {
        let workset = store.read(&at(&index)).unwrap();
        assert_eq!(workset.families[0].folder.slug, "topic");
        assert!(!workset.families[0].folder.transient);
        assert_eq!(start(store, MINTED).unwrap(), index);
    }
    // The minted slug still names the parent.
    let child =
        Target::Slug { slug: "child".to_owned(), minted: false, transient: false, parent: Some(MINTED.to_owned()) };
    bench
        .store()
        .transaction(&child, &mut |workset| {
            assert_eq!(workset.families[1].folder.slug, "topic");
            Err(Refusal::new("X", "only looking"))
        })
        .unwrap_err();
}

#[test]
fn an_unnamed_target_is_free_and_a_named_one_may_be_occupied() {
    let bench = Bench::new();
    let store = bench.store();
    let other = start(&store, "2026-work").unwrap();
    start(&store, "2026-WORK-2").unwrap();
    let index = transient(&store);
    let mut target = String::new();
    dispatch(&store, &index, None, &mut |workset| {
        target.clone_from(&workset.families[1].folder.slug);
        assert!(workset.families[1].root.is_none());
        Err(Refusal::new("X", "only looking"))
    })
    .unwrap_err();
    assert_eq!(target, "2026-work-3", "neither an occupied name nor a twin of one");
    assert!(!bench.folder(&target).exists());
    dispatch(&store, &index, Some("2026-work"), &mut |workset| {
        assert_eq!(workset.families[1].root.as_ref().unwrap().session_index, other);
        Err(Refusal::new("X", "only looking"))
    })
    .unwrap_err();
    let refused = dispatch(&store, &index, Some("2026-work"), &mut promote).unwrap_err();
    assert_eq!(refused.code, "SLUG_IN_USE");
    assert_eq!(read(&bench.store(), &other).unwrap().workflow_id, "mini");
    assert_eq!(read(&bench.store(), &index).unwrap().seq, 0);
    dispatch(&store, &index, Some("2026-work"), &mut |workset| {
        workset.families[1].replaced = true;
        promote(workset)
    })
    .unwrap();
    assert_eq!(read(&bench.store(), &index).unwrap().seq, 1);
    assert!(bench.folder("2026-work").join("session.0.bak.json").exists());
}

#[test]
fn a_dispatch_from_a_planning_session_needs_one_folder() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    dispatch(&bench.store(), &index, None, &mut |workset| {
        assert_eq!(workset.families.len(), 1);
        Ok(reply())
    })
    .unwrap();
}

/// A session in both places is the planning one; the copy goes with the next call.
#[test]
fn a_copy_that_an_interrupted_promotion_left_goes() {
    let bench = Bench::new();
    let store = bench.store();
    let index = transient(&store);
    let folder = bench.options.state_dir.join("transient").join(MINTED);
    copy_dir(&folder, &bench.base().join("copy"));
    dispatch(&store, &index, Some("topic"), &mut promote).unwrap();
    for (by_slug, find) in [(false, index.as_str()), (true, MINTED)] {
        copy_dir(&bench.base().join("copy"), &folder);
        fs::remove_file(bench.options.state_dir.join("transient").join(format!("{MINTED}.moved"))).ok();
        let target = if by_slug { slug(find) } else { at(find) };
        bench
            .store()
            .transaction(&target, &mut |workset| {
                assert_eq!(workset.families[0].folder.slug, "topic");
                Ok(reply())
            })
            .unwrap();
        assert!(!folder.exists(), "{find}");
        assert_eq!(start(&bench.store(), MINTED).unwrap(), index);
    }
}

#[test]
fn an_unwritable_state_directory_opens_no_session() {
    let bench = Bench::new();
    fs::create_dir(&bench.options.state_dir).unwrap();
    fs::write(bench.options.state_dir.join("transient"), "in the way").unwrap();
    let target = Target::Slug { slug: MINTED.to_owned(), minted: true, transient: true, parent: None };
    assert_eq!(start_at(&bench.store(), &target, "meta").unwrap_err().code, "WRITE_FAILED");
}

#[test]
fn only_gc_removes_a_transient_session() {
    let bench = Bench::new();
    let index = transient(&bench.store());
    let later = workflow_engine::Timestamp(NOW.0 + 3_600_000);
    let kept = bench.store().collect_transient(Duration::from_hours(2), later, true).unwrap();
    assert!(!kept[0].removed && kept[0].kept_because.is_some());
    let shown = bench.store().collect_transient(Duration::from_mins(30), later, false).unwrap();
    assert_eq!((shown[0].removed, shown[0].kept_because.as_deref()), (false, None));
    assert!(read(&bench.store(), &index).is_ok());
    let removed = bench.store().collect_transient(Duration::from_mins(30), later, true).unwrap();
    assert!(removed[0].removed);
    assert_eq!(removed[0].session_index.as_deref(), Some(index.as_str()));
    assert_eq!(read(&bench.store(), &index).unwrap_err().code, "SESSION_NOT_FOUND");
    assert_eq!(start(&bench.store(), MINTED).unwrap_err().code, "SESSION_NOT_FOUND");
}
