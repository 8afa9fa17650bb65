//! A client of a server in the same process: JSON-RPC lines over two pipes.

use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Write as _};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use workflow_mcp::Server;

/// The revision of the protocol that the demo speaks.
const REVISION: &str = "2025-11-25";

/// What a tool answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    to: Option<PipeWriter>,
    from: BufReader<PipeReader>,
    server: Option<JoinHandle<io::Result<()>>>,
    next: u64,
}

impl Client {
    /// Connects to a server and makes the handshake.
    pub(super) fn connect(server: &Arc<Server>) -> io::Result<Self> {
        let (input, to) = io::pipe()?;
        let (from, output) = io::pipe()?;
        let server = Arc::clone(server);
        let serving = thread::Builder::new().spawn(move || workflow_mcp::serve(&server, input, output, || false))?;
        let mut client = Self { to: Some(to), from: BufReader::new(from), server: Some(serving), next: 0 };
        let info = json!({"name": "demo", "version": env!("CARGO_PKG_VERSION")});
        client.request("initialize", &json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info}))?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> io::Result<Answer> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Answer { text, is_error: result.get("isError") == Some(&Value::Bool(true)) })
    }

    fn request(&mut self, method: &str, parameters: &Value) -> io::Result<Value> {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": parameters}))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.from.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the server has ended"));
            }
            let mut message: Value = serde_json::from_str(&line)?;
            if message.get("id").and_then(Value::as_u64) != Some(self.next) {
                continue;
            }
            if let Some(error) = message.get("error") {
                return Err(io::Error::other(format!("{method}: {error}")));
            }
            return Ok(message.get_mut("result").map(Value::take).unwrap_or_default());
        }
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let Some(to) = &mut self.to else { return Err(io::ErrorKind::BrokenPipe.into()) };
        to.write_all(format!("{message}\n").as_bytes())
    }
}

impl Drop for Client {
    /// Hangs up and waits until the server has let go of the connection.
    fn drop(&mut self) {
        drop(self.to.take());
        if let Some(server) = self.server.take() {
            // How serving ended does not matter any more.
            drop(server.join());
        }
    }
}
