//! Any bytes on the input are served to their end; every line of the output is a JSON-RPC message.
#![no_main]

use std::{
    io::{Cursor, Write},
    sync::{Arc, Mutex, OnceLock},
};

use serde_json::Value;
use workflow_fuzz::{library, scratch, settings};
use workflow_mcp::{Server, serve};
use workflow_store::{FileStore, Options};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic while writing").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn server() -> &'static Arc<Server> {
    static SERVER: OnceLock<Arc<Server>> = OnceLock::new();
    SERVER.get_or_init(|| {
        let base = scratch().canonicalize().expect("a directory");
        std::fs::create_dir(base.join("ws")).expect("a directory");
        let store = FileStore::open(Options::new(base.join("ws"), base.join("state"))).expect("a store");
        Arc::new(Server::new(library(), store, settings()))
    })
}

const INITIALIZE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\
    \"capabilities\":{},\"clientInfo\":{\"name\":\"f\",\"version\":\"0\"}}}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((mode, data)) = data.split_first() else { return };
    // Half of the inputs come after the handshake.
    let head = if mode % 2 == 0 { INITIALIZE } else { b"" };
    let output = Sink::default();
    serve(server(), Cursor::new([head, data].concat()), output.clone(), || false).expect("it starts");
    let written = output.0.lock().expect("no panic while writing").clone();
    assert!(written.is_empty() || written.ends_with(b"\n"), "the last line is whole");
    for line in written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line).expect("every line is JSON");
        assert!(message.is_object() || message.is_array(), "{message}");
    }
    // Sessions that were made are not the next input's business.
    let _gone = std::fs::remove_dir_all(scratch().join("ws/.engineering"));
});
