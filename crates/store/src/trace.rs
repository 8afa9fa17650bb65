//! Trace events on disk: `<state dir>/trace/<session_index>.jsonl` (spec 03 §8.2).
//!
//! One event per line, each one write in append mode. An event's number is its line plus what was dropped, which stands
//! in a first line `{"dropped": n}`. Appending takes the lock of the trace directory shared, dropping takes it alone, so
//! that no line gets lost in a file that is being replaced.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use workflow_engine::{TraceSlice, state::is_session_index};

use crate::fs::{Disk, Kind, Open, OpenFile, Sharing, stat_open, try_lock, write_all};

const LOCK: &str = ".lock";
const DROPPED: &[u8] = b"{\"dropped\":";
/// Most events that a trace can have lost.
const MOST_DROPPED: u64 = 1 << 53;
/// Traces are worth no longer wait.
const PATIENCE: Duration = Duration::from_secs(2);
/// Sessions whose file positions are remembered.
const REMEMBERED: usize = 1000;

/// What is known of one file.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    identity: Option<(u64, u64)>,
    /// Bytes.
    len: u64,
    /// Lines of events.
    lines: usize,
}

/// Traces of all sessions.
#[derive(Debug)]
pub(crate) struct Traces {
    capacity: usize,
    extents: Mutex<HashMap<String, Extent>>,
}

impl Traces {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(10), extents: Mutex::new(HashMap::new()) }
    }

    pub(crate) fn append(&self, disk: &Disk, state: &Path, index: &str, event: &Value) -> io::Result<()> {
        let path = file(state, index).ok_or(io::ErrorKind::InvalidInput)?;
        let dir = state.join("trace");
        disk.create_dirs(&dir)?;
        refuse_links(disk, &dir, &path)?;
        let lock = hold(disk, &dir, Sharing::Shared)?;
        let mut file = disk.open(&path, Open::Append)?;
        let stat = stat_open(file.as_ref())?;
        let known = self.extent(disk, &path, index, stat.identity, stat.len)?;
        let mut line = Vec::new();
        if known.unfinished {
            // Whoever wrote it died; the rest of that line does not parse and keeps its number.
            line.push(b'\n');
        }
        serde_json::to_writer(&mut line, event)?;
        line.push(b'\n');
        write_all(file.as_mut(), &line)?;
        let mut extent = known.extent;
        extent.len += line.len() as u64;
        extent.lines += 1;
        self.remember(index, extent);
        drop(file);
        drop(lock);
        if extent.lines > self.capacity { self.drop_oldest(disk, &dir, &path, index) } else { Ok(()) }
    }

    /// How far a file goes; only what others appended since is read.
    fn extent(
        &self,
        disk: &Disk,
        path: &Path,
        index: &str,
        identity: Option<(u64, u64)>,
        len: u64,
    ) -> io::Result<Known> {
        let remembered = self.extents.lock().unwrap_or_else(PoisonError::into_inner).get(index).copied();
        let mut extent = remembered
            .filter(|extent| extent.identity == identity && extent.len <= len)
            .unwrap_or(Extent { identity, len: 0, lines: 0 });
        let mut unfinished = false;
        if extent.len < len {
            let added = disk.read_from(path, extent.len)?;
            unfinished = added.last().is_some_and(|byte| *byte != b'\n');
            let header = extent.len == 0 && added.starts_with(DROPPED);
            let lines = added.split(|byte| *byte == b'\n').count().saturating_sub(1) + usize::from(unfinished);
            extent.lines += lines - usize::from(header && lines > 0);
            extent.len += added.len() as u64;
        }
        Ok(Known { extent, unfinished })
    }

    fn remember(&self, index: &str, extent: Extent) {
        let mut extents = self.extents.lock().unwrap_or_else(PoisonError::into_inner);
        if extents.len() >= REMEMBERED && !extents.contains_key(index) {
            extents.clear();
        }
        extents.insert(index.to_owned(), extent);
    }

    /// Drops a tenth of the capacity at once.
    fn drop_oldest(&self, disk: &Disk, dir: &Path, path: &Path, index: &str) -> io::Result<()> {
        let lock = hold(disk, dir, Sharing::Exclusive)?;
        let bytes = disk.read(path)?;
        let (dropped, events) = split(&bytes);
        let lines: Vec<&[u8]> = lines(events).collect();
        let surplus = lines.len().saturating_sub(self.capacity);
        if surplus > 0 {
            let gone = surplus.max(self.capacity / 10).min(lines.len());
            let mut text = format!("{}\n", json!({"dropped": dropped + gone as u64})).into_bytes();
            for line in lines.iter().skip(gone) {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
            disk.replace(path, &text, false)?;
        }
        self.extents.lock().unwrap_or_else(PoisonError::into_inner).remove(index);
        drop(lock);
        Ok(())
    }
}

/// All events kept for a session.
pub(crate) fn read(disk: &Disk, state: &Path, index: &str) -> TraceSlice {
    let Some(path) = file(state, index) else { return TraceSlice::default() };
    let plain = refuse_links(disk, &state.join("trace"), &path);
    plain.and_then(|()| disk.read(&path)).map(|bytes| parse(&bytes)).unwrap_or_default()
}

struct Known {
    extent: Extent,
    unfinished: bool,
}

fn file(state: &Path, index: &str) -> Option<PathBuf> {
    is_session_index(index).then(|| state.join("trace").join(format!("{index}.jsonl")))
}

/// A link in the place of the directory, its lock or the file would lead reading and writing elsewhere.
fn refuse_links(disk: &Disk, dir: &Path, file: &Path) -> io::Result<()> {
    for path in [dir, &dir.join(LOCK), file] {
        if disk.stat_link(path).is_ok_and(|stat| stat.kind == Kind::Symlink) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is a link", path.display())));
        }
    }
    Ok(())
}

fn hold(disk: &Disk, dir: &Path, sharing: Sharing) -> io::Result<Box<dyn OpenFile>> {
    let mut lock = disk.open(&dir.join(LOCK), Open::Lock)?;
    let until = Instant::now() + PATIENCE;
    while !try_lock(lock.as_mut(), sharing)? {
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(lock)
}

/// How many events were dropped, and the lines after that header.
fn split(bytes: &[u8]) -> (u64, &[u8]) {
    if !bytes.starts_with(DROPPED) {
        return (0, bytes);
    }
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    let (header, events) = bytes.split_at(end);
    let dropped = serde_json::from_slice::<Value>(header).ok().and_then(|header| header.get("dropped")?.as_u64());
    // No server counts that far: events after it would have no numbers.
    (dropped.filter(|dropped| *dropped <= MOST_DROPPED).unwrap_or_default(), events)
}

fn lines(events: &[u8]) -> impl Iterator<Item = &[u8]> {
    let events = events.strip_suffix(b"\n").unwrap_or(events);
    events.split(|byte| *byte == b'\n').take(if events.is_empty() { 0 } else { usize::MAX })
}

fn parse(bytes: &[u8]) -> TraceSlice {
    let (dropped, events) = split(bytes);
    let events = lines(events).map(|line| serde_json::from_slice(line).unwrap_or(Value::Null)).collect();
    TraceSlice { dropped, events }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::OsFileSystem;

    fn disk() -> Disk {
        Disk(Arc::new(OsFileSystem))
    }

    #[test]
    fn events_keep_their_numbers_when_the_oldest_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let traces = Traces::new(20);
        for n in 0..45 {
            traces.append(&disk(), dir.path(), "ABCDEF", &json!({"n": n})).unwrap();
        }
        let slice = read(&disk(), dir.path(), "ABCDEF");
        assert!(slice.events.len() <= 20);
        assert_eq!(slice.dropped + slice.events.len() as u64, 45);
        assert_eq!(slice.events[0], json!({"n": slice.dropped}));
        assert_eq!(slice.events.last().unwrap(), &json!({"n": 44}));
    }

    #[test]
    fn a_line_that_does_not_parse_keeps_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let traces = Traces::new(100);
        traces.append(&disk(), dir.path(), "ABCDEF", &json!({"n": 0})).unwrap();
        let path = file(dir.path(), "ABCDEF").unwrap();
        let torn = [std::fs::read(&path).unwrap(), b"{\"n\": 1, \"to".to_vec()].concat();
        std::fs::write(&path, torn).unwrap();
        traces.append(&disk(), dir.path(), "ABCDEF", &json!({"n": 2})).unwrap();
        let slice = read(&disk(), dir.path(), "ABCDEF");
        assert_eq!(slice.events, [json!({"n": 0}), Value::Null, json!({"n": 2})]);
    }

    #[test]
    fn several_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            for writer in 0..4 {
                let dir = dir.path();
                scope.spawn(move || {
                    let traces = Traces::new(50);
                    for n in 0..60 {
                        traces.append(&disk(), dir, "ABCDEF", &json!({"writer": writer, "n": n})).unwrap();
                    }
                });
            }
        });
        let slice = read(&disk(), dir.path(), "ABCDEF");
        assert_eq!(slice.dropped + slice.events.len() as u64, 240);
        assert!(slice.events.iter().all(Value::is_object));
    }

    #[test]
    fn no_file_is_no_event() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(&disk(), dir.path(), "ABCDEF"), TraceSlice::default());
        assert!(Traces::new(10).append(&disk(), dir.path(), "../x", &json!({})).is_err());
    }
}
