//! Transient sessions: below the state directory until a promotion or `session gc` (spec 03 §1.4).

use workflow_engine::{Refusal, StatePath, Workset, slug};

use crate::{
    FileStore,
    find::{Named, is_promoted, moved_note},
    fs::Kind,
    layout::{LOCK, PENDING, Place, SEAL, STATE},
    lock::hold_all,
    refusals,
    store::{View, workset},
};

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
    pub(crate) fn remove_session(&self, place: &Place) -> std::io::Result<()> {
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
        match self.named(view, name, &self.walk_for(view, name))? {
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
}
