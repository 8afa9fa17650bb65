//! A session whose deliveries are measured and checked.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, anyhow, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use workflow_corpus::{Corpus, Library, Root};
use workflow_engine::Settings;
use workflow_mcp::{Outcome, Server};
use workflow_store::{FileStore, Options};

/// The session's own agent.
const AGENT: &str = "walker";

/// What stands between the parts of `get_workflow` and `get_activity`.
const SEPARATOR: &str = "\n\n---\n\n";

/// A server over one corpus, in a workspace of its own.
pub(super) struct Bench {
    pub(super) corpus: Arc<Corpus>,
    server: Server,
    workspace: TempDir,
    sessions: AtomicUsize,
}

impl Bench {
    pub(super) fn over(path: &Path) -> anyhow::Result<Self> {
        ensure!(path.is_dir(), "{} is no directory", path.display());
        let root = Root::Directory { path: path.to_owned(), label: "measured".to_owned() };
        let library = Library::new(vec![root], None);
        let corpus = library.snapshot();
        let workspace = tempfile::tempdir().context("a workspace for the measurement")?;
        let base = workspace.path().canonicalize().context("the workspace")?;
        let store =
            FileStore::open(Options::new(&base, base.join("state"))).map_err(|refusal| anyhow!(refusal.text()))?;
        Ok(Self {
            corpus,
            server: Server::new(library, store, Settings::default()),
            workspace,
            sessions: AtomicUsize::new(0),
        })
    }

    fn call(&self, tool: &str, arguments: &Value) -> anyhow::Result<Outcome> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let outcome = self.server.call(tool, &arguments, "sizes", &|| false);
        ensure!(!outcome.is_error && !outcome.text.starts_with("status: refused"), "{tool}: {}", outcome.text);
        Ok(outcome)
    }
}

/// Characters by tool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) workflow: u64,
    pub(super) activity: u64,
    pub(super) technique: u64,
    pub(super) resource: u64,
}

impl Sizes {
    pub(super) fn sum(&self) -> u64 {
        self.workflow + self.activity + self.technique + self.resource
    }

    pub(super) fn add(&mut self, other: Self) {
        self.workflow += other.workflow;
        self.activity += other.activity;
        self.technique += other.technique;
        self.resource += other.resource;
    }
}

/// One session of one workflow.
pub(super) struct Session<'b> {
    pub(super) sizes: Sizes,
    pub(super) bench: &'b Bench,
    index: String,
    folder: PathBuf,
    persistent: bool,
    readers: HashMap<String, Reader>,
}

impl<'b> Session<'b> {
    pub(super) fn start(bench: &'b Bench, workflow: &str, persistent: bool) -> anyhow::Result<Self> {
        let number = bench.sessions.fetch_add(1, Ordering::Relaxed);
        let slug = format!("walk-{number:04}");
        let mode = if persistent { "persistent" } else { "fresh" };
        let arguments =
            json!({"workflow_id": workflow, "planning_slug": slug, "agent_id": AGENT, "context_mode": mode});
        let started = bench.call("start_session", &arguments)?;
        let answer: Value = serde_json::from_str(&started.text).context("the answer of start_session")?;
        let index = answer["session_index"].as_str().context("a session index")?.to_owned();
        let folder = bench.workspace.path().canonicalize()?.join(".engineering/artifacts/planning").join(slug);
        Ok(Self { sizes: Sizes::default(), bench, index, folder, persistent, readers: HashMap::new() })
    }

    /// Calls a tool that delivers nothing.
    pub(super) fn call(&self, tool: &str, mut arguments: Value) -> anyhow::Result<Outcome> {
        arguments["session_index"] = self.index.as_str().into();
        self.bench.call(tool, &arguments)
    }

    /// Calls a tool that delivers, measures the answer, and checks every marker in it.
    pub(super) fn deliver(&mut self, tool: &str, arguments: Value) -> anyhow::Result<Outcome> {
        let agent = arguments["agent_id"].as_str().unwrap_or(AGENT).to_owned();
        let refers_back = match arguments["bundle"].as_str() {
            Some(bundle) => bundle == "reference",
            None => self.persistent && tool != "get_resource",
        };
        let outcome = self.call(tool, arguments)?;
        let text = counted(tool, &outcome);
        let chars = characters(&text.replace(&self.folder.display().to_string(), self.slug()));
        match tool {
            "get_workflow" => self.sizes.workflow += chars,
            "get_activity" => self.sizes.activity += chars,
            "get_technique" => self.sizes.technique += chars,
            _ => self.sizes.resource += chars,
        }
        let reader = self.readers.entry(agent).or_default();
        let before = reader.markers;
        for document in documents(tool, text) {
            reader.read(&document).with_context(|| format!("{tool} in {}", self.folder.display()))?;
        }
        ensure!(refers_back || reader.markers == before, "{tool}: a marker without reference delivery");
        Ok(outcome)
    }

    fn slug(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The sizes in the session's history are those of the answers (spec 02 §10.6).
    pub(super) fn check_recorded_sizes(&self) -> anyhow::Result<()> {
        let path = self.folder.join("session.json");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let state: Value = serde_json::from_str(&text).context("the session")?;
        let deliveries = ["activity_dispatched", "technique_fetched", "resource_fetched"];
        let events = state["history"].as_array().into_iter().flatten();
        let recorded: u64 = events
            .filter(|event| event["type"].as_str().is_some_and(|kind| deliveries.contains(&kind)))
            .filter_map(|event| event["data"]["chars"].as_u64())
            .sum();
        let sent = self.sizes.sum() - self.sizes.workflow;
        ensure!(recorded == sent, "{recorded} characters are recorded, {sent} were sent");
        Ok(())
    }
}

/// What one agent has received.
#[derive(Default)]
struct Reader {
    hashes: HashSet<String>,
    markers: usize,
}

impl Reader {
    /// Reads a document from top to bottom: notes the hashes of full copies, looks up those of markers.
    fn read(&mut self, value: &Value) -> anyhow::Result<()> {
        match value {
            Value::Object(members) if members.get("delivery").is_some_and(|delivery| delivery == "unchanged") => {
                self.markers += 1;
                let hash = members.get("content_hash").and_then(Value::as_str).unwrap_or_default();
                ensure!(self.hashes.contains(hash), "a marker for {hash}, which nothing sent before carries");
            }
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("content_hash", Value::String(hash)) => {
                            self.hashes.insert(hash.clone());
                        }
                        ("content_hashes", Value::Object(hashes)) => {
                            self.hashes.extend(hashes.values().filter_map(Value::as_str).map(str::to_owned));
                        }
                        _ => self.read(member)?,
                    }
                }
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.read(item))?,
            _ => {}
        }
        Ok(())
    }
}

/// The text of an answer without the blocks that count in no size (spec 02 §6.3).
fn counted<'t>(tool: &str, outcome: &'t Outcome) -> &'t str {
    let mut text = outcome.text.as_str();
    let warnings = outcome.meta.as_ref().and_then(|meta| meta.get("validation")?.get("warnings")?.as_array());
    if warnings.is_some_and(|warnings| !warnings.is_empty()) {
        let block = if tool == "get_resource" { "\n<!-- end of resource -->\n" } else { "\nvalidation:\n" };
        text = &text[..text.rfind(block).unwrap_or(text.len())];
    }
    if tool == "get_activity" {
        text = &text[..text.rfind("\nbatch:\n").unwrap_or(text.len())];
    }
    text
}

/// UTF-16 code units.
fn characters(text: &str) -> u64 {
    text.chars().map(|c| if u32::from(c) > 0xFFFF { 2 } else { 1 }).sum()
}

/// The parts of an answer that are YAML.
fn documents(tool: &str, text: &str) -> Vec<Value> {
    let parts = match tool {
        "get_resource" => Vec::new(),
        "get_technique" => text.split_once("\n\n").map(|(_, body)| body).into_iter().collect(),
        _ => text.splitn(2, SEPARATOR).collect(),
    };
    parts.into_iter().map(|part| workflow_yaml::parse(part).root.to_value()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_needs_an_earlier_full_copy() {
        let mut reader = Reader::default();
        let marker = json!({"a": {"delivery": "unchanged", "content_hash": "1"}});
        assert!(reader.read(&marker).is_err());
        reader.read(&json!({"rules": ["x"], "content_hashes": {"rules": "1"}})).expect("a full copy");
        reader.read(&marker).expect("held");
        assert_eq!(reader.markers, 2);
    }

    #[test]
    fn blocks_that_count_in_no_size_are_cut_off() {
        let outcome = |text: &str, warnings: Value| Outcome {
            text: text.to_owned(),
            meta: json!({"validation": {"warnings": warnings}}).as_object().cloned(),
            is_error: false,
        };
        let activity = outcome("a\nbatch:\n  x: 1\n\nvalidation:\n- \"w\"\n", json!(["w"]));
        assert_eq!(counted("get_activity", &activity), "a");
        let resource = outcome("r\nvalidation:\n\n<!-- end of resource -->\n\nvalidation:\n- \"w\"\n", json!(["w"]));
        assert_eq!(counted("get_resource", &resource), "r\nvalidation:\n");
        assert_eq!(counted("get_technique", &outcome("t\nvalidation:\n", json!([]))), "t\nvalidation:\n");
        assert_eq!(characters("a▼😀"), 4);
    }
}
