//! `session migrate`: from the formats before `session.json`, and back to the original's (spec 03 §1.11).

use std::io::ErrorKind;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use indexmap::IndexMap;
use serde_json::{Map, Value};
use workflow_engine::{
    Refusal, Timestamp, index,
    state::{CheckpointResponse, Event, Session, Status},
};

use crate::{
    FileStore,
    commit::{Committed, NotCommitted, back_up, commit},
    key::{KeyRing, equal_in_constant_time},
    layout::{LEGACY_STATE, Place, SEAL, STATE},
    lock::hold_all,
    pair::{Pair, read_locked, recover},
    refusals,
    seal::{self, Form, Found, bare, envelope},
    seen::Seen,
    store::View,
};

/// History types that every version of the original reads (spec 03 §3.2).
const ORIGINAL_EVENTS: [&str; 24] = [
    "workflow_started",
    "variables_seeded",
    "activity_entered",
    "activity_exited",
    "activity_skipped",
    "checkpoint_reached",
    "checkpoint_response",
    "checkpoint_replayed",
    "variable_set",
    "technique_fetched",
    "technique_bundled",
    "resource_fetched",
    "workflow_triggered",
    "workflow_returned",
    "workflow_completed",
    "workflow_aborted",
    "workflow_suspended",
    "decision_reached",
    "decision_branch_taken",
    "loop_started",
    "loop_iteration",
    "loop_completed",
    "loop_break",
    "error",
];
/// When an answer was given that says nothing about it.
const LONG_AGO: &str = "1970-01-01T00:00:00.000Z";

/// What a migration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Absolute path.
    pub folder: String,
    /// Index of the session.
    pub session_index: String,
    /// Its workflow.
    pub workflow_id: String,
    /// There was a session already, and nothing was done.
    pub already_done: bool,
    /// The old token was signed with this server's key.
    pub verified: bool,
    /// What was taken over, one phrase each.
    pub carried: Vec<String>,
    /// What was not, one phrase each.
    pub dropped: Vec<String>,
}

/// What writing the original's form did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToOriginal {
    /// Absolute path.
    pub folder: String,
    /// Index of the session.
    pub session_index: String,
    /// Type and number of the events that were left out; the pair as it was is kept under backup names.
    pub stripped: Vec<(String, usize)>,
}

impl FileStore {
    /// Turns a folder of an older format into a session.
    ///
    /// # Errors
    /// `MIGRATION_FAILED`, `MIGRATION_REFUSED`, and those of finding, holding and writing a folder.
    pub fn migrate(&self, folder: &str, now: Timestamp) -> Result<Migrated, Refusal> {
        let view = self.view()?;
        let place = self.folder_argument(&view.roots, folder)?;
        let Some(held) = hold_all(&self.disk, &self.queues, &[&place], self.patience())? else {
            return Err(failed(&place, STATE, "the folder vanished"));
        };
        let pair = read_locked(&self.disk, &place)?;
        if pair.state.is_some() {
            return already_done(&place, &pair);
        }
        let old = read_old(self, &view.keys, &place, &pair)?;
        let derived = index::derive(self, &place.text);
        if let Some(seen) = view.seen.get(&derived) {
            return Err(Refusal::new(
                "MIGRATION_REFUSED",
                format!(
                    "{} derives to session {derived}, which this server knows as a session of today's format (last in {}). \
                     Its session.json was removed: restore session.json and .session-token together instead.",
                    place.text, seen.folder
                ),
            )
            .with("folder", place.text.as_str())
            .with("session_index", derived));
        }
        let survey = self.memory.survey(&self.disk, &view.roots);
        let is_taken = |index: &str| survey.sessions.iter().any(|(_, summary)| summary.holds(index));
        let index = index::mint_free(self, &place.text, &is_taken);
        let mut report = Migrated {
            folder: place.text.clone(),
            session_index: index.clone(),
            workflow_id: String::new(),
            already_done: false,
            verified: old.verified,
            carried: Vec::new(),
            dropped: Vec::new(),
        };
        let session = rebuild(&old, &place, index, now, &mut report);
        session.validate().map_err(|refusal| failed(&place, LEGACY_STATE, &refusal.message))?;
        report.workflow_id.clone_from(&session.workflow_id);
        self.commit_migrated(&view, &place, &pair, &session)?;
        let envelope_file = place.file(LEGACY_STATE);
        self.disk.remove_file(&envelope_file).map_err(|error| refusals::write_in_doubt(&envelope_file, &error))?;
        drop(held);
        Ok(report)
    }

    fn commit_migrated(&self, view: &View, place: &Place, pair: &Pair, session: &Session) -> Result<(), Refusal> {
        let text = session.canonical_text();
        let found = Found {
            bytes: text.as_bytes(),
            session_index: &session.session_index,
            seq: session.seq,
            folder: &place.sealed,
            workspace: &view.roots.workspace_id,
        };
        let seal = envelope(&view.keys.current, found);
        write(self, place, pair, &text, &seal)?;
        view.note_seen(place, session);
        self.memory.learn(&session.session_index, &place.path);
        Ok(())
    }

    /// Writes a session in the form that every version of the original reads: its bare seal, events that it does not
    /// know left out. The pair as it was is kept beside it.
    ///
    /// # Errors
    /// Those of opening and writing a session.
    pub fn migrate_to_original(&self, folder: &str) -> Result<ToOriginal, Refusal> {
        let view = self.view()?;
        let place = self.folder_argument(&view.roots, folder)?;
        let gone = || refusals::not_found(&format!("the folder {}", place.text), &view.roots.searched(), &[]);
        let Some(held) = hold_all(&self.disk, &self.queues, &[&place], self.patience())? else { return Err(gone()) };
        let mut pair = read_locked(&self.disk, &place)?;
        let opened = recover(&self.disk, &place, view.judge(), &mut pair)?.ok_or_else(gone)?;
        let mut root = opened.root;
        let mut stripped = IndexMap::new();
        strip(&mut root, &mut stripped);
        let text = root.canonical_text();
        back_up(&self.disk, &place, &pair, root.seq)?;
        write(self, &place, &pair, &text, &bare(&view.keys.current, text.as_bytes()))?;
        // The operator wants the bare seal: it is no downgrade.
        let seen = Seen { generation: root.generation(), folder: place.sealed.clone(), enveloped: false };
        view.seen.put(&root.session_index, &seen);
        drop(held);
        Ok(ToOriginal {
            folder: place.text.clone(),
            session_index: root.session_index,
            stripped: stripped.into_iter().collect(),
        })
    }
}

fn write(store: &FileStore, place: &Place, pair: &Pair, text: &str, seal: &str) -> Result<(), Refusal> {
    match commit(&store.disk, place, pair, text.as_bytes(), seal) {
        // Those who read the form that was asked for do not know the pending seal.
        Ok(committed) => {
            let in_place = if committed == Committed::Settled { Ok(()) } else { Err(ErrorKind::Other.into()) };
            let seal = place.file(SEAL);
            in_place
                .and_then(|()| store.disk.sync_dir(&place.path))
                .map_err(|error| refusals::write_in_doubt(&seal, &error))
        }
        Err(NotCommitted::Moved) => Err(refusals::state_moved(&place.text)),
        Err(NotCommitted::Failed(refusal)) => Err(refusal),
    }
}

fn already_done(place: &Place, pair: &Pair) -> Result<Migrated, Refusal> {
    let state = pair.state.as_deref().unwrap_or_default();
    let session = crate::pair::parse(place, state)?.session(place)?;
    Ok(Migrated {
        folder: place.text.clone(),
        session_index: session.session_index,
        workflow_id: session.workflow_id,
        already_done: true,
        verified: false,
        carried: Vec::new(),
        dropped: Vec::new(),
    })
}

/// Leaves out what the original does not know, at every level.
fn strip(session: &mut Session, stripped: &mut IndexMap<String, usize>) {
    session.last_call = None;
    session.snapshot_trimmed = false;
    session.history.retain(|event| {
        let known = ORIGINAL_EVENTS.contains(&event.kind());
        if !known {
            *stripped.entry(event.kind().to_owned()).or_default() += 1;
        }
        known
    });
    for child in &mut session.triggered_workflows {
        if let Some(state) = &mut child.state {
            strip(state, stripped);
        }
    }
    if let Some(parent) = &mut session.parent_session {
        strip(parent, stripped);
    }
}

/// What a folder of an older format holds.
struct Old {
    /// The file `workflow-state.json`.
    envelope: Option<Map<String, Value>>,
    /// Decoded payload of the token.
    token: Option<Map<String, Value>>,
    verified: bool,
}

impl Old {
    fn token_text(&self, names: &[&str]) -> Option<&str> {
        let token = self.token.as_ref()?;
        names.iter().find_map(|name| token.get(*name)?.as_str())
    }

    fn state(&self) -> Option<&Map<String, Value>> {
        self.envelope.as_ref()?.get("state")?.as_object()
    }

    fn state_text(&self, names: &[&str]) -> Option<&str> {
        let state = self.state()?;
        names.iter().find_map(|name| state.get(*name)?.as_str())
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let items = self.state().and_then(|state| state.get(name)).and_then(Value::as_array);
        let mut texts: Vec<String> = Vec::new();
        for text in items.into_iter().flatten().filter_map(Value::as_str) {
            if !texts.iter().any(|known| known == text) {
                texts.push(text.to_owned());
            }
        }
        texts
    }
}

fn failed(place: &Place, file: &str, reason: &str) -> Refusal {
    Refusal::new(
        "MIGRATION_FAILED",
        format!(
            "{}/{file} could not be migrated: {reason}. Nothing was changed. Restore the folder from its last good commit, \
             then run the command again.",
            place.text
        ),
    )
    .with("folder", place.text.as_str())
    .with("file", file)
    .with("reason", reason)
}

fn read_old(store: &FileStore, keys: &KeyRing, place: &Place, pair: &Pair) -> Result<Old, Refusal> {
    let file = place.file(LEGACY_STATE);
    let bytes = store.disk.read_if_there(&file).map_err(|error| failed(place, LEGACY_STATE, &error.to_string()))?;
    let envelope = match &bytes {
        None => None,
        Some(bytes) => match workflow_engine::state::parse_text(bytes) {
            Ok(Value::Object(members)) => Some(members),
            Ok(_) => return Err(failed(place, LEGACY_STATE, "it is JSON, but no object")),
            Err(error) => return Err(failed(place, LEGACY_STATE, &format!("it is not JSON: {error}"))),
        },
    };
    // A seal that was left behind is no token.
    let sibling =
        pair.seal.as_deref().filter(|token| seal::form(token) == Form::Other && !token.trim_ascii().is_empty());
    let inner = envelope.as_ref().and_then(|envelope| envelope.get("sessionToken")?.as_str());
    let text = sibling.map(|token| String::from_utf8_lossy(token).trim().to_owned()).or(inner.map(str::to_owned));
    let token = text.as_deref().and_then(decode_token);
    match (&envelope, &text, &token) {
        (None, None, _) => {
            let what = if pair.seal.is_some() {
                "it is the seal of a session whose session.json is gone"
            } else {
                "there is none"
            };
            return Err(failed(place, SEAL, what));
        }
        (None, Some(_), None) => {
            return Err(failed(place, SEAL, "the token does not decode, and there is no state file"));
        }
        _ => {}
    }
    let verified = token.is_some() && text.as_deref().is_some_and(|text| is_signed(keys, text));
    Ok(Old { envelope, token, verified })
}

fn decode_token(text: &str) -> Option<Map<String, Value>> {
    let (payload, _) = text.rsplit_once('.')?;
    let bytes = BASE64URL_NOPAD.decode(payload.trim_end_matches('=').as_bytes()).ok()?;
    match serde_json::from_slice(&bytes).ok()? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn is_signed(keys: &KeyRing, text: &str) -> bool {
    let Some((payload, mac)) = text.rsplit_once('.') else { return false };
    std::iter::once(&keys.current)
        .chain(&keys.previous)
        .any(|key| equal_in_constant_time(HEXLOWER.encode(&key.mac(payload.as_bytes())).as_bytes(), mac.as_bytes()))
}

fn rebuild(old: &Old, place: &Place, index: String, now: Timestamp, report: &mut Migrated) -> Session {
    let text = |found: Option<&str>, default: &str| found.filter(|text| !text.is_empty()).unwrap_or(default).to_owned();
    let version = text(old.token_text(&["v"]).or(old.state_text(&["workflowVersion"])), "0.0.0");
    let started_at = old.envelope.as_ref().and_then(|envelope| envelope.get("startedAt")?.as_str());
    let started_at = started_at
        .or(old.state_text(&["startedAt"]))
        .filter(|text| Timestamp::parse(text).is_some())
        .map_or_else(|| now.text(), str::to_owned);
    let variables = old.state().and_then(|state| state.get("variables")).and_then(Value::as_object).cloned();
    let variables = variables.unwrap_or_default();
    let completed = old.texts("completedActivities");
    let skipped = old.texts("skippedActivities");
    let answers = old.state().and_then(|state| state.get("checkpointResponses")).and_then(Value::as_object);
    let offered = answers.map_or(0, Map::len);
    let answers = if old.verified { imported_answers(answers) } else { IndexMap::new() };

    report.carried.push(format!("{} variables", variables.len()));
    report.carried.push(format!("{} completed and {} skipped activities", completed.len(), skipped.len()));
    report.carried.push(format!("{} checkpoint answers", answers.len()));
    if offered > answers.len() {
        let why = if old.verified { "of an unknown form" } else { "because nothing proves them" };
        report.dropped.push(format!("{} checkpoint answers, {why}", offered - answers.len()));
    }
    let events = old.state().and_then(|state| state.get("history")).and_then(Value::as_array).map_or(0, Vec::len);
    if events > 0 {
        report.dropped.push(format!("{events} history events, which have another form"));
    }
    for (name, found) in [
        ("an open checkpoint", old.token_text(&["bcp"]).is_some()),
        ("the link to a parent session", old.token_text(&["psid"]).is_some()),
    ] {
        if found {
            report.dropped.push(name.to_owned());
        }
    }

    let mut session = Session {
        status: Status::Running,
        workflow_id: text(old.token_text(&["wf"]).or(old.state_text(&["workflowId"])), "meta"),
        workflow_version: if is_version(&version) { version } else { "0.0.0".to_owned() },
        agent_id: text(old.token_text(&["aid"]), "orchestrator"),
        session_index: index,
        planning_folder_path: (!place.transient).then(|| place.text.clone()),
        current_activity: text(old.token_text(&["act"]).or(old.state_text(&["currentActivity"])), ""),
        current_technique: text(
            old.token_text(&["technique", "skill"]).or(old.state_text(&["currentTechnique", "currentSkill"])),
            "",
        ),
        condition: text(old.token_text(&["cond"]), ""),
        active_checkpoint: None,
        seq: 0,
        ts: now.seconds(),
        started_at,
        completed_activities: completed,
        skipped_activities: skipped,
        variables,
        checkpoint_responses: answers,
        history: Vec::new(),
        triggered_workflows: Vec::new(),
        parent_session: None,
        snapshot_trimmed: false,
        repo: None,
        context_mode: None,
        delivered_content: IndexMap::new(),
        declared_artifacts: Vec::new(),
        last_call: None,
        extra: Map::new(),
    };
    let started = Event::new("workflow_started").with_data("migrated", true).with_data("verified", old.verified);
    session.record(started, now);
    session
}

fn imported_answers(answers: Option<&Map<String, Value>>) -> IndexMap<String, CheckpointResponse> {
    let mut imported = IndexMap::new();
    for (key, answer) in answers.into_iter().flatten() {
        let bare = answer.as_str().map(str::to_owned);
        let option = bare.or_else(|| answer.get("optionId")?.as_str().map(str::to_owned));
        let Some(option_id) = option else { continue };
        let mut members = answer.as_object().cloned().unwrap_or_default();
        members.shift_remove("optionId");
        let responded_at = members.shift_remove("respondedAt");
        let responded_at = responded_at.as_ref().and_then(Value::as_str).unwrap_or(LONG_AGO).to_owned();
        let effects = members.shift_remove("effects").and_then(|effects| effects.as_object().cloned());
        imported.insert(key.clone(), CheckpointResponse { option_id, responded_at, effects, extra: members });
    }
    imported
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}
