//! A pair of state and seal opens only when it is the one that was written: any other state, any other seal, edits of
//! either, swapped parts are refused, by reading, writing and adopting alike, and stay as they are.
#![no_main]

use std::{fs, path::PathBuf, sync::OnceLock};

use serde_json::Map;
use workflow_engine::{Reply, Target, Timestamp};
use workflow_fuzz::{edited, scratch, stages};
use workflow_store::{FileStore, Options, SessionStore as _};

struct Bench {
    options: Options,
    folder: PathBuf,
    state: String,
    seal: String,
    index: String,
}

fn bench() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(|| {
        let base = scratch().canonicalize().expect("a directory");
        fs::create_dir(base.join("ws")).expect("a directory");
        let options = Options::new(base.join("ws"), base.join("state"));
        let store = FileStore::open(options.clone()).expect("a store");
        let target = Target::Slug { slug: "alpha".to_owned(), minted: false, transient: false, parent: None };
        let (stages, index) = stages();
        let written = store.transaction(&target, &mut |workset| {
            let mut root = stages[1].families[0].root.clone().expect("a session");
            root.planning_folder_path = Some(workset.families[0].folder.path.clone());
            workset.families[0].root = Some(root);
            Ok(Reply::json(index, Map::new()))
        });
        written.expect("a session is written");
        let folder = options.workspace.join(".engineering/artifacts/planning/alpha");
        let read = |name| fs::read_to_string(folder.join(name)).expect("a file");
        Bench { state: read("session.json"), seal: read(".session-token"), index: index.clone(), options, folder }
    })
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((mode, data)) = data.split_first() else { return };
    let bench = bench();
    let half = data.iter().position(|byte| *byte == 0).unwrap_or(data.len() / 2);
    let (one, other) = data.split_at(half.min(data.len()));
    let (state, seal) = match mode % 5 {
        0 => (bench.state.clone().into_bytes(), data.to_vec()),
        1 => (data.to_vec(), bench.seal.clone().into_bytes()),
        2 => (one.to_vec(), other.to_vec()),
        3 => (bench.state.clone().into_bytes(), edited(&bench.seal, data)),
        _ => (edited(&bench.state, data), bench.seal.clone().into_bytes()),
    };
    let pristine = state == bench.state.as_bytes() && seal.trim_ascii() == bench.seal.as_bytes();
    fs::write(bench.folder.join("session.json"), &state).expect("a file");
    fs::write(bench.folder.join(".session-token"), &seal).expect("a file");
    let store = FileStore::open(bench.options.clone()).expect("a store");
    let target = Target::Session { index: bench.index.clone(), parent: false };
    let read = store.read(&target);
    assert_eq!(read.is_ok(), pristine, "{read:?}");
    let by_slug = Target::Slug { slug: "alpha".to_owned(), minted: false, transient: false, parent: None };
    for target in [target, by_slug] {
        let written = store.transaction(&target, &mut |workset| {
            assert!(pristine || workset.families[0].root.is_none(), "a state opened that nobody sealed");
            Err(workflow_engine::Refusal::new("SEEN", ""))
        });
        assert!(written.is_err());
    }
    let _adoption = store.adoption("alpha");
    let _listed = store.sessions();
    let _now = Timestamp(0);
    assert_eq!(fs::read(bench.folder.join("session.json")).expect("a file"), state);
    assert_eq!(fs::read(bench.folder.join(".session-token")).expect("a file"), seal);
});
