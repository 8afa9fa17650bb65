//! `session gc`: what is left below the state directory and nobody comes back to (spec 03 §1.4). Planning folders are
//! never looked into.

use std::path::Path;
use std::time::{Duration, SystemTime};

use workflow_engine::{Refusal, Timestamp, state::Session};

use crate::{
    FileStore,
    find::moved_note,
    fs::{Entry, Kind, STAGED},
    layout::{LOCK, Place},
    lock::hold_all,
    store::View,
};

/// Older than this, a staged file belongs to nobody who still runs.
const FORGOTTEN: Duration = Duration::from_hours(1);
const NOTE: &str = ".moved";

/// What something below the state directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A transient session.
    Session,
    /// A folder of a transient session without one.
    Folder,
    /// The note of a promotion: where the session went.
    Note,
    /// A file that was staged and never put in place.
    Staged,
}

/// Something that `session gc` looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// What it is.
    pub what: Leftover,
    /// The minted slug of a session, the path of anything else relative to the directory it lies in.
    pub slug: String,
    /// Absolute path.
    pub path: String,
    /// Its index, if it is a session that could be read.
    pub session_index: Option<String>,
    /// Its workflow, if it is a session that could be read.
    pub workflow_id: Option<String>,
    /// Unix seconds of its last write, if it is a session that could be read.
    pub ts: Option<i64>,
    /// Whether it was removed.
    pub removed: bool,
    /// Why it was kept; `None`: it was removed, or would be.
    pub kept_because: Option<String>,
    /// Why it goes; empty when it was kept.
    pub reason: String,
}

impl Collected {
    fn of(what: Leftover, slug: &str, path: &Path) -> Self {
        Self {
            what,
            slug: slug.to_owned(),
            path: path.display().to_string(),
            session_index: None,
            workflow_id: None,
            ts: None,
            removed: false,
            kept_because: None,
            reason: String::new(),
        }
    }

    fn keep(&mut self, reason: impl Into<String>) {
        self.kept_because = Some(reason.into());
        self.reason.clear();
    }

    /// Says why it goes, and lets it go if that was asked for.
    fn go(&mut self, reason: impl Into<String>, remove: bool, how: impl FnOnce() -> std::io::Result<()>) {
        self.reason = reason.into();
        if !remove {
            return;
        }
        match how() {
            Ok(()) => self.removed = true,
            Err(error) => self.keep(format!("it could not be removed: {error}")),
        }
    }
}

impl FileStore {
    /// Removes transient sessions not written for `unused_for`, with their traces; notes as old of promotions whose
    /// target is gone; and staged files that nobody will put in place any more. Without `remove` it only says what it
    /// would do. Sessions that do not open are kept.
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
        for entry in self.sorted(&view.roots.transient) {
            let Some(name) = entry.name.to_str() else { continue };
            match entry.kind {
                Kind::Directory => {
                    let place = view.roots.transient_place(&self.disk, name)?;
                    collected.extend(self.collect_folder(&view, &place, unused_for, now, remove));
                }
                Kind::File => collected.extend(self.collect_note(&view, name, unused_for, now, remove)),
                Kind::Symlink | Kind::Other => {}
            }
        }
        let state = &view.roots.state;
        let mut directories = vec![state.clone(), state.join("transient"), state.join("seen"), state.join("trace")];
        if !directories.contains(&self.options.key_dir) {
            directories.push(self.options.key_dir.clone());
        }
        for directory in directories {
            collected.extend(self.collect_staged(&directory, remove));
        }
        Ok(collected)
    }

    fn sorted(&self, directory: &Path) -> Vec<Entry> {
        let mut entries = self.disk.list(directory).unwrap_or_default();
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        entries
    }

    fn collect_folder(
        &self,
        view: &View,
        place: &Place,
        unused_for: Duration,
        now: Timestamp,
        remove: bool,
    ) -> Option<Collected> {
        let mut one = Collected::of(Leftover::Session, &place.slug, &place.path);
        let held = match hold_all(&self.disk, &self.queues, &[place], self.patience()) {
            Ok(Some(held)) => held,
            Ok(None) => return None,
            Err(refusal) => {
                one.keep(refusal.text());
                return Some(one);
            }
        };
        match self.open_held(view, place) {
            Err(refusal) => one.keep(refusal.text()),
            Ok(None) => {
                one.what = Leftover::Folder;
                let promoted = moved_note(view, &place.slug).is_some_and(|note| self.disk.is_there(&note));
                let entries = self.disk.list(&place.path).unwrap_or_default();
                let is_ours = |entry: &Entry| {
                    entry.name == *LOCK || entry.name.to_str().is_some_and(|name| name.contains(STAGED))
                };
                if promoted {
                    one.go("its session was moved to a planning folder", remove, || self.remove_session(place));
                } else if entries.iter().all(is_ours) && self.age(&place.path).is_some_and(|age| age > FORGOTTEN) {
                    one.go("it holds no session, only a lock", remove, || self.remove_session(place));
                } else {
                    one.keep("it holds no session");
                }
            }
            Ok(Some(opened)) => {
                let root = opened.root;
                one.session_index = Some(root.session_index.clone());
                one.workflow_id = Some(root.workflow_id.clone());
                one.ts = Some(root.ts);
                let age = Duration::from_secs(u64::try_from(now.seconds().saturating_sub(root.ts)).unwrap_or(0));
                if age < unused_for {
                    one.keep(format!("last used {} ago", span(age)));
                } else {
                    one.go(format!("last used {} ago", span(age)), remove, || {
                        self.remove_session(place)?;
                        self.forget_session(view, &root);
                        Ok(())
                    });
                }
            }
        }
        drop(held);
        Some(one)
    }

    /// Removes what the state directory keeps about a session that is gone. What stays by an error harms nobody.
    fn forget_session(&self, view: &View, root: &Session) {
        for (_, session) in root.walk() {
            for (directory, ending) in [("seen", "json"), ("trace", "jsonl")] {
                let path = view.roots.state.join(directory).join(format!("{}.{ending}", session.session_index));
                let _ignored = self.disk.remove_file(&path);
            }
            self.memory.forget(&session.session_index);
        }
    }

    /// The note of a promotion whose target is gone; `None` for one that still leads somewhere, and for other files.
    fn collect_note(
        &self,
        view: &View,
        name: &str,
        unused_for: Duration,
        now: Timestamp,
        remove: bool,
    ) -> Option<Collected> {
        name.strip_suffix(NOTE)?;
        let path = view.roots.transient.join(name);
        let target = self.disk.read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok())?;
        let target = target.trim();
        if self.disk.is_there(Path::new(target)) {
            return None;
        }
        let mut one = Collected::of(Leftover::Note, name, &path);
        let written = self.disk.stat_link(&path).ok().and_then(|stat| stat.modified);
        let written = written.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
        let now = Duration::from_secs(u64::try_from(now.seconds()).unwrap_or(0));
        let age = now.saturating_sub(written);
        // The folder may only be away: a disk that is not mounted, a branch that is not checked out.
        if age < unused_for {
            one.keep(format!("{target} is not there, but the note is only {} old", span(age)));
        } else {
            one.go(format!("the session went to {target}, which is not there"), remove, || {
                self.disk.remove_file(&path)
            });
        }
        Some(one)
    }

    fn collect_staged(&self, directory: &Path, remove: bool) -> Vec<Collected> {
        let mut collected = Vec::new();
        for entry in self.sorted(directory) {
            let Some(name) = entry.name.to_str().filter(|name| name.contains(STAGED)) else { continue };
            let path = directory.join(name);
            let age = self.age(&path).filter(|age| *age > FORGOTTEN);
            let (Kind::File, Some(age)) = (entry.kind, age) else { continue };
            let mut one = Collected::of(Leftover::Staged, name, &path);
            let reason = format!("whoever wrote it {} ago did not finish", span(age));
            one.go(reason, remove, || self.disk.remove_file(&path));
            collected.push(one);
        }
        collected
    }

    /// Time since the content of a path changed.
    fn age(&self, path: &Path) -> Option<Duration> {
        let modified = self.disk.stat_link(path).ok()?.modified?;
        self.disk.now().duration_since(modified).ok()
    }
}

/// A time for people, in its largest unit.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
