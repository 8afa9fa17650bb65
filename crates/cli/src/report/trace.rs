//! The trace of a session in short (spec 03 §8).

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::Value;
use workflow_engine::{Timestamp, TraceLog as _};
use workflow_store::FileStore;

use super::Redaction;

/// Tools whose agents are asked for.
const ASKED: [&str; 2] = ["yield_checkpoint", "respond_checkpoint"];

/// The recorded calls of a session.
pub(super) struct Log {
    dropped: u64,
    events: Vec<Value>,
    /// Agents of successful calls by tool and second.
    agents: HashMap<(&'static str, i64), String>,
}

/// What the trace says about the calls of a session.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) calls: usize,
    /// Older ones that the cap of the trace has dropped.
    pub(crate) dropped: u64,
    /// Lines that do not read.
    pub(crate) unreadable: usize,
    /// What agents were told beside their answers, oldest first.
    pub(crate) warnings: Vec<Warned>,
    pub(crate) tools: Vec<Calls>,
    /// Refusal codes by number.
    pub(crate) refusals: Vec<(String, usize)>,
}

/// A warning as an agent was given it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Warned {
    /// `None` when the trace does not say it.
    pub(crate) at: Option<String>,
    /// The tool that was called.
    pub(crate) tool: String,
    pub(crate) text: String,
}

/// The calls of one tool.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) tool: String,
    pub(crate) count: usize,
    pub(crate) refused: usize,
    pub(crate) total_ms: u64,
    pub(crate) longest_ms: u64,
}

impl Log {
    pub(super) fn read(store: &FileStore, session_index: &str) -> Self {
        let slice = store.read(session_index);
        let mut agents = HashMap::new();
        for event in slice.events.iter().filter(|event| event["s"] == "ok") {
            let tool = ASKED.iter().find(|tool| event["name"] == **tool);
            if let (Some(tool), Some(ts), Some(agent)) = (tool, event["ts"].as_i64(), event["aid"].as_str()) {
                agents.insert((*tool, ts), agent.to_owned());
            }
        }
        Self { dropped: slice.dropped, events: slice.events, agents }
    }

    /// The agent of the successful call of a tool at a time.
    pub(super) fn agent(&self, tool: &'static str, at: Timestamp) -> Option<&str> {
        let seconds = at.seconds();
        // The nearest first; an event is written after what it tells.
        let found = [0, 1, -1].into_iter().find_map(|off| self.agents.get(&(tool, seconds.saturating_add(off))));
        found.map(String::as_str)
    }

    pub(super) fn summary(&self, redaction: &Redaction) -> Trace {
        let mut tools: IndexMap<&str, Calls> = IndexMap::new();
        let mut refusals: IndexMap<String, usize> = IndexMap::new();
        let mut trace = Trace { dropped: self.dropped, ..Trace::default() };
        for event in &self.events {
            let Some(name) = event["name"].as_str() else {
                trace.unreadable += 1;
                continue;
            };
            trace.calls += 1;
            let at = event["ts"].as_i64().map(|ts| Timestamp(ts.saturating_mul(1000)).text());
            let texts = event["vw"].as_array().into_iter().flatten().filter_map(Value::as_str);
            trace.warnings.extend(texts.map(|text| Warned {
                at: at.clone(),
                tool: name.to_owned(),
                text: redaction.text(text),
            }));
            let calls = tools.entry(name).or_insert_with(|| Calls { tool: name.to_owned(), ..Calls::default() });
            let ms = event["ms"].as_u64().unwrap_or(0);
            calls.count += 1;
            calls.total_ms = calls.total_ms.saturating_add(ms);
            calls.longest_ms = calls.longest_ms.max(ms);
            if event["s"] == "error" {
                calls.refused += 1;
                *refusals.entry(code(event["err"].as_str().unwrap_or_default())).or_default() += 1;
            }
        }
        trace.tools = tools.into_values().collect();
        trace.tools.sort_by(|left, right| right.count.cmp(&left.count).then_with(|| left.tool.cmp(&right.tool)));
        trace.refusals = refusals.into_iter().collect();
        trace.refusals.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        trace
    }
}

/// The code in front of an error text; the rest may quote what a caller sent.
fn code(text: &str) -> String {
    let code = text.split(':').next().unwrap_or_default();
    let is_code = !code.is_empty() && code.len() < 60 && code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    if is_code { code.to_owned() } else { "other".to_owned() }
}
