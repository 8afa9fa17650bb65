//! What the fuzz targets share: a small workspace in memory, definitions in a throw-away directory.

use std::{
    cell::Cell,
    path::Path,
    sync::{Arc, OnceLock},
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use workflow_corpus::{Corpus, Library, Root};
use workflow_engine::{
    Arguments, Environment, Family, Folder, Purpose, Randomness, Refusal, Registry, Reply, Settings, Signer, StatePath,
    Timestamp, Tool, TraceLog, TraceSlice, Workset, apply,
    state::{Session, parse_text},
    tool,
};

/// Two small workflows.
pub const FILES: &[(&str, &str)] = &[
    (
        "meta/workflow.yaml",
        "id: meta\nversion: 1.0.0\ntitle: Meta\ninitialActivity: only\ntechniques:\n  core:\n    workflow: []\n    activity: []\n",
    ),
    ("meta/activities/01-only.yaml", "id: only\nversion: 1.0.0\nname: Only\nsteps:\n  - kind: action\n    id: act\n"),
    (
        "mini/workflow.yaml",
        "id: mini\nversion: 1.0.0\ntitle: Mini\ninitialActivity: plan\nvariables:\n  - name: is_ready\n    type: boolean\n    \
         defaultValue: false\n  - name: user_note\n    type: string\n  - name: work_list\n    type: array\n",
    ),
    (
        "mini/activities/01-plan.yaml",
        "id: plan\nversion: 1.0.0\nname: Plan\nsteps:\n  - kind: technique\n    id: think\n    technique:\n      name: think\n  - \
         kind: checkpoint\n    id: confirm\n    message: Go on?\n    defaultOption: go\n    autoAdvanceMs: 1000\n    options:\n      - \
         id: go\n        label: Go\n        effect:\n          setVariable:\n            is_ready: true\n      - id: stop\n        \
         label: Stop\ntransitions:\n  - to: ship\n    condition:\n      type: simple\n      variable: is_ready\n      operator: \
         \"==\"\n      value: true\n  - to: plan\n",
    ),
    (
        "mini/activities/02-ship.yaml",
        "id: ship\nversion: 1.0.0\nname: Ship\nsteps:\n  - kind: loop\n    id: each\n    loopType: forEach\n    variable: cur_item\n    \
         over: work_list\n    steps:\n      - kind: action\n        id: send\n        when: is_ready && user_note != \"\"\n",
    ),
    (
        "mini/techniques/think.md",
        "---\nname: think\nversion: 1.0.0\n---\n\n## Capability\n\nThinks.\n\n## Outputs\n\n### thought\n\nOne.\n\n## Protocol\n\n### 1. \
         Think\n\n- Think about {thought}. See [the guide](../resources/guide.md#part).\n",
    ),
    ("mini/resources/guide.md", "---\nname: guide\nversion: 1.0.0\n---\n\n# Guide\n\n## Part\n\nText.\n"),
];

/// The key 00…1f.
pub struct KeySigner;

impl Signer for KeySigner {
    fn mac(&self, purpose: Purpose, message: &[u8]) -> [u8; 32] {
        let key: Vec<u8> = (0..32).collect();
        match purpose {
            Purpose::SessionIndex | Purpose::TraceToken => hmac(&key, message),
            Purpose::CheckpointHandle => hmac(&hmac(&key, b"workflow-server/checkpoint-handle/v1"), message),
        }
    }
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

struct Alone;

impl Registry for Alone {
    fn is_taken(&self, _index: &str) -> bool {
        false
    }

    fn find(&self, _index: &str) -> Option<Workset> {
        None
    }

    fn children_of(&self, _index: &str) -> Vec<String> {
        Vec::new()
    }
}

struct Counter(Cell<u32>);

impl Randomness for Counter {
    fn uuid(&self) -> String {
        self.0.set(self.0.get() + 1);
        format!("00000000-0000-4000-8000-{:012x}", self.0.get())
    }
}

struct Events;

impl TraceLog for Events {
    fn read(&self, _session_index: &str) -> TraceSlice {
        let event = |name: &str| json!({"traceId": "x", "name": name, "ts": 1, "ms": 1, "s": "ok"});
        TraceSlice { dropped: 3, events: vec![event("start_session"), Value::Null, event("next_activity")] }
    }
}

/// The definitions of [`FILES`].
pub fn corpus() -> &'static Arc<Corpus> {
    static CORPUS: OnceLock<Arc<Corpus>> = OnceLock::new();
    CORPUS.get_or_init(|| library().snapshot())
}

/// A library of [`FILES`].
pub fn library() -> Library {
    Library::new(vec![Root::Embedded { label: "fuzz".to_owned(), files: FILES }], None)
}

/// Limits small enough to be met.
pub fn settings() -> Settings {
    Settings { checkpoint_min_response_ms: 0, ..Settings::default() }
}

/// Runs something with an environment at a second of its own.
pub fn with_env<T>(second: i64, work: impl FnOnce(&Environment<'_>) -> T) -> T {
    let settings = settings();
    work(&Environment {
        corpus: corpus(),
        settings: &settings,
        now: Timestamp(1_783_933_200_000 + second * 1000),
        signer: &KeySigner,
        randomness: &Counter(Cell::new(0)),
        registry: &Alone,
        traces: &Events,
        uptime_seconds: 1,
        problems: &Vec::new,
    })
}

/// Calls a tool with arguments that need no lenient reading.
pub fn exact(workset: &mut Workset, second: i64, name: &str, arguments: Value) -> Result<Reply, Refusal> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    run(workset, second, tool(name).expect("a tool"), &Arguments::exact(arguments))
}

/// Calls a tool on a workset; what it leaves must be a state that can be written and read.
pub fn run(workset: &mut Workset, second: i64, tool: &'static Tool, arguments: &Arguments) -> Result<Reply, Refusal> {
    let before = workset.clone();
    let outcome = with_env(second, |env| {
        // Which folders it asks for is the store's business; that asking does not fail otherwise than by refusing is ours.
        (tool.target)(env, arguments)?;
        apply(tool, env, arguments, workset)
    });
    match &outcome {
        Ok(reply) => {
            let _rendered = reply.render();
            workset.families.iter().filter_map(|family| family.root.as_ref()).for_each(assert_writable);
        }
        Err(refusal) => {
            let _text = (refusal.text(), refusal.meta());
            *workset = before;
        }
    }
    outcome
}

/// The state validates, and its text reads back as it is.
pub fn assert_writable(root: &Session) {
    root.validate().expect("a state that is left must be valid");
    let text = root.canonical_text();
    let read = Session::from_json(&parse_text(text.as_bytes()).expect("canonical text is JSON")).expect("a session");
    assert_eq!(read.canonical_text(), text);
}

/// A family without a session.
pub fn empty() -> Workset {
    let folder = Folder { slug: "alpha".to_owned(), path: "/srv/ws/planning/alpha".to_owned(), transient: false };
    Workset {
        families: vec![Family { folder, root: None, replaced: false }],
        path: StatePath::default(),
        warnings: Vec::new(),
    }
}

/// Nothing, a session in `plan`, one that waits at its gate, one that is over; and the second's index.
pub fn stages() -> &'static ([Workset; 4], String) {
    static STAGES: OnceLock<([Workset; 4], String)> = OnceLock::new();
    STAGES.get_or_init(|| {
        let mut work = empty();
        exact(&mut work, 0, "start_session", json!({"workflow_id": "mini", "planning_slug": "alpha"})).expect("starts");
        let index = work.session().expect("a session").session_index.clone();
        exact(&mut work, 1, "next_activity", json!({"session_index": index, "activity_id": "plan"})).expect("moves");
        let plan = work.clone();
        exact(&mut work, 2, "yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}))
            .expect("yields");
        let gate = work.clone();
        let mut over = plan.clone();
        exact(&mut over, 3, "next_activity", json!({"session_index": index, "activity_id": "__terminal__"}))
            .expect("ends");
        ([empty(), plan, gate, over], index)
    })
}

/// The handle of the gate in [`stages`].
pub fn live_handle() -> &'static str {
    static HANDLE: OnceLock<String> = OnceLock::new();
    HANDLE.get_or_init(|| {
        let (stages, index) = stages();
        let reply = exact(&mut stages[2].clone(), 3, "present_checkpoint", json!({"session_index": index}));
        let text = reply.expect("a checkpoint is presented").render().text;
        let at = text.find("cp1.").expect("a handle");
        text[at..at + 33].to_owned()
    })
}

/// Writes definitions into a directory and takes a snapshot of them.
pub fn definitions(dir: &Path, files: &[(&str, &[u8])]) -> Arc<Corpus> {
    for (path, bytes) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, bytes).expect("a file");
    }
    Library::new(vec![Root::Directory { path: dir.to_owned(), label: "fuzz".to_owned() }], None).snapshot()
}

/// A throw-away directory of this process, in memory where the system has such a place.
pub fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<tempfile::TempDir> = OnceLock::new();
    SCRATCH
        .get_or_init(|| {
            let memory = Path::new("/dev/shm");
            let builder = || tempfile::Builder::new().prefix("workflow-fuzz-").to_owned();
            if memory.is_dir() { builder().tempdir_in(memory) } else { builder().tempdir() }.expect("a directory")
        })
        .path()
}

/// Variables of every kind.
pub fn bag() -> Map<String, Value> {
    let Value::Object(bag) = json!({
        "a": true, "b": false, "c": null, "d": 1, "e": -2.5, "f": "", "g": "text", "h": "12", "i": [], "j": [1, "x"],
        "k": {"a": {"b": [true]}}, "is_ready": true, "length": 3
    }) else {
        unreachable!()
    };
    bag
}

/// Changes a text at the places that the input says: pairs of a position and what to put there.
pub fn edited(text: &str, edits: &[u8]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for edit in edits.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]]));
        match at % 3 {
            _ if bytes.is_empty() => {}
            0 => {
                let len = bytes.len();
                bytes[at / 3 % len] = edit[2];
            }
            1 => {
                bytes.remove(at / 3 % bytes.len());
            }
            _ => bytes.insert(at / 3 % bytes.len(), edit[2]),
        }
    }
    bytes
}
