//! One writer per folder: an in-process queue, then an advisory lock on `.session.lock` (spec 03 §3.7).

use std::{
    collections::{BTreeSet, HashMap},
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use workflow_engine::Refusal;

use crate::{
    fs::{Disk, Kind, Open, OpenFile, Sharing, is_missing, stat_open, try_lock},
    layout::{LOCK, Place},
    refusals,
};

/// How long to pause between two attempts, by how long one has waited already: the longer, the shorter, so that nobody
/// is overtaken for ever.
const PAUSES: [(Duration, Duration); 3] = [
    (Duration::from_millis(100), Duration::from_millis(2)),
    (Duration::from_secs(1), Duration::from_millis(1)),
    (Duration::MAX, Duration::from_micros(200)),
];
/// Of the calls that wait behind each other in one process, each so manieth lets other processes go first …
const POLITE: u64 = 8;
/// … for so long.
const COURTESY: Duration = Duration::from_millis(3);

/// The queues of one store, one per folder in use.
#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<HashMap<PathBuf, Arc<Queue>>>);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<Line>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Line {
    next_ticket: u64,
    serving: u64,
    gave_up: BTreeSet<u64>,
}

/// A folder that is held. Dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Held {
    // Dropped before the turn passes on.
    _file: Box<dyn OpenFile>,
    _turn: Option<Turn>,
}

#[derive(Debug)]
struct Turn(Arc<Queue>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.advance();
    }
}

impl Queue {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(&self) {
        let mut line = self.line();
        line.serving += 1;
        while let serving = line.serving
            && line.gave_up.remove(&serving)
        {
            line.serving += 1;
        }
        drop(line);
        self.moved.notify_all();
    }

    /// Waits for the turn; `None` when the deadline came first.
    fn wait(self: Arc<Self>, until: Instant) -> Option<Turn> {
        let mut line = self.line();
        let ticket = line.next_ticket;
        line.next_ticket += 1;
        let polite = line.serving != ticket && ticket.is_multiple_of(POLITE);
        while line.serving != ticket {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                line.gave_up.insert(ticket);
                return None;
            }
            line = self.moved.wait_timeout(line, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(line);
        if polite {
            thread::sleep(COURTESY);
        }
        Some(Turn(self))
    }
}

impl Queues {
    fn of(&self, place: &Place) -> Arc<Queue> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() > 256 {
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        Arc::clone(queues.entry(place.path.clone()).or_default())
    }
}

/// When waiting ends and when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    since: Instant,
    until: Instant,
}

impl Patience {
    pub(crate) fn of(deadline: Duration) -> Self {
        let since = Instant::now();
        Self { since, until: since + deadline }
    }

    fn busy(&self, place: &Place) -> Refusal {
        refusals::busy(&place.text, self.since.elapsed().as_secs_f64())
    }
}

/// Holds several folders, in byte order of their paths; `None` when one has vanished.
///
/// # Errors
/// `SESSION_BUSY`, `WRITE_FAILED`, `PATH_ESCAPE`.
pub(crate) fn hold_all(
    disk: &Disk,
    queues: &Queues,
    places: &[&Place],
    patience: Patience,
) -> Result<Option<Vec<Held>>, Refusal> {
    let mut ordered: Vec<&Place> = places.to_vec();
    ordered.sort_by(|left, right| left.text.as_bytes().cmp(right.text.as_bytes()));
    ordered.dedup_by(|left, right| left.path == right.path);
    let mut held = Vec::new();
    for place in ordered {
        let turn = queues.of(place).wait(patience.until).ok_or_else(|| patience.busy(place))?;
        match lock_file(disk, place, Sharing::Exclusive, patience)? {
            Some(file) => held.push(Held { _file: file, _turn: Some(turn) }),
            None => return Ok(None),
        }
    }
    Ok(Some(held))
}

/// Keeps writers out of a folder while it is read.
///
/// # Errors
/// As [`hold_all`].
pub(crate) fn hold_shared(disk: &Disk, place: &Place, patience: Patience) -> Result<Option<Held>, Refusal> {
    Ok(lock_file(disk, place, Sharing::Shared, patience)?.map(|file| Held { _file: file, _turn: None }))
}

fn lock_file(
    disk: &Disk,
    place: &Place,
    sharing: Sharing,
    patience: Patience,
) -> Result<Option<Box<dyn OpenFile>>, Refusal> {
    let path = place.file(LOCK);
    let failed = |error: io::Error| refusals::write_failed(&path, &error);
    let since = Instant::now();
    loop {
        if disk.stat_link(&path).is_ok_and(|stat| stat.kind == Kind::Symlink) {
            return Err(refusals::path_escape(&path, "a lock file is no link"));
        }
        let opened = match disk.open(&path, Open::Lock) {
            Err(_) if sharing == Sharing::Shared => disk.open(&path, Open::Existing),
            opened => opened,
        };
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        loop {
            match try_lock(file.as_mut(), sharing) {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => return Err(failed(error)),
            }
            if Instant::now() >= patience.until {
                return Err(patience.busy(place));
            }
            let waited = since.elapsed();
            let pause = PAUSES.iter().find(|(until, _)| waited < *until).map_or(COURTESY, |(_, pause)| *pause);
            thread::sleep(pause);
        }
        // The folder may have been removed and made again while this waited: then this is nobody's lock.
        let locked = stat_open(file.as_ref()).map_err(failed)?;
        match disk.stat_link(&path) {
            Ok(current) if current.identity == locked.identity => return Ok(Some(file)),
            Ok(_) => {}
            Err(error) if is_missing(&error) && !disk.is_there(&place.path) => return Ok(None),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::OsFileSystem;

    fn place(path: PathBuf) -> Place {
        let text = path.to_str().unwrap().to_owned();
        Place { slug: "x".to_owned(), sealed: "x".to_owned(), transient: false, text, path }
    }

    #[test]
    fn hazard_h05_one_holder_at_a_time_among_threads() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk(Arc::new(OsFileSystem));
        let one = place(dir.path().to_path_buf());
        let (queues, others) = (Queues::default(), Queues::default());
        let inside = AtomicUsize::new(0);
        let entered = AtomicUsize::new(0);
        thread::scope(|scope| {
            for i in 0..8 {
                let (disk, one, inside, entered) = (&disk, &one, &inside, &entered);
                // Half of them queue in another store, as another process would.
                let queues = if i % 2 == 0 { &queues } else { &others };
                scope.spawn(move || {
                    for _ in 0..20 {
                        let held = hold_all(disk, queues, &[one], Patience::of(Duration::from_mins(1))).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        entered.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(entered.load(Ordering::SeqCst), 160);
    }

    #[test]
    fn a_held_folder_is_busy_after_the_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk(Arc::new(OsFileSystem));
        let one = place(dir.path().to_path_buf());
        let (queues, others) = (Queues::default(), Queues::default());
        let held = hold_all(&disk, &queues, &[&one], Patience::of(Duration::ZERO)).unwrap();
        for queues in [&queues, &others] {
            let refused = hold_all(&disk, queues, &[&one], Patience::of(Duration::ZERO)).unwrap_err();
            assert_eq!((refused.code, refused.retryable), ("SESSION_BUSY", true));
        }
        assert!(hold_shared(&disk, &one, Patience::of(Duration::ZERO)).is_err());
        drop(held);
        assert!(hold_all(&disk, &queues, &[&one, &one], Patience::of(Duration::ZERO)).unwrap().is_some());
    }

    #[test]
    fn a_vanished_folder_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk(Arc::new(OsFileSystem));
        let gone = place(dir.path().join("gone"));
        assert!(hold_all(&disk, &Queues::default(), &[&gone], Patience::of(Duration::ZERO)).unwrap().is_none());
    }
}
