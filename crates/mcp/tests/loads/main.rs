//! Large workspaces, sessions and definitions: everything still answers, and what a call costs does not grow with what
//! it does not touch. Bounded; `WORKFLOW_TEST_LONG` takes the full sizes. Times are printed, operations are asserted.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "functions that tests call may do what tests may")]

mod counting;
mod definitions;
mod family;
mod planning;
mod size;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;
use workflow_corpus::{Library, Root};
use workflow_engine::Settings;
use workflow_mcp::{Outcome, Server};
use workflow_store::{FileStore, Options};

use crate::counting::Counting;

/// The first number, or the second when there is time.
fn bounded(short: usize, long: usize) -> usize {
    if std::env::var_os("WORKFLOW_TEST_LONG").is_some() { long } else { short }
}

/// A workspace on the real disk.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        Self { dir }
    }

    fn base(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn planning(&self) -> PathBuf {
        self.base().join("ws/.engineering/artifacts/planning")
    }

    /// A new process.
    fn process(&self) -> Process {
        self.process_with(Settings::default())
    }

    fn process_with(&self, settings: Settings) -> Process {
        let operations = Counting::default();
        let options = Options::new(self.base().join("ws"), self.base().join("state"));
        let store = FileStore::open_on(options, Arc::new(operations.clone())).unwrap();
        let root = Root::Embedded { label: "test".to_owned(), files: testkit::MINI };
        let settings = Settings { checkpoint_min_response_ms: 0, ..settings };
        Process { server: Server::new(Library::new(vec![root], None), store, settings), operations }
    }
}

/// One process, whose file operations are counted.
struct Process {
    server: Server,
    operations: Counting,
}

impl Process {
    fn call(&self, tool: &str, arguments: &Value) -> Outcome {
        self.server.call(tool, arguments.as_object().unwrap(), "test", &|| false)
    }

    #[track_caller]
    fn must(&self, tool: &str, arguments: &Value) -> Value {
        let outcome = self.call(tool, arguments);
        assert!(!outcome.is_error, "{tool}: {}", outcome.text);
        serde_json::from_str(&outcome.text).unwrap_or(Value::Null)
    }

    /// A call with its file operations; prints them and the time.
    #[track_caller]
    fn measured(&self, what: &str, tool: &str, arguments: &Value) -> (Value, usize) {
        self.operations.reset();
        let begun = Instant::now();
        let answer = self.must(tool, arguments);
        let count = self.operations.count();
        println!("{what}: {tool} took {:?}, {count} file operations", begun.elapsed());
        (answer, count)
    }

    fn start(&self, slug: &str) -> String {
        let started = self.must("start_session", &json!({"workflow_id": "mini", "planning_slug": slug}));
        started["session_index"].as_str().unwrap().to_owned()
    }
}

fn delivery(index: &str) -> Value {
    json!({"session_index": index, "agent_id": "w", "context_tokens": 200_000})
}

fn usage(index: &str) -> Value {
    json!({"session_index": index, "activity": "plan", "usage": {"input_tokens": 1}, "basis": "delta"})
}
