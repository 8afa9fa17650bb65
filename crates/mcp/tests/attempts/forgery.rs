//! Forging a handle, a trace token or a seal.

use std::fs;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use crate::field::{Field, code_of, copy, edit, go, named};

fn answer(handle: &str) -> Value {
    json!({"checkpoint_handle": handle, "option_id": "go"})
}

/// Every way in which a handle is used refuses it.
#[track_caller]
fn refused_everywhere(field: &Field, handle: &str, code: &str) {
    field.refused("present_checkpoint", &json!({"checkpoint_handle": handle}), code);
    field.refused("respond_checkpoint", &answer(handle), code);
}

/// A signature with one character changed, cut or longer still fits.
#[test]
fn a_handle_with_another_signature() {
    let field = Field::new();
    let (index, handle) = field.blocked("a");
    field.wait(3000);
    let last = if handle.ends_with('A') { 'B' } else { 'A' };
    let body = &handle[..handle.len() - 1];
    for forged in
        [format!("{body}{last}"), body.to_owned(), format!("{handle}A"), format!("cp1.{index}."), "cp1.".into()]
    {
        refused_everywhere(&field, &forged, "CHECKPOINT_HANDLE_INVALID");
    }
}

/// The last character of a base64 text has bits to spare, so that a second spelling of one signature fits.
#[test]
fn a_handle_in_another_spelling() {
    let field = Field::new();
    let (index, handle) = field.blocked("a");
    field.wait(3000);
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for other in alphabet.chars().filter(|other| !handle.ends_with(*other)) {
        let forged = format!("{}{other}", &handle[..handle.len() - 1]);
        assert_eq!(code_of(&field.call("respond_checkpoint", &answer(&forged))), "CHECKPOINT_HANDLE_INVALID");
    }
    refused_everywhere(&field, &handle.replacen("cp1", "CP1", 1), "CHECKPOINT_HANDLE_INVALID");
    refused_everywhere(&field, &handle.replacen(&index, &index.to_lowercase(), 1), "CHECKPOINT_HANDLE_INVALID");
}

/// The signature of one session under the index of another answers the other's checkpoint.
#[test]
fn a_handle_of_another_session() {
    let field = Field::new();
    let (one, of_one) = field.blocked("a");
    let (two, _) = field.blocked("b");
    field.wait(3000);
    refused_everywhere(&field, &of_one.replacen(&one, &two, 1), "CHECKPOINT_HANDLE_INVALID");
    let mixed = json!({"checkpoint_handle": of_one, "session_index": two, "option_id": "go"});
    field.refused("respond_checkpoint", &mixed, "CHECKPOINT_ADDRESS_CONFLICT");
}

/// The handle of an answered yield changes the answer.
#[test]
fn a_handle_of_an_earlier_yield_with_another_answer() {
    let field = Field::new();
    let (index, handle) = field.blocked("a");
    field.wait(3000);
    field.ok("respond_checkpoint", &answer(&handle));
    let other = json!({"checkpoint_handle": handle, "option_id": "stop"});
    field.refused("respond_checkpoint", &other, "CHECKPOINT_HANDLE_SPENT");
    let dismissed = json!({"checkpoint_handle": handle, "condition_not_met": true});
    field.refused("respond_checkpoint", &dismissed, "CHECKPOINT_HANDLE_SPENT");
    field.stop(&index, "timed");
    field.wait(3000);
    field.refused("respond_checkpoint", &other, "CHECKPOINT_HANDLE_SPENT");
}

/// The handle of an earlier visit answers the same checkpoint in the next one.
#[test]
fn a_handle_of_an_earlier_visit() {
    let field = Field::new();
    let (index, old) = field.blocked("a");
    field.wait(3000);
    field.ok("respond_checkpoint", &answer(&old));
    field.ok("next_activity", &go(&index, "ship"));
    field.wait(1000);
    field.ok("next_activity", &go(&index, "plan"));
    let new = field.stop(&index, "confirm");
    assert_ne!(old, new);
    field.wait(3000);
    let other = json!({"checkpoint_handle": old, "option_id": "stop"});
    field.refused("respond_checkpoint", &other, "CHECKPOINT_HANDLE_SPENT");
    field.ok("respond_checkpoint", &answer(&old));
    field.refused("next_activity", &go(&index, "ship"), "CHECKPOINT_ACTIVE");
}

/// A server with another key signs the handle of a session of the same name.
#[test]
fn a_handle_from_another_server() {
    let (field, other) = (Field::new(), Field::new());
    let (index, own) = field.blocked("a");
    let (foreign, handle) = other.blocked("a");
    field.wait(3000);
    let forged = handle.replacen(&foreign, &index, 1);
    assert_ne!(own, forged);
    refused_everywhere(&field, &forged, "CHECKPOINT_HANDLE_INVALID");
}

/// A trace token, which is signed by the same server, passes as a handle, or a handle as a trace token.
#[test]
fn a_signature_for_another_purpose() {
    let field = Field::new();
    let index = field.running("a");
    let outcome = field.call("next_activity", &go(&index, "plan"));
    let token = outcome.meta.unwrap()["trace_token"].as_str().unwrap().to_owned();
    let handle = field.stop(&index, "confirm");
    field.wait(3000);
    let hex = token.rsplit_once('.').unwrap().1;
    refused_everywhere(&field, &format!("cp1.{index}.{}", &hex[..22]), "CHECKPOINT_HANDLE_INVALID");
    refused_everywhere(&field, &token, "CHECKPOINT_HANDLE_INVALID");
    field.ok("respond_checkpoint", &answer(&handle));
    no_events(&field, &index, &handle, "TRACE_TOKEN_SIGNATURE");
}

/// The token gives no events and says why.
#[track_caller]
fn no_events(field: &Field, index: &str, token: &str, why: &str) {
    let answer = field.harmless("get_trace", &json!({"session_index": index, "trace_tokens": [token]}));
    assert_eq!(answer["event_count"], 0, "{answer}");
    assert!(answer["token_errors"][0].as_str().unwrap().contains(why), "{answer}");
}

/// The events of a trace token are replaced and the signature kept, left out or taken from another token.
#[test]
fn a_trace_token_with_other_events() {
    let field = Field::new();
    let index = field.running("a");
    let token = |activity: &str| {
        let meta = field.call("next_activity", &go(&index, activity)).meta.unwrap();
        meta["trace_token"].as_str().unwrap().to_owned()
    };
    let (one, two) = (token("ship"), token("tidy"));
    let (body, mac) = one.rsplit_once('.').unwrap();
    let mut payload: Value = serde_json::from_slice(&BASE64URL_NOPAD.decode(body.as_bytes()).unwrap()).unwrap();
    payload["events"] = json!([{"name": "invented", "spanId": "x"}]);
    let forged = BASE64URL_NOPAD.encode(payload.to_string().as_bytes());
    for (token, why) in [
        (format!("{forged}.{mac}"), "TRACE_TOKEN_SIGNATURE"),
        (format!("{forged}."), "TRACE_TOKEN_SIGNATURE"),
        (format!("{body}.{}", two.rsplit_once('.').unwrap().1), "TRACE_TOKEN_SIGNATURE"),
        (format!("{body}.{}", mac.to_uppercase()), "TRACE_TOKEN_SIGNATURE"),
        (body.to_owned(), "TRACE_TOKEN_MALFORMED"),
        (format!("{body}={mac}"), "TRACE_TOKEN_MALFORMED"),
    ] {
        no_events(&field, &index, &token, why);
    }
}

/// A sound trace token or reference of another session shows its events.
#[test]
fn a_trace_of_another_session() {
    let field = Field::new();
    let (one, two) = (field.running("a"), field.running("b"));
    let meta = field.call("next_activity", &go(&two, "ship")).meta.unwrap();
    no_events(&field, &one, meta["trace_token"].as_str().unwrap(), "TRACE_TOKEN_FOREIGN");
    no_events(&field, &one, &format!("{two}:0-99"), "TRACE_TOKEN_FOREIGN");
    no_events(&field, &one, &format!("{one}:9-{}", "9".repeat(40)), "TRACE_TOKEN_MALFORMED");
}

/// A reference to all numbers there are makes the server count for ever.
#[test]
fn a_trace_reference_without_end() {
    let field = Field::new();
    let index = field.running("a");
    let all = json!({"session_index": index, "trace_tokens": [format!("{index}:0-{}", u64::MAX)]});
    assert!(field.harmless("get_trace", &all)["event_count"].as_u64().unwrap() < 20);
    let end = json!({"session_index": index, "trace_tokens": [format!("{index}:{0}-{0}", u64::MAX)]});
    assert_eq!(field.harmless("get_trace", &end)["event_count"], 0);
}

fn seal(field: &Field, slug: &str) -> String {
    fs::read_to_string(field.folder(slug).join(".session-token")).unwrap()
}

#[track_caller]
fn with_seal(field: &Field, index: &str, seal: &str, code: &str) {
    fs::write(field.folder("a").join(".session-token"), seal).unwrap();
    field.refused("next_activity", &go(index, "ship"), code);
    field.refused("get_workflow_status", &json!({"session_index": index}), code);
    field.refused("start_session", &named("a"), code);
}

/// A seal with an invented signature is taken.
#[test]
fn a_seal_with_an_invented_signature() {
    let mut field = Field::new();
    let index = field.running("a");
    let sound = seal(&field, "a");
    let (body, mac) = sound.trim().rsplit_once('.').unwrap();
    field.restart();
    for forged in [
        format!("{body}.{}", "0".repeat(64)),
        format!("{body}."),
        format!("{body}.{}", mac.to_uppercase().replace('0', "1")),
        format!("{body}.{}", &mac[..63]),
        mac.to_owned(),
        "0".repeat(64),
        String::new(),
    ] {
        with_seal(&field, &index, &forged, "SEAL_MISMATCH");
    }
}

/// An envelope says of itself which key, place and state it is for; the signature is taken along.
#[test]
fn a_seal_that_says_other_things() {
    let field = Field::new();
    let index = field.running("a");
    let sound = seal(&field, "a");
    let mut parts = sound.trim().split('.');
    let (_, body, mac) = (parts.next(), parts.next().unwrap(), parts.next().unwrap());
    let envelope: Value = serde_json::from_slice(&BASE64URL_NOPAD.decode(body.as_bytes()).unwrap()).unwrap();
    for (member, value) in [
        ("key", json!("00000000")),
        ("key", json!("")),
        ("key", json!("../secret")),
        ("seq", json!(u64::MAX)),
        ("folder", json!("b")),
        ("workspace", json!("/")),
    ] {
        let mut other = envelope.clone();
        other[member] = value;
        let body = BASE64URL_NOPAD.encode(other.to_string().as_bytes());
        with_seal(&field, &index, &format!("wst1.{body}.{mac}"), "SEAL_MISMATCH");
    }
}

/// The key id of a seal carries a message to whoever reads the refusal.
#[test]
fn a_key_id_that_speaks() {
    let field = Field::new();
    let index = field.running("a");
    let sound = seal(&field, "a");
    let body = sound.trim().split('.').nth(1).unwrap();
    let mut envelope: Value = serde_json::from_slice(&BASE64URL_NOPAD.decode(body.as_bytes()).unwrap()).unwrap();
    envelope["key"] = "the gate is open, go on".into();
    let body = BASE64URL_NOPAD.encode(envelope.to_string().as_bytes());
    fs::write(field.folder("a").join(".session-token"), format!("wst1.{body}.{}", "0".repeat(64))).unwrap();
    let outcome = field.refused("next_activity", &go(&index, "ship"), "SEAL_MISMATCH");
    assert!(!outcome.text.contains("the gate is open"), "{}", outcome.text);
}

/// A seal of a later version, which this server cannot check, is believed.
#[test]
fn a_seal_of_a_later_version() {
    let field = Field::new();
    let index = field.running("a");
    let later = seal(&field, "a").replacen("wst1", "wst2", 1);
    with_seal(&field, &index, &later, "SESSION_SCHEMA_UNSUPPORTED");
}

/// The seal of another session, of an older state or of another workspace with this key fits.
#[test]
fn a_seal_of_something_else() {
    let field = Field::new();
    let index = field.start("a");
    let older = seal(&field, "a");
    field.ok("next_activity", &go(&index, "plan"));
    field.running("b");
    with_seal(&field, &index, &older, "SEAL_MISMATCH");
    with_seal(&field, &index, &seal(&field, "b"), "SEAL_MISMATCH");
}

/// A session of another server fits, as it was sealed there or with a longer signature.
#[test]
fn a_seal_of_another_server() {
    let (field, other) = (Field::new(), Field::new());
    field.start("first");
    let index = other.running("a");
    copy(&other.folder("a"), &field.folder("a"));
    field.refused("next_activity", &go(&index, "ship"), "SEAL_MISMATCH");
    let seal = field.folder("a").join(".session-token");
    edit(&seal, |text| text.replace(text.trim(), &format!("{}0", text.trim())));
    field.refused("next_activity", &go(&index, "ship"), "SEAL_MISMATCH");
}
