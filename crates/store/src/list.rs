//! The sessions of a workspace as an operator sees them: `sessions`, `session verify`.

use workflow_engine::{Refusal, Warning, slug, state::Status};

use crate::{
    FileStore,
    find::has_legacy_token,
    layout::{Place, Roots},
    lookup::walk,
    pair::Opened,
    refusals,
    seal::Form,
    store::View,
};

/// One session folder.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionListing {
    /// Absolute path.
    pub folder: String,
    /// Name of the folder.
    pub slug: String,
    /// Below the state directory.
    pub transient: bool,
    /// What is in it, or why it does not open.
    pub session: Result<SessionFacts, Refusal>,
}

/// A session that opens.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFacts {
    /// Index of the root session.
    pub session_index: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Version recorded at start.
    pub workflow_version: String,
    /// The session's own agent.
    pub agent_id: String,
    /// `active`, `blocked` or `completed`, as `get_workflow_status` says it.
    pub status: &'static str,
    /// Activity id; empty before the first.
    pub current_activity: String,
    /// Writes of the root session.
    pub seq: u64,
    /// Unix seconds of the last write.
    pub ts: i64,
    /// RFC 3339.
    pub started_at: String,
    /// Sessions embedded in it, at any depth.
    pub embedded: usize,
    /// `envelope`, or `bare` for one that only the original has written so far.
    pub seal: &'static str,
    /// Index of the parent, for a child with its own folder.
    pub parent: Option<String>,
    /// `W_ROLLED_BACK`, `W_KEY_PREVIOUS`.
    pub warnings: Vec<Warning>,
}

impl FileStore {
    /// Every session folder of planning tree and state directory, by path. Folders of older formats are among them, as
    /// refused with `MIGRATION_REQUIRED`.
    ///
    /// # Errors
    /// Roots and key (spec 03 §11 B).
    pub fn sessions(&self) -> Result<Vec<SessionListing>, Refusal> {
        let view = self.view()?;
        let mut places = Vec::new();
        for root in [&view.roots.planning, &view.roots.transient] {
            for visit in walk(&self.disk, root, None).visits {
                let Ok(place) = view.roots.place(visit.path) else { continue };
                let legacy = !visit.has_state
                    && (visit.has_legacy_state || (visit.has_seal && has_legacy_token(&self.disk, &place)));
                if (visit.has_state || legacy) && !visit.again {
                    places.push((place, legacy));
                }
            }
        }
        places.sort_by(|(left, _), (right, _)| left.text.cmp(&right.text));
        Ok(places.into_iter().map(|(place, legacy)| self.listing(&view, &place, legacy)).collect())
    }

    /// Opens one folder and says what it found: a slug, a path below the planning root, or an absolute path.
    ///
    /// # Errors
    /// The folder cannot be one of this server.
    pub fn verify(&self, folder: &str) -> Result<SessionListing, Refusal> {
        let view = self.view()?;
        let place = self.folder_argument(&view.roots, folder)?;
        Ok(self.listing(&view, &place, false))
    }

    fn listing(&self, view: &View, place: &Place, legacy: bool) -> SessionListing {
        let session = if legacy {
            Err(refusals::migration_required(&place.text))
        } else {
            match self.open_unlocked(view, place, true) {
                Ok(Some(opened)) => Ok(facts(view, opened)),
                Ok(None) => {
                    Err(refusals::not_found(&format!("the folder {}", place.text), &view.roots.searched(), &[]))
                }
                Err(refusal) => Err(refusal),
            }
        };
        SessionListing { folder: place.text.clone(), slug: place.slug.clone(), transient: place.transient, session }
    }

    /// The folder that an operator named.
    ///
    /// # Errors
    /// `PATH_ESCAPE`, `INVALID_SLUG`, `SESSION_NOT_FOUND` when there is no such folder, `SLUG_COLLISION`.
    pub(crate) fn folder_argument(&self, roots: &Roots, folder: &str) -> Result<Place, Refusal> {
        let given = std::path::Path::new(folder);
        let nothing = || {
            Err(refusals::not_found(&format!("the folder '{folder}'"), &roots.searched(), &[]).with("folder", folder))
        };
        if given.is_absolute() {
            let path = crate::containment::resolved(&self.disk, given)?;
            let place = roots.place(path)?;
            return if self.disk.list(&place.path).is_ok() { Ok(place) } else { nothing() };
        }
        for segment in folder.split('/') {
            slug::check(segment)?;
        }
        let direct = [(&roots.planning, roots.planning.join(given)), (&roots.transient, roots.transient.join(given))];
        for (root, path) in direct {
            if self.disk.list(&path).is_ok() {
                return roots.place(crate::containment::within(&self.disk, root, &path)?);
            }
        }
        let visits = walk(&self.disk, &roots.planning, folder.starts_with('.').then_some(folder)).visits;
        let matches: Vec<_> = visits.into_iter().filter(|visit| visit.name == folder && !visit.again).collect();
        match matches.as_slice() {
            [] => nothing(),
            [only] => roots.place(only.path.clone()),
            several => {
                let folders: Vec<String> = several.iter().map(|visit| visit.path.display().to_string()).collect();
                Err(refusals::slug_collision(folder, &folders))
            }
        }
    }
}

fn facts(view: &View, opened: Opened) -> SessionFacts {
    let warnings = view.opening_warnings(&opened);
    let root = opened.root;
    SessionFacts {
        status: match root.status {
            _ if root.active_checkpoint.is_some() => "blocked",
            Status::Completed | Status::Aborted => "completed",
            Status::Running => "active",
        },
        embedded: root.walk().count().saturating_sub(1),
        seal: if opened.fit.form == Form::Bare { "bare" } else { "envelope" },
        parent: root.parent_session.map(|parent| parent.session_index),
        session_index: root.session_index,
        workflow_id: root.workflow_id,
        workflow_version: root.workflow_version,
        agent_id: root.agent_id,
        current_activity: root.current_activity,
        seq: root.seq,
        ts: root.ts,
        started_at: root.started_at,
        warnings,
    }
}
