//! The directory of a demo, which goes with it however it ends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

/// The directory, as long as it is there and not to be kept.
type Shared = Arc<Mutex<Option<TempDir>>>;

/// A workspace in the temporary directory.
#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    temporary: Shared,
}

/// Lets something be written into the workspace. Whoever interrupts the demo waits for the end of it, and nothing is
/// written after that: what was removed does not come back.
#[derive(Clone, Debug)]
pub(super) struct Writing(Shared);

impl Workspace {
    /// Makes the directory. One that is not to be kept is removed at the end, and when a signal ends the program.
    pub(super) fn new(keep: bool) -> io::Result<Self> {
        let temporary = Shared::default();
        if !keep {
            // Before the directory is there, so that there is no moment in which it is left behind.
            remove_when_interrupted(&temporary)?;
        }
        let mut held = hold(&temporary);
        let dir = tempfile::Builder::new().prefix("workflow-demo-").tempdir()?;
        let path = if keep { dir.keep() } else { held.insert(dir).path().to_owned() };
        drop(held);
        Ok(Self { path, temporary })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn writing(&self) -> Writing {
        Writing(Arc::clone(&self.temporary))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(hold(&self.temporary).take());
    }
}

impl Writing {
    /// Does something that writes.
    pub(super) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let held = hold(&self.0);
        let result = work();
        drop(held);
        result
    }
}

fn hold(temporary: &Shared) -> MutexGuard<'_, Option<TempDir>> {
    temporary.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the program at a signal, with the status that a shell gives to one that a signal has ended. What was ignored when
/// the program started stays ignored.
#[cfg(unix)]
fn remove_when_interrupted(temporary: &Shared) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals =
        signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| is_heeded(*signal)))?;
    let temporary = Arc::clone(temporary);
    std::thread::Builder::new().spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        let mut held = hold(&temporary);
        drop(held.take());
        #[expect(clippy::exit, reason = "the player may wait for a reader or for time to pass, and holds nothing")]
        std::process::exit(128 + signal);
    })?;
    Ok(())
}

/// Whether a signal is not ignored. Where the system does not tell, a program without a terminal is taken for one that is to
/// outlive it.
#[cfg(unix)]
fn is_heeded(signal: i32) -> bool {
    use std::io::IsTerminal as _;

    match ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()) {
        Some(ignored) => ignored & (1 << (signal - 1)) == 0,
        None => signal != signal_hook::consts::SIGHUP || io::stdin().is_terminal() || io::stdout().is_terminal(),
    }
}

/// The set of ignored signals in the status of a process, the first one in the lowest bit.
#[cfg(unix)]
fn ignored(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// Elsewhere the directory is left to whoever clears the temporary directory.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the signature is that of the other one")]
fn remove_when_interrupted(_: &Shared) -> io::Result<()> {
    Ok(())
}
