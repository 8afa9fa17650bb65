//! The server key (spec 03 §3.5).

use std::fs;

use workflow_engine::{Purpose, Signer as _};

use crate::support::*;

#[test]
fn the_key_is_made_once_and_only_when_needed() {
    let bench = Bench::new();
    let key = bench.options.key_dir.join("secret");
    assert!(bench.store().problems().is_empty());
    assert!(!key.exists(), "opening and probing make no key");
    start(&bench.store(), "a").unwrap();
    let bytes = fs::read(&key).unwrap();
    assert_eq!(bytes.len(), 32);
    start(&bench.store(), "b").unwrap();
    assert_eq!(fs::read(&key).unwrap(), bytes);
    assert_eq!(names(&bench.options.key_dir), ["secret", "seen"]);
}

#[cfg(unix)]
#[test]
fn hazard_h17_an_exposed_key_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let bench = Bench::new();
    let dir = bench.options.key_dir.clone();
    let key = dir.join("secret");
    start(&bench.store(), "a").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&key), mode(&dir)), (0o600, 0o700));

    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = start(&bench.store(), "a").unwrap_err();
    assert_eq!((refused.code, detail(&refused, "path")), ("KEY_PERMISSIONS", key.to_str().unwrap()));
    for way in ["WORKFLOW_SERVER_KEY_DIR", "WORKFLOW_SERVER_STATE_DIR", "HOME"] {
        assert!(refused.message.contains(way), "{}", refused.message);
    }
    assert_eq!(bench.store().problems().len(), 1);
    let mut open = bench.options.clone();
    open.allow_open_key = true;
    assert!(start(&workflow_store::FileStore::open(open).unwrap(), "a").is_ok());

    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&key, dir.join("elsewhere")).unwrap();
    symlink(dir.join("elsewhere"), &key).unwrap();
    assert_eq!(start(&bench.store(), "a").unwrap_err().code, "KEY_PERMISSIONS");
}

#[test]
fn hazard_h17_a_key_of_another_length_is_never_replaced() {
    for length in [0, 31, 33] {
        let bench = Bench::new();
        fs::create_dir(&bench.options.key_dir).unwrap();
        let key = bench.options.key_dir.join("secret");
        fs::write(&key, vec![7; length]).unwrap();
        restrict(&key);
        let refused = start(&bench.store(), "a").unwrap_err();
        assert_eq!(refused.code, "KEY_INVALID");
        assert_eq!(fs::read(&key).unwrap().len(), length);
        assert!(!bench.folder("a").exists());
        assert_ne!(bench.store().mac(Purpose::TraceToken, b"x"), bench.store().mac(Purpose::TraceToken, b"x"));
    }
}

#[test]
fn a_key_that_cannot_be_made_is_told() {
    let bench = Bench::new();
    fs::write(&bench.options.key_dir, "in the way").unwrap();
    let refused = start(&bench.store(), "a").unwrap_err();
    assert_eq!(refused.code, "KEY_NOT_WRITABLE");
    assert!(!detail(&refused, "os_error").is_empty());
}

#[test]
fn a_previous_key_verifies_and_the_next_write_uses_the_current_one() {
    let bench = Bench::new();
    let index = start(&bench.store(), "a").unwrap();
    let dir = &bench.options.key_dir;
    fs::rename(dir.join("secret"), dir.join("secret.prev.2026")).unwrap();
    assert_eq!(warnings(&bench.store(), &index), ["W_KEY_PREVIOUS"]);
    advance(&bench.store(), &index).unwrap();
    assert!(warnings(&bench.store(), &index).is_empty());
    fs::remove_file(dir.join("secret")).unwrap();
    fs::remove_file(dir.join("secret.prev.2026")).unwrap();
    let refused = read(&bench.store(), &index).unwrap_err();
    assert_eq!((refused.code, detail(&refused, "reason")), ("SEAL_MISMATCH", "key"));
    assert_eq!(detail(&refused, "key_path"), dir.join("secret").to_str().unwrap());
}

#[test]
fn purposes_have_keys_of_their_own() {
    let store = Bench::new().store();
    let raw = store.mac(Purpose::SessionIndex, b"x");
    assert_eq!(raw, store.mac(Purpose::TraceToken, b"x"));
    assert_ne!(raw, store.mac(Purpose::CheckpointHandle, b"x"));
}

pub(crate) fn restrict(path: &std::path::Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    #[cfg(not(unix))]
    let _ = path;
}
