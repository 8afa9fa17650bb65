//! No text but the one that was issued is taken as a checkpoint handle or a trace token.
#![no_main]

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde_json::json;
use workflow_engine::{Purpose, Signer as _, state::is_session_index};
use workflow_fuzz::{KeySigner, edited, exact, live_handle, stages};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((mode, data)) = data.split_first() else { return };
    let (stages, index) = stages();
    match mode % 4 {
        mode @ (0 | 1) => {
            let live = live_handle();
            let bytes = if mode == 0 { data.to_vec() } else { edited(live, data) };
            let handle = String::from_utf8_lossy(&bytes);
            if is_session_index(&handle) {
                // An address of another kind; which session it opens is the store's business.
                return;
            }
            let mut work = stages[2].clone();
            let arguments = json!({"checkpoint_handle": handle, "option_id": "go"});
            let outcome = exact(&mut work, 9, "respond_checkpoint", arguments);
            assert_eq!(outcome.is_ok(), handle == live, "{handle:?}: {outcome:?}");
            assert_eq!(outcome.is_err(), work == stages[2], "a gate opens by its handle only");
            let _shown = exact(&mut stages[2].clone(), 9, "present_checkpoint", json!({"checkpoint_handle": handle}));
            let resumed = exact(&mut stages[2].clone(), 9, "resume_checkpoint", json!({"checkpoint_handle": handle}));
            assert!(resumed.is_err());
            let with_index = json!({"checkpoint_handle": handle, "session_index": index, "option_id": "go"});
            let outcome = exact(&mut stages[2].clone(), 9, "respond_checkpoint", with_index);
            assert_eq!(outcome.is_ok(), handle == live);
        }
        mode => {
            // Signed by us, whatever it says; and anything else.
            let token = if mode == 2 {
                let body = BASE64URL_NOPAD.encode(data);
                format!("{body}.{}", HEXLOWER.encode(&KeySigner.mac(Purpose::TraceToken, body.as_bytes())))
            } else {
                String::from_utf8_lossy(data).into_owned()
            };
            let arguments = json!({"session_index": index, "trace_tokens": [token]});
            let reply = exact(&mut stages[1].clone(), 9, "get_trace", arguments).expect("errors are told, not raised");
            let text = reply.render().text;
            let claims_own = mode == 2 || token.trim().starts_with(&format!("{index}:"));
            assert!(claims_own || text.contains("TRACE_TOKEN_"), "{token:?}: {text}");
        }
    }
});
