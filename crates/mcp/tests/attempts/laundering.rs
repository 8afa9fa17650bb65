//! Making the server accept, or seal, what it did not write.

use std::fs;

use serde_json::{Value, json};

use crate::field::{Field, code_of, copy, edit, go, named, write};

const MINTED: &str = "transition-01234567-89ab-cdef-0123-456789abcdef";

/// Every kind of call refuses the session: one that writes, one that reads, a resume.
#[track_caller]
fn refused_everywhere(field: &Field, index: &str, slug: &str, code: &str) {
    field.refused("next_activity", &go(index, "ship"), code);
    field.refused("get_workflow_status", &json!({"session_index": index}), code);
    field.refused("start_session", &named(slug), code);
}

/// A state that was changed by hand is sealed by the next call.
#[test]
fn a_state_changed_by_hand() {
    let mut field = Field::new();
    let index = field.running("a");
    let state = field.folder("a").join("session.json");
    edit(&state, |text| text.replace("\"plan\"", "\"complete\""));
    refused_everywhere(&field, &index, "a", "SEAL_MISMATCH");
    field.restart();
    refused_everywhere(&field, &index, "a", "SEAL_MISMATCH");
}

/// A closed gate is taken out of the state.
#[test]
fn a_gate_cut_out_of_the_state() {
    let field = Field::new();
    let (index, _) = field.blocked("a");
    edit(&field.folder("a").join("session.json"), |text| {
        let mut state: Value = serde_json::from_str(&text).unwrap();
        state["activeCheckpoint"] = Value::Null;
        serde_json::to_string_pretty(&state).unwrap()
    });
    refused_everywhere(&field, &index, "a", "SEAL_MISMATCH");
}

/// The same JSON in other bytes, or the same member twice, means another state under one seal.
#[test]
fn the_same_state_in_other_bytes() {
    let field = Field::new();
    let index = field.running("a");
    let state = field.folder("a").join("session.json");
    let sound = fs::read_to_string(&state).unwrap();
    for other in [
        format!("{sound}\n"),
        format!(" {sound}"),
        sound.replace('\n', "\r\n"),
        sound.replacen('{', "{\"status\": \"completed\",", 1),
    ] {
        fs::write(&state, other).unwrap();
        let code = code_of(&field.call("start_session", &named("a"))).to_owned();
        assert!(code == "SEAL_MISMATCH" || code == "SESSION_CORRUPT", "{code}");
        field.refused("start_session", &named("a"), &code);
        assert_ne!(code_of(&field.call("next_activity", &go(&index, "ship"))), "ok");
    }
}

/// Without a seal the state counts as new and is sealed.
#[test]
fn a_state_without_its_seal() {
    let mut field = Field::new();
    let index = field.running("a");
    fs::remove_file(field.folder("a").join(".session-token")).unwrap();
    refused_everywhere(&field, &index, "a", "SEAL_MISSING");
    field.restart();
    refused_everywhere(&field, &index, "a", "SEAL_MISSING");
}

/// Without a state the folder counts as fresh, and its history is gone.
#[test]
fn a_seal_without_its_state() {
    let field = Field::new();
    let index = field.running("a");
    fs::remove_file(field.folder("a").join("session.json")).unwrap();
    refused_everywhere(&field, &index, "a", "SESSION_NOT_FOUND");
}

/// A copy of a session under another slug goes on as a second one.
#[test]
fn a_copy_under_another_slug() {
    let field = Field::new();
    let index = field.running("a");
    copy(&field.folder("a"), &field.folder("b"));
    field.refused("start_session", &named("b"), "SEAL_MISMATCH");
    fs::remove_dir_all(field.folder("a")).unwrap();
    field.refused("next_activity", &go(&index, "ship"), "SEAL_MISMATCH");
}

/// Hard links give one session two folders.
#[test]
fn one_state_in_two_folders() {
    let field = Field::new();
    field.running("a");
    fs::create_dir(field.folder("b")).unwrap();
    for name in ["session.json", ".session-token"] {
        fs::hard_link(field.folder("a").join(name), field.folder("b").join(name)).unwrap();
    }
    field.refused("start_session", &named("b"), "SEAL_MISMATCH");
}

/// The files of another session, with its own sound seal, are put into the folder.
#[test]
fn another_session_in_the_folder() {
    let field = Field::new();
    let index = field.running("a");
    field.running("b");
    copy(&field.folder("b"), &field.folder("a"));
    field.refused("start_session", &named("a"), "SEAL_MISMATCH");
    field.refused("next_activity", &go(&index, "ship"), "SESSION_NOT_FOUND");
}

/// A session of another workspace with the same key and the same slug is taken over.
#[test]
fn a_session_of_another_workspace() {
    let (field, other) = (Field::new(), Field::new());
    field.start("first");
    fs::copy(field.base.join("state/secret"), other.base.join("state/secret")).unwrap();
    let index = other.running("a");
    copy(&other.folder("a"), &field.folder("a"));
    refused_everywhere(&field, &index, "a", "SEAL_MISMATCH");
}

/// A session of another server is taken over, when no session of that index was ever seen.
#[test]
fn a_session_of_another_key() {
    let (field, other) = (Field::new(), Field::new());
    field.start("first");
    let index = other.running("a");
    copy(&other.folder("a"), &field.folder("a"));
    refused_everywhere(&field, &index, "a", "SEAL_MISMATCH");
}

/// A pending seal beside a changed state is put in the place of the seal.
#[test]
fn a_pending_seal_that_was_invented() {
    let field = Field::new();
    let index = field.running("a");
    let folder = field.folder("a");
    let seal = fs::read_to_string(folder.join(".session-token")).unwrap();
    edit(&folder.join("session.json"), |text| text.replace("\"plan\"", "\"complete\""));
    for pending in [seal, "0".repeat(64), String::new(), "wst1.e30.0".to_owned()] {
        fs::write(folder.join(".session-token.pending"), pending).unwrap();
        refused_everywhere(&field, &index, "a", "SEAL_MISMATCH");
    }
}

/// The pending seal of another session makes its state fit here.
#[test]
fn a_pending_seal_of_another_session() {
    let field = Field::new();
    let index = field.running("a");
    field.running("b");
    fs::copy(field.folder("b").join("session.json"), field.folder("a").join("session.json")).unwrap();
    fs::copy(field.folder("b").join(".session-token"), field.folder("a").join(".session-token.pending")).unwrap();
    field.refused("start_session", &named("a"), "SEAL_MISMATCH");
    field.refused("next_activity", &go(&index, "ship"), "SESSION_NOT_FOUND");
}

/// An older state with its own sound seal, as the pair or as state and pending seal, brings an answer back unnoticed.
#[test]
fn an_older_pair_that_was_restored() {
    let mut field = Field::new();
    let (index, handle) = field.blocked("a");
    let folder = field.folder("a");
    copy(&folder, &field.out());
    field.wait(3000);
    field.ok("respond_checkpoint", &json!({"checkpoint_handle": handle, "option_id": "stop"}));
    fs::copy(field.out().join("session.json"), folder.join("session.json")).unwrap();
    fs::copy(field.out().join(".session-token"), folder.join(".session-token.pending")).unwrap();
    field.restart();
    let outcome = field.call("get_workflow_status", &json!({"session_index": index}));
    assert!(outcome.text.contains("older than the one last seen"), "{}", outcome.text);
    // the pending seal is sound: the call puts it in place and stops at the gate
    assert_eq!(code_of(&field.call("next_activity", &go(&index, "ship"))), "CHECKPOINT_ACTIVE");
    field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
}

/// A folder of an old format, which had no seals of this kind, is opened as it is.
#[test]
fn a_folder_of_an_old_format() {
    let field = Field::new();
    field.start("first");
    write(&field.folder("old/workflow-state.json"), "{\"currentActivity\": \"complete\"}");
    field.refused("start_session", &named("old"), "MIGRATION_REQUIRED");
    write(&field.folder("older/.session-token"), "eyJ3ZiI6Im1ldGEifQ.00ff");
    field.refused("start_session", &named("older"), "MIGRATION_REQUIRED");
}

/// An old envelope beside a new state takes it back to the format that needs no fitting seal.
#[test]
fn an_old_token_beside_a_new_state() {
    let field = Field::new();
    let index = field.running("a");
    fs::write(field.folder("a").join(".session-token"), "eyJ3ZiI6Im1ldGEifQ.00ff").unwrap();
    write(&field.folder("a").join("workflow-state.json"), "{}");
    refused_everywhere(&field, &index, "a", "SEAL_MISMATCH");
}

/// A parent that does not open is copied, sealed, into its new child.
#[test]
fn a_changed_parent_in_a_new_child() {
    let field = Field::new();
    field.running("a");
    edit(&field.folder("a").join("session.json"), |text| text.replace("\"plan\"", "\"complete\""));
    let child = json!({"workflow_id": "walk", "planning_slug": "child", "parent_planning_slug": "a"});
    field.refused("start_session", &child, "SEAL_MISMATCH");
    assert!(!field.folder("child").exists());
}

/// The state of an embedded child is changed and its index used, so that only the child is looked at.
#[test]
fn a_changed_child_in_its_family() {
    let field = Field::new();
    let index = field.running("a");
    let dispatched = field.ok("dispatch_child", &json!({"session_index": index, "workflow_id": "walk"}));
    let child = dispatched["session_index"].as_str().unwrap().to_owned();
    edit(&field.folder("a").join("session.json"), |text| {
        let mut state: Value = serde_json::from_str(&text).unwrap();
        state["triggeredWorkflows"][0]["state"]["currentActivity"] = "complete".into();
        serde_json::to_string_pretty(&state).unwrap()
    });
    refused_everywhere(&field, &child, "a", "SEAL_MISMATCH");
}

/// A session takes the index of another one, whose calls then go to it.
#[test]
fn the_index_of_another_session() {
    let mut field = Field::new();
    let index = field.running("a");
    let other = field.running("b");
    edit(&field.folder("b").join("session.json"), |text| text.replace(&other, &index));
    field.restart();
    field.refused("start_session", &named("b"), "SEAL_MISMATCH");
    let status = field.ok("get_workflow_status", &json!({"session_index": index}));
    assert!(status.to_string().contains(&index));
    field.ok("next_activity", &go(&index, "ship"));
}

/// A transient session is copied into the planning tree, or a planning session to the transient ones.
#[test]
fn a_session_moved_between_the_roots() {
    let field = Field::new();
    let minted = field.ok("start_session", &json!({}));
    let slug = minted["planning_slug"].as_str().unwrap();
    copy(&field.base.join("state/transient").join(slug), &field.folder("b"));
    field.refused("start_session", &named("b"), "SEAL_MISMATCH");
    field.start("a");
    copy(&field.folder("a"), &field.base.join("state/transient").join(MINTED));
    let index = &minted["session_index"];
    field.ok("get_workflow_status", &json!({"session_index": index}));
    field.ok("start_session", &named("a"));
    assert!(!field.base.join("state/transient").join(MINTED).join(".session-token.pending").exists());
}

/// A state of a later version is read with what this one knows and written back.
#[test]
fn a_state_of_a_later_version() {
    let field = Field::new();
    let index = field.running("a");
    edit(&field.folder("a").join("session.json"), |text| text.replace("\"schemaVersion\": 1", "\"schemaVersion\": 2"));
    refused_everywhere(&field, &index, "a", "SESSION_SCHEMA_UNSUPPORTED");
}

/// The same call with other arguments is taken for a repetition of the first and answered as done.
#[test]
fn a_repetition_with_other_arguments() {
    let field = Field::new();
    let index = field.running("a");
    let mut first = go(&index, "ship");
    first["variables_changed"] = json!({"is_ready": false});
    field.ok("next_activity", &first);
    let mut second = first.clone();
    second["variables_changed"] = json!({"is_ready": true});
    field.ok("next_activity", &second);
    let state = fs::read_to_string(field.folder("a").join("session.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["variables"]["is_ready"], true);
}

/// The key is replaced by one that the attacker knows.
#[test]
fn a_key_that_was_replaced() {
    use std::os::unix::fs::PermissionsExt as _;

    let mut field = Field::new();
    let index = field.running("a");
    let secret = field.base.join("state/secret");
    fs::write(&secret, [7_u8; 32]).unwrap();
    field.restart();
    refused_everywhere(&field, &index, "a", "SEAL_MISMATCH");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    field.restart();
    refused_everywhere(&field, &index, "a", "KEY_PERMISSIONS");
    fs::write(&secret, "short").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    field.restart();
    refused_everywhere(&field, &index, "a", "KEY_INVALID");
}
