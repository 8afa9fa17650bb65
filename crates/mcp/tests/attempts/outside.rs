//! Reading or writing outside the roots.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::field::{Field, SECRET, copy, go, named, write};

const MINTED: &str = "transition-01234567-89ab-cdef-0123-456789abcdef";

/// A slug that climbs makes a folder beside the planning tree.
#[test]
fn a_slug_that_climbs() {
    let field = Field::new();
    for slug in ["../../../../out", "..", ".", "a/../../out", "/etc", "a\\..\\out", "a\u{0}b"] {
        field.refused("start_session", &named(slug), "INVALID_SLUG");
        let child = json!({"workflow_id": "walk", "planning_slug": "child", "parent_planning_slug": slug});
        field.refused("start_session", &child, "INVALID_SLUG");
    }
}

/// A planning_folder whose segments cancel out leaves the root as the folder.
#[test]
fn a_planning_folder_that_climbs_to_nothing() {
    let field = Field::new();
    for folder in ["/", "/a/..", "/../..", "C:\\", "\\\\"] {
        field.refused("start_session", &json!({"planning_folder": folder}), "INVALID_SLUG");
    }
    field.refused("start_session", &json!({"planning_folder": "out/x"}), "PLANNING_FOLDER_NOT_ABSOLUTE");
}

/// Names in other alphabets, with marks that a file system drops, become another folder than the one that was checked.
#[test]
fn a_slug_with_a_twin_on_other_file_systems() {
    let field = Field::new();
    field.start("plan");
    for slug in ["PLAN", "Plan", "plan.", "pl\u{e1}n", "pla\u{301}n", "\u{2024}\u{2024}", "plan\u{200d}", "con", "a:b"]
    {
        field.refused("start_session", &named(slug), "INVALID_SLUG");
    }
}

/// A link in the planning tree takes the new session out of it.
#[test]
fn a_planning_folder_that_is_a_link_out() {
    let field = Field::new();
    field.start("first");
    symlink(field.out(), field.folder("away")).unwrap();
    symlink(field.out().join("not-there"), field.folder("dangling")).unwrap();
    for slug in ["away", "dangling"] {
        field.refused("start_session", &named(slug), "PATH_ESCAPE");
    }
}

/// The planning root itself, or any directory above it, is a link out of the workspace.
#[test]
fn a_planning_root_that_is_a_link_out() {
    for above in [".engineering", ".engineering/artifacts", ".engineering/artifacts/planning"] {
        let field = Field::new();
        let link = field.base.join("ws").join(above);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(field.out(), link).unwrap();
        field.refused("start_session", &named("away"), "PATH_ESCAPE");
    }
}

/// The folder of a running session is moved out and a link left in its place, so that the next call writes there.
#[test]
fn a_session_folder_swapped_for_a_link_between_calls() {
    let field = Field::new();
    let index = field.running("a");
    fs::rename(field.folder("a"), field.out().join("a")).unwrap();
    symlink(field.out().join("a"), field.folder("a")).unwrap();
    field.refused("next_activity", &go(&index, "ship"), "SESSION_NOT_FOUND");
    field.refused("get_workflow_status", &json!({"session_index": index}), "SESSION_NOT_FOUND");
    field.refused("start_session", &named("a"), "PATH_ESCAPE");
}

/// The planning root of a running server is moved out and a link left in its place.
#[test]
fn a_planning_root_swapped_for_a_link_between_calls() {
    let field = Field::new();
    let index = field.running("a");
    fs::rename(field.planning(), field.out().join("planning")).unwrap();
    symlink(field.out().join("planning"), field.planning()).unwrap();
    field.refused("next_activity", &go(&index, "ship"), "PATH_ESCAPE");
}

/// A group of sessions is moved out and a link left, so that a deep folder is reached through its parent.
#[test]
fn a_parent_folder_swapped_for_a_link_between_calls() {
    let field = Field::new();
    let index = field.running("a");
    fs::create_dir_all(field.folder("group")).unwrap();
    fs::rename(field.folder("a"), field.folder("group/a")).unwrap();
    field.refused("next_activity", &go(&index, "ship"), "SEAL_MISMATCH");
    fs::rename(field.folder("group"), field.out().join("group")).unwrap();
    symlink(field.out().join("group"), field.folder("group")).unwrap();
    field.refused("next_activity", &go(&index, "ship"), "SESSION_NOT_FOUND");
}

/// A note of a promotion leads to a session outside, by dots or through a link.
#[test]
fn a_moved_note_that_points_elsewhere() {
    let field = Field::new();
    field.start("a");
    copy(&field.folder("a"), &field.out().join("a"));
    symlink(field.out(), field.folder("link")).unwrap();
    let note = field.base.join("state/transient").join(format!("{MINTED}.moved"));
    let planning = field.planning().display().to_string();
    for target in [
        format!("{planning}/../../../../out/a"),
        format!("{planning}/link/a"),
        field.out().join("a").display().to_string(),
        "/".to_owned(),
    ] {
        write(&note, &target);
        field.refused("start_session", &named(MINTED), "SESSION_NOT_FOUND");
        assert!(!field.out().join("a/.session.lock").exists(), "{target}");
    }
}

/// A transient folder is a link to a directory outside, or to one of the planning tree.
#[test]
fn a_transient_folder_that_is_a_link() {
    let field = Field::new();
    field.start("a");
    copy(&field.folder("a"), &field.out().join("a"));
    fs::create_dir_all(field.base.join("state/transient")).unwrap();
    for target in [field.out().join("a"), field.folder("a")] {
        let link = field.base.join("state/transient").join(MINTED);
        drop(fs::remove_file(&link));
        symlink(target, link).unwrap();
        field.refused("start_session", &named(MINTED), "SESSION_NOT_FOUND");
    }
}

/// The directory of transient sessions is a link out of the state directory.
#[test]
fn a_transient_root_that_is_a_link_out() {
    let field = Field::new();
    symlink(field.out(), field.base.join("state/transient")).unwrap();
    field.refused("start_session", &json!({}), "PATH_ESCAPE");
}

/// A trace file that is a link shows lines of another file, and lets the server write there.
#[test]
fn a_trace_file_that_is_a_link() {
    let field = Field::new();
    let index = field.running("a");
    write(&field.out().join("lines"), &format!("{{\"name\":\"{SECRET}\"}}\n"));
    let file = field.base.join(format!("state/trace/{index}.jsonl"));
    fs::remove_file(&file).unwrap();
    symlink(field.out().join("lines"), file).unwrap();
    let shown = field.harmless("get_trace", &json!({"session_index": index}));
    assert_eq!(shown["event_count"], 0);
    field.harmless("get_trace", &json!({"session_index": index, "trace_tokens": [format!("{index}:0-9")]}));
    field.harmless("next_activity", &go(&index, "ship"));
}

/// The directory of the traces is a link out of the state directory.
#[test]
fn a_trace_directory_that_is_a_link() {
    let field = Field::new();
    let index = field.running("a");
    write(&field.out().join(format!("trace/{index}.jsonl")), &format!("{{\"name\":\"{SECRET}\"}}\n"));
    fs::remove_dir_all(field.base.join("state/trace")).unwrap();
    symlink(field.out().join("trace"), field.base.join("state/trace")).unwrap();
    let shown = field.harmless("get_trace", &json!({"session_index": index}));
    assert_eq!(shown["event_count"], 0);
    field.harmless("next_activity", &go(&index, "ship"));
}

/// The directory of what was seen is a link out of the state directory.
#[test]
fn a_table_of_seen_sessions_that_is_a_link() {
    let field = Field::new();
    let index = field.running("a");
    fs::remove_dir_all(field.base.join("state/seen")).unwrap();
    symlink(field.out(), field.base.join("state/seen")).unwrap();
    field.harmless("next_activity", &go(&index, "ship"));
}

/// The list of files that are not to be kept under version control is a link to a file outside.
#[test]
fn an_ignore_list_that_is_a_link() {
    let field = Field::new();
    fs::create_dir_all(field.planning()).unwrap();
    symlink(field.out().join("secret.md"), field.planning().join(".gitignore")).unwrap();
    field.harmless("start_session", &named("a"));
}

/// A session index with separators names a trace file elsewhere.
#[test]
fn a_session_index_that_climbs() {
    let field = Field::new();
    for index in ["../../out", "..", "A/../B", "abcdef", "AAAAA\u{0}", "\u{ff21}AAAAA"] {
        field.refused("get_trace", &json!({"session_index": index}), "INVALID_SESSION_INDEX");
    }
}

/// A seal that is a link to a key file in hexadecimal is quoted in the refusal.
#[test]
fn a_seal_that_is_a_link_to_a_secret() {
    let field = Field::new();
    let index = field.running("a");
    let secret = "5ec2e7".repeat(11)[..64].to_owned();
    write(&field.out().join("key"), &secret);
    let seal = field.folder("a").join(".session-token");
    fs::remove_file(&seal).unwrap();
    symlink(field.out().join("key"), seal).unwrap();
    let outcome = field.refused("next_activity", &go(&index, "ship"), "SESSION_CORRUPT");
    let meta = serde_json::to_string(&outcome.meta).unwrap();
    assert!(!outcome.text.contains(&secret) && !meta.contains(&secret), "{}", outcome.text);
}

/// A session.json that is a link to another file is quoted in the complaint about it.
#[test]
fn a_state_that_is_a_link_to_a_secret() {
    let field = Field::new();
    let index = field.running("a");
    let state = field.folder("a").join("session.json");
    fs::remove_file(&state).unwrap();
    symlink(field.out().join("secret.md"), state).unwrap();
    field.refused("next_activity", &go(&index, "ship"), "SESSION_NOT_FOUND");
    field.refused("start_session", &named("a"), "SESSION_CORRUPT");
}

/// A second name of session.json outside lets the next write change that file.
#[test]
fn a_state_with_a_hard_link_outside() {
    let field = Field::new();
    let index = field.running("a");
    for name in ["session.json", ".session-token"] {
        fs::hard_link(field.folder("a").join(name), field.out().join(name)).unwrap();
    }
    field.harmless("next_activity", &go(&index, "ship"));
}

/// The lock file is a link, so that locking makes or holds a file outside.
#[test]
fn a_lock_that_is_a_link() {
    let field = Field::new();
    let index = field.running("a");
    let lock = field.folder("a").join(".session.lock");
    drop(fs::remove_file(&lock));
    symlink(field.out().join("lock"), lock).unwrap();
    field.refused("next_activity", &go(&index, "ship"), "PATH_ESCAPE");
}

/// A workflow id with separators loads definitions from elsewhere.
#[test]
fn a_workflow_id_that_climbs() {
    let field = Field::new();
    field.start("first");
    write(&field.out().join("evil/workflow.yaml"), &format!("id: evil\nversion: 1.0.0\ntitle: {SECRET}\n"));
    for id in ["../out/evil", "..", ".hidden", "walk/../../out/evil", "/etc", "walk\\..\\evil"] {
        let arguments = json!({"workflow_id": id, "planning_slug": "a"});
        field.refused("start_session", &arguments, "INVALID_WORKFLOW_ID");
    }
}

/// A workflow directory that is a link serves definitions from outside the corpus.
#[test]
fn a_workflow_directory_that_is_a_link_out() {
    let field = Field::new();
    field.start("first");
    write(&field.out().join("evil/workflow.yaml"), &format!("id: evil\nversion: 1.0.0\ntitle: {SECRET}\n"));
    symlink(field.out().join("evil"), field.base.join("corpus/evil")).unwrap();
    field.refused("start_session", &json!({"workflow_id": "evil", "planning_slug": "a"}), "WORKFLOW_NOT_FOUND");
    field.harmless("list_workflows", &json!({}));
}

/// activitiesDir with dots takes the activities from elsewhere.
#[test]
fn an_activities_directory_that_climbs() {
    let field = Field::new();
    field.start("first");
    write(&field.out().join("01-only.yaml"), &format!("id: only\nversion: 1.0.0\nname: {SECRET}\n"));
    for dir in ["../../out", "activities/../../../out", "/etc", "..", "./activities"] {
        let manifest = format!("id: bad\nversion: 1.0.0\ntitle: Bad\nactivitiesDir: {dir}\ninitialActivity: only\n");
        field.define("bad/workflow.yaml", &manifest);
        field.refused("start_session", &json!({"workflow_id": "bad", "planning_slug": "a"}), "WORKFLOW_INVALID");
    }
}

/// A borrowed activity with dots is read from elsewhere.
#[test]
fn a_borrowed_activity_that_climbs() {
    let field = Field::new();
    write(&field.out().join("activities/01-only.yaml"), &format!("id: only\nversion: 1.0.0\nname: {SECRET}\n"));
    for reference in ["../out/only", "../../out/activities/01-only.yaml", "..", "walk/../../out/only", "/etc/passwd"] {
        let manifest =
            format!("id: bad\nversion: 1.0.0\ntitle: Bad\ninitialActivity: only\nactivities: ['{reference}']\n");
        field.define("bad/workflow.yaml", &manifest);
        let outcome = field.call("start_session", &json!({"workflow_id": "bad", "planning_slug": "a"}));
        assert!(!outcome.text.contains(SECRET));
        if !outcome.is_error {
            let index = serde_json::from_str::<serde_json::Value>(&outcome.text).unwrap()["session_index"].clone();
            let enter = json!({"session_index": index, "activity_id": "only"});
            field.refused("next_activity", &enter, "ACTIVITY_NOT_FOUND");
        }
    }
}

/// A resource id with dots, a name in front matter that climbs, a resource that is a link: each shows a file outside.
#[test]
fn a_resource_that_climbs() {
    let field = Field::new();
    field.define("walk/resources/named.md", "---\nname: ../../../out/secret\nversion: 1.0.0\n---\n\n# Named\n");
    let index = field.running("a");
    for id in ["../../../out/secret", "walk/../../out/secret", "..", "../out/secret", "walk//secret", "\\out"] {
        field.refused("get_resource", &json!({"session_index": index, "resource_id": id}), "RESOURCE_ID_INVALID");
    }
    symlink(field.out().join("secret.md"), field.base.join("corpus/walk/resources/leak.md")).unwrap();
    let leak = json!({"session_index": index, "resource_id": "leak"});
    field.refused("get_resource", &leak, "RESOURCE_NOT_FOUND");
    let named = json!({"session_index": index, "resource_id": "named"});
    field.harmless("get_resource", &named);
}

/// A resource that was served is swapped for a link, and the cache follows it.
#[test]
fn a_resource_swapped_for_a_link_between_calls() {
    let field = Field::new();
    let index = field.running("a");
    let notes = json!({"session_index": index, "resource_id": "notes"});
    field.ok("get_resource", &notes);
    let file = field.base.join("corpus/walk/resources/notes.md");
    fs::remove_file(&file).unwrap();
    symlink(field.out().join("secret.md"), &file).unwrap();
    field.refused("get_resource", &notes, "RESOURCE_NOT_FOUND");
}

/// A step's technique with separators is read from elsewhere.
#[test]
fn a_technique_that_climbs() {
    let field = Field::new();
    for technique in ["../../../out/secret", "walk::../../../out/secret", "..::secret", "/etc/passwd", "a/../b"] {
        let text = format!(
            "id: plan\nversion: 1.0.0\nname: Plan\nsteps:\n  - {{ kind: technique, id: leak, technique: '{technique}' }}\n"
        );
        field.define("walk/activities/01-plan.yaml", &text);
        let slug = format!("s{}", technique.len());
        let index = field.running(&slug);
        let leak = json!({"session_index": index, "step_id": "leak"});
        field.refused("get_technique", &leak, "TECHNIQUE_NOT_FOUND");
    }
}

/// A transient session is promoted into a folder outside, by a slug that climbs or through a link.
#[test]
fn a_promotion_that_leads_out() {
    let field = Field::new();
    field.start("first");
    let minted = field.ok("start_session", &json!({}));
    symlink(field.out(), field.folder("away")).unwrap();
    let promote =
        |slug: &str| json!({"session_index": minted["session_index"], "workflow_id": "walk", "planning_slug": slug});
    field.refused("dispatch_child", &promote("../../../../out/x"), "INVALID_SLUG");
    field.refused("dispatch_child", &promote("away"), "PATH_ESCAPE");
}

/// The folder of a transient session is moved out and a link left in its place.
#[test]
fn a_transient_folder_swapped_for_a_link_between_calls() {
    let field = Field::new();
    let minted = field.ok("start_session", &json!({}));
    let folder = field.base.join("state/transient").join(minted["planning_slug"].as_str().unwrap());
    fs::rename(&folder, field.out().join("moved")).unwrap();
    symlink(field.out().join("moved"), folder).unwrap();
    let index = minted["session_index"].as_str().unwrap();
    field.refused("next_activity", &go(index, "look"), "SESSION_NOT_FOUND");
}

/// The pending seal is a link, so that the next commit writes its seal outside.
#[test]
fn a_pending_seal_that_is_a_link() {
    let field = Field::new();
    let index = field.running("a");
    let pending = field.folder("a").join(".session-token.pending");
    for target in ["secret.md", "new"] {
        symlink(field.out().join(target), &pending).unwrap();
        field.refused("next_activity", &go(&index, "ship"), "SESSION_CORRUPT");
        fs::remove_file(&pending).unwrap();
    }
    field.harmless("next_activity", &go(&index, "ship"));
}
