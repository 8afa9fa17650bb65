//! Transient sessions: below the state directory until a promotion or `session gc` (spec 03 §1.4).

use std::time::Duration;

use workflow_engine::{Refusal, StatePath, Timestamp, Workset, slug};

use crate::{
    FileStore,
    find::{Named, is_promoted, moved_note},
    fs::Kind,
    layout::{LOCK, PENDING, Place, SEAL, STATE},
    lock::hold_all,
    refusals,
    store::{View, workset},
};

/// A transient session that `session gc` looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Its minted slug.
    pub slug: String,
    /// Its index, if it could be read.
    pub session_index: Option<String>,
    /// Unix seconds of its last write, if it could be read.
    pub ts: Option<i64>,
    /// Whether it was removed.
    pub removed: bool,
    /// Why it was kept.
    pub kept_because: Option<String>,
}

impl FileStore {
    /// Notes where a promoted session went and removes its transient folder, whose lock is held. What stays because of
    /// an error goes when the session is next found in both places.
    pub(crate) fn retire(&self, view: &View, transient: &Place, planning: &Place) {
        if let Some(note) = moved_note(view, &transient.slug)
            && self
                .disk
                .replace(&note, planning.text.as_bytes(), true)
                .and_then(|()| self.disk.sync_dir(&view.roots.transient))
                .is_err()
        {
            // Without the note the slug would be lost: keep the copy for the next attempt.
            return;
        }
        let _ignored = self.remove_session(transient);
    }

    /// Removes the files of a session and its folder if nothing else is in it; its lock is held.
    fn remove_session(&self, place: &Place) -> std::io::Result<()> {
        self.disk.remove_file(&place.file(STATE))?;
        // A state that comes back must find its seal.
        self.disk.sync_dir(&place.path)?;
        for name in [SEAL, PENDING, LOCK] {
            self.disk.remove_file(&place.file(name))?;
        }
        for entry in self.disk.list(&place.path)? {
            if entry.kind == Kind::File && entry.name.to_str().is_some_and(|name| name.contains(crate::fs::STAGED)) {
                self.disk.remove_file(&place.path.join(&entry.name))?;
            }
        }
        self.disk.remove_dir(&place.path)
    }

    /// Removes what an interrupted promotion left, after looking again under both locks.
    pub(crate) fn retire_copy(&self, view: &View, copy: &Place, planning: &Place) -> Result<(), Refusal> {
        let Some(held) = hold_all(&self.disk, &self.queues, &[copy, planning], self.patience())? else { return Ok(()) };
        let left = self.open_held(view, copy)?;
        let kept = self.open_held(view, planning)?;
        if let (Some(left), Some(kept)) = (left, kept)
            && is_promoted(&left, &kept)
        {
            self.retire(view, copy, planning);
        }
        drop(held);
        Ok(())
    }

    pub(crate) fn open_held(&self, view: &View, place: &Place) -> Result<Option<crate::pair::Opened>, Refusal> {
        let mut pair = crate::pair::read_locked(&self.disk, place)?;
        crate::pair::recover(&self.disk, place, view.judge(), &mut pair)
    }

    pub(crate) fn read_slug(&self, view: &View, name: &str) -> Result<Workset, Refusal> {
        slug::check(name)?;
        match self.named(view, name)? {
            Named::Session(located) => match self.open_unlocked(view, &located.place, true)? {
                Some(opened) => {
                    let warnings = view.opening_warnings(&opened);
                    Ok(workset(vec![(located.place, Some(opened.root))], StatePath::default(), warnings))
                }
                None => Err(refusals::not_found(&format!("slug '{name}'"), &view.roots.searched(), &[])),
            },
            Named::Legacy(place) => Err(refusals::migration_required(&place.text)),
            Named::SealAlone(place) => Err(refusals::seal_left_alone(&place)),
            Named::Nothing => Err(refusals::not_found(&format!("slug '{name}'"), &view.roots.searched(), &[])),
        }
    }

    /// Removes transient sessions not written for `unused_for`, and notes of promotions whose target is gone. Without
    /// `remove` it only says what it would do. Sessions that do not open are kept.
    ///
    /// # Errors
    /// Roots and key (spec 03 §11 B).
    pub fn collect_transient(
        &self,
        unused_for: Duration,
        now: Timestamp,
        remove: bool,
    ) -> Result<Vec<Collected>, Refusal> {
        let view = self.view()?;
        let mut collected = Vec::new();
        let mut entries = self.disk.list(&view.roots.transient).unwrap_or_default();
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        for entry in entries {
            let Some(name) = entry.name.to_str() else { continue };
            match entry.kind {
                Kind::Directory => {
                    let place = view.roots.transient_place(&self.disk, name)?;
                    collected.push(self.collect_one(&view, &place, unused_for, now, remove)?);
                }
                Kind::File if remove && name.strip_suffix(".moved").is_some() => {
                    let path = view.roots.transient.join(name);
                    let target = self.disk.read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                    if target.is_none_or(|target| !self.disk.is_there(std::path::Path::new(target.trim()))) {
                        let _ignored = self.disk.remove_file(&path);
                    }
                }
                Kind::File | Kind::Symlink | Kind::Other => {}
            }
        }
        Ok(collected)
    }

    fn collect_one(
        &self,
        view: &View,
        place: &Place,
        unused_for: Duration,
        now: Timestamp,
        remove: bool,
    ) -> Result<Collected, Refusal> {
        let mut one =
            Collected { slug: place.slug.clone(), session_index: None, ts: None, removed: false, kept_because: None };
        let Some(held) = hold_all(&self.disk, &self.queues, &[place], self.patience())? else { return Ok(one) };
        match self.open_held(view, place) {
            Err(refusal) => one.kept_because = Some(refusal.text()),
            // What an interrupted promotion has begun to remove.
            Ok(None) if remove && moved_note(view, &place.slug).is_some_and(|note| self.disk.is_there(&note)) => {
                one.removed = self.remove_session(place).is_ok();
            }
            Ok(None) => one.kept_because = Some("it holds no session".to_owned()),
            Ok(Some(opened)) => {
                one.session_index = Some(opened.root.session_index.clone());
                one.ts = Some(opened.root.ts);
                let age = now.seconds().saturating_sub(opened.root.ts);
                if age < i64::try_from(unused_for.as_secs()).unwrap_or(i64::MAX) {
                    one.kept_because = Some(format!("it was written {age} s ago"));
                } else if remove {
                    one.removed = self.remove_session(place).is_ok();
                }
            }
        }
        drop(held);
        Ok(one)
    }
}
