//! `session adopt`: an operator takes a folder over whose seal does not fit (spec 03 §3.4).

use std::collections::HashSet;

use workflow_engine::{Refusal, StatePath, index, state::Session};

use crate::{
    FileStore,
    commit::{NotCommitted, commit},
    layout::Place,
    lock::hold_all,
    pair::{Pair, parse, read_locked, recover},
    refusals,
    seal::{Found, claimed_folder, envelope},
    store::View,
};

/// What adopting a folder does, or would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Adoption {
    /// Absolute path.
    pub folder: String,
    /// Why it does not open: a reason of `SEAL_MISMATCH`, or `missing`. `None`: it opens, and nothing is to be done.
    pub reason: Option<String>,
    /// What the seal says.
    pub sealed: String,
    /// What was found.
    pub found: String,
    /// What is known to have changed, one sentence each.
    pub changes: Vec<String>,
    /// Old and new index of each session whose index is taken.
    pub reindexed: Vec<(String, String)>,
    /// Index of the root session afterwards.
    pub session_index: String,
}

impl FileStore {
    /// Says what adopting a folder would do. Changes nothing.
    ///
    /// # Errors
    /// The folder cannot be adopted: `SESSION_NOT_FOUND`, `SESSION_CORRUPT`, `SESSION_SCHEMA_UNSUPPORTED`,
    /// `INTERNAL_INVALID_STATE`, `SESSION_BUSY`.
    pub fn adoption(&self, folder: &str) -> Result<Adoption, Refusal> {
        self.adopt_or_show(folder, false)
    }

    /// Seals a folder as it is, for this key, place and workspace.
    ///
    /// # Errors
    /// As [`FileStore::adoption`]; `WRITE_FAILED`.
    pub fn adopt(&self, folder: &str) -> Result<Adoption, Refusal> {
        self.adopt_or_show(folder, true)
    }

    fn adopt_or_show(&self, folder: &str, write: bool) -> Result<Adoption, Refusal> {
        let view = self.view()?;
        let place = self.folder_argument(&view.roots, folder)?;
        let gone = || refusals::not_found(&format!("the folder {}", place.text), &view.roots.searched(), &[]);
        let Some(held) = hold_all(&self.disk, &self.queues, &[&place], self.patience())? else { return Err(gone()) };
        let mut pair = read_locked(&self.disk, &place)?;
        let bytes = pair.state.clone().ok_or_else(gone)?;
        let refusal = match recover(&self.disk, &place, view.judge(), &mut pair) {
            Ok(opened) => {
                let index = opened.map(|opened| opened.root.session_index).unwrap_or_default();
                return Ok(Adoption {
                    folder: place.text.clone(),
                    reason: None,
                    sealed: String::new(),
                    found: String::new(),
                    changes: Vec::new(),
                    reindexed: Vec::new(),
                    session_index: index,
                });
            }
            Err(refusal) if refusal.code == "SEAL_MISMATCH" || refusal.code == "SEAL_MISSING" => refusal,
            Err(refusal) => return Err(refusal),
        };
        let mut root = parse(&place, &bytes)?.session(&place)?;
        root.validate()?;
        let changes = known_changes(&view, &place, &pair, &root);
        let reindexed = self.reindex(&view, &place, &mut root);
        if !place.transient {
            root.planning_folder_path = Some(place.text.clone());
        }
        root.seq += 1;
        if write {
            self.seal_anew(&view, &place, &pair, &root)?;
        }
        drop(held);
        let detail =
            |key: &str| refusal.details.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        Ok(Adoption {
            folder: place.text.clone(),
            reason: Some(if refusal.code == "SEAL_MISSING" { "missing".to_owned() } else { detail("reason") }),
            sealed: detail("sealed"),
            found: detail("found"),
            changes,
            reindexed,
            session_index: root.session_index,
        })
    }

    fn seal_anew(&self, view: &View, place: &Place, pair: &Pair, root: &Session) -> Result<(), Refusal> {
        root.validate()?;
        let text = root.canonical_text();
        let found = Found {
            bytes: text.as_bytes(),
            session_index: &root.session_index,
            seq: root.seq,
            folder: &place.sealed,
            workspace: &view.roots.workspace_id,
        };
        let seal = envelope(&view.keys.current, found);
        match commit(&self.disk, place, pair, text.as_bytes(), &seal) {
            Ok(_) => {}
            Err(NotCommitted::Moved) => return Err(refusals::state_moved(&place.text)),
            Err(NotCommitted::Failed(refusal)) => return Err(refusal),
        }
        view.note_seen(place, root);
        for (_, session) in root.walk() {
            self.memory.learn(&session.session_index, &place.path);
        }
        Ok(())
    }

    /// Gives the next free index to every session whose index another folder rightly holds.
    fn reindex(&self, view: &View, place: &Place, root: &mut Session) -> Vec<(String, String)> {
        let survey = self.memory.survey(&self.disk, &view.roots);
        let others: Vec<_> = survey.sessions.iter().filter(|(other, _)| other.path != place.path).collect();
        let rightful: HashSet<String> = others
            .iter()
            .filter_map(|(other, _)| self.open_unlocked(view, other, false).ok().flatten())
            .flat_map(|opened| opened.root.walk().map(|(_, s)| s.session_index.clone()).collect::<Vec<_>>())
            .collect();
        let paths: Vec<StatePath> = root.walk().map(|(path, _)| path).collect();
        let mut reindexed = Vec::new();
        for path in paths {
            let Some(old) = root.at(&path).map(|session| session.session_index.clone()) else { continue };
            if !rightful.contains(&old) {
                continue;
            }
            let own: HashSet<String> = root.walk().map(|(_, session)| session.session_index.clone()).collect();
            let is_taken = |index: &str| own.contains(index) || others.iter().any(|(_, summary)| summary.holds(index));
            let new = index::mint_free(self, &index::place(&place.text, &path), &is_taken);
            if let Some(session) = root.at_mut(&path) {
                session.session_index.clone_from(&new);
            }
            if let Some((last, above)) = path.0.split_last()
                && let Some(reference) =
                    root.at_mut(&StatePath(above.to_vec())).and_then(|parent| parent.triggered_workflows.get_mut(*last))
            {
                reference.session_index.clone_from(&new);
            }
            reindexed.push((old, new));
        }
        reindexed
    }
}

fn known_changes(view: &View, place: &Place, pair: &Pair, root: &Session) -> Vec<String> {
    let mut changes = Vec::new();
    if let Some(claimed) = pair.seal.as_deref().and_then(claimed_folder)
        && claimed != place.sealed
    {
        changes.push(format!("the seal names the folder {claimed}; this is {}.", place.sealed));
    }
    if let Some(stamped) = root.planning_folder_path.as_ref().filter(|stamped| **stamped != place.text) {
        changes.push(format!("the state says it lies in {stamped}; it lies in {}.", place.text));
    }
    match view.seen.get(&root.session_index) {
        Some(seen) => {
            let generation = root.generation();
            changes.push(format!(
                "this server last saw session {} in {} at generation {}; here it is at {generation}.",
                root.session_index, seen.folder, seen.generation
            ));
        }
        None => changes.push(format!("this server has not seen session {} before.", root.session_index)),
    }
    changes
}
