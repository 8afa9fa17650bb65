//! The server key: where it lies, how it is made, what is derived from it (spec 03 §3.5).

use std::{
    ffi::OsStr,
    fmt, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use workflow_engine::Refusal;
use zeroize::Zeroizing;

use crate::fs::{Disk, Kind, Open, OpenFile, Sharing, Stat, is_forbidden, is_missing, is_own, staging, try_lock};

pub(crate) const LENGTH: usize = 32;
pub(crate) const FILE: &str = "secret";
pub(crate) const PREVIOUS: &str = "secret.prev.";
pub(crate) const WAYS: &str = "Choose another key directory with WORKFLOW_SERVER_KEY_DIR, with WORKFLOW_SERVER_STATE_DIR, or by HOME \
                    (~/.workflow-server)";

/// One server key; zeroed when dropped, never shown.
pub(crate) struct Key(pub(crate) Zeroizing<[u8; LENGTH]>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.id()).finish()
    }
}

impl Key {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0_u8; LENGTH]);
        if bytes.len() != LENGTH {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(Self(key))
    }

    /// A key that nobody else has; stands in where no key can be had and nothing may verify.
    pub(crate) fn random() -> io::Result<Self> {
        let mut key = Zeroizing::new([0_u8; LENGTH]);
        getrandom::fill(key.as_mut_slice()).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self(key))
    }

    #[cfg(test)]
    pub(crate) fn counting() -> Self {
        Self(Zeroizing::new(std::array::from_fn(|i| u8::try_from(i).unwrap())))
    }

    /// HMAC-SHA-256 under the raw key: index derivation, trace tokens, the original's bare seal.
    pub(crate) fn mac(&self, message: &[u8]) -> [u8; 32] {
        mac(self.0.as_slice(), message)
    }

    /// HMAC-SHA-256 under the sub-key of a label.
    pub(crate) fn mac_for(&self, label: &str, message: &[u8]) -> [u8; 32] {
        mac(Zeroizing::new(self.mac(label.as_bytes())).as_slice(), message)
    }

    /// First eight hex characters of the key's fingerprint.
    pub(crate) fn id(&self) -> String {
        let mut id = data_encoding::HEXLOWER.encode(&self.mac(b"workflow-server/key-id/v1"));
        id.truncate(8);
        id
    }
}

fn mac(key: &[u8], message: &[u8]) -> [u8; 32] {
    // A MAC key of any length is accepted; the error of the signature cannot occur.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// Compares without telling by the time taken where two texts differ.
pub(crate) fn equal_in_constant_time(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

/// The current key and those that only verify.
#[derive(Debug)]
pub(crate) struct KeyRing {
    /// Seals and verifies.
    pub(crate) current: Key,
    /// Files `secret.prev.*`, which only verify.
    pub(crate) previous: Vec<Key>,
    /// Where the current key lies.
    pub(crate) path: PathBuf,
    /// What the file of the current key was when it was read.
    stat: Option<Stat>,
}

impl KeyRing {
    #[cfg(test)]
    pub(crate) fn of(current: Key, previous: Vec<Key>) -> Self {
        Self { current, previous, path: PathBuf::from("/keys/secret"), stat: None }
    }

    /// Loads the key, making one when there is none.
    pub(crate) fn load(disk: &Disk, dir: &Path, allow_open: bool) -> Result<Self, Refusal> {
        let path = dir.join(FILE);
        let mut stat = disk.stat_link(&path).ok();
        let mut key = read_key(disk, &path, allow_open)?;
        if key.is_none() {
            create(disk, dir, &path)?;
            stat = disk.stat_link(&path).ok();
            key = read_key(disk, &path, allow_open)?;
        }
        let vanished = || io::Error::new(io::ErrorKind::NotFound, "it vanished after it was made");
        let current = key.ok_or_else(|| unreadable(&path, &vanished()))?;
        // Whoever made it may have died before syncing, and everything sealed with it is lost without it.
        match disk.sync_dir(dir) {
            Err(error) if is_forbidden(&error) => {}
            outcome => outcome.map_err(|error| unreadable(&path, &error))?,
        }
        Ok(Self { current, previous: previous_keys(disk, dir, allow_open), path, stat })
    }

    /// Reads the keys again when another file lies in the place of the current one: it was rotated while this process
    /// ran. What does not read is none of this process's business until it starts anew.
    pub(crate) fn reloaded(&self, disk: &Disk, dir: &Path, allow_open: bool) -> Option<Self> {
        let stat = disk.stat_link(&self.path).ok()?;
        let same = self.stat.as_ref().is_none_or(|known| {
            (known.identity, known.modified, known.len) == (stat.identity, stat.modified, stat.len)
        });
        if same {
            return None;
        }
        let current = read_key(disk, &self.path, allow_open).ok().flatten()?;
        // As in `load`: nothing is sealed with a key that a crash could take away.
        disk.sync_above(Path::new("/"), &self.path).ok()?;
        let previous = previous_keys(disk, dir, allow_open);
        Some(Self { current, previous, path: self.path.clone(), stat: Some(stat) })
    }

    /// Looks at the key without making one: `None` when all is well or there is none yet (spec 04 §14).
    pub(crate) fn probe(disk: &Disk, dir: &Path, allow_open: bool) -> Option<String> {
        read_key(disk, &dir.join(FILE), allow_open).err().map(|refusal| refusal.text())
    }
}

fn previous_keys(disk: &Disk, dir: &Path, allow_open: bool) -> Vec<Key> {
    let mut names: Vec<_> = disk.list(dir).unwrap_or_default().into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
        .iter()
        .filter(|name| is_previous(name))
        .filter_map(|name| read_key(disk, &dir.join(name), allow_open).ok().flatten())
        .collect()
}

pub(crate) fn is_previous(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PREVIOUS) && !name.contains(".tmp."))
}

pub(crate) fn read_key(disk: &Disk, path: &Path, allow_open: bool) -> Result<Option<Key>, Refusal> {
    let stat = match disk.stat_link(path) {
        Ok(stat) => stat,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    if !allow_open && let Some(problem) = exposure(&stat) {
        return Err(Refusal::new(
            "KEY_PERMISSIONS",
            format!(
                "The server key {} is not safe: {problem}. Make it a regular file of the server's user with mode 0600 (chmod \
                 600), or allow it as it is with --allow-open-key (mounted secrets). {WAYS}.",
                path.display()
            ),
        )
        .with("path", path.display().to_string())
        .with("problem", problem));
    }
    // Mounted secrets are links; elsewhere a link that appears after the look above is not followed.
    let real = if allow_open { disk.canonicalize(path) } else { Ok(path.to_path_buf()) };
    let bytes = real.and_then(|real| disk.read(&real)).map_err(|error| unreadable(path, &error))?;
    let bytes = Zeroizing::new(bytes);
    match Key::from_bytes(&bytes) {
        Some(key) => Ok(Some(key)),
        None => Err(Refusal::new(
            "KEY_INVALID",
            format!(
                "The server key {} has {} bytes; a key has exactly {LENGTH}. It is never made anew, since all seals depend on \
                 it: restore it from a backup, or remove it and adopt every session. {WAYS}.",
                path.display(),
                bytes.len()
            ),
        )
        .with("path", path.display().to_string())
        .with("length", bytes.len())),
    }
}

pub(crate) fn exposure(stat: &Stat) -> Option<String> {
    match stat.kind {
        Kind::Symlink => return Some("it is a symbolic link".to_owned()),
        Kind::Directory | Kind::Other => return Some("it is not a regular file".to_owned()),
        Kind::File => {}
    }
    if !is_own(stat) {
        return Some(format!("it belongs to user {}, not to the server's", stat.owner.unwrap_or_default()));
    }
    let mode = stat.mode?;
    (mode & 0o077 != 0).then(|| format!("its mode is {mode:04o}, others than the owner may use it"))
}

/// Makes a key so that no crash leaves an empty or partial one: written beside, synced, then linked to its name.
fn create(disk: &Disk, dir: &Path, path: &Path) -> Result<(), Refusal> {
    let not_writable = |error: io::Error| {
        Refusal::new("KEY_NOT_WRITABLE", format!("No server key could be made at {}: {error}. {WAYS}.", path.display()))
            .with("path", path.display().to_string())
            .with("os_error", error.to_string())
    };
    disk.create_durable_dirs(Path::new("/"), dir).map_err(not_writable)?;
    let key = Key::random().map_err(not_writable)?;
    let staged = staging(path);
    disk.create(&staged, key.0.as_slice(), true).map_err(not_writable)?;
    let linked = match disk.hard_link(&staged, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => rename_unless_there(disk, &staged, path),
        Ok(()) => Ok(()),
    };
    let _ignored = disk.remove_file(&staged);
    linked.map_err(not_writable)
}

/// For file systems without hard links: the check and the rename are one step for all who take this lock.
fn rename_unless_there(disk: &Disk, staged: &Path, path: &Path) -> io::Result<()> {
    let lock = hold(disk, path)?;
    let renamed = if disk.is_there(path) { Ok(()) } else { disk.rename(staged, path) };
    drop(lock);
    renamed
}

/// Keeps others from putting another key into the place of this one.
pub(crate) fn hold(disk: &Disk, path: &Path) -> io::Result<Box<dyn OpenFile>> {
    let mut lock = disk.open(&path.with_file_name("secret.lock"), Open::Lock)?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while !try_lock(lock.as_mut(), Sharing::Exclusive)? {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(lock)
}

fn unreadable(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new("KEY_UNREADABLE", format!("The server key {} could not be read: {error}. {WAYS}.", path.display()))
        .with("path", path.display().to_string())
        .with("os_error", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither form of a key appears in what may be logged, only its fingerprint.
    #[test]
    fn hazard_h17_a_key_is_never_shown() {
        let key = Key::counting();
        let bytes: Vec<u8> = (0..32).collect();
        let forms = [
            data_encoding::HEXLOWER.encode(&bytes),
            data_encoding::BASE64.encode(&bytes),
            data_encoding::BASE64URL_NOPAD.encode(&bytes),
            "1, 2, 3, 4".to_owned(),
            "1,\n".to_owned(),
        ];
        let ring = KeyRing::of(Key::counting(), vec![Key::counting()]);
        for shown in [format!("{key:?}"), format!("{key:#?}"), format!("{ring:?}"), format!("{ring:#?}")] {
            assert!(shown.contains("fd678f2d"), "{shown}");
            assert!(forms.iter().all(|form| !shown.contains(form.as_str())), "{shown}");
        }
        let store = crate::FileStore::open(crate::Options::new("/ws", "/state")).unwrap();
        assert!(!format!("{store:?}").contains("Zeroizing"));
    }
}
