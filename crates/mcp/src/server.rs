//! What answers calls: definitions, sessions, settings, without any protocol (spec 03 §4.3).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use workflow_corpus::{Corpus, Library};
use workflow_engine::{
    Arguments, Environment, Randomness, Refusal, Reply, Settings, TOOLS, Target, Timestamp, Tool, TraceEntry, apply,
    trace,
};
use workflow_store::{FileStore, SessionFacts, SessionListing, SessionStore as _};

use crate::arguments;
use crate::audit;
use crate::resource::{self, Document};

/// Code of a call that its caller has given up; it leaves nothing, not even an event.
const CANCELLED: &str = "CANCELLED";

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Identifiers from the random source of the machine.
struct SystemRandomness;

impl Randomness for SystemRandomness {
    fn uuid(&self) -> String {
        let mut bytes = [0_u8; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // Identifiers need to differ, not to be secret.
            bytes = u128::from(SystemClock.now().0.unsigned_abs()).to_be_bytes();
        }
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        let hex = format!("{:032x}", u128::from_be_bytes(bytes));
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

/// The answer to a call: one text item, `_meta`, and whether it is a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What the model reads.
    pub text: String,
    /// Facts beside it; bootstrap tools have none.
    pub meta: Option<Map<String, Value>>,
    /// The call was refused and had no effect.
    pub is_error: bool,
}

impl Outcome {
    fn refused(refusal: &Refusal) -> Self {
        Self { text: refusal.text(), meta: Some(refusal.meta()), is_error: true }
    }
}

/// Answers calls on one workspace. Safe to share between threads and clients.
pub struct Server {
    library: Library,
    store: FileStore,
    settings: Settings,
    clock: Box<dyn Clock>,
    randomness: Box<dyn Randomness + Send + Sync>,
    problems: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    started: Instant,
    audit_full: bool,
}

impl Server {
    /// A server over definitions and sessions.
    pub fn new(library: Library, store: FileStore, settings: Settings) -> Self {
        Self {
            library,
            store,
            settings,
            clock: Box::new(SystemClock),
            randomness: Box::new(SystemRandomness),
            problems: Box::new(Vec::new),
            started: Instant::now(),
            audit_full: false,
        }
    }

    /// Takes the time from another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// What `health_check` reports beside the store's own problems.
    #[must_use]
    pub fn with_problems(mut self, problems: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        self.problems = Box::new(problems);
        self
    }

    /// Writes arguments into the log as they are instead of by their sizes.
    #[must_use]
    pub fn with_full_audit(mut self, full: bool) -> Self {
        self.audit_full = full;
        self
    }

    /// Limits and names.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The definitions as they are now.
    pub fn corpus(&self) -> Arc<Corpus> {
        self.library.snapshot()
    }

    /// The sessions.
    pub fn store(&self) -> &FileStore {
        &self.store
    }

    /// Answers one call. `request` names it in the log; a call that `cancelled` reports before it is committed has no
    /// effect. Never panics.
    pub fn call(&self, name: &str, sent: &Map<String, Value>, request: &str, cancelled: &dyn Fn() -> bool) -> Outcome {
        let begun = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer(name, sent, begun, cancelled)));
        let answer =
            answer.unwrap_or_else(|_| Err(internal(name))).map_err(|refusal| arguments::shortened(refusal, name, sent));
        let outcome = match &answer {
            Ok(reply) => {
                let rendered = reply.render();
                Outcome { text: rendered.text, meta: rendered.meta, is_error: false }
            }
            Err(refusal) => Outcome::refused(refusal),
        };
        self.audit(name, sent, request, begun, &answer, &outcome);
        outcome
    }

    /// Answers a call whose arguments are no object.
    pub(crate) fn arguments_are_no_object(name: &str, sent: &Value) -> Outcome {
        let kind = match sent {
            Value::Array(_) => "a list",
            Value::String(_) => "a text",
            Value::Number(_) => "a number",
            Value::Bool(_) | Value::Null | Value::Object(_) => "a value",
        };
        let causes = format!("`arguments` expected an object; received {kind}. Nothing was changed.");
        Outcome::refused(&find(name).map_or_else(|unknown| unknown, |tool| Refusal::invalid_params(tool.name, &causes)))
    }

    /// Reads an MCP resource.
    pub(crate) fn read_resource(&self, uri: &str) -> Result<Document, String> {
        let read = || resource::read(uri, &self.corpus(), &|| self.sessions());
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(internal("resources/read").text()))
    }

    /// The sessions of the workspace: those that open with what they are, the others with why they do not.
    ///
    /// # Errors
    /// Roots and key (spec 03 §11 B).
    pub fn sessions(&self) -> Result<Value, Refusal> {
        let listed = |listing: SessionListing| {
            let mut shown = Map::new();
            shown.insert("planning_slug".to_owned(), listing.slug.into());
            shown.insert("folder".to_owned(), listing.folder.into());
            shown.insert("transient".to_owned(), listing.transient.into());
            match listing.session {
                Ok(facts) => shown.extend(members(&facts)),
                Err(refusal) => {
                    shown.insert("status".to_owned(), "unreadable".into());
                    shown.insert("error".to_owned(), refusal.text().into());
                }
            }
            Value::Object(shown)
        };
        Ok(self.store.sessions()?.into_iter().map(listed).collect())
    }

    fn answer(
        &self,
        name: &str,
        sent: &Map<String, Value>,
        begun: Instant,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Reply, Refusal> {
        let tool = find(name)?;
        let corpus = self.library.snapshot();
        let arguments = arguments::read(tool, sent, &self.settings)?;
        let problems = || {
            let mut problems = self.store.problems();
            problems.extend((self.problems)());
            problems
        };
        let env = Environment {
            corpus: &corpus,
            settings: &self.settings,
            now: self.clock.now(),
            signer: &self.store,
            randomness: self.randomness.as_ref(),
            registry: &self.store,
            traces: &self.store,
            uptime_seconds: self.started.elapsed().as_secs(),
            problems: &problems,
        };
        let target = (tool.target)(&env, &arguments)?;
        let mut traced = Traced { event: None, done: false };
        let result = self.work(tool, &env, &arguments, &target, cancelled, begun, &mut traced);
        self.append(traced, result.as_ref(), begun);
        result
    }

    /// Runs the tool on its sessions, if it has any.
    #[expect(clippy::too_many_arguments, reason = "the parts of one call, taken apart once")]
    fn work(
        &self,
        tool: &'static Tool,
        env: &Environment<'_>,
        arguments: &Arguments,
        target: &Target,
        cancelled: &dyn Fn() -> bool,
        begun: Instant,
        traced: &mut Traced,
    ) -> Result<Reply, Refusal> {
        if *target == Target::Nothing {
            let mut none = workflow_engine::Workset {
                families: Vec::new(),
                path: workflow_engine::StatePath::default(),
                warnings: Vec::new(),
            };
            return apply(tool, env, arguments, &mut none);
        }
        let mut run = |workset: &mut workflow_engine::Workset| {
            // What a refusal leaves in the trace is taken from the sessions as they were read.
            let placeholder = Refusal::new("REFUSED", "");
            *traced = Traced { event: trace::event(env, tool, arguments, workset, Err(&placeholder), 0), done: false };
            let reply = apply(tool, env, arguments, workset)?;
            let event = trace::event(env, tool, arguments, workset, Ok(&reply), milliseconds(begun));
            *traced = Traced { event, done: true };
            Ok(reply)
        };
        if tool.annotations.read_only {
            let mut workset = self.store.read(target)?;
            return run(&mut workset);
        }
        self.store.transaction_unless(target, cancelled, &mut run)
    }

    /// Appends the events of a call to the traces. Failing to do so fails no call.
    fn append(&self, traced: Traced, result: Result<&Reply, &Refusal>, begun: Instant) {
        let mut entries = Vec::new();
        match result {
            Ok(reply) => {
                entries.extend(traced.event.filter(|_| traced.done));
                entries.extend(reply.traces.iter().cloned());
            }
            Err(refusal) => entries.extend(traced.refused(refusal, milliseconds(begun))),
        }
        for entry in entries {
            if let Err(refusal) = self.store.append_trace(&entry.session_index, &entry.event) {
                let error = refusal.text();
                tracing::warn!(session_index = entry.session_index, error, "a trace event could not be written");
            }
        }
    }

    fn audit(
        &self,
        name: &str,
        sent: &Map<String, Value>,
        request: &str,
        begun: Instant,
        answer: &Result<Reply, Refusal>,
        outcome: &Outcome,
    ) {
        let parameters = Value::Object(audit::parameters(sent, self.audit_full)).to_string();
        let bytes_in = sent.iter().map(|(name, value)| name.len() + value.to_string().len()).sum::<usize>();
        let (duration_ms, bytes_out) = (milliseconds(begun), outcome.text.len());
        match answer {
            Ok(_) => tracing::info!(
                target: "audit",
                tool = name, request, parameters, result = "success", duration_ms, bytes_in, bytes_out,
            ),
            Err(refusal) => {
                let message = audit::message(refusal.code, &refusal.message, sent, self.audit_full).unwrap_or_default();
                tracing::info!(
                    target: "audit",
                    tool = name, request, parameters, result = "error", duration_ms, bytes_in, bytes_out,
                    code = refusal.code, error_message = message,
                );
            }
        }
    }
}

/// A session that opens, as it is listed.
fn members(facts: &SessionFacts) -> Map<String, Value> {
    let mut shown = Map::new();
    for (name, value) in [
        ("session_index", facts.session_index.as_str()),
        ("status", facts.status),
        ("workflow_id", &facts.workflow_id),
        ("workflow_version", &facts.workflow_version),
        ("current_activity", &facts.current_activity),
        ("agent_id", &facts.agent_id),
        ("started_at", &facts.started_at),
    ] {
        shown.insert(name.to_owned(), value.into());
    }
    shown.insert("last_written".to_owned(), Timestamp(facts.ts.saturating_mul(1000)).text().into());
    shown.insert("embedded".to_owned(), facts.embedded.into());
    if let Some(parent) = &facts.parent {
        shown.insert("parent".to_owned(), parent.as_str().into());
    }
    shown
}

/// The event of a call, so far.
struct Traced {
    event: Option<TraceEntry>,
    /// It is that of a success; otherwise of a refusal that is not known yet.
    done: bool,
}

impl Traced {
    /// The event of a refusal, on the session as it was read.
    fn refused(self, refusal: &Refusal, duration_ms: u64) -> Option<TraceEntry> {
        let mut entry = self.event?;
        if trace::leaves_no_event(refusal.code) || refusal.code == CANCELLED {
            return None;
        }
        let members = entry.event.as_object_mut()?;
        members.insert("s".to_owned(), "error".into());
        members.insert("err".to_owned(), refusal.text().into());
        members.insert("ms".to_owned(), duration_ms.into());
        members.shift_remove("vw");
        Some(entry)
    }
}

fn find(name: &str) -> Result<&'static Tool, Refusal> {
    workflow_engine::tool(name).ok_or_else(|| {
        let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let nearest = arguments::nearest(name, &known);
        let hint = nearest.map_or_else(|| ".".to_owned(), |nearest| format!("; did you mean {nearest}?"));
        let name: String = name.chars().take(100).collect();
        Refusal::new(
            "UNKNOWN_TOOL",
            format!("MCP error -32602: Tool {name} not found{hint} Tools: {}.", known.join(", ")),
        )
        .with("tool", name)
    })
}

fn internal(name: &str) -> Refusal {
    Refusal::new(
        "INTERNAL",
        format!(
            "the server failed inside {name}; this is a defect of the server, and its log says where. Nothing was \
             changed by this call. Call get_workflow_status to see where the session stands; other calls go on."
        ),
    )
}

fn milliseconds(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
