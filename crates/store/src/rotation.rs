//! `key show` and `key rotate`: what the server key is like, and a new one in its place (spec 03 §3.5).
//!
//! A rotation is two steps, each of one rename: the old key gets a second file `secret.prev.<key id>`, then the new one
//! takes the place of `secret`. Whoever dies in between has a spare copy of the current key and nothing else; at no time
//! is there no key, or a key that verifies nothing.

use std::{
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use workflow_engine::Refusal;

use crate::{
    FileStore,
    fs::{Kind, STAGED, is_missing},
    key::{FILE, Key, PREVIOUS, WAYS, exposure, hold, is_previous, read_key},
};

/// One file with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// Absolute path.
    pub path: PathBuf,
    /// First eight hex characters of its fingerprint, as seals name it; `None` when it does not read.
    pub id: Option<String>,
    /// When its content was written.
    pub written: Option<SystemTime>,
    /// Permission bits, where the platform has them.
    pub mode: Option<u32>,
    /// What makes it unsafe, a clause; allowed or not.
    pub exposure: Option<String>,
    /// Why it is not used.
    pub problem: Option<String>,
}

/// The keys of a server, without the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReport {
    /// Where the current key lies, or would be made.
    pub path: PathBuf,
    /// The key that seals; `None` when none has been made yet.
    pub current: Option<KeyFile>,
    /// Those that only verify, by name.
    pub previous: Vec<KeyFile>,
}

/// What a rotation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Where the new key lies.
    pub path: PathBuf,
    /// Its id.
    pub new: String,
    /// Where the old key lies now.
    pub kept: PathBuf,
    /// Its id.
    pub old: String,
}

impl FileStore {
    /// What the key files are like. Makes nothing.
    pub fn key_report(&self) -> KeyReport {
        let dir = &self.options.key_dir;
        let path = dir.join(FILE);
        let mut names: Vec<_> = self.disk.list(dir).unwrap_or_default().into_iter().map(|entry| entry.name).collect();
        names.retain(|name| is_previous(name));
        names.sort();
        let previous = names.iter().filter_map(|name| self.key_file(&dir.join(name))).collect();
        KeyReport { current: self.key_file(&path), previous, path }
    }

    /// `None` when it is not there.
    fn key_file(&self, path: &Path) -> Option<KeyFile> {
        let mut file =
            KeyFile { path: path.to_owned(), id: None, written: None, mode: None, exposure: None, problem: None };
        match self.disk.stat_link(path) {
            Ok(stat) => {
                file.exposure = exposure(&stat);
                file.written = stat.modified;
                file.mode = stat.mode;
            }
            Err(error) if is_missing(&error) => return None,
            Err(error) => {
                file.problem = Some(error.to_string());
                return Some(file);
            }
        }
        match read_key(&self.disk, path, self.options.allow_open_key) {
            Ok(Some(key)) => file.id = Some(key.id()),
            Ok(None) => return None,
            Err(refusal) => file.problem = Some(refusal.text()),
        }
        Some(file)
    }

    /// Puts a new key in place. The old one is kept beside it and goes on to verify what it sealed; each session is
    /// sealed with the new one when it is next written. Running servers use the new key from their next call on.
    ///
    /// # Errors
    /// `KEY_MISSING` when there is none, `KEY_PERMISSIONS` also for a link, `KEY_INVALID`, `KEY_UNREADABLE`,
    /// `KEY_NOT_WRITABLE`. The key is the old one then, unless the message says otherwise.
    pub fn rotate_key(&self) -> Result<Rotation, Refusal> {
        let disk = &self.disk;
        let dir = &self.options.key_dir;
        let path = dir.join(FILE);
        self.check_rotatable(&path)?;
        let lock = hold(disk, &path).map_err(|error| not_rotated(&path, &error))?;
        let old = read_key(disk, &path, self.options.allow_open_key)?.ok_or_else(|| missing(&path))?;
        let kept = dir.join(format!("{PREVIOUS}{}", old.id()));
        let new = Key::random().map_err(|error| not_rotated(&path, &error))?;
        disk.replace(&kept, old.0.as_slice(), true)
            .and_then(|()| disk.sync_dir(dir))
            .map_err(|error| not_rotated(&kept, &error))?;
        if let Err(error) = disk.replace(&path, new.0.as_slice(), true) {
            // It may have been done and reported as failed.
            match read_key(disk, &path, self.options.allow_open_key) {
                Ok(Some(found)) if found.id() == new.id() => {}
                _ => return Err(not_rotated(&path, &error)),
            }
        }
        disk.sync_dir(dir).map_err(|error| in_doubt(&path, &error))?;
        self.sweep_staged_keys();
        drop(lock);
        Ok(Rotation { new: new.id(), old: old.id(), path, kept })
    }

    fn check_rotatable(&self, path: &Path) -> Result<(), Refusal> {
        match self.disk.stat_link(path) {
            Ok(stat) if stat.kind == Kind::File => Ok(()),
            Ok(_) => Err(Refusal::new(
                "KEY_PERMISSIONS",
                format!(
                    "The server key {} is not a regular file, so it is not replaced. Rotate it where it comes from, and put \
                     the old one beside it as {PREVIOUS}<name>.",
                    path.display()
                ),
            )
            .with("path", path.display().to_string())),
            Err(error) if is_missing(&error) => Err(missing(path)),
            Err(error) => Err(not_rotated(path, &error)),
        }
    }

    /// What dead rotations staged; whoever is about to rotate has the lock.
    fn sweep_staged_keys(&self) {
        for entry in self.disk.list(&self.options.key_dir).unwrap_or_default() {
            let staged = entry.name.to_str().is_some_and(|name| name.starts_with(FILE) && name.contains(STAGED));
            if staged && entry.kind == Kind::File {
                let _ignored = self.disk.remove_file(&self.options.key_dir.join(&entry.name));
            }
        }
    }
}

fn missing(path: &Path) -> Refusal {
    Refusal::new(
        "KEY_MISSING",
        format!("There is no server key at {} yet; the first session makes one. {WAYS}.", path.display()),
    )
    .with("path", path.display().to_string())
}

fn not_rotated(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(
        "KEY_NOT_WRITABLE",
        format!("The server key was not rotated, {}: {error}. The key is the old one.", path.display()),
    )
    .with("path", path.display().to_string())
    .with("os_error", error.to_string())
    .with("changed", false)
}

fn in_doubt(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(
        "KEY_NOT_WRITABLE",
        format!(
            "The new server key is at {}, but the disk did not confirm it: {error}. Nothing is sealed with it before the disk \
             does; the old key is kept beside it. See `workflow-server key show`, and rotate again to be sure.",
            path.display()
        ),
    )
    .with("path", path.display().to_string())
    .with("os_error", error.to_string())
}
