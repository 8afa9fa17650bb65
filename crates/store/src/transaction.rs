//! One call on one or two folders: hold, read, recover, verify, apply, commit, release (spec 03 §3.7).

use std::sync::atomic::Ordering;

use workflow_engine::{Refusal, Reply, StatePath, Target, Warning, Workset, state::Session};

use crate::{
    FileStore, SessionStore,
    commit::{Committed, NotCommitted, back_up, commit, keep_gitignore, unmoved},
    layout::{LOCK, Place},
    lock::hold_all,
    pair::{Opened, Pair, is_seal_alone, read_locked, recover},
    plan::{Plan, Role, untold},
    refusals,
    seal::{Form, Found, envelope},
    seen::Seen,
    store::{View, position, workset},
};

/// How often folders are looked up anew when others moved them meanwhile.
const PLANS: usize = 8;
/// How often the computation is repeated when somebody wrote without lock.
const REPEATS: usize = 3;

/// What a tool does to the sessions of a call.
type Apply<'a> = &'a mut dyn FnMut(&mut Workset) -> Result<Reply, Refusal>;

/// One folder under its lock.
struct Loaded {
    place: Place,
    pair: Pair,
    before: Option<Opened>,
}

impl SessionStore for FileStore {
    fn transaction_unless(
        &self,
        target: &Target,
        is_cancelled: &dyn Fn() -> bool,
        apply: &mut dyn FnMut(&mut Workset) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal> {
        if *target == Target::Nothing {
            return apply(&mut workset(Vec::new(), StatePath::default(), Vec::new()));
        }
        self.viewing(|view| self.transact(view, target, is_cancelled, apply))
    }

    fn read(&self, target: &Target) -> Result<Workset, Refusal> {
        match target {
            Target::Nothing => Ok(workset(Vec::new(), StatePath::default(), Vec::new())),
            Target::Session { index, .. } | Target::Dispatch { index, .. } => {
                self.viewing(|view| self.read_index(view, index, true))
            }
            Target::Slug { slug, .. } => self.viewing(|view| self.read_slug(view, slug)),
        }
    }
}

impl FileStore {
    fn transact(
        &self,
        view: &View,
        target: &Target,
        is_cancelled: &dyn Fn() -> bool,
        apply: Apply<'_>,
    ) -> Result<Reply, Refusal> {
        let patience = self.patience();
        let mut moved = 0;
        for _ in 0..PLANS {
            let plan = self.plan(view, target)?;
            let places: Vec<&Place> =
                std::iter::once(&plan.first).chain(plan.second.iter().map(|(place, _)| place)).collect();
            let Some(held) = hold_all(&self.disk, &self.queues, &places, patience)? else { continue };
            let attempt = self.attempt(view, &plan, is_cancelled, apply, &mut moved);
            for place in &plan.created {
                self.remove_if_empty(place);
            }
            drop(held);
            if let Some(reply) = attempt? {
                return Ok(reply);
            }
        }
        match target {
            Target::Session { index, .. } | Target::Dispatch { index, .. } => Err(self.index_not_found(view, index)),
            Target::Slug { slug, .. } => Err(refusals::state_moved(slug)),
            Target::Nothing => Err(refusals::state_moved("")),
        }
    }

    /// `None`: the folders are not what they were when they were looked up.
    fn attempt(
        &self,
        view: &View,
        plan: &Plan,
        is_cancelled: &dyn Fn() -> bool,
        apply: Apply<'_>,
        moved: &mut usize,
    ) -> Result<Option<Reply>, Refusal> {
        loop {
            let Some((mut loaded, mut workset)) = self.load_all(view, plan)? else { return Ok(None) };
            let reply = apply(&mut workset)?;
            if is_cancelled() {
                return Err(refusals::cancelled());
            }
            if let Some(reply) = self.commit_all(view, &mut loaded, &workset, reply)? {
                return Ok(Some(reply));
            }
            *moved += 1;
            if *moved >= REPEATS {
                return Err(refusals::state_moved(&plan.first.text));
            }
        }
    }

    /// Reads, recovers and verifies under the locks; `None` when the plan no longer holds.
    fn load_all(&self, view: &View, plan: &Plan) -> Result<Option<(Vec<Loaded>, Workset)>, Refusal> {
        let first = self.load(view, &plan.first)?;
        let mut warnings = plan.warnings.clone();
        let path = match (&plan.index, &first.before) {
            (None, None) if is_seal_alone(&first.pair) => return Err(refusals::seal_left_alone(&plan.first)),
            (None, None) if plan.existing => return Ok(None),
            (None, _) => StatePath::default(),
            (Some(index), before) => {
                let position = match before {
                    Some(opened) => position(&plan.first, &opened.root, index)?,
                    None => None,
                };
                let Some(path) = position else {
                    self.memory.forget(index);
                    return Ok(None);
                };
                path
            }
        };
        let fresh = first.before.is_none();
        let mut loaded = vec![first];
        if let Some((place, role)) = &plan.second {
            match (role, self.load(view, place)) {
                (Role::Promotion { .. }, Err(refusal)) => return Err(refusal),
                (Role::Promotion { .. }, Ok(target)) if target.before.is_none() && is_seal_alone(&target.pair) => {
                    return Err(refusals::seal_left_alone(place));
                }
                (Role::Promotion { named: false }, Ok(target)) if target.before.is_some() => return Ok(None),
                (Role::Promotion { .. }, Ok(target)) => loaded.push(target),
                (Role::Parent { .. }, Ok(parent)) if parent.before.is_some() => loaded.push(parent),
                (Role::Parent { asked }, outcome) => {
                    let refusal = match outcome {
                        Err(refusal) => refusal,
                        Ok(_) => refusals::parent_not_found(&place.slug, &view.roots.searched()),
                    };
                    if fresh && *asked {
                        return Err(refusal);
                    }
                    if *asked {
                        let message = format!("the parent was not linked: {}", refusal.text());
                        warnings.push(Warning { code: "W_PARENT_NOT_FOUND", message });
                    } else if plan.index.is_some() {
                        warnings.push(untold(&refusal));
                    }
                }
            }
        }
        for opened in loaded.iter().filter_map(|family| family.before.as_ref()) {
            warnings.extend(view.opening_warnings(opened));
        }
        let families = loaded
            .iter()
            .map(|family| (family.place.clone(), family.before.as_ref().map(|opened| opened.root.clone())))
            .collect();
        Ok(Some((loaded, workset(families, path, warnings))))
    }

    fn load(&self, view: &View, place: &Place) -> Result<Loaded, Refusal> {
        let mut pair = read_locked(&self.disk, place)?;
        let before = recover(&self.disk, place, view.judge(), &mut pair)?;
        if let Some(opened) = before.as_ref().filter(|opened| opened.fit.form == Form::Envelope) {
            // Written elsewhere, under another state directory: known from now on.
            let generation = opened.root.generation();
            let seen = view.seen.get(&opened.root.session_index);
            if seen.is_none_or(|seen| seen.generation < generation || !seen.enveloped) {
                view.note_seen(place, &opened.root);
            }
        }
        Ok(Loaded { place: place.clone(), pair, before })
    }

    /// Writes what changed, in the order of the families, and what moved away last; `None` when somebody wrote without
    /// lock before anything of this was written.
    fn commit_all(
        &self,
        view: &View,
        loaded: &mut [Loaded],
        workset: &Workset,
        mut reply: Reply,
    ) -> Result<Option<Reply>, Refusal> {
        let mut writes: Vec<(&Loaded, &Session, String, bool)> = Vec::new();
        let mut leaving: Vec<(&Loaded, &Session)> = Vec::new();
        for (family, loaded) in workset.families.iter().zip(loaded.iter()) {
            let before = loaded.before.as_ref().map(|opened| &opened.root);
            match (&family.root, before) {
                (None, None) => {}
                (None, Some(before)) => leaving.push((loaded, before)),
                (Some(after), before) if before == Some(after) => {}
                (Some(after), before) => {
                    if let Some(before) = before
                        && before.session_index != after.session_index
                        && !family.replaced
                    {
                        return Err(refusals::slug_in_use(&loaded.place, &before.session_index, &before.workflow_id));
                    }
                    after.validate()?;
                    let text = after.canonical_text();
                    if loaded.pair.state.as_deref() != Some(text.as_bytes()) {
                        writes.push((loaded, after, text, family.replaced && before.is_some()));
                    }
                }
            }
        }
        for (_, before) in &leaving {
            if !writes.iter().any(|(_, after, _, _)| after.session_index == before.session_index) {
                let message = format!("session {} would have been lost", before.session_index);
                return Err(Refusal::new("INTERNAL_INVALID_STATE", message));
            }
        }
        let touched = writes.iter().map(|(loaded, ..)| *loaded).chain(leaving.iter().map(|(loaded, _)| *loaded));
        for loaded in touched {
            if !unmoved(&self.disk, &loaded.place, &loaded.pair) {
                return Ok(None);
            }
        }
        for (nth, (loaded, after, text, replaced)) in writes.iter().enumerate() {
            let written = self.write(view, loaded, after, text, *replaced);
            match written {
                Ok(Committed::Settled) => {}
                Ok(Committed::Pending) => reply.warnings.push(Warning {
                    code: "W_SEAL_PENDING",
                    message: format!(
                        "the state in {} is written; its seal could not be put in place and will be by the next call.",
                        loaded.place.text
                    ),
                }),
                Err(NotCommitted::Moved) if nth == 0 => return Ok(None),
                Err(NotCommitted::Failed(refusal)) if nth == 0 => return Err(refusal),
                // The first session is written and valid; the other one converges when it is next opened.
                Err(NotCommitted::Moved) => reply.warnings.push(unlinked(&loaded.place, "it was being changed")),
                Err(NotCommitted::Failed(refusal)) => {
                    reply.warnings.push(unlinked(&loaded.place, &refusal.text()));
                }
            }
        }
        for (loaded, before) in leaving {
            let promoted = writes.iter().find(|(_, after, _, _)| after.session_index == before.session_index);
            if let Some((target, ..)) = promoted {
                self.retire(view, &loaded.place, &target.place);
                self.memory.learn(&before.session_index, &target.place.path);
            }
        }
        Ok(Some(reply))
    }

    fn write(
        &self,
        view: &View,
        loaded: &Loaded,
        after: &Session,
        text: &str,
        replaced: bool,
    ) -> Result<Committed, NotCommitted> {
        let place = &loaded.place;
        if replaced && let Some(opened) = &loaded.before {
            back_up(&self.disk, place, &loaded.pair, opened.root.seq).map_err(NotCommitted::Failed)?;
        }
        let found = Found {
            bytes: text.as_bytes(),
            session_index: &after.session_index,
            seq: after.seq,
            folder: &place.sealed,
            workspace: &view.roots.workspace_id,
        };
        let seal = envelope(&view.keys.current, found);
        let committed = commit(&self.disk, place, &loaded.pair, text.as_bytes(), &seal)?;
        view.note_seen(place, after);
        for (_, session) in after.walk() {
            self.memory.learn(&session.session_index, &place.path);
        }
        if !place.transient && !self.gitignore_kept.swap(true, Ordering::Relaxed) {
            keep_gitignore(&self.disk, &view.roots.planning);
        }
        Ok(committed)
    }

    /// Removes a folder that was made for this call when nothing but its lock file is in it; its lock is held.
    fn remove_if_empty(&self, place: &Place) {
        let Ok(entries) = self.disk.list(&place.path) else { return };
        if entries.iter().all(|entry| entry.name == *LOCK) {
            // Whoever waits for the lock sees that its file is gone.
            let _ignored = self.disk.remove_file(&place.file(LOCK)).and_then(|()| self.disk.remove_dir(&place.path));
        }
    }
}

impl View {
    /// Remembers a session as it is now.
    pub(crate) fn note_seen(&self, place: &Place, root: &Session) {
        let seen = Seen { generation: root.generation(), folder: place.sealed.clone(), enveloped: true };
        self.seen.put(&root.session_index, &seen);
    }
}

fn unlinked(place: &Place, why: &str) -> Warning {
    Warning {
        code: "W_PARENT_LINK",
        message: format!(
            "the session is written, but the parent in {} was not told: {why} The link is added when either is next opened.",
            place.text
        ),
    }
}
