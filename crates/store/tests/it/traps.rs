//! Traps of spec 03 §14 that lie on the disk.

use std::fs;

use workflow_engine::{Registry as _, Signer as _, StatePath, index};
use workflow_store::SessionStore as _;

use crate::support::*;

/// A renamed folder keeps its stored index, and opens after `session adopt`.
#[test]
fn trap_03_14_01_the_stored_index_counts_not_the_place() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    fs::rename(bench.folder("a"), bench.folder("b")).unwrap();
    for target in [at(&index), slug("b")] {
        let refused = bench.store().transaction(&target, &mut |_| Ok(reply())).unwrap_err();
        assert_eq!((refused.code, detail(&refused, "reason")), ("SEAL_MISMATCH", "folder"));
        assert_eq!((detail(&refused, "sealed"), detail(&refused, "found")), ("a", "b"));
        let command = format!("workflow-server session adopt {}", bench.folder("b").display());
        assert!(refused.message.contains(&command), "{}", refused.message);
    }
    let shown = bench.store().adoption("b").unwrap();
    assert_eq!(shown.reason.as_deref(), Some("folder"));
    let store = bench.store();
    let adopted = store.adopt("b").unwrap();
    assert_eq!((adopted.session_index.as_str(), adopted.reindexed.len()), (index.as_str(), 0));
    assert_eq!(read(&store, &index).unwrap().planning_folder_path, Some(bench.folder("b").display().to_string()));
    assert_eq!(advance(&store, &index).unwrap(), 2);
}

/// After a move and an adoption the old child keeps its index, a new one derives from the new path.
#[test]
fn trap_03_14_02_an_embedded_index_keeps_the_place_of_its_creation() {
    let bench = Bench::new();
    let store = bench.store();
    let root = start(&store, "a").unwrap();
    let dispatch = |store: &workflow_store::FileStore| {
        let mut child = String::new();
        store
            .transaction(&at(&root), &mut |workset| {
                let folder = workset.families[0].folder.path.clone();
                let session = workset.session_mut().unwrap();
                let path = StatePath(vec![session.triggered_workflows.len()]);
                child = index::derive(store, &index::place(&folder, &path));
                embed(session, &crate::support::session(&child, "child"));
                session.advance(NOW);
                Ok(reply())
            })
            .unwrap();
        child
    };
    let first = dispatch(&store);
    fs::rename(bench.folder("a"), bench.folder("b")).unwrap();
    let store = bench.store();
    store.adopt("b").unwrap();
    let second = dispatch(&store);
    let in_b = |n: usize| index::place(bench.folder("b").to_str().unwrap(), &StatePath(vec![n]));
    assert_eq!(second, index::derive(&store, &in_b(1)));
    assert_ne!(first, index::derive(&store, &in_b(0)));
    for child in [&first, &second] {
        assert_eq!(read(&bench.store(), child).unwrap().session_index, *child);
    }
}

/// A lone surrogate is legal JSON text and no text of ours: corrupt, with the place; no seal mismatch.
#[test]
fn trap_03_14_07_a_lone_surrogate_is_corrupt() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let file = bench.folder("a").join("session.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"variables\": {}", "\"variables\": {\"x\": \"\\ud800\"}")).unwrap();
    let refused = bench.store().transaction(&slug("a"), &mut |_| Ok(reply())).unwrap_err();
    assert_eq!(refused.code, "SESSION_CORRUPT");
    assert!(detail(&refused, "position").contains("line "), "{refused:?}");
    let lost = read(&bench.store(), &index).unwrap_err();
    assert_eq!(lost.code, "SESSION_NOT_FOUND");
    assert!(lost.message.contains("One folder could not be read"), "{}", lost.message);
}

/// The seal covers the bytes as found: other spacing under a right seal is valid.
#[test]
fn trap_03_14_08_the_seal_covers_the_bytes_as_found() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    let file = bench.folder("a").join("session.json");
    let value: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let compact = serde_json::to_string(&value).unwrap();
    fs::write(&file, &compact).unwrap();
    let key = fs::read(bench.options.state_dir.join("secret")).unwrap();
    // The bare seal of the original over these bytes; nothing here has seen this session enveloped.
    fs::remove_dir_all(bench.options.state_dir.join("seen")).unwrap();
    assert_eq!(key.len(), 32);
    let mac = store.mac(workflow_engine::Purpose::TraceToken, compact.as_bytes());
    fs::write(bench.folder("a").join(".session-token"), data_encoding::HEXLOWER.encode(&mac)).unwrap();
    let store = bench.store();
    assert_eq!(read(&store, &index).unwrap().seq, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), compact, "reading writes nothing");
    advance(&store, &index).unwrap();
    assert!(seal(&bench.folder("a")).starts_with("wst1."));
    assert!(fs::read_to_string(&file).unwrap().starts_with("{\n  \"schemaVersion\": 1"));
}

/// A newline after the seal is fine; one after the state is another content.
#[test]
fn trap_03_14_09_newlines_after_seal_and_state() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let token = bench.folder("a").join(".session-token");
    fs::write(&token, format!("{}\n", seal(&bench.folder("a")))).unwrap();
    assert_eq!(advance(&bench.store(), &index).unwrap(), 1);
    let file = bench.folder("a").join("session.json");
    fs::write(&file, [fs::read(&file).unwrap(), b"\n".to_vec()].concat()).unwrap();
    let refused = advance(&bench.store(), &index).unwrap_err();
    assert_eq!((refused.code, detail(&refused, "reason")), ("SEAL_MISMATCH", "content"));
}

/// A seal without state is an error, neither a fresh session nor a legacy folder.
#[test]
fn trap_03_14_35_a_seal_left_alone_is_no_fresh_folder() {
    let bench = Bench::new();
    for (name, token) in [("a", None), ("b", Some("ab".repeat(32)))] {
        match token {
            None => {
                start(&bench.store(), name).unwrap();
                fs::remove_file(bench.folder(name).join("session.json")).unwrap();
            }
            Some(token) => {
                fs::create_dir_all(bench.folder(name)).unwrap();
                fs::write(bench.folder(name).join(".session-token"), token).unwrap();
            }
        }
        let refused = start(&bench.store(), name).unwrap_err();
        assert_eq!(refused.code, "SESSION_NOT_FOUND", "{}", refused.message);
        assert!(refused.message.contains("no session.json"), "{}", refused.message);
        assert_eq!(bench.store().migrate(name, NOW).unwrap_err().code, "MIGRATION_FAILED");
        assert!(!bench.folder(name).join("session.json").exists());
    }
}

/// Legacy artefacts are looked for whatever the workflow, the default one included.
#[test]
fn trap_03_14_36_a_legacy_folder_asks_for_the_command() {
    let bench = Bench::new();
    for (name, file, content) in [
        ("envelope", "workflow-state.json", "{\"state\": {\"workflowId\": \"mini\"}}"),
        ("token", ".session-token", "eyJ3ZiI6Im1pbmkifQ.00ff"),
    ] {
        fs::create_dir_all(bench.folder(name)).unwrap();
        fs::write(bench.folder(name).join(file), content).unwrap();
        for workflow in ["meta", "mini"] {
            let refused = start_at(&bench.store(), &slug(name), workflow).unwrap_err();
            assert_eq!(refused.code, "MIGRATION_REQUIRED");
            let command = format!("workflow-server session migrate {}", bench.folder(name).display());
            assert_eq!(detail(&refused, "command"), command);
        }
        assert_eq!(names(&bench.folder(name)), [file]);
        assert_eq!(bench.store().sessions().unwrap().len(), 1 + usize::from(name == "token"));
        assert!(bench.store().children_of("AAAAAA").is_empty());
    }
}
