//! Writing a session so that every crash leaves the old pair or the new one (spec 03 §3.6).

use std::{io, time::Duration};

use workflow_engine::Refusal;

use crate::{
    fs::{Disk, Kind, STAGED, staging},
    layout::{PENDING, Place, SEAL, STATE},
    pair::Pair,
    refusals,
};

/// Age at which a file that another program staged counts as forgotten.
const FORGOTTEN: Duration = Duration::from_hours(1);

/// Why a commit did not happen.
#[derive(Debug)]
pub(crate) enum NotCommitted {
    /// Somebody who takes no lock wrote in between: what was computed is out of date.
    Moved,
    /// Nothing was changed, or that is not known; the refusal says which.
    Failed(Refusal),
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// State and seal are in place.
    Settled,
    /// The state is in place and sealed by the pending file; the next writer renames it.
    Pending,
}

/// Whether the files still are what was read under the lock.
pub(crate) fn unmoved(disk: &Disk, place: &Place, read: &Pair) -> bool {
    let same = |name: &str, expected: &Option<Vec<u8>>| {
        disk.read_if_there(&place.file(name)).is_ok_and(|found| found == *expected)
    };
    same(STATE, &read.state) && same(SEAL, &read.seal)
}

/// Whether the folder is still where it was found, and not a link to another one.
fn in_place(disk: &Disk, place: &Place) -> Result<(), NotCommitted> {
    match disk.canonicalize(&place.path) {
        Ok(found) if found == place.path => Ok(()),
        Ok(_) => Err(NotCommitted::Failed(refusals::path_escape(&place.path, "a link appeared in its path"))),
        Err(error) => Err(NotCommitted::Failed(refusals::write_failed(&place.path, &error))),
    }
}

/// Puts a new state with its seal in place of what was read, in this order: names of the last commit synced; new state
/// and pending seal written and synced; their names synced; state renamed; its name synced; pending seal renamed.
///
/// So at any time either the seal fits the state, or the pending one does; and a state without pending seal beside it is
/// on the medium. The last rename needs no sync of its own: it may be lost, and then the pending seal is there.
pub(crate) fn commit(
    disk: &Disk,
    place: &Place,
    read: &Pair,
    state: &[u8],
    seal: &str,
) -> Result<Committed, NotCommitted> {
    let target = place.file(STATE);
    let pending = place.file(PENDING);
    let staged = staging(&target);
    let undo = || {
        let _ignored = disk.remove_file(&staged);
        let _ignored = disk.remove_file(&pending);
    };
    let failed = |path: &std::path::Path, error: &io::Error| {
        undo();
        NotCommitted::Failed(refusals::write_failed(path, error))
    };

    in_place(disk, place)?;
    // What the last writer renamed: a new pending seal must not take the place of one that is still needed.
    disk.sync_dir(&place.path).map_err(|error| failed(&place.path, &error))?;
    disk.create(&staged, state, true).map_err(|error| failed(&staged, &error))?;
    disk.remove_file(&pending)
        .and_then(|()| disk.create(&pending, seal.as_bytes(), true))
        .and_then(|()| disk.sync_dir(&place.path))
        .map_err(|error| failed(&pending, &error))?;
    if let Err(elsewhere) = in_place(disk, place) {
        // The name is of this commit alone; the other one may be somebody's file there.
        let _ignored = disk.remove_file(&staged);
        return Err(elsewhere);
    }
    if !unmoved(disk, place, read) {
        undo();
        return Err(NotCommitted::Moved);
    }
    if let Err(error) = disk.rename(&staged, &target) {
        // A failure may come after the deed.
        let done = !disk.is_there(&staged) && disk.read(&target).is_ok_and(|found| found == state);
        if !done {
            return Err(failed(&target, &error));
        }
    }
    // Before the pending seal goes: while it is there, whoever comes next syncs what it belongs to.
    if let Err(error) = disk.sync_dir(&place.path) {
        return Err(NotCommitted::Failed(refusals::write_in_doubt(&target, &error)));
    }
    let settled = disk.rename(&pending, &place.file(SEAL)).is_ok()
        || (!disk.is_there(&pending) && disk.read(&place.file(SEAL)).is_ok_and(|found| found == seal.as_bytes()));
    sweep(disk, place);
    Ok(if settled { Committed::Settled } else { Committed::Pending })
}

/// Removes what crashed writers staged: ours at once, since nobody else holds the lock; that of others after an hour.
fn sweep(disk: &Disk, place: &Place) {
    for entry in disk.list(&place.path).unwrap_or_default() {
        let Some(name) = entry.name.to_str() else { continue };
        let staged = name.starts_with(&format!("{STATE}.tmp.")) || name.starts_with(&format!("{SEAL}.tmp."));
        if entry.kind != Kind::File || !staged {
            continue;
        }
        let path = place.file(name);
        let forgotten = || {
            let modified = disk.stat_link(&path).ok().and_then(|stat| stat.modified);
            modified.and_then(|modified| disk.now().duration_since(modified).ok()).is_some_and(|age| age > FORGOTTEN)
        };
        if name.contains(STAGED) || forgotten() {
            let _ignored = disk.remove_file(&path);
        }
    }
}

/// Keeps a copy of the pair under backup names before another session takes its place (spec 03 §5.5).
pub(crate) fn back_up(disk: &Disk, place: &Place, read: &Pair, seq: u64) -> Result<(), Refusal> {
    for nth in 0..100_u32 {
        let number = if nth == 0 { seq.to_string() } else { format!("{seq}-{nth}") };
        let state = place.file(&format!("session.{number}.bak.json"));
        let seal = place.file(&format!(".session-token.{number}.bak"));
        if disk.is_there(&state) || disk.is_there(&seal) {
            continue;
        }
        let copies = [(state, &read.state), (seal, &read.seal)];
        for (path, bytes) in &copies {
            if let Some(bytes) = bytes {
                disk.create(path, bytes, true).map_err(|error| {
                    // Neither was there before; half a backup is none.
                    for (path, _) in &copies {
                        let _ignored = disk.remove_file(path);
                    }
                    refusals::write_failed(path, &error)
                })?;
            }
        }
        return Ok(());
    }
    let full = io::Error::new(io::ErrorKind::AlreadyExists, "a hundred backups of this write exist");
    Err(refusals::write_failed(&place.path, &full))
}

/// Names that belong in the planning root's `.gitignore`.
const IGNORED: [&str; 3] = [".session.lock", ".session-token.pending", "*.tmp.*"];

/// Adds what is missing to the planning root's `.gitignore`; failing fails no call (spec 03 §3.7).
pub(crate) fn keep_gitignore(disk: &Disk, planning: &std::path::Path) {
    let path = planning.join(".gitignore");
    let existing = match disk.stat_link(&path) {
        Ok(stat) if stat.kind == Kind::File => disk.read(&path),
        Ok(_) => return,
        Err(_) => Ok(Vec::new()),
    };
    let Ok(existing) = existing else { return };
    let text = String::from_utf8_lossy(&existing);
    let missing: Vec<&str> =
        IGNORED.into_iter().filter(|name| !text.lines().any(|line| line.trim() == *name)).collect();
    if missing.is_empty() {
        return;
    }
    let lead = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let added = format!("{lead}{}\n", missing.join("\n"));
    let _ignored = disk
        .open(&path, crate::fs::Open::Append)
        .and_then(|mut file| crate::fs::write_all(file.as_mut(), added.as_bytes()));
}
