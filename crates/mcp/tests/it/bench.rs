//! A server in a temporary directory, with a clock that the test sets.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use tempfile::TempDir;
use workflow_corpus::{Library, Root};
use workflow_engine::{Settings, Timestamp};
use workflow_mcp::{Clock, Outcome, Server};
use workflow_store::{FileStore, Options};

const FILES: &[(&str, &str)] = &[
    ("meta/workflow.yaml", "id: meta\nversion: 1.0.0\ntitle: Meta\ninitialActivity: look\n"),
    (
        "meta/activities/01-look.yaml",
        "id: look\nversion: 1.0.0\nname: Look\nsteps:\n  - { kind: action, id: search }\ntransitions: [{ to: look }]\n",
    ),
    ("meta/resources/bootstrap-protocol.md", "# Begin\n\nCall list_workflows.\n"),
    ("walk/workflow.yaml", include_str!("walk/workflow.yaml")),
    ("walk/activities/01-plan.yaml", include_str!("walk/plan.yaml")),
    ("walk/activities/02-ship.yaml", include_str!("walk/ship.yaml")),
    ("walk/activities/03-tidy.yaml", include_str!("walk/tidy.yaml")),
    ("walk/activities/04-rest.yaml", include_str!("walk/rest.yaml")),
    ("walk/activities/05-complete.yaml", include_str!("walk/complete.yaml")),
    ("walk/techniques/greet.md", GREET),
    ("walk/resources/notes.md", "---\nname: notes\nversion: 1.0.0\n---\n\n# Notes\n\n## Tone\n\nFriendly.\n"),
    ("bare/workflow.yaml", "id: bare\nversion: 1.0.0\ntitle: Bare\ninitialActivity: only\n"),
    ("bare/activities/01-only.yaml", "id: only\nversion: 1.0.0\nname: Only\nsteps:\n  - { kind: action, id: act }\n"),
    ("broken/workflow.yaml", "id: broken\nversion: one\ntitle: Broken\n"),
    (
        "lost/workflow.yaml",
        "id: lost\nversion: 1.0.0\ntitle: Lost\ninitialActivity: only\ntechniques: { workflow: [nowhere] }\n",
    ),
    ("lost/activities/01-only.yaml", "id: only\nversion: 1.0.0\nname: Only\nsteps:\n  - { kind: action, id: act }\n"),
];

const GREET: &str =
    "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nSays hello.\n\n## Protocol\n\n- Say it.\n";

/// The time of a test.
#[derive(Clone, Debug)]
struct Hand(Arc<AtomicI64>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// A server and the directories that it works in.
pub(crate) struct Bench {
    _dir: TempDir,
    pub(crate) options: Options,
    pub(crate) settings: Settings,
    hand: Hand,
    server: Server,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// A bench whose places and limits the test changes first.
    pub(crate) fn with(change: impl FnOnce(&mut Options, &mut Settings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir(base.join("ws")).unwrap();
        let mut options = Options::new(base.join("ws"), base.join("state"));
        options.lock_deadline = Duration::from_millis(50);
        let mut settings = Settings { checkpoint_min_response_ms: 3000, ..Settings::default() };
        change(&mut options, &mut settings);
        let hand = Hand(Arc::new(AtomicI64::new(1_784_000_000_000)));
        let server = server(&options, &settings, &hand);
        Self { _dir: dir, options, settings, hand, server }
    }

    /// Another process in the same directories.
    pub(crate) fn restart(&mut self) {
        self.server = server(&self.options, &self.settings, &self.hand);
    }

    pub(crate) fn wait(&self, milliseconds: i64) {
        self.hand.0.fetch_add(milliseconds, Ordering::SeqCst);
    }

    pub(crate) fn planning(&self) -> PathBuf {
        self.options.workspace.join(".engineering/artifacts/planning")
    }

    pub(crate) fn folder(&self, slug: &str) -> PathBuf {
        self.planning().join(slug)
    }

    pub(crate) fn state(&self, slug: &str) -> Value {
        serde_json::from_slice(&fs::read(self.folder(slug).join("session.json")).unwrap()).unwrap()
    }

    /// One call.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Outcome {
        self.server.call(tool, arguments.as_object().unwrap(), "test", &|| false)
    }

    /// A call that must succeed, as JSON when it is JSON.
    #[track_caller]
    pub(crate) fn ok(&self, tool: &str, arguments: &Value) -> Value {
        let outcome = self.call(tool, arguments);
        assert!(!outcome.is_error, "{tool} {arguments}: {}", outcome.text);
        serde_json::from_str(&outcome.text).unwrap_or(Value::Null)
    }

    /// A new session of `walk`.
    #[track_caller]
    pub(crate) fn start(&self, slug: &str) -> String {
        self.start_of("walk", slug)
    }

    #[track_caller]
    pub(crate) fn start_of(&self, workflow: &str, slug: &str) -> String {
        index(&self.ok("start_session", &json!({"workflow_id": workflow, "planning_slug": slug})))
    }

    #[track_caller]
    pub(crate) fn go(&self, index: &str, activity: &str) {
        self.ok("next_activity", &json!({"session_index": index, "activity_id": activity}));
    }

    /// Yields and answers the handle.
    #[track_caller]
    pub(crate) fn stop(&self, index: &str, checkpoint: &str) -> String {
        let yielded = self.ok("yield_checkpoint", &json!({"session_index": index, "checkpoint_id": checkpoint}));
        yielded["checkpoint_handle"].as_str().unwrap().to_owned()
    }

    /// Writes a state with the original's bare seal, as a server of that kind would; what was seen is forgotten.
    pub(crate) fn write_bare(&self, folder: &Path, state: &Value) {
        let text = serde_json::to_string_pretty(state).unwrap();
        let key = fs::read(self.options.key_dir.join("secret")).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(text.as_bytes());
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("session.json"), text).unwrap();
        fs::write(folder.join(".session-token"), HEXLOWER.encode(&mac.finalize().into_bytes())).unwrap();
        drop(fs::remove_dir_all(self.options.state_dir.join("seen")));
    }
}

fn server(options: &Options, settings: &Settings, hand: &Hand) -> Server {
    let library = Library::new(vec![Root::Embedded { label: "test".to_owned(), files: FILES }], None);
    let store = FileStore::open(options.clone()).unwrap();
    Server::new(library, store, settings.clone()).with_clock(hand.clone())
}

pub(crate) fn index(answer: &Value) -> String {
    answer["session_index"].as_str().unwrap().to_owned()
}

/// The code of an outcome: `ok`, that of a refusal, or that of a refused batch.
pub(crate) fn code(outcome: &Outcome) -> String {
    let meta = outcome.meta.as_ref();
    let at = |pointer: &str| Some(meta?.get(pointer)?.get("code")?.as_str()?.to_owned());
    if let Some(code) = at("error") {
        assert!(outcome.is_error && outcome.text.starts_with(&format!("{code}: ")), "{}", outcome.text);
        return code;
    }
    assert!(!outcome.is_error, "{}", outcome.text);
    at("refusal").unwrap_or_else(|| "ok".to_owned())
}

/// Codes of the warnings, which stand in the text as well.
pub(crate) fn warnings(outcome: &Outcome) -> Vec<String> {
    let detail = outcome.meta.as_ref().and_then(|meta| meta.get("warnings_detail")).and_then(Value::as_array);
    let detail = detail.map(Vec::as_slice).unwrap_or_default();
    assert_eq!(outcome.text.contains("validation"), !detail.is_empty(), "{}", outcome.text);
    detail.iter().map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
}
