//! `session gc`: what goes from the state directory, and what stays (spec 03 §1.4).

use std::{fs, path::Path, time::Duration};

use workflow_engine::{Target, Timestamp};
use workflow_store::{Collected, FileStore, Leftover};

use crate::support::*;

const SLUG: &str = "transition-0f8fad5b-d9cb-469f-a165-70867728950e";
const MONTH: Duration = Duration::from_hours(30 * 24);

fn transient(store: &FileStore) -> String {
    start_at(store, &Target::Slug { slug: SLUG.to_owned(), minted: true, transient: true, parent: None }, "meta")
        .unwrap()
}

fn aged(path: &Path, age: Duration) {
    let file = fs::File::open(path).unwrap();
    file.set_modified(std::time::SystemTime::now() - age).unwrap();
}

/// What is looked at, in short.
fn seen(collected: &[Collected]) -> Vec<(Leftover, &str, bool, bool)> {
    collected.iter().map(|one| (one.what, one.slug.as_str(), one.kept_because.is_none(), one.removed)).collect()
}

#[test]
fn a_session_goes_with_its_trace_and_its_mark() {
    let bench = Bench::new();
    let store = bench.store();
    let index = transient(&store);
    let state = &bench.options.state_dir;
    store.append_trace(&index, &serde_json::json!({"name": "x"})).unwrap();
    let rest = [state.join(format!("seen/{index}.json")), state.join(format!("trace/{index}.jsonl"))];
    assert!(rest.iter().all(|path| path.exists()), "{rest:?}");
    let later = Timestamp(NOW.0 + 31 * 86_400_000);
    let planned = store.collect_transient(MONTH, later, false).unwrap();
    assert_eq!(seen(&planned), [(Leftover::Session, SLUG, true, false)]);
    assert_eq!(planned[0].reason, "last used 31 days ago");
    assert_eq!(planned[0].workflow_id.as_deref(), Some("meta"));
    assert!(rest.iter().all(|path| path.exists()) && read(&bench.store(), &index).is_ok());
    let done = store.collect_transient(MONTH, later, true).unwrap();
    assert_eq!(seen(&done), [(Leftover::Session, SLUG, true, true)]);
    assert!(rest.iter().all(|path| !path.exists()));
    assert!(store.collect_transient(MONTH, later, true).unwrap().is_empty());
}

#[test]
fn notes_go_when_they_lead_nowhere_and_are_old() {
    let bench = Bench::new();
    start(&bench.store(), "alpha").unwrap();
    let dir = bench.options.state_dir.join("transient");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("transition-a.moved"), bench.folder("alpha").display().to_string()).unwrap();
    fs::write(dir.join("transition-b.moved"), bench.folder("gone").display().to_string()).unwrap();
    fs::write(dir.join("letter.txt"), "not ours").unwrap();
    let now = Timestamp(
        i64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()).unwrap(),
    );
    let young = bench.store().collect_transient(MONTH, now, true).unwrap();
    assert_eq!(seen(&young), [(Leftover::Note, "transition-b.moved", false, false)]);
    let later = Timestamp(now.0 + 31 * 86_400_000);
    let old = bench.store().collect_transient(MONTH, later, true).unwrap();
    assert_eq!(seen(&old), [(Leftover::Note, "transition-b.moved", true, true)]);
    assert!(old[0].reason.contains("gone"), "{}", old[0].reason);
    assert_eq!(names(&dir), ["letter.txt", "transition-a.moved"]);
}

#[test]
fn staged_files_go_after_an_hour_and_planning_folders_are_not_looked_into() {
    let bench = Bench::new();
    start(&bench.store(), "alpha").unwrap();
    let state = &bench.options.state_dir;
    let staged = [
        state.join("secret.tmp.w-1-00"),
        state.join("seen/ABCDEF.json.tmp.w-1-00"),
        bench.folder("alpha").join("session.json.tmp.w-1-00"),
    ];
    for path in &staged {
        fs::write(path, "half").unwrap();
    }
    assert!(bench.store().collect_transient(Duration::ZERO, NOW, true).unwrap().is_empty(), "they are new");
    for path in &staged {
        aged(path, Duration::from_hours(2));
    }
    let done = bench.store().collect_transient(Duration::ZERO, NOW, true).unwrap();
    assert_eq!(
        seen(&done),
        [(Leftover::Staged, "secret.tmp.w-1-00", true, true), (Leftover::Staged, "ABCDEF.json.tmp.w-1-00", true, true)]
    );
    assert_eq!(staged.iter().map(|path| path.exists()).collect::<Vec<_>>(), [false, false, true]);
    assert!(bench.options.key_dir.join("secret").exists());
}

#[test]
fn what_does_not_open_or_is_held_stays() {
    let bench = Bench::new();
    let store = bench.store();
    transient(&store);
    let folder = bench.options.state_dir.join("transient").join(SLUG);
    fs::write(folder.join("session.json"), "{}").unwrap();
    let later = Timestamp(NOW.0 + 31 * 86_400_000);
    let kept = store.collect_transient(MONTH, later, true).unwrap();
    assert_eq!(seen(&kept), [(Leftover::Session, SLUG, false, false)]);
    assert!(kept[0].kept_because.as_deref().unwrap().contains("SEAL_MISMATCH"), "{kept:?}");

    let other = bench.options.state_dir.join("transient/notes");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("text"), "mine").unwrap();
    let kept = store.collect_transient(MONTH, later, true).unwrap();
    assert_eq!(seen(&kept)[0], (Leftover::Folder, "notes", false, false));
    assert!(other.join("text").exists() && !other.join("session.json").exists());
}

#[test]
fn a_folder_that_never_got_a_session_goes_after_an_hour() {
    let bench = Bench::new();
    let folder = bench.options.state_dir.join("transient").join(SLUG);
    fs::create_dir_all(&folder).unwrap();
    let kept = bench.store().collect_transient(Duration::ZERO, NOW, true).unwrap();
    assert_eq!(seen(&kept), [(Leftover::Folder, SLUG, false, false)]);
    aged(&folder, Duration::from_hours(2));
    let gone = bench.store().collect_transient(Duration::ZERO, NOW, true).unwrap();
    assert_eq!(seen(&gone), [(Leftover::Folder, SLUG, true, true)]);
    assert!(!folder.exists());
}
