//! A client over stdio that waits for nothing forever.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server and the pipes to it.
#[derive(Debug)]
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Receiver<String>,
    next: u64,
    meta: Option<Value>,
}

/// An answer of the protocol: a result or an error object.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The `result` member.
    Result(Value),
    /// The `error` member.
    Error(Value),
}

impl Answer {
    /// The result.
    ///
    /// # Panics
    /// When it is an error.
    #[track_caller]
    pub fn result(self) -> Value {
        match self {
            Self::Result(result) => result,
            Self::Error(error) => panic!("an error: {error}"),
        }
    }

    /// The error.
    ///
    /// # Panics
    /// When it is a result.
    #[track_caller]
    pub fn error(self) -> Value {
        match self {
            Self::Error(error) => error,
            Self::Result(result) => panic!("a result: {result}"),
        }
    }
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// The one text item.
    pub text: String,
    /// `_meta`, or null.
    pub meta: Value,
    /// The call was refused.
    pub is_error: bool,
}

impl ToolAnswer {
    /// The text as JSON.
    ///
    /// # Panics
    /// When it is none, or the call was refused.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert!(!self.is_error, "refused: {}", self.text);
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The text of a call that was not refused.
    ///
    /// # Panics
    /// When it was.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert!(!self.is_error, "refused: {}", self.text);
        &self.text
    }

    /// The code of a refused call.
    ///
    /// # Panics
    /// When it was not refused, or text and `_meta` disagree.
    #[track_caller]
    pub fn code(&self) -> String {
        assert!(self.is_error, "not refused: {}", self.text);
        let code = self.meta["error"]["code"].as_str().unwrap_or_default().to_owned();
        assert!(self.text.starts_with(&format!("{code}: ")), "{code} is not in front of {}", self.text);
        code
    }
}

impl Client {
    /// Starts a process whose stdin and stdout are the protocol.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        let (lines, log) = (pump(child.stdout.take()), pump(child.stderr.take()));
        Self { child, stdin, lines, log, next: 0, meta: None }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Makes the handshake of a revision that has one; answers its result.
    #[track_caller]
    pub fn initialize(&mut self, revision: &str) -> Value {
        let client = json!({"name": "testkit", "version": "1"});
        let parameters = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        let result = self.request("initialize", parameters).result();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    /// From now on sends the metadata with every request that a revision without handshake wants.
    pub fn inline(&mut self, revision: &str) {
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientInfo": {"name": "testkit", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}
        }));
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn request(&mut self, method: &str, parameters: Value) -> Answer {
        let id = self.post(method, parameters);
        self.answer(id)
    }

    /// Sends a request without waiting; answers its id.
    #[track_caller]
    pub fn post(&mut self, method: &str, mut parameters: Value) -> u64 {
        self.next += 1;
        if let (Some(meta), Some(members)) = (&self.meta, parameters.as_object_mut()) {
            members.insert("_meta".to_owned(), meta.clone());
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": parameters}));
        self.next
    }

    /// Waits for the answer to a request; other answers that come meanwhile are dropped.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Answer {
        loop {
            let message = self.receive();
            if message["id"] != id {
                continue;
            }
            return match message.get("error") {
                Some(error) => Answer::Error(error.clone()),
                None => Answer::Result(message["result"].clone()),
            };
        }
    }

    /// Calls a tool.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: impl Into<Value>) -> ToolAnswer {
        let arguments: Value = arguments.into();
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).result();
        let content = result["content"].as_array().cloned().unwrap_or_default();
        assert_eq!(content.len(), 1, "one text item: {result}");
        ToolAnswer {
            text: content[0]["text"].as_str().unwrap_or_default().to_owned(),
            meta: result["_meta"].clone(),
            is_error: result["isError"] == true,
        }
    }

    /// Sends one message.
    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// When the server no longer reads.
    #[track_caller]
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("the server reads");
    }

    /// The next message.
    ///
    /// # Panics
    /// When none comes, or a line is no JSON object or array.
    #[track_caller]
    pub fn receive(&mut self) -> Value {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no answer in {PATIENCE:?}; log:\n{}", self.log()),
            Err(RecvTimeoutError::Disconnected) => panic!("the server closed its output; log:\n{}", self.log()),
        };
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("no JSON ({error}): {line}"));
        assert!(message.is_object() || message.is_array(), "no message: {line}");
        message
    }

    /// Closes the server's input.
    pub fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Closes the server's input and waits for its end: exit status, how long it took, and the messages that were left.
    ///
    /// # Panics
    /// When it does not end.
    #[track_caller]
    pub fn finish(mut self) -> (ExitStatus, Duration, Vec<Value>) {
        let begun = Instant::now();
        self.close();
        let (status, rest) = self.wait();
        (status, begun.elapsed(), rest)
    }

    /// Waits for the end of the server.
    ///
    /// # Panics
    /// When it does not end.
    #[track_caller]
    pub fn wait(&mut self) -> (ExitStatus, Vec<Value>) {
        let rest = self.drain();
        (self.child.wait().expect("the server ends"), rest)
    }

    /// What the server has logged so far.
    pub fn log(&mut self) -> String {
        self.log.try_iter().collect::<Vec<_>>().join("\n")
    }

    /// Ends the process that was started, and keeps the pipes: what it has started itself may go on.
    pub fn kill_only(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Waits until the output is closed; answers the messages that were left.
    ///
    /// # Panics
    /// When it stays open.
    #[track_caller]
    pub fn drain(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => rest.push(serde_json::from_str(&line).unwrap_or_else(|e| panic!("no JSON ({e}): {line}"))),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("the server does not end; log:\n{}", self.log()),
            }
        }
    }

    /// Ends the server at once, as a crash would.
    pub fn kill(mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Reads lines on a thread of its own, so that a test can wait with a limit.
fn pump(stream: Option<impl std::io::Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    // The test has what it wants; the process must not block on a full pipe.
                    drop(std::io::copy(&mut reader.by_ref().take(u64::MAX), &mut std::io::sink()));
                }
            }
        });
    }
    receiver
}
