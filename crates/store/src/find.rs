//! From a slug or an index to a folder (spec 03 §1.5, §1.8).

use std::path::PathBuf;

use workflow_engine::{Refusal, Warning, slug};

use crate::{
    FileStore, containment,
    fs::{Disk, is_missing},
    layout::{Place, SEAL, STATE},
    lookup::{Visit, Walk, walk},
    pair::Opened,
    refusals,
    seal::{self, Form},
    store::View,
};

/// Where a session was found.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) place: Place,
    /// Transient copy that an interrupted promotion left.
    pub(crate) leftover: Option<Place>,
}

impl Located {
    fn plain(place: Place) -> Self {
        Self { place, leftover: None }
    }
}

/// What a slug stands for.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    Session(Located),
    /// A folder from before `session.json`.
    Legacy(Place),
    /// A folder whose state is gone and whose seal is still there.
    SealAlone(Place),
    Nothing,
}

/// Whether a folder without state has a token of the formats before `session.json`.
pub(crate) fn has_legacy_token(disk: &Disk, place: &Place) -> bool {
    disk.read(&place.file(SEAL)).is_ok_and(|token| seal::form(&token) == Form::Other && !token.trim_ascii().is_empty())
}

impl FileStore {
    /// The folder that holds an index.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, `SESSION_COLLISION`. Whether it opens is not said.
    pub(crate) fn locate(&self, view: &View, index: &str) -> Result<Located, Refusal> {
        if let Some(place) = self.remembered(view, index) {
            return Ok(Located::plain(place));
        }
        self.search(view, index)
    }

    fn search(&self, view: &View, index: &str) -> Result<Located, Refusal> {
        let survey = self.memory.survey(&self.disk, &view.roots);
        let candidates: Vec<&Place> =
            survey.sessions.iter().filter(|(_, summary)| summary.holds(index)).map(|(place, _)| place).collect();
        let located = match candidates.as_slice() {
            [] => {
                let what = format!("session index {index}");
                return Err(
                    refusals::not_found(&what, &view.roots.searched(), &survey.unreadable).with("session_index", index)
                );
            }
            [only] => Located::plain((*only).clone()),
            several => self.choose(view, index, several)?,
        };
        self.memory.learn(index, &located.place.path);
        Ok(located)
    }

    pub(crate) fn index_not_found(&self, view: &View, index: &str) -> Refusal {
        let unreadable = self.memory.survey(&self.disk, &view.roots).unreadable;
        refusals::not_found(&format!("session index {index}"), &view.roots.searched(), &unreadable)
            .with("session_index", index)
    }

    /// The folder of an earlier call, if it still holds the index and is in its place. A transient one is always looked
    /// for again: it may have been promoted.
    fn remembered(&self, view: &View, index: &str) -> Option<Place> {
        let place = view.roots.place(self.memory.folder_of(index)?).ok().filter(|place| !place.transient)?;
        // A link may have come into its path since.
        self.disk.canonicalize(&place.path).ok().filter(|canonical| *canonical == place.path)?;
        let summary = self.memory.summary(&self.disk, &place.path).ok()?;
        let in_place = summary.claimed_folder.as_ref().is_none_or(|claimed| *claimed == place.sealed);
        (in_place && summary.holds(index)).then_some(place)
    }

    /// Among several folders with one index, the one whose seal fits.
    fn choose(&self, view: &View, index: &str, candidates: &[&Place]) -> Result<Located, Refusal> {
        let opened: Vec<(&Place, Opened)> = candidates
            .iter()
            .filter_map(|place| Some((*place, self.open_unlocked(view, place, false).ok().flatten()?)))
            .collect();
        let (transient, planning): (Vec<_>, Vec<_>) = opened.iter().partition(|(place, _)| place.transient);
        let collision = |several: &[&(&Place, Opened)]| {
            let folders: Vec<String> = several.iter().map(|(place, _)| place.text.clone()).collect();
            Err(refusals::index_collision(index, &folders))
        };
        match (planning.as_slice(), transient.as_slice()) {
            ([], []) => {
                let in_place = candidates.iter().find(|place| {
                    let summary = self.memory.summary(&self.disk, &place.path);
                    summary.is_ok_and(|summary| summary.claimed_folder.as_ref() == Some(&place.sealed))
                });
                // None fits: opening it says why.
                Ok(Located::plain(
                    (**in_place.or(candidates.first()).ok_or_else(|| self.index_not_found(view, index))?).clone(),
                ))
            }
            ([(place, kept)], _) => Ok(Located {
                place: (*place).clone(),
                leftover: transient.iter().find(|(_, copy)| is_promoted(copy, kept)).map(|(place, _)| (*place).clone()),
            }),
            ([], [(place, _)]) => Ok(Located::plain((*place).clone())),
            ([], several) | (several, _) => collision(several),
        }
    }

    /// What a slug stands for in planning tree and state directory.
    ///
    /// # Errors
    /// `SLUG_COLLISION`, `SESSION_COLLISION`, `PATH_ESCAPE`.
    pub(crate) fn named(&self, view: &View, name: &str, walk: &Walk) -> Result<Named, Refusal> {
        let planned = self.named_in_planning(view, name, walk)?;
        let transient = match view.roots.transient_place(&self.disk, name) {
            Ok(place) if self.disk.is_there(&place.file(STATE)) => Some(place),
            Ok(_) | Err(_) => None,
        };
        match (planned, transient) {
            (Named::Session(located), Some(copy)) => {
                self.one_of_two(view, name, &located.place, copy).map(Named::Session)
            }
            (Named::Session(located), None) => Ok(Named::Session(located)),
            (_, Some(place)) => {
                let summary = self.memory.summary(&self.disk, &place.path).ok();
                match summary.as_deref().and_then(|summary| summary.root()) {
                    // Looked for everywhere: a promotion may have left this copy.
                    Some(index) => self.search(view, index).map(Named::Session),
                    None => Ok(Named::Session(Located::plain(place))),
                }
            }
            (planned, None) => match self.promoted_to(view, name) {
                Some(place) => Ok(Named::Session(Located::plain(place))),
                None => Ok(planned),
            },
        }
    }

    fn one_of_two(&self, view: &View, name: &str, planning: &Place, copy: Place) -> Result<Located, Refusal> {
        let open = |place: &Place| self.open_unlocked(view, place, false).ok().flatten();
        match (open(planning), open(&copy)) {
            (Some(kept), Some(left)) if is_promoted(&left, &kept) => {
                Ok(Located { place: planning.clone(), leftover: Some(copy) })
            }
            _ => Err(refusals::slug_collision(name, &[planning.text.clone(), copy.text])),
        }
    }

    /// Follows the note that a promotion left under a minted slug.
    fn promoted_to(&self, view: &View, name: &str) -> Option<Place> {
        let note = self.disk.read(&moved_note(view, name)?).ok()?;
        let path = PathBuf::from(std::str::from_utf8(&note).ok()?.trim());
        // The note is a file like any other: where it leads is looked at, not believed.
        let path = containment::within(&self.disk, &view.roots.planning, &path).ok()?;
        let place = view.roots.place(path).ok().filter(|place| !place.transient)?;
        self.disk.is_there(&place.file(STATE)).then_some(place)
    }

    pub(crate) fn walk_for(&self, view: &View, name: &str) -> Walk {
        walk(&self.disk, &view.roots.planning, name.starts_with('.').then_some(name))
    }

    /// What a slug stands for in the planning tree.
    pub(crate) fn named_in_planning(&self, view: &View, name: &str, walk: &Walk) -> Result<Named, Refusal> {
        let mut matches: Vec<&Visit> = walk
            .visits
            .iter()
            .filter(|visit| visit.name == name || visit.path.file_name().is_some_and(|last| last == name))
            .collect();
        matches.sort_by(|left, right| (left.depth, &left.path).cmp(&(right.depth, &right.path)));
        matches.dedup_by(|left, right| left.path == right.path);
        let mut sessions = Vec::new();
        for visit in matches.iter().filter(|visit| visit.has_state) {
            sessions.push(view.roots.place(visit.path.clone())?);
        }
        match sessions.as_slice() {
            [] => {}
            [only] => return Ok(Named::Session(Located::plain(only.clone()))),
            several => {
                let folders: Vec<String> = several.iter().map(|place| place.text.clone()).collect();
                return Err(refusals::slug_collision(name, &folders));
            }
        }
        for visit in matches {
            let Ok(place) = view.roots.place(visit.path.clone()) else { continue };
            if visit.has_legacy_state || (visit.has_seal && has_legacy_token(&self.disk, &place)) {
                return Ok(Named::Legacy(place));
            }
            if visit.has_seal && self.disk.read(&place.file(SEAL)).is_ok_and(|seal| seal::form(&seal) != Form::Other) {
                return Ok(Named::SealAlone(place));
            }
        }
        Ok(Named::Nothing)
    }

    /// Makes the folder of a new session; says whether it was missing.
    ///
    /// # Errors
    /// `INVALID_SLUG`, `PATH_ESCAPE`, `WRITE_FAILED`.
    pub(crate) fn make_folder(
        &self,
        view: &View,
        name: &str,
        transient: bool,
        walk: &Walk,
    ) -> Result<(Place, bool), Refusal> {
        slug::check_new(name)?;
        let place = if transient {
            view.roots.transient_place(&self.disk, name)?
        } else {
            if let Some(twin) = twin(name, walk) {
                return Err(slug::twin_refusal(name, twin));
            }
            view.roots.planning_place(&self.disk, name)?
        };
        let root = if transient { std::path::Path::new("/") } else { view.roots.engineering.as_path() };
        let created = self
            .disk
            .create_durable_dirs(root, &place.path)
            .map_err(|error| refusals::write_failed(&place.path, &error))?;
        // Somebody may have put a link into the way meanwhile.
        match self.disk.canonicalize(&place.path) {
            Ok(canonical) if canonical != place.path => {
                Err(refusals::path_escape(&place.path, "a link appeared in its path"))
            }
            // A refused start has removed it again: whoever locks it sees that, and comes back.
            Err(error) if !is_missing(&error) => Err(refusals::write_failed(&place.path, &error)),
            _ => Ok((place, created)),
        }
    }
}

impl View {
    /// What opening a session had to say.
    pub(crate) fn opening_warnings(&self, opened: &Opened) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let generation = opened.root.generation();
        if let Some(seen) = self.seen.get(&opened.root.session_index)
            && seen.generation > generation
        {
            warnings.push(Warning {
                code: "W_ROLLED_BACK",
                message: format!(
                    "session {} is older than the one last seen here: generation {generation} now, {} before. If nobody restored \
                     it on purpose, stop and tell the user; later answers and steps are missing.",
                    opened.root.session_index, seen.generation
                ),
            });
        }
        if opened.fit.previous_key {
            warnings.push(Warning {
                code: "W_KEY_PREVIOUS",
                message: format!(
                    "session {} is sealed with a previous server key; the next write seals it with the current one.",
                    opened.root.session_index
                ),
            });
        }
        warnings
    }
}

/// An existing folder that a file system may take for this one.
pub(crate) fn twin<'a>(name: &str, walk: &'a Walk) -> Option<&'a str> {
    let folded = slug::fold(name);
    let folders = walk.visits.iter().filter(|visit| visit.depth == 1 || visit.has_state);
    folders.map(|visit| visit.name.as_str()).find(|other| *other != name && slug::fold(other) == folded)
}

/// Whether a transient session is what a planning session was before its promotion.
pub(crate) fn is_promoted(copy: &Opened, kept: &Opened) -> bool {
    copy.root.session_index == kept.root.session_index
        && copy.root.started_at == kept.root.started_at
        && copy.root.workflow_id == kept.root.workflow_id
        && copy.root.seq <= kept.root.seq
}

/// `<state dir>/transient/<slug>.moved`, for a slug that can name a file.
pub(crate) fn moved_note(view: &View, name: &str) -> Option<PathBuf> {
    slug::check_new(name).ok()?;
    Some(view.roots.transient.join(format!("{name}.moved")))
}
