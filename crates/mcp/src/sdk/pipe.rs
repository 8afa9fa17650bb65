//! JSON-RPC over two byte streams, one message a line, as the SDK's transport.
//!
//! Unlike the SDK's own it answers what it cannot read: no JSON gives −32700, a line that is too long and a value that
//! is no message give −32600, and a JSON-RPC batch is taken apart and its answers are put together again. Both streams
//! have a thread of their own, so that a blocked read or write never keeps the process from ending.

use std::collections::{HashSet, VecDeque};
use std::io::{self, BufReader, Read, Write};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta as _, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use workflow_engine::Refusal;

use crate::line::{self, Decoded, Head, Line};

/// Messages that wait for the service before the reader waits too.
const QUEUE: usize = 16;

/// Requests without an answer above which no more are taken, so that a flood waits in the client's pipe and not in
/// memory.
const OPEN_REQUESTS: usize = 64;

/// Stack of the reading thread: a line may nest deep.
const STACK: usize = 16 * 1024 * 1024;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

/// Says that the connection is over, whatever the streams do; cloned to whoever may say so.
#[derive(Clone)]
pub(super) struct End(watch::Sender<bool>);

impl End {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(super) fn now(&self) {
        self.0.send_replace(true);
    }

    /// Resolves when somebody has said so.
    pub(super) async fn reached(&self) {
        let mut seen = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        drop(seen.wait_for(|ended| *ended).await);
    }
}

/// The transport.
pub(super) struct Pipe {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: Outgoing,
    end: End,
    requests: Arc<Requests>,
    /// Whether a lifecycle has begun; before that a stray notification would end the SDK's handshake.
    open: bool,
}

impl Pipe {
    /// Starts the two threads.
    pub(super) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        end: End,
    ) -> io::Result<Self> {
        let outgoing = Outgoing::new(output, end.clone())?;
        let (sender, incoming) = mpsc::channel(QUEUE);
        let answers = outgoing.clone();
        thread::Builder::new().name("stdin".to_owned()).stack_size(STACK).spawn(move || {
            read_all(input, &sender, &answers);
        })?;
        Ok(Self { incoming, outgoing, end, requests: Arc::default(), open: false })
    }

    /// Resolves when all that was sent before it is polled has been written.
    pub(super) fn drain(&self) -> impl Future<Output = ()> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move { outgoing.drained().await }
    }

    /// Resolves when there is nothing more to come: the input has ended, or the connection was ended.
    pub(super) fn finished(&self) -> impl Future<Output = ()> + Send + 'static {
        let end = self.end.clone();
        async move { end.reached().await }
    }
}

impl Transport<RoleServer> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        match &item {
            JsonRpcMessage::Response(response) => self.requests.settle(&response.id),
            JsonRpcMessage::Error(error) => error.id.iter().for_each(|id| self.requests.settle(id)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        let written = serde_json::to_value(&item).map_err(io::Error::other).map(|message| self.outgoing.send(message));
        async move {
            match written? {
                None => Ok(()),
                Some(written) => written.await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = tokio::select! {
                biased;
                () = self.end.reached() => None,
                message = async {
                    self.requests.room().await;
                    self.incoming.recv().await
                } => message,
            };
            let Some(message) = message else {
                self.end.now();
                return None;
            };
            self.open |= opens(&message);
            match &message {
                JsonRpcMessage::Request(request) => self.requests.begin(&request.id),
                JsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        // The SDK drops the answer of a cancelled request.
                        self.requests.settle(id);
                        self.outgoing.forget(id);
                    }
                }
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
            }
            if self.open || matches!(message, JsonRpcMessage::Request(_)) {
                return Some(message);
            }
            tracing::debug!("a message before the handshake is dropped");
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}

/// The requests that have no answer yet.
#[derive(Default)]
struct Requests {
    open: Mutex<HashSet<String>>,
    settled: Notify,
}

impl Requests {
    fn open(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, id: &RequestId) {
        self.open().insert(id_value(id).to_string());
    }

    fn settle(&self, id: &RequestId) {
        if self.open().remove(&id_value(id).to_string()) {
            self.settled.notify_one();
        }
    }

    /// Resolves when another request may be taken.
    async fn room(&self) {
        while self.open().len() >= OPEN_REQUESTS {
            self.settled.notified().await;
        }
    }
}

/// Whether a message begins a lifecycle: `initialize`, or a request that carries the metadata of the newer one.
fn opens(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => other.get_meta().protocol_version().is_some(),
    }
}

fn read_all(input: impl Read, sender: &mpsc::Sender<ClientJsonRpcMessage>, answers: &Outgoing) {
    let mut input = BufReader::with_capacity(64 * 1024, input);
    loop {
        let line = match line::next_line(&mut input, line::MAX_LINE) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => {
                tracing::info!(%error, "the input cannot be read any more");
                return;
            }
        };
        for message in messages(line, answers) {
            if sender.blocking_send(message).is_err() {
                return;
            }
        }
    }
}

/// The messages of a line; what is none is answered.
fn messages(line: Line, answers: &Outgoing) -> Vec<ClientJsonRpcMessage> {
    let line = match line {
        Line::Text(line) => line,
        Line::TooLong(head) => {
            let reason = format!("the request has more than {} bytes and was skipped", line::MAX_LINE);
            answers.post::<()>(too_large(head, &reason));
            return Vec::new();
        }
    };
    match line::decode(&line) {
        Decoded::Value(Value::Array(entries)) => batch(entries, answers),
        Decoded::Value(value) => message(value).unwrap_or_else(|answer| answers.post(answer)).into_iter().collect(),
        Decoded::Malformed(reason) => {
            answers.error(PARSE_ERROR, &format!("Parse error: {reason}"));
            Vec::new()
        }
        Decoded::TooDeep(levels, head) => {
            answers.post::<()>(too_large(head, &format!("the request nests more than {levels} levels")));
            Vec::new()
        }
        Decoded::Unrepresentable(value, path) => {
            answers.post::<()>(unrepresentable(&value, &path));
            Vec::new()
        }
    }
}

/// Takes a value as a message, or gives the answer to one that is none. Notifications and answers have no answer.
fn message(value: Value) -> Result<Option<ClientJsonRpcMessage>, Value> {
    let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let method = value.get("method").cloned();
    let is_answer = method.is_none() && (value.get("result").is_some() || value.get("error").is_some());
    let is_notification = method.as_ref().is_some_and(Value::is_string) && value.get("id").is_none();
    match serde_json::from_value(value) {
        Ok(JsonRpcMessage::Request(request))
            if method.as_ref().is_some_and(|method| method == "initialize")
                && !matches!(request.request, ClientRequest::InitializeRequest(_)) =>
        {
            let text = "initialize needs `protocolVersion` (a text such as \"2025-06-18\"), `capabilities` (an object) \
                        and `clientInfo` with `name` and `version` (texts) in its params";
            Err(error_object(id.as_ref(), INVALID_PARAMS, text))
        }
        Ok(message) => Ok(Some(message)),
        Err(error) if is_answer || is_notification => {
            tracing::debug!(%error, "a notification or an answer that cannot be understood is dropped");
            Ok(None)
        }
        Err(error) => Err(error_object(id.as_ref(), INVALID_REQUEST, &format!("Invalid Request: {error}"))),
    }
}

/// Takes a batch apart and notes which answers belong together (revision 2025-03-26; JSON-RPC 2.0 §6).
fn batch(entries: Vec<Value>, answers: &Outgoing) -> Vec<ClientJsonRpcMessage> {
    if entries.is_empty() {
        answers.error(INVALID_REQUEST, "Invalid Request: the batch is empty");
        return Vec::new();
    }
    let (mut found, mut collected, mut pending) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        match message(entry) {
            Ok(message) => {
                if let Some(JsonRpcMessage::Request(request)) = &message {
                    pending.push(id_value(&request.id));
                }
                found.extend(message);
            }
            Err(answer) => collected.push(answer),
        }
    }
    answers.open(Batch { pending, collected });
    found
}

/// The answer to a message that holds what no value can hold.
fn unrepresentable(value: &Value, path: &str) -> Value {
    let head = Head {
        id: value.get("id").cloned(),
        method: value.get("method").and_then(Value::as_str).map(ToOwned::to_owned),
    };
    let place = path.strip_prefix(".params.arguments.").unwrap_or(path.trim_start_matches('.'));
    let refusal = Refusal::new(
        "VALUE_NOT_JSON",
        format!(
            "`{place}` holds half a surrogate pair or a number beyond the range of a double, which no JSON value can \
             hold. Nothing was changed. Send the call again without it."
        ),
    )
    .with("path", place);
    refused(head, PARSE_ERROR, "Parse error", &refusal)
}

/// The answer to a message that is longer or deeper than what is read.
fn too_large(head: Head, reason: &str) -> Value {
    let text = format!(
        "{reason}. Nothing was changed. Shorten it, or keep the long form in a file of the planning folder and pass its \
         path."
    );
    refused(head, INVALID_REQUEST, "Invalid Request", &Refusal::new("PARAM_TOO_LARGE", text))
}

/// A tool error for a tool call, else a protocol error.
fn refused(head: Head, code: i64, class: &str, refusal: &Refusal) -> Value {
    let id = head.id.filter(|id| id.is_string() || id.is_number());
    if let (Some(id), Some("tools/call")) = (&id, head.method.as_deref()) {
        let text = [json!({"type": "text", "text": refusal.text()})];
        let result = json!({"content": text, "isError": true, "_meta": refusal.meta()});
        return json!({"jsonrpc": "2.0", "id": id, "result": result});
    }
    error_object(id.as_ref(), code, &format!("{class}: {}", refusal.message))
}

fn error_object(id: Option<&Value>, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn id_value(id: &RequestId) -> Value {
    serde_json::to_value(id).unwrap_or_default()
}

/// Answers that are sent together.
struct Batch {
    pending: Vec<Value>,
    collected: Vec<Value>,
}

type Written = oneshot::Receiver<io::Result<()>>;

/// The way out: a queue and the thread that writes it.
#[derive(Clone)]
struct Outgoing {
    queue: blocking::Sender<(Vec<u8>, oneshot::Sender<io::Result<()>>)>,
    batches: Arc<Mutex<VecDeque<Batch>>>,
}

impl Outgoing {
    fn new(mut output: impl Write + Send + 'static, end: End) -> io::Result<Self> {
        let (queue, lines) = blocking::channel::<(Vec<u8>, oneshot::Sender<io::Result<()>>)>();
        thread::Builder::new().name("stdout".to_owned()).spawn(move || {
            for (line, written) in lines {
                let result = output.write_all(&line).and_then(|()| output.flush());
                if let Err(error) = &result {
                    tracing::info!(%error, "the output cannot be written any more");
                    end.now();
                }
                // Nobody may be waiting for this line.
                drop(written.send(result));
            }
        })?;
        Ok(Self { queue, batches: Arc::default() })
    }

    /// Sends a message, or keeps it until its batch is complete (`None`: nothing is on its way yet).
    fn send(&self, message: Value) -> Option<Written> {
        let message = self.collect(message)?;
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        let (done, written) = oneshot::channel();
        // A closed queue drops `done`, which is what the waiting side sees.
        drop(self.queue.send((line, done)));
        Some(written)
    }

    /// Resolves when the queue as it is now has been written.
    async fn drained(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send((Vec::new(), done)).is_ok() {
            // Failing to write is the end of it, too.
            drop(written.await);
        }
    }

    /// Sends an answer that nobody waits for.
    fn post<T>(&self, message: Value) -> Option<T> {
        drop(self.send(message));
        None
    }

    fn error(&self, code: i64, message: &str) {
        self.post::<()>(error_object(None, code, message));
    }

    fn open(&self, batch: Batch) {
        if batch.pending.is_empty() {
            if !batch.collected.is_empty() {
                self.post::<()>(Value::Array(batch.collected));
            }
            return;
        }
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).push_back(batch);
    }

    /// A cancelled request gets no answer, so its batch must not wait for one.
    fn forget(&self, id: &RequestId) {
        let id = id_value(id);
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(position) = batches.iter().position(|batch| batch.pending.contains(&id)) else { return };
        let Some(batch) = batches.get_mut(position) else { return };
        batch.pending.retain(|pending| *pending != id);
        let complete = batch.pending.is_empty().then(|| std::mem::take(&mut batch.collected));
        if let Some(collected) = complete {
            batches.remove(position);
            drop(batches);
            if !collected.is_empty() {
                self.post::<()>(Value::Array(collected));
            }
        }
    }

    /// The message itself when it belongs to no batch, the whole batch when it completes one.
    fn collect(&self, message: Value) -> Option<Value> {
        let Some(id) = message.get("id").filter(|_| message.get("method").is_none()) else { return Some(message) };
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(position) = batches.iter().position(|batch| batch.pending.contains(id)) else { return Some(message) };
        let batch = batches.get_mut(position)?;
        batch.pending.retain(|pending| pending != id);
        batch.collected.push(message);
        let complete = batch.pending.is_empty();
        if complete { batches.remove(position).map(|batch| Value::Array(batch.collected)) } else { None }
    }
}
