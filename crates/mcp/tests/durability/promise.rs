//! The promise: what a disk may hold after a failure, and that work goes on from there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::machine::{Defect, Image, Machine};
use crate::scenario::{Call, Content, Process, content, parsed};

/// Codes that no failure may leave behind.
const BROKEN: &[&str] = &[
    "SEAL_MISMATCH",
    "SEAL_MISSING",
    "SESSION_CORRUPT",
    "SESSION_SCHEMA_UNSUPPORTED",
    "SESSION_COLLISION",
    "SLUG_COLLISION",
    "SESSION_BUSY",
    "STATE_MOVED",
    "WRITE_FAILED",
    "KEY_INVALID",
    "KEY_UNREADABLE",
    "INTERNAL",
    "INTERNAL_INVALID_STATE",
    "SESSION_NOT_FOUND",
    "PARENT_NOT_FOUND",
];

/// What was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told<'a> {
    Nothing,
    /// What became of this folder.
    Folder(&'a str),
    All,
}

impl Told<'_> {
    fn covers(self, folder: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Folder(only) => only == folder,
            Self::All => true,
        }
    }
}

/// What may be found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    allowed: BTreeMap<String, BTreeSet<Option<String>>>,
    before: Content,
    after: Content,
}

impl Expected {
    /// Each folder as in one of these contents; all of them as in the last when that was acknowledged.
    pub(crate) fn of(contents: &[&Content]) -> Self {
        let folders: BTreeSet<&String> = contents.iter().flat_map(|content| content.sessions.keys()).collect();
        let allowed = folders
            .into_iter()
            .map(|folder| {
                (folder.clone(), contents.iter().map(|content| content.sessions.get(folder).cloned()).collect())
            })
            .collect();
        let last = |nth: Option<&&Content>| nth.map(|content| (*content).clone()).unwrap_or_default();
        Self { allowed, before: last(contents.first()), after: last(contents.last()) }
    }

    /// Compares what was found.
    pub(crate) fn judge(&self, found: &Content, told: Told<'_>) -> Result<(), String> {
        for folder in found.sessions.keys().chain(self.allowed.keys()) {
            let state = found.sessions.get(folder);
            let fits = self.allowed.get(folder).is_some_and(|allowed| allowed.contains(&state.cloned()));
            if !fits {
                return Err(format!("{folder} is neither old nor new: {}", brief(state)));
            }
            let copy = folder.starts_with("transient/") && state == self.before.sessions.get(folder);
            if told.covers(folder) && state != self.after.sessions.get(folder) && !copy {
                return Err(format!("{folder} was acknowledged and is lost: {}", brief(state)));
            }
        }
        for (folder, old) in &self.before.sessions {
            let kept = || {
                let seal = self.before.seals.get(folder);
                found.backups.iter().any(|(state, kept)| state == old && Some(kept) == seal)
            };
            let gone = found.sessions.values().all(|state| index(state) != index(old));
            if gone && !kept() {
                return Err(format!("{folder} is gone, or was replaced without a backup"));
            }
        }
        Ok(())
    }
}

fn brief(state: Option<&String>) -> String {
    state.map_or_else(
        || "nothing".to_owned(),
        |state| {
            let state = parsed(state);
            format!("seq {} of {}, {}", state["seq"], state["workflowId"], state["currentActivity"])
        },
    )
}

pub(crate) fn index(state: &str) -> String {
    parsed(state)["sessionIndex"].as_str().unwrap_or_default().to_owned()
}

/// Checks a disk after a failure as a fresh process reads it.
pub(crate) fn check(image: &Image, expected: &Expected, told: Told<'_>, defect: &Defect) -> Result<(), String> {
    let process = Process::on(Machine::on(image, defect, false));
    expected.judge(&content(&process)?, told)
}

/// Goes on from a disk: every session takes a write, pairs come together, nothing is left over, and the call that
/// failed can be made again.
pub(crate) fn goes_on(image: &Image, again: &Call, expected: &Expected, defect: &Defect) -> Result<(), String> {
    let process = Process::on(Machine::on(image, defect, false));
    let found = content(&process)?;
    // A promoted session is still found by the slug that it began with.
    let promoted = expected.before.sessions.iter().filter(|(folder, _)| folder.starts_with("transient/"));
    for (folder, state) in found.sessions.iter().chain(promoted) {
        let slug = folder.rsplit('/').next().unwrap_or_default();
        let arguments = json!({"planning_slug": slug, "user_request": "Go on"});
        let outcome = process.call(&Call { tool: "start_session", arguments });
        if outcome.is_error || !outcome.text.contains(&index(state)) {
            return Err(format!("{folder} takes no write: {}", outcome.text));
        }
    }
    let settled = content(&process)?;
    come_together(&settled)?;
    nothing_left_over(&process, &settled)?;

    let process = Process::on(Machine::on(image, defect, false));
    let outcome = process.call(again);
    let code = outcome.meta.as_ref().and_then(|meta| meta.get("error")?.get("code")?.as_str()).unwrap_or_default();
    if outcome.is_error && BROKEN.contains(&code) {
        return Err(format!("{} cannot be made again: {}", again.tool, outcome.text));
    }
    content(&process).map(drop)
}

/// Parents know their children as they are, and no session is in two places.
fn come_together(content: &Content) -> Result<(), String> {
    let states: Vec<_> = content.sessions.values().map(|state| parsed(state)).collect();
    for child in &states {
        if states.iter().filter(|other| other["sessionIndex"] == child["sessionIndex"]).count() > 1 {
            return Err(format!("{} is in two places", child["sessionIndex"]));
        }
        let Some(parent) = child.get("parentSession").and_then(|parent| parent.get("sessionIndex")) else { continue };
        let Some(parent) = states.iter().find(|state| state["sessionIndex"] == *parent) else { continue };
        let none = Vec::new();
        let references = parent.get("triggeredWorkflows").and_then(Value::as_array).unwrap_or(&none);
        let reference = references.iter().find(|reference| reference["sessionIndex"] == child["sessionIndex"]);
        match reference {
            None => return Err("a parent does not know its child".to_owned()),
            Some(reference) if reference["status"] != child["status"] => {
                return Err(format!("a parent takes a {} child for {}", child["status"], reference["status"]));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn nothing_left_over(process: &Process, content: &Content) -> Result<(), String> {
    let image = process.machine.image();
    for (folder, path) in &content.places {
        if let Some(name) = image.list(path).iter().find(|name| name.contains(".tmp.") || name.ends_with(".pending")) {
            return Err(format!("{folder}: {name} is left over"));
        }
    }
    Ok(())
}
