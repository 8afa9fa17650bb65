//! A server beside a directory that it must not touch, and the one question: was that refused, and did nothing change?

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use workflow_corpus::{Library, Root};
use workflow_engine::{Settings, Timestamp};
use workflow_mcp::{Clock, Outcome, Server};
use workflow_store::{FileStore, Options};

/// Stands in every file outside the roots.
pub(crate) const SECRET: &str = "kept-outside-7261";

const META: &[(&str, &str)] = &[
    ("meta/workflow.yaml", "id: meta\nversion: 1.0.0\ntitle: Meta\ninitialActivity: look\n"),
    (
        "meta/activities/01-look.yaml",
        "id: look\nversion: 1.0.0\nname: Look\nsteps:\n  - { kind: action, id: search }\ntransitions: [{ to: look }]\n",
    ),
    ("meta/resources/bootstrap-protocol.md", "# Begin\n\nCall list_workflows.\n"),
];

const WALK: &[(&str, &str)] = &[
    ("walk/workflow.yaml", include_str!("../it/walk/workflow.yaml")),
    ("walk/activities/01-plan.yaml", include_str!("../it/walk/plan.yaml")),
    ("walk/activities/02-ship.yaml", include_str!("../it/walk/ship.yaml")),
    ("walk/activities/03-tidy.yaml", include_str!("../it/walk/tidy.yaml")),
    ("walk/activities/04-rest.yaml", include_str!("../it/walk/rest.yaml")),
    ("walk/activities/05-complete.yaml", include_str!("../it/walk/complete.yaml")),
    (
        "walk/techniques/greet.md",
        "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nSays hello.\n\n## Protocol\n\n- Say it.\n",
    ),
    ("walk/resources/notes.md", "# Notes\n\n## Tone\n\nFriendly.\n"),
];

#[derive(Clone, Debug)]
struct Hand(Arc<AtomicI64>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// A server in `ws`, `state` and `corpus`, beside `out`.
pub(crate) struct Field {
    _dir: TempDir,
    pub(crate) base: PathBuf,
    pub(crate) options: Options,
    hand: Hand,
    server: Server,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
    Other,
}

impl Field {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["ws", "state", "corpus", "out"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        fs::write(base.join("out/secret.md"), format!("# {SECRET}\n")).unwrap();
        let mut options = Options::new(base.join("ws"), base.join("state"));
        options.lock_deadline = Duration::from_millis(50);
        let hand = Hand(Arc::new(AtomicI64::new(1_784_000_000_000)));
        let server = server(&base, &options, &hand);
        let field = Self { _dir: dir, base, options, hand, server };
        for (path, text) in WALK {
            field.define(path, text);
        }
        field
    }

    /// Another process in the same directories.
    pub(crate) fn restart(&mut self) {
        self.server = server(&self.base, &self.options, &self.hand);
    }

    pub(crate) fn wait(&self, milliseconds: i64) {
        self.hand.0.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Writes a definition.
    pub(crate) fn define(&self, path: &str, text: &str) {
        write(&self.base.join("corpus").join(path), text);
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.base.join("out")
    }

    pub(crate) fn planning(&self) -> PathBuf {
        self.base.join("ws/.engineering/artifacts/planning")
    }

    pub(crate) fn folder(&self, slug: &str) -> PathBuf {
        self.planning().join(slug)
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Outcome {
        self.server.call(tool, arguments.as_object().unwrap(), "test", &|| false)
    }

    /// A call that must succeed, as JSON when it is JSON.
    #[track_caller]
    pub(crate) fn ok(&self, tool: &str, arguments: &Value) -> Value {
        let outcome = self.call(tool, arguments);
        assert!(!outcome.is_error, "{tool} {arguments}: {}", outcome.text);
        silent(&outcome);
        serde_json::from_str(&outcome.text).unwrap_or(Value::Null)
    }

    #[track_caller]
    pub(crate) fn start(&self, slug: &str) -> String {
        let started = self.ok("start_session", &json!({"workflow_id": "walk", "planning_slug": slug}));
        started["session_index"].as_str().unwrap().to_owned()
    }

    /// A session in activity `plan`.
    #[track_caller]
    pub(crate) fn running(&self, slug: &str) -> String {
        let index = self.start(slug);
        self.ok("next_activity", &go(&index, "plan"));
        index
    }

    /// A session that waits at `confirm`, and the handle.
    #[track_caller]
    pub(crate) fn blocked(&self, slug: &str) -> (String, String) {
        let index = self.running(slug);
        let handle = self.stop(&index, "confirm");
        (index, handle)
    }

    #[track_caller]
    pub(crate) fn stop(&self, index: &str, checkpoint: &str) -> String {
        let yielded = self.ok("yield_checkpoint", &json!({"session_index": index, "checkpoint_id": checkpoint}));
        yielded["checkpoint_handle"].as_str().unwrap().to_owned()
    }

    /// Everything below the base but locks. Traces may grow, and do so by refused calls too.
    fn look(&self) -> BTreeMap<PathBuf, Found> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.base.clone()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                let is_lock = entry.file_name() == *".session.lock" && kind.is_file();
                if is_lock || path.starts_with(self.base.join("state/trace")) {
                    continue;
                }
                let what = if kind.is_symlink() {
                    Found::Link(fs::read_link(&path).unwrap())
                } else if kind.is_dir() {
                    open.push(path.clone());
                    Found::Directory
                } else if kind.is_fifo() || !kind.is_file() {
                    Found::Other
                } else {
                    Found::File(fs::read(&path).unwrap())
                };
                found.insert(path, what);
            }
        }
        found
    }

    /// The call is refused with this code, changes nothing and shows nothing from outside.
    #[track_caller]
    pub(crate) fn refused(&self, tool: &str, arguments: &Value, code: &str) -> Outcome {
        let before = self.look();
        let outcome = self.call(tool, arguments);
        assert_eq!(code_of(&outcome), code, "{tool}: {}", shown(&outcome));
        silent(&outcome);
        self.unchanged(&before);
        outcome
    }

    /// The call is answered, but nothing outside is shown or changed.
    #[track_caller]
    pub(crate) fn harmless(&self, tool: &str, arguments: &Value) -> Value {
        let out = |all: BTreeMap<PathBuf, Found>| -> BTreeMap<PathBuf, Found> {
            all.into_iter().filter(|(path, _)| path.starts_with(self.out())).collect()
        };
        let before = out(self.look());
        let answer = self.ok(tool, arguments);
        assert_eq!(out(self.look()), before);
        answer
    }

    #[track_caller]
    fn unchanged(&self, before: &BTreeMap<PathBuf, Found>) {
        let after = self.look();
        let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
        let changed: Vec<&PathBuf> = before.keys().chain(after.keys()).filter(differs).collect();
        assert!(changed.is_empty(), "{changed:?}");
    }
}

fn server(base: &Path, options: &Options, hand: &Hand) -> Server {
    let root = Root::Directory { path: base.join("corpus"), label: "test".to_owned() };
    let fallback = Root::Embedded { label: "meta".to_owned(), files: META };
    let store = FileStore::open(options.clone()).unwrap();
    let settings = Settings { checkpoint_min_response_ms: 3000, ..Settings::default() };
    Server::new(Library::new(vec![root], Some(fallback)), store, settings).with_clock(hand.clone())
}

/// The code of a refusal, or `ok`.
pub(crate) fn code_of(outcome: &Outcome) -> &str {
    if !outcome.is_error {
        return "ok";
    }
    outcome.meta.as_ref().unwrap()["error"]["code"].as_str().unwrap()
}

#[track_caller]
fn silent(outcome: &Outcome) {
    let meta = outcome.meta.as_ref().map(|meta| Value::Object(meta.clone()).to_string()).unwrap_or_default();
    assert!(!outcome.text.contains(SECRET) && !meta.contains(SECRET), "{} {meta}", outcome.text);
}

/// The text of an outcome, cut.
fn shown(outcome: &Outcome) -> String {
    outcome.text.chars().take(600).collect()
}

pub(crate) fn go(index: &str, activity: &str) -> Value {
    json!({"session_index": index, "activity_id": activity})
}

pub(crate) fn named(slug: &str) -> Value {
    json!({"workflow_id": "walk", "planning_slug": slug})
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Copies the files of a session.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["session.json", ".session-token"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// Changes a text file.
pub(crate) fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed);
    fs::write(path, changed).unwrap();
}

/// Puts a pipe that nobody writes to where a file is expected.
pub(crate) fn pipe(path: &Path) {
    drop(fs::remove_file(path));
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
