//! Any bytes are read as a state; what reads is written in its canonical form, which is stable.
#![no_main]

use workflow_engine::state::{Session, canonical_json, compact_canonical, parse_text};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(value) = parse_text(data) else { return };
    let canonical = canonical_json(&value);
    let again = parse_text(canonical.as_bytes()).expect("canonical text is JSON");
    assert_eq!(canonical_json(&again), canonical);
    assert_eq!(compact_canonical(&again), compact_canonical(&value));
    let Ok(session) = Session::from_json(&value) else { return };
    let valid = session.validate();
    let text = session.canonical_text();
    let again = Session::from_json(&parse_text(text.as_bytes()).expect("canonical text is JSON")).expect("a session");
    assert_eq!(again.canonical_text(), text);
    assert_eq!(again.validate().is_ok(), valid.is_ok());
    for (path, _) in session.walk() {
        assert!(session.at(&path).is_some());
    }
    let _generation = session.generation();
});
