//! The refusals of opening and writing, each with what a person needs to go on (spec 03 §11 B).

use std::{io, path::Path};

use serde_json::Value;
use workflow_engine::Refusal;

use crate::{key::KeyRing, layout::Place, seal::Mismatch};

/// The command that adopts a folder, as a shell takes it.
pub(crate) fn adopt_command(folder: &str) -> String {
    format!("workflow-server session adopt {}", shell_word(folder))
}

/// The command that migrates a folder, as a shell takes it.
pub(crate) fn migrate_command(folder: &str) -> String {
    format!("workflow-server session migrate {}", shell_word(folder))
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

pub(crate) fn not_found(what: &str, roots: &[String], unreadable: &[String]) -> Refusal {
    let unread = match unreadable {
        [] => String::new(),
        [one] => format!(" One folder could not be read: {one}."),
        many => format!(" {} folders could not be read: {}.", many.len(), many.join("; ")),
    };
    Refusal::new(
        "SESSION_NOT_FOUND",
        format!(
            "No session holds {what}. Looked below: {}.{unread} Call start_session with the planning slug of the session.",
            roots.join(", ")
        ),
    )
    .with("roots", roots.to_vec())
    .with("unreadable", unreadable.to_vec())
}

/// No session is made while one of that name may be where nothing can be seen.
pub(crate) fn may_exist(slug: &str, unreadable: &[String]) -> Refusal {
    Refusal::new(
        "SESSION_NOT_FOUND",
        format!(
            "No session was found under planning slug '{slug}', but not everything could be looked into: {}. None was made, \
             since a second session of that name could not be told from the first. Call again; if it stays so, let the \
             operator look at the disk.",
            unreadable.join("; ")
        ),
    )
    .with("slug", slug)
    .with("unreadable", unreadable.to_vec())
    .retryable()
}

pub(crate) fn seal_left_alone(place: &Place) -> Refusal {
    Refusal::new(
        "SESSION_NOT_FOUND",
        format!(
            "{} holds a seal (.session-token) but no session.json. This is no fresh folder: restore session.json and \
             .session-token together from version control, or remove .session-token to begin a new session there.",
            place.text
        ),
    )
    .with("folder", place.text.as_str())
}

pub(crate) fn index_collision(index: &str, folders: &[String]) -> Refusal {
    let commands: Vec<String> = folders.iter().map(|folder| adopt_command(folder)).collect();
    Refusal::new(
        "SESSION_COLLISION",
        format!(
            "Session index {index} is held by {} folders, and the seal of each fits: {}. Decide which is the copy and run \
             one of: {}. It gets another index; then call again.",
            folders.len(),
            folders.join(", "),
            commands.join(" | ")
        ),
    )
    .with("session_index", index)
    .with("folders", folders.to_vec())
    .with("commands", commands)
}

pub(crate) fn slug_collision(slug: &str, folders: &[String]) -> Refusal {
    Refusal::new(
        "SLUG_COLLISION",
        format!(
            "Planning slug '{slug}' names {} folders with a session: {}. Rename all but one (a renamed folder opens after \
             `workflow-server session adopt <folder>`), then call start_session again.",
            folders.len(),
            folders.join(", ")
        ),
    )
    .with("slug", slug)
    .with("folders", folders.to_vec())
}

pub(crate) fn slug_in_use(place: &Place, index: &str, workflow: &str) -> Refusal {
    Refusal::new(
        "SLUG_IN_USE",
        format!(
            "{} already holds session {index} of workflow '{workflow}'. Resume it with start_session planning_slug='{}', or \
             dispatch with another planning_slug.",
            place.text, place.slug
        ),
    )
    .with("folder", place.text.as_str())
    .with("session_index", index)
    .with("workflow_id", workflow)
}

pub(crate) fn parent_not_found(slug: &str, roots: &[String]) -> Refusal {
    Refusal::new(
        "PARENT_NOT_FOUND",
        format!(
            "parent_planning_slug '{slug}' names no session. Looked for a folder of that name with a session.json below: {}. \
             Pass the planning_slug that the parent's start_session returned, or omit it to start without a parent.",
            roots.join(", ")
        ),
    )
    .with("parent_planning_slug", slug)
    .with("roots", roots.to_vec())
}

pub(crate) fn migration_required(folder: &str) -> Refusal {
    let command = migrate_command(folder);
    Refusal::new(
        "MIGRATION_REQUIRED",
        format!(
            "{folder} holds a session in a format from before session.json. Nothing was changed. Let the operator run: \
             {command} . Then call start_session again."
        ),
    )
    .with("folder", folder)
    .with("command", command)
}

pub(crate) fn seal_missing(place: &Place) -> Refusal {
    let command = adopt_command(&place.text);
    Refusal::new(
        "SEAL_MISSING",
        format!(
            "{} has a session.json but no .session-token. Restore session.json and .session-token together from version \
             control, or, if the state can be trusted as it is, let the operator run: {command}",
            place.text
        ),
    )
    .with("folder", place.text.as_str())
    .with("command", command)
}

pub(crate) fn corrupt(place: &Place, why: &str) -> Refusal {
    Refusal::new(
        "SESSION_CORRUPT",
        format!(
            "{}/session.json is not JSON that can be read: {why}. Restore session.json and .session-token together from \
             version control.",
            place.text
        ),
    )
    .with("folder", place.text.as_str())
    .with("position", why)
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(
        "SESSION_CORRUPT",
        format!(
            "{} could not be read: {error}. Nothing was changed. Give the server's user access to it, then call again.",
            path.display()
        ),
    )
    .with("path", path.display().to_string())
    .with("os_error", error.to_string())
}

pub(crate) fn seal_mismatch(place: &Place, mismatch: &Mismatch, keys: &KeyRing) -> Refusal {
    let command = adopt_command(&place.text);
    let reason = mismatch.reason.as_str();
    let key_path = keys.path.display().to_string();
    let key_note = if mismatch.names_key() { format!(" The key in use is {key_path}.") } else { String::new() };
    Refusal::new(
        "SEAL_MISMATCH",
        format!(
            "The seal of {} does not fit (reason: {reason}): {} Sealed: {}; found: {}.{key_note} Nothing was changed. \
             Let the operator decide: {command} , or restore session.json and .session-token together.",
            place.text, mismatch.problem, mismatch.sealed, mismatch.found
        ),
    )
    .with("reason", reason)
    .with("folder", place.text.as_str())
    .with("sealed", mismatch.sealed.as_str())
    .with("found", mismatch.found.as_str())
    .with("key_path", key_path)
    .with("command", command)
}

/// The state is sealed and intact, but not understood; `refusal` names path and value.
pub(crate) fn schema_in(place: &Place, mut refusal: Refusal) -> Refusal {
    refusal.message = format!("{}/session.json: {}", place.text, refusal.message);
    refusal.with("folder", place.text.as_str())
}

/// State or seal have a form that only a later version writes; this one cannot tell whether they fit.
pub(crate) fn newer(place: &Place) -> Refusal {
    Refusal::new(
        "SESSION_SCHEMA_UNSUPPORTED",
        format!(
            "{} was written by a later version of this server, in a form that this one does not know; this is not \
             tampering. Nothing was changed. Open it with the version that wrote it, or restore an older session.json and \
             .session-token together.",
            place.text
        ),
    )
    .with("folder", place.text.as_str())
}

pub(crate) fn path_escape(path: &Path, rule: &str) -> Refusal {
    Refusal::new(
        "PATH_ESCAPE",
        format!(
            "{} leads outside the place for sessions: {rule}. Links are resolved before this check. Choose another name, or \
             remove the link.",
            path.display()
        ),
    )
    .with("path", path.display().to_string())
}

pub(crate) fn workspace_invalid(path: &Path, problem: &str) -> Refusal {
    Refusal::new(
        "WORKSPACE_INVALID",
        format!(
            "{} cannot be used as a root: {problem}. Set an existing absolute directory with --workspace or \
             WORKFLOW_WORKSPACE (split: WORKFLOW_SERVER_ENGINEERING_DIR) and restart the server.",
            path.display()
        ),
    )
    .with("path", path.display().to_string())
}

pub(crate) fn busy(folder: &str, seconds: f64) -> Refusal {
    Refusal::new(
        "SESSION_BUSY",
        format!(
            "{folder} is held by another call since {seconds:.1} s. Nothing was changed. Make the same call again."
        ),
    )
    .retryable()
    .with("folder", folder)
    .with("waited_seconds", seconds)
}

pub(crate) fn state_moved(folder: &str) -> Refusal {
    Refusal::new(
        "STATE_MOVED",
        format!(
            "session.json or .session-token in {folder} was changed three times while this call worked, by something that \
             takes no lock (another server, an editor, a checkout). Nothing was changed by this call. Stop that and make the \
             same call again."
        ),
    )
    .retryable()
    .with("folder", folder)
}

pub(crate) fn write_failed(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(
        "WRITE_FAILED",
        format!(
            "{} could not be written: {error}. Nothing was changed. Make room or give the server's user access, then make the \
             same call again.",
            path.display()
        ),
    )
    .with("path", path.display().to_string())
    .with("os_error", error.to_string())
    .with("changed", false)
}

pub(crate) fn write_in_doubt(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(
        "WRITE_FAILED",
        format!(
            "{} was written, but the disk did not confirm it: {error}. Read the session with get_workflow_status before \
             repeating the call.",
            path.display()
        ),
    )
    .with("path", path.display().to_string())
    .with("os_error", error.to_string())
    .with("changed", Value::Null)
}

pub(crate) fn cancelled() -> Refusal {
    Refusal::new("CANCELLED", "The call was cancelled before anything was written. Nothing was changed.").retryable()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_a_shell() {
        assert_eq!(adopt_command("/a/b-c"), "workflow-server session adopt /a/b-c");
        assert_eq!(migrate_command("/a b/it's"), r"workflow-server session migrate '/a b/it'\''s'");
    }

    #[test]
    fn not_found_names_unreadable_folders() {
        let text = not_found("session index ABCDEF", &["/r".to_owned()], &["/r/x: not JSON".to_owned()]).message;
        assert!(text.contains("One folder could not be read: /r/x: not JSON."), "{text}");
    }
}
