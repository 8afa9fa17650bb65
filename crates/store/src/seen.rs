//! What this state directory has seen of each session: rollback and downgrade are told by it (spec 03 §3.4).
//!
//! One small file per root session, replaced after each commit without waiting for the disk. Failing to read or write
//! it fails no call.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use workflow_engine::state::is_session_index;

use crate::fs::{Disk, Kind};

/// What was last seen of a session: its newest commit, so that a restored pair warns until it is written again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Sum of `seq` over the root and everything embedded, at the newest commit.
    pub(crate) generation: u64,
    /// Folder as seals call it.
    pub(crate) folder: String,
    /// Whether its seal was an envelope.
    pub(crate) enveloped: bool,
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct SeenTable {
    pub(crate) disk: Disk,
    /// `<state dir>/seen`.
    pub(crate) dir: PathBuf,
}

impl SeenTable {
    fn file(&self, index: &str) -> Option<PathBuf> {
        is_session_index(index).then(|| self.dir.join(format!("{index}.json")))
    }

    pub(crate) fn get(&self, index: &str) -> Option<Seen> {
        let bytes = self.disk.read(&self.file(index)?).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub(crate) fn put(&self, index: &str, seen: &Seen) {
        let (Some(file), Ok(text)) = (self.file(index), serde_json::to_vec(seen)) else { return };
        // A table that cannot be written only loses the warning about older pairs; one behind a link lies elsewhere.
        let made = self.disk.create_dirs(&self.dir).and_then(|_| self.disk.stat_link(&self.dir));
        if made.is_ok_and(|stat| stat.kind == Kind::Directory) {
            let _ignored = self.disk.replace(&file, &text, false);
        }
    }
}
