//! The two files of a session: reading, verifying, recovering (spec 03 §3.4, §3.6, §3.7).

use std::{io, path::Path, thread, time::Duration};

use serde_json::Value;
use workflow_engine::{
    Refusal,
    state::{Session, parse_text},
};

use crate::{
    fs::{Disk, Kind},
    key::KeyRing,
    layout::{PENDING, Place, SEAL, STATE},
    refusals,
    seal::{self, Fit, Form, Found, Mismatch},
    seen::SeenTable,
};

/// How often a reader without lock looks again.
const READS: usize = 5;
const PAUSE: Duration = Duration::from_millis(1);

/// The bytes of the files, each if it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) seal: Option<Vec<u8>>,
    pub(crate) pending: Option<Vec<u8>>,
}

/// A session that opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) root: Session,
    /// How it was sealed.
    pub(crate) fit: Fit,
    /// The seal that fits is the pending one.
    pub(crate) by_pending: bool,
}

/// What verifying needs besides the files.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) keys: &'a KeyRing,
    pub(crate) workspace: &'a str,
    pub(crate) seen: &'a SeenTable,
}

/// Reads one file of a folder.
fn part(disk: &Disk, path: &Path) -> Result<Option<Vec<u8>>, Refusal> {
    let read = disk.read_if_there(path).map_err(|error| refusals::unreadable(path, &error))?;
    if read.is_none() && disk.stat_link(path).is_ok_and(|stat| stat.kind == Kind::Symlink) {
        let error = io::Error::new(io::ErrorKind::NotFound, "it is a link that leads nowhere");
        return Err(refusals::unreadable(path, &error));
    }
    Ok(read)
}

/// Reads the files under a lock.
pub(crate) fn read_locked(disk: &Disk, place: &Place) -> Result<Pair, Refusal> {
    Ok(Pair {
        state: part(disk, &place.file(STATE))?,
        seal: part(disk, &place.file(SEAL))?,
        pending: part(disk, &place.file(PENDING))?,
    })
}

/// Parsed state with what its seal is checked against.
pub(crate) struct Parsed {
    value: Value,
    index: String,
    seq: u64,
    /// `schemaVersion`, 0 when it is no number.
    version: u64,
}

pub(crate) fn parse(place: &Place, bytes: &[u8]) -> Result<Parsed, Refusal> {
    let value = parse_text(bytes).map_err(|error| refusals::corrupt(place, &error.to_string()))?;
    let index = value.get("sessionIndex").and_then(Value::as_str).unwrap_or_default().to_owned();
    let seq = value.get("seq").and_then(Value::as_u64).unwrap_or_default();
    let version = value.get("schemaVersion").and_then(Value::as_u64).unwrap_or_default();
    Ok(Parsed { value, index, seq, version })
}

impl Parsed {
    pub(crate) fn found<'a>(&'a self, bytes: &'a [u8], place: &'a Place, workspace: &'a str) -> Found<'a> {
        Found { bytes, session_index: &self.index, seq: self.seq, folder: &place.sealed, workspace }
    }

    pub(crate) fn session(&self, place: &Place) -> Result<Session, Refusal> {
        Session::from_json(&self.value).map_err(|refusal| refusals::schema_in(place, refusal))
    }
}

/// Opens a state by the seals at hand, the settled ones first; `None` when there is no state.
fn open(
    place: &Place,
    judge: Judge<'_>,
    state: Option<&[u8]>,
    seals: &[(&[u8], bool)],
) -> Result<Option<Opened>, Refusal> {
    let Some(bytes) = state else { return Ok(None) };
    let parsed = parse(place, bytes)?;
    let enveloped = |index: &str| judge.seen.get(index).is_some_and(|seen| seen.enveloped);
    let mut worst: Option<Mismatch> = None;
    for (token, by_pending) in seals {
        let found = parsed.found(bytes, place, judge.workspace);
        match seal::check(token, judge.keys, found, &enveloped) {
            Ok(fit) => return Ok(Some(Opened { root: parsed.session(place)?, fit, by_pending: *by_pending })),
            // The seal that got furthest says best what happened.
            Err(mismatch) if worst.as_ref().is_none_or(|worst| worst.reason < mismatch.reason) => {
                worst = Some(mismatch);
            }
            Err(_) => {}
        }
    }
    if parsed.version > 1 || seals.iter().any(|(token, _)| seal::is_newer(token)) {
        return Err(refusals::newer(place));
    }
    Err(match worst {
        Some(mismatch) => refusals::seal_mismatch(place, &mismatch, judge.keys),
        None => refusals::seal_missing(place),
    })
}

/// Opens what was read in one go.
pub(crate) fn verify(place: &Place, judge: Judge<'_>, pair: &Pair) -> Result<Option<Opened>, Refusal> {
    let mut seals: Vec<(&[u8], bool)> = Vec::new();
    seals.extend(pair.seal.as_deref().map(|seal| (seal, false)));
    seals.extend(pair.pending.as_deref().map(|pending| (pending, true)));
    open(place, judge, pair.state.as_deref(), &seals)
}

/// Reads without lock: seal, state, pending, seal; accepted if either seal fits. Repairs nothing.
///
/// # Errors
/// The last reading's, after five.
pub(crate) fn read_unlocked(disk: &Disk, place: &Place, judge: Judge<'_>) -> Result<Option<Opened>, Refusal> {
    let mut left = READS;
    loop {
        let first = part(disk, &place.file(SEAL))?;
        let state = part(disk, &place.file(STATE))?;
        let pending = part(disk, &place.file(PENDING))?;
        let last = part(disk, &place.file(SEAL))?;
        let mut seals: Vec<(&[u8], bool)> = Vec::new();
        seals.extend(last.as_deref().map(|seal| (seal, false)));
        if first != last {
            seals.extend(first.as_deref().map(|seal| (seal, false)));
        }
        seals.extend(pending.as_deref().map(|pending| (pending, true)));
        match open(place, judge, state.as_deref(), &seals) {
            Ok(opened) => return Ok(opened),
            // A schema that is not understood stays so; everything else may be a commit under way.
            Err(refusal) if left <= 1 || refusal.code == "SESSION_SCHEMA_UNSUPPORTED" => return Err(refusal),
            Err(_) => {
                left -= 1;
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Finishes or clears what a writer left behind, under the exclusive lock, and opens the session.
///
/// The pair is brought to what is on disk afterwards.
pub(crate) fn recover(
    disk: &Disk,
    place: &Place,
    judge: Judge<'_>,
    pair: &mut Pair,
) -> Result<Option<Opened>, Refusal> {
    if pair.pending.is_none() {
        return verify(place, judge, pair);
    }
    let pending = place.file(PENDING);
    let failed = |error: std::io::Error| refusals::write_failed(&pending, &error);
    if pair.state.is_none() {
        // Staged before the first state, which never came.
        disk.remove_file(&pending).map_err(failed)?;
        pair.pending = None;
        return Ok(None);
    }
    let settled = Pair { pending: None, ..pair.clone() };
    match verify(place, judge, &settled) {
        Ok(opened) => {
            // Staged beside a state that stayed as it was.
            disk.remove_file(&pending).map_err(failed)?;
            pair.pending = None;
            return Ok(opened);
        }
        Err(refusal) if refusal.code == "SESSION_SCHEMA_UNSUPPORTED" || refusal.code == "SESSION_CORRUPT" => {
            return Err(refusal);
        }
        Err(_) => {}
    }
    let by_pending = Pair { seal: None, ..pair.clone() };
    match verify(place, judge, &by_pending) {
        Ok(Some(mut opened)) => {
            // The state was renamed, but perhaps not synced; the seal must not be on the medium before it.
            disk.sync_dir(&place.path).and_then(|()| disk.rename(&pending, &place.file(SEAL))).map_err(failed)?;
            pair.seal = pair.pending.take();
            opened.by_pending = false;
            Ok(Some(opened))
        }
        Ok(None) | Err(_) => verify(place, judge, pair),
    }
}

/// Whether a folder without state has a seal that belongs to one (trap 35); such a folder is not fresh.
pub(crate) fn is_seal_alone(pair: &Pair) -> bool {
    pair.state.is_none() && pair.seal.as_deref().is_some_and(|seal| seal::form(seal) != Form::Other)
}
