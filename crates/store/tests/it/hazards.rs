//! Hazards of spec 03 §15 that lie on the disk.

use std::fs;

use serde_json::json;
use workflow_engine::{Registry as _, Signer as _, state::Session};
use workflow_store::SessionStore as _;

use crate::support::*;

/// A hand-written legacy state is neither sealed by a call nor trusted by the operator's command.
#[test]
fn hazard_h03_no_call_seals_what_somebody_wrote_by_hand() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let folder = bench.folder("a");
    for file in ["session.json", ".session-token"] {
        fs::remove_file(folder.join(file)).unwrap();
    }
    let forged = json!({"state": {"workflowId": "mini", "variables": {"approved": true},
        "checkpointResponses": {"plan-confirm": "go"}}});
    fs::write(folder.join("workflow-state.json"), forged.to_string()).unwrap();
    assert_eq!(start(&bench.store(), "a").unwrap_err().code, "MIGRATION_REQUIRED");
    let refused = bench.store().migrate("a", NOW).unwrap_err();
    assert_eq!((refused.code, detail(&refused, "session_index")), ("MIGRATION_REFUSED", index.as_str()));
    // In a folder that this server has never seen, the operator may; nothing that looks like a decision is taken over.
    fs::create_dir(bench.folder("b")).unwrap();
    fs::rename(folder.join("workflow-state.json"), bench.folder("b").join("workflow-state.json")).unwrap();
    let report = bench.store().migrate("b", NOW).unwrap();
    assert!(!report.verified);
    assert!(report.dropped[0].contains("1 checkpoint answers"), "{report:?}");
    let session = read(&bench.store(), &report.session_index).unwrap();
    assert!(session.checkpoint_responses.is_empty());
    assert_eq!(session.history[0].data("verified"), Some(&json!(false)));
    assert_eq!(session.variables.get("approved"), Some(&json!(true)));
}

/// What a refusal says about a hand-written state is no help to seal it: no text in it fits as a seal.
#[test]
fn hazard_h03_a_refusal_tells_no_seal_that_fits() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let forged = session("ABCDE2", "mini").canonical_text();
    fs::create_dir(bench.folder("b")).unwrap();
    fs::write(bench.folder("b").join("session.json"), &forged).unwrap();
    let good = fs::read_to_string(bench.folder("a").join(".session-token")).unwrap();
    let bare =
        data_encoding::HEXLOWER.encode(&bench.store().mac(workflow_engine::Purpose::TraceToken, forged.as_bytes()));
    for seal in ["0".repeat(64), good, "wst1.e30.00".to_owned(), String::new()] {
        fs::write(bench.folder("b").join(".session-token"), &seal).unwrap();
        for refused in [read(&bench.store(), "ABCDE2").unwrap_err(), advance(&bench.store(), "ABCDE2").unwrap_err()] {
            let told = format!("{refused:?} {}", refused.text());
            assert!(!told.contains(&bare), "{told}");
            for word in told.split(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)) {
                fs::write(bench.folder("b").join(".session-token"), word).unwrap();
                assert!(read(&bench.store(), "ABCDE2").is_err(), "{word}");
            }
        }
    }
    // The test can fail: with that seal it opens.
    fs::write(bench.folder("b").join(".session-token"), bare).unwrap();
    assert_eq!(read(&bench.store(), "ABCDE2").unwrap().workflow_id, "mini");
    assert_eq!(advance(&bench.store(), &index).unwrap(), 1);
}

/// No session takes the place of another one unasked; a replaced pair is kept.
#[test]
fn hazard_h04_no_session_is_overwritten_unasked() {
    let bench = Bench::new();
    let store = bench.store();
    let victim = start(&store, "a").unwrap();
    advance(&store, &victim).unwrap();
    let intruder = || Some(session("BBBBBB", "other"));
    let refused = store
        .transaction(&slug("a"), &mut |workset| {
            workset.families[0].root = intruder();
            Ok(reply())
        })
        .unwrap_err();
    assert_eq!((refused.code, detail(&refused, "session_index")), ("SLUG_IN_USE", victim.as_str()));
    assert_eq!(read(&store, &victim).unwrap().seq, 1);
    let before = fs::read(bench.folder("a").join("session.json")).unwrap();
    store
        .transaction(&slug("a"), &mut |workset| {
            workset.families[0].root = intruder();
            workset.families[0].replaced = true;
            Ok(reply())
        })
        .unwrap();
    assert_eq!(read(&bench.store(), "BBBBBB").unwrap().workflow_id, "other");
    assert_eq!(fs::read(bench.folder("a").join("session.1.bak.json")).unwrap(), before);
    assert!(bench.folder("a").join(".session-token.1.bak").exists());
    // A session that would be gone without a trace is a bug of the caller, not a deletion.
    let lost = store.transaction(&slug("a"), &mut |workset| {
        workset.families[0].root = None;
        Ok(reply())
    });
    assert_eq!(lost.unwrap_err().code, "INTERNAL_INVALID_STATE");
    assert!(read(&bench.store(), "BBBBBB").is_ok());
}

/// Rename a folder, make its slug again: both sessions have their own index.
#[test]
fn hazard_h07_a_renamed_folder_and_its_successor_do_not_collide() {
    let bench = Bench::new();
    let old = start(&bench.store(), "x").unwrap();
    fs::rename(bench.folder("x"), bench.folder("y")).unwrap();
    let store = bench.store();
    assert!(store.is_taken(&old));
    let new = start(&store, "x").unwrap();
    assert_ne!(old, new);
    assert_eq!(advance(&store, &new).unwrap(), 1);
    let adopted = bench.store().adopt("y").unwrap();
    assert_eq!(adopted.session_index, old);
    assert_eq!(advance(&bench.store(), &old).unwrap(), 2);
    assert_eq!(advance(&bench.store(), &new).unwrap(), 2);
}

/// A copied folder does not disturb the original and gets an index of its own when adopted.
#[test]
fn hazard_h07_a_copy_is_no_candidate_while_the_original_stands() {
    let bench = Bench::new();
    let index = start(&bench.store(), "x").unwrap();
    // The copy sorts first.
    copy_dir(&bench.folder("x"), &bench.folder("a-copy"));
    assert_eq!(advance(&bench.store(), &index).unwrap(), 1);
    let refused = start(&bench.store(), "a-copy").unwrap_err();
    assert_eq!((refused.code, detail(&refused, "reason")), ("SEAL_MISMATCH", "folder"));
    let shown = bench.store().adoption("a-copy").unwrap();
    let adopted = bench.store().adopt(bench.folder("a-copy").to_str().unwrap()).unwrap();
    assert_eq!(shown, adopted);
    assert_eq!(adopted.reindexed.len(), 1);
    assert_eq!(adopted.reindexed[0].0, index);
    assert_eq!(advance(&bench.store(), &adopted.session_index).unwrap(), 2);
    assert_eq!(advance(&bench.store(), &index).unwrap(), 2);
    assert!(bench.store().adopt("a-copy").unwrap().reason.is_none());
}

/// An older pair opens, since restoring is a legitimate repair, and says so.
#[test]
fn hazard_h08_an_older_pair_opens_with_a_warning() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    copy_dir(&bench.folder("a"), &bench.base().join("backup"));
    advance(&store, &index).unwrap();
    advance(&store, &index).unwrap();
    assert!(warnings(&bench.store(), &index).is_empty());
    copy_dir(&bench.base().join("backup"), &bench.folder("a"));
    assert_eq!(warnings(&bench.store(), &index), ["W_ROLLED_BACK"]);
    let mut told = String::new();
    bench
        .store()
        .transaction(&at(&index), &mut |workset| {
            told.clone_from(&workset.warnings[0].message);
            workset.session_mut().unwrap().advance(NOW);
            Ok(reply())
        })
        .unwrap();
    assert!(told.contains("generation 0 now, 2 before"), "{told}");
    assert!(warnings(&bench.store(), &index).is_empty(), "after a write the restored pair is the newest");
}

/// The original's seal over a session that was enveloped before is a downgrade.
#[test]
fn hazard_h08_a_bare_seal_after_an_envelope_is_refused() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let bytes = fs::read(bench.folder("a").join("session.json")).unwrap();
    let mac = workflow_engine::Signer::mac(&bench.store(), workflow_engine::Purpose::TraceToken, &bytes);
    fs::write(bench.folder("a").join(".session-token"), data_encoding::HEXLOWER.encode(&mac)).unwrap();
    let refused = read(&bench.store(), &index).unwrap_err();
    assert_eq!((refused.code, detail(&refused, "reason")), ("SEAL_MISMATCH", "downgraded"));
    bench.store().adopt("a").unwrap();
    assert_eq!(advance(&bench.store(), &index).unwrap(), 2);
}

/// Unknown members and event types survive; an unknown value of a closed set is told as what it is.
#[test]
fn hazard_h10_newer_files_are_no_tampering() {
    let bench = Bench::new();
    let store = bench.store();
    let index = start(&store, "a").unwrap();
    store
        .transaction(&at(&index), &mut |workset| {
            let root = workset.session_mut().unwrap();
            let mut value = root.to_json();
            value["fromTomorrow"] = json!({"x": [1]});
            value["history"].as_array_mut().unwrap().push(json!({"timestamp": NOW.text(), "type": "of_tomorrow"}));
            *root = Session::from_json(&value).unwrap();
            root.advance(NOW);
            Ok(reply())
        })
        .unwrap();
    advance(&bench.store(), &index).unwrap();
    let text = fs::read_to_string(bench.folder("a").join("session.json")).unwrap();
    assert!(text.contains("\"fromTomorrow\"") && text.contains("\"of_tomorrow\""), "{text}");

    let broken = text.replace("\"status\": \"running\"", "\"status\": \"paused\"");
    fs::write(bench.folder("a").join("session.json"), &broken).unwrap();
    fs::remove_dir_all(bench.options.state_dir.join("seen")).unwrap();
    let mac = workflow_engine::Signer::mac(&store, workflow_engine::Purpose::TraceToken, broken.as_bytes());
    fs::write(bench.folder("a").join(".session-token"), data_encoding::HEXLOWER.encode(&mac)).unwrap();
    for refused in [read(&bench.store(), &index).unwrap_err(), advance(&bench.store(), &index).unwrap_err()] {
        assert_eq!(refused.code, "SESSION_SCHEMA_UNSUPPORTED");
        assert_eq!(detail(&refused, "folder"), bench.folder("a").to_str().unwrap());
    }
}

/// What stands where a file of the session should be is told as it is, at once, and takes no other session down.
#[cfg(target_os = "linux")]
#[test]
fn files_that_are_none_are_named() {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    type Put = fn(&std::path::Path);

    let bench = Bench::new();
    let sound = start(&bench.store(), "sound").unwrap();
    let put: [(&str, Put); 4] = [
        ("pipe", |path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap()),
        ("device", |path| symlink("/dev/zero", path).unwrap()),
        ("nowhere", |path| symlink("nowhere-at-all", path).unwrap()),
        ("dir", |path| fs::create_dir(path).unwrap()),
    ];
    for (kind, put) in put {
        for file in ["session.json", ".session-token", ".session-token.pending"] {
            let slug = format!("{kind}{}", file.replace('.', "-"));
            start(&bench.store(), &slug).unwrap();
            let path = bench.folder(&slug).join(file);
            let _absent = fs::remove_file(&path);
            put(&path);
            let refusal = start(&bench.store(), &slug).unwrap_err();
            assert_eq!(refusal.code, "SESSION_CORRUPT", "{slug}: {}", refusal.message);
            assert!(refusal.message.contains(file), "{}", refusal.message);
        }
    }
    assert!(advance(&bench.store(), &sound).is_ok());
}

/// Links that lead to themselves or away do not make a call run for ever.
#[cfg(unix)]
#[test]
fn hazard_h13_links_do_not_multiply_the_tree() {
    use std::os::unix::fs::symlink;

    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    for name in ["loop-1", "loop-2"] {
        symlink(bench.planning(), bench.planning().join(name)).unwrap();
        symlink(bench.folder("a"), bench.folder("a").join(name)).unwrap();
    }
    symlink("/", bench.planning().join("world")).unwrap();
    let deep = bench.folder("one/two/three/four/five/six");
    fs::create_dir_all(deep.join("seven")).unwrap();
    copy_dir(&bench.folder("a"), &deep);
    let store = bench.store();
    assert_eq!(advance(&store, &index).unwrap(), 1);
    let listed = store.sessions().unwrap();
    let folders: Vec<&str> = listed.iter().map(|listing| listing.slug.as_str()).collect();
    assert_eq!(folders, ["a", "six"]);
    assert_eq!(listed[1].session.as_ref().unwrap_err().code, "SEAL_MISMATCH");
    assert_eq!(read(&store, "ABCDEF").unwrap_err().code, "SESSION_NOT_FOUND");
}
