//! Sessions that the original wrote. `WORKFLOW_TEST_SESSIONS` names the folder that holds them and their key.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use workflow_engine::state::{ContextMode, Session};
use workflow_store::SessionStore as _;

use crate::{key::restrict, support::*};

fn recordings() -> Option<PathBuf> {
    let named = env::var_os("WORKFLOW_TEST_SESSIONS").map(PathBuf::from).filter(|path| path.join("secret").exists());
    if named.is_none() {
        println!("skipped: WORKFLOW_TEST_SESSIONS does not name a folder with recorded sessions and their key");
    }
    named
}

fn bench(recordings: &Path, folder: &str) -> Bench {
    let bench = Bench::new();
    fs::create_dir_all(&bench.options.key_dir).unwrap();
    fs::write(bench.options.key_dir.join("secret"), fs::read(recordings.join("secret")).unwrap()).unwrap();
    restrict(&bench.options.key_dir.join("secret"));
    copy_dir(&recordings.join(folder), &bench.folder(folder));
    bench
}

/// Index, workflow, version, current activity, completed activities, answers, agent of each session of a folder.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static [&'static str], usize, &'static str);

const START: &[&str] = &["start-work-package"];
const TWO: &[&str] = &["start-work-package", "design-philosophy"];
const ODD_AGENT: &str = "\u{43e}\u{440}\u{43a}\u{435}\u{441}\u{442}\u{440}\u{430}\u{442}\u{43e}\u{440}-\u{e9}";

const FOLDERS: &[(&str, &[Row])] = &[
    ("2026-07-part-way", &[("NEFBWT", "work-package", "3.28.0", "design-philosophy", START, 11, "orchestrator")]),
    ("2026-08-part-way", &[("64WEYS", "work-package", "3.44.0", "design-philosophy", START, 11, "orchestrator")]),
    (
        "2026-07-open-checkpoint",
        &[("ANEGZL", "work-package", "3.28.0", "design-philosophy", START, 10, "orchestrator")],
    ),
    (
        "2026-08-open-checkpoint",
        &[("OEZQRH", "work-package", "3.44.0", "design-philosophy", START, 10, "orchestrator")],
    ),
    (
        "2026-07-family",
        &[
            ("VFDHSM", "meta", "5.3.0", "discover-session", &[], 0, "top"),
            ("WYM5WP", "work-package", "3.28.0", "start-work-package", &[], 1, "worker"),
            ("ZBDWGF", "prism", "2.3.0", "select-mode", &[], 0, "deep"),
        ],
    ),
    (
        "2026-08-family",
        &[
            ("6MOVAU", "meta", "5.22.0", "discover-session", &[], 0, "top"),
            ("HLTWVC", "work-package", "3.44.0", "start-work-package", &[], 1, "worker"),
            ("GL6XQF", "prism", "2.4.0", "select-mode", &[], 0, "deep"),
        ],
    ),
    ("2026-07-ledger", &[("6WCMJC", "work-package", "3.28.0", "codebase-comprehension", TWO, 13, "orchestrator")]),
    ("2026-08-ledger", &[("3YKSSO", "work-package", "3.44.0", "codebase-comprehension", TWO, 13, "orchestrator")]),
    ("2026-07-completed", &[("MXU7PB", "prism-update", "1.1.1", "__terminal__", &["*"; 5], 2, "orchestrator")]),
    ("2026-08-completed", &[("KAJB3F", "prism-update", "1.1.1", "__terminal__", &["*"; 5], 2, "orchestrator")]),
    ("2026-07-odd-values", &[("NNRVMN", "work-package", "3.28.0", "design-philosophy", START, 0, ODD_AGENT)]),
    ("2026-08-odd-values", &[("CSJUOB", "work-package", "3.44.0", "design-philosophy", START, 0, ODD_AGENT)]),
];

fn check_session(folder: &str, session: &Session, row: Row) {
    let (index, workflow, version, activity, completed, answers, agent) = row;
    assert_eq!(session.session_index, index, "{folder}");
    assert_eq!((session.workflow_id.as_str(), session.workflow_version.as_str()), (workflow, version), "{folder}");
    assert_eq!(session.current_activity, activity, "{folder}");
    assert_eq!(session.completed_activities.len(), completed.len(), "{folder}");
    if completed.iter().all(|id| *id != "*") {
        assert_eq!(session.completed_activities, completed, "{folder}");
    }
    assert_eq!(session.checkpoint_responses.len(), answers, "{folder}");
    assert_eq!(session.agent_id, agent, "{folder}");
    let persistent = folder.ends_with("-ledger") || agent == "deep";
    assert_eq!(session.context_mode == Some(ContextMode::Persistent), persistent, "{folder}");
}

#[test]
fn recorded_sessions_open_and_are_enveloped_by_the_first_write() {
    let Some(recordings) = recordings() else { return };
    for (folder, rows) in FOLDERS {
        let bench = bench(&recordings, folder);
        let original = fs::read(bench.folder(folder).join("session.json")).unwrap();
        assert_eq!(start(&bench.store(), folder).unwrap(), rows[0].0, "{folder}");
        for row in *rows {
            let workset = bench.store().read(&at(row.0)).unwrap();
            assert!(workset.warnings.is_empty(), "{folder}: {:?}", workset.warnings);
            check_session(folder, workset.session().unwrap(), *row);
        }
        let listed = bench.store().verify(folder).unwrap().session.unwrap();
        let blocked = folder.ends_with("open-checkpoint");
        let completed = folder.ends_with("completed");
        let expected = if blocked {
            "blocked"
        } else if completed {
            "completed"
        } else {
            "active"
        };
        assert_eq!((listed.status, listed.seal, listed.embedded), (expected, "bare", rows.len() - 1), "{folder}");
        assert_eq!(fs::read(bench.folder(folder).join("session.json")).unwrap(), original, "reading writes nothing");
        assert_eq!(seal(&bench.folder(folder)).len(), 64);

        // The innermost session writes, in the one file of its family.
        let innermost = rows.last().unwrap().0;
        let before = read(&bench.store(), innermost).unwrap();
        assert_eq!(advance(&bench.store(), innermost).unwrap(), before.seq + 1, "{folder}");
        assert!(seal(&bench.folder(folder)).starts_with("wst1."), "{folder}");
        let after = read(&bench.store(), innermost).unwrap();
        let same = Session { seq: before.seq, ts: before.ts, ..after };
        assert_eq!(same, before, "{folder}: nothing else changed");
        unharmed(&original, &fs::read(bench.folder(folder).join("session.json")).unwrap(), folder);

        // The bare pair put back is a downgrade from now on.
        copy_dir(&recordings.join(folder), &bench.folder(folder));
        let refused = read(&bench.store(), rows[0].0).unwrap_err();
        assert_eq!((refused.code, detail(&refused, "reason")), ("SEAL_MISMATCH", "downgraded"), "{folder}");
    }
}

/// But for counters, the written state says what the original's file said.
fn unharmed(original: &[u8], written: &[u8], folder: &str) {
    let mut values = [original, written].map(|bytes| serde_json::from_slice::<Value>(bytes).unwrap());
    for value in &mut values {
        let mut session = &mut *value;
        loop {
            session["seq"] = json!(0);
            session["ts"] = json!(0);
            if session["triggeredWorkflows"][0]["state"].is_null() {
                break;
            }
            session = &mut session["triggeredWorkflows"][0]["state"];
        }
    }
    assert_eq!(values[0], values[1], "{folder}");
}

#[test]
fn odd_values_survive_a_write() {
    let Some(recordings) = recordings() else { return };
    for (folder, index) in [("2026-07-odd-values", "NNRVMN"), ("2026-08-odd-values", "CSJUOB")] {
        let bench = bench(&recordings, folder);
        let before = read(&bench.store(), index).unwrap().variables;
        advance(&bench.store(), index).unwrap();
        let after = read(&bench.store(), index).unwrap().variables;
        assert_eq!(before, after);
        assert!(after.contains_key("__proto__"), "{:?}", after.keys().collect::<Vec<_>>());
    }
}
