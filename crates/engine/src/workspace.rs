//! A workspace in memory, for tests: opens targets as a store does, runs tools, and keeps what they return.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value};
use sha2::Sha256;
use workflow_corpus::{Corpus, Library, Root};

use crate::{
    Arguments, Content, Environment, Family, Folder, Purpose, Randomness, Refusal, Registry, Reply, Settings, Signer,
    StatePath, Target, Timestamp, TraceLog, TraceSlice, Workset, apply, state::Session, tool, trace,
};

/// Where durable folders are.
pub(crate) const PLANNING: &str = "/srv/ws/.engineering/artifacts/planning";
/// Where transient folders are.
const TRANSIENT: &str = "/srv/state/transient";

/// Three small workflows, `meta` among them.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("meta/workflow.yaml", "id: meta\nversion: 5.0.0\ntitle: Meta\ndescription: Finds work.\ninitialActivity: find\n"),
    (
        "meta/activities/01-find.yaml",
        "id: find\nversion: 1.0.0\nname: Find\nsteps:\n  - kind: action\n    id: look\ntransitions:\n  - to: end\n",
    ),
    ("meta/activities/02-end.yaml", "id: end\nversion: 1.0.0\nname: End\nsteps:\n  - kind: action\n    id: stop\n"),
    (
        "meta/resources/bootstrap-protocol.md",
        "---\nid: bootstrap-protocol\nversion: 1.0.0\n---\n\n# Begin here\n\nCall list_workflows.\n",
    ),
    (
        "mini/workflow.yaml",
        "id: mini\nversion: 1.2.0\ntitle: Mini\ntags: [small, test]\ninitialActivity: plan\nvariables:\n  - name: is_ready\n    type: \
         boolean\n    defaultValue: false\n  - name: plan_note\n    type: string\n    defaultValue: \"\"\n  - name: item_count\n    type: \
         number\n    defaultValue: 0\n  - name: last_word\n    type: string\n",
    ),
    (
        "mini/activities/01-plan.yaml",
        "id: plan\nversion: 1.0.0\nname: Plan\nsteps:\n  - kind: action\n    id: think\n  - kind: checkpoint\n    id: confirm\n    \
         message: Go on?\n    options:\n      - id: go\n        label: Go\n        effect:\n          setVariable:\n            is_ready: \
         true\n      - id: stop\n        label: Stop\ntransitions:\n  - to: ship\n",
    ),
    ("mini/activities/02-ship.yaml", "id: ship\nversion: 1.0.0\nname: Ship\nsteps:\n  - kind: action\n    id: send\n"),
    ("bare/workflow.yaml", "id: bare\nversion: 0.1.0\ntitle: Bare\ninitialActivity: only\n"),
    ("bare/activities/01-only.yaml", "id: only\nversion: 1.0.0\nname: Only\nsteps:\n  - kind: action\n    id: act\n"),
];

/// Signs under the key 00…1f of the spec's vectors.
pub(crate) struct KeySigner;

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

/// Counts instead of drawing.
#[derive(Default)]
pub(crate) struct Counter(Cell<u32>);

impl Randomness for Counter {
    fn uuid(&self) -> String {
        self.0.set(self.0.get() + 1);
        format!("00000000-0000-4000-8000-{:012x}", self.0.get())
    }
}

/// Folders with their sessions.
#[derive(Default)]
pub(crate) struct Folders(RefCell<Vec<(Folder, Session)>>);

impl Folders {
    fn by_index(&self, index: &str) -> Option<(Folder, Session, StatePath)> {
        self.0.borrow().iter().find_map(|(folder, root)| {
            let path = root.walk().find(|(_, session)| session.session_index == index).map(|(path, _)| path)?;
            Some((folder.clone(), root.clone(), path))
        })
    }

    fn by_slug(&self, slug: &str) -> Option<(Folder, Session)> {
        self.0.borrow().iter().find(|(folder, _)| folder.slug == slug).cloned()
    }
}

impl Registry for Folders {
    fn is_taken(&self, index: &str) -> bool {
        self.by_index(index).is_some()
    }

    fn find(&self, index: &str) -> Option<Workset> {
        let (folder, root, path) = self.by_index(index)?;
        Some(Workset { families: vec![family(folder, Some(root))], path, warnings: Vec::new() })
    }

    fn children_of(&self, index: &str) -> Vec<String> {
        let names = |root: &Session| root.parent_session.as_ref().is_some_and(|parent| parent.session_index == index);
        self.0.borrow().iter().filter(|(_, root)| names(root)).map(|(_, root)| root.session_index.clone()).collect()
    }
}

/// Events by session.
#[derive(Default)]
pub(crate) struct Traces(pub(crate) RefCell<HashMap<String, TraceSlice>>);

impl TraceLog for Traces {
    fn read(&self, session_index: &str) -> TraceSlice {
        self.0.borrow().get(session_index).cloned().unwrap_or_default()
    }
}

/// The workspace.
pub(crate) struct Workspace {
    pub(crate) corpus: Arc<Corpus>,
    pub(crate) settings: Settings,
    pub(crate) now: Cell<Timestamp>,
    pub(crate) randomness: Counter,
    pub(crate) folders: Folders,
    pub(crate) traces: Traces,
    pub(crate) problems: Vec<String>,
}

impl Workspace {
    /// An empty workspace over [`FILES`].
    pub(crate) fn new() -> Self {
        Self::over(FILES)
    }

    /// An empty workspace over these definitions.
    pub(crate) fn over(files: &'static [(&'static str, &'static str)]) -> Self {
        let root = Root::Embedded { label: "test".to_owned(), files };
        Self {
            corpus: Library::new(vec![root], None).snapshot(),
            settings: Settings { checkpoint_min_response_ms: 0, ..Settings::default() },
            now: Cell::new(Timestamp::parse("2026-07-13T09:00:00.000Z").expect("a time")),
            randomness: Counter::default(),
            folders: Folders::default(),
            traces: Traces::default(),
            problems: Vec::new(),
        }
    }

    /// Runs something with the environment of this moment.
    pub(crate) fn with_env<T>(&self, work: impl FnOnce(&Environment<'_>) -> T) -> T {
        let problems = || self.problems.clone();
        work(&Environment {
            corpus: &self.corpus,
            settings: &self.settings,
            now: self.now.get(),
            signer: &KeySigner,
            randomness: &self.randomness,
            registry: &self.folders,
            traces: &self.traces,
            uptime_seconds: 12,
            problems: &problems,
        })
    }

    /// Calls a tool and commits what it changed; every call takes a second.
    pub(crate) fn try_call(&self, name: &str, arguments: Value) -> Result<Reply, Refusal> {
        self.now.set(Timestamp(self.now.get().0 + 1000));
        let tool = tool(name).expect("a tool");
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let arguments = Arguments::exact(arguments);
        self.with_env(|env| {
            let mut workset = self.open((tool.target)(env, &arguments)?)?;
            let before = workset.clone();
            let outcome = apply(tool, env, &arguments, &mut workset);
            let seen = if outcome.is_ok() { &workset } else { &before };
            let own = trace::event(env, tool, &arguments, seen, outcome.as_ref(), 7);
            let others = outcome.as_ref().map(|reply| reply.traces.clone()).unwrap_or_default();
            for entry in others.into_iter().chain(own) {
                self.traces.0.borrow_mut().entry(entry.session_index).or_default().events.push(entry.event);
            }
            if outcome.is_ok() {
                self.commit(&workset);
            }
            outcome
        })
    }

    /// [`try_call`](Self::try_call) of a call that must succeed.
    #[track_caller]
    pub(crate) fn call(&self, name: &str, arguments: Value) -> Reply {
        match self.try_call(name, arguments) {
            Ok(reply) => reply,
            Err(refusal) => panic!("{name}: {}", refusal.text()),
        }
    }

    /// The members of a JSON answer.
    #[track_caller]
    pub(crate) fn json(&self, name: &str, arguments: Value) -> Map<String, Value> {
        let reply = self.call(name, arguments);
        match reply.content {
            Content::Json(members) => members,
            other => panic!("{name} answered {other:?}"),
        }
    }

    /// The code of a call that must be refused.
    #[track_caller]
    pub(crate) fn refusal(&self, name: &str, arguments: Value) -> Refusal {
        self.try_call(name, arguments).expect_err("a refusal")
    }

    /// The session that holds an index.
    #[track_caller]
    pub(crate) fn session(&self, index: &str) -> Session {
        let (_, root, path) = self.folders.by_index(index).expect("a session");
        root.at(&path).expect("a path").clone()
    }

    /// Changes the session that holds an index behind the back of every tool.
    pub(crate) fn change(&self, index: &str, work: impl FnOnce(&mut Session)) {
        for (_, root) in self.folders.0.borrow_mut().iter_mut() {
            let path = root.walk().find(|(_, session)| session.session_index == index).map(|(path, _)| path);
            if let Some(session) = path.and_then(|path| root.at_mut(&path)) {
                return work(session);
            }
        }
    }

    /// Removes a folder.
    pub(crate) fn remove(&self, slug: &str) {
        self.folders.0.borrow_mut().retain(|(folder, _)| folder.slug != slug);
    }

    /// Renames a folder and adopts it: the index stays.
    pub(crate) fn rename(&self, slug: &str, to: &str) {
        for (folder, _) in self.folders.0.borrow_mut().iter_mut().filter(|(folder, _)| folder.slug == slug) {
            *folder = durable(to);
        }
    }

    /// Codes of the warnings of a reply.
    pub(crate) fn codes(reply: &Reply) -> Vec<&'static str> {
        reply.warnings.iter().map(|warning| warning.code).collect()
    }

    fn open(&self, target: Target) -> Result<Workset, Refusal> {
        let mut families = Vec::new();
        let mut path = StatePath::default();
        match target {
            Target::Nothing => {}
            Target::Session { index, parent } => {
                let (folder, root, at) = self.folders.by_index(&index).ok_or_else(|| not_found(&index))?;
                let above = root.parent_session.as_ref().filter(|_| parent).map(|above| above.session_index.clone());
                families.push(family(folder, Some(root)));
                families.extend(above.and_then(|above| self.family_of(&above)));
                path = at;
            }
            Target::Slug { slug, minted, transient, parent } => {
                let found = if minted { None } else { self.folders.by_slug(&slug) };
                let mut parent = parent.and_then(|slug| self.folders.by_slug(&slug));
                let child = match found {
                    Some((folder, root)) => {
                        let recorded = root.parent_session.as_ref().map(|above| above.session_index.clone());
                        if parent.is_none() {
                            let above = recorded.and_then(|above| self.folders.by_index(&above));
                            parent = above.map(|(folder, root, _)| (folder, root));
                        }
                        family(folder, Some(root))
                    }
                    None if transient => {
                        family(Folder { path: format!("{TRANSIENT}/{slug}"), slug, transient: true }, None)
                    }
                    None => family(durable(&slug), None),
                };
                families.push(child);
                families.extend(parent.map(|(folder, root)| family(folder, Some(root))));
            }
            Target::Dispatch { index, slug, fallback } => {
                let (folder, root, at) = self.folders.by_index(&index).ok_or_else(|| not_found(&index))?;
                let is_transient = folder.transient;
                families.push(family(folder, Some(root)));
                path = at;
                if is_transient {
                    let slug = slug.unwrap_or_else(|| self.free(&fallback));
                    let occupant = self.folders.by_slug(&slug);
                    families.push(match occupant {
                        Some((folder, root)) => family(folder, Some(root)),
                        None => family(durable(&slug), None),
                    });
                }
            }
        }
        Ok(Workset { families, path, warnings: Vec::new() })
    }

    fn free(&self, fallback: &str) -> String {
        let taken = |slug: &str| self.folders.by_slug(slug).is_some();
        let numbered = (2..).map(|n| format!("{fallback}-{n}"));
        std::iter::once(fallback.to_owned()).chain(numbered).find(|slug| !taken(slug)).expect("a free name")
    }

    fn family_of(&self, index: &str) -> Option<Family> {
        self.folders.by_index(index).map(|(folder, root, _)| family(folder, Some(root)))
    }

    fn commit(&self, workset: &Workset) {
        for changed in &workset.families {
            let mut folders = self.folders.0.borrow_mut();
            folders.retain(|(folder, _)| folder.path != changed.folder.path);
            folders.extend(changed.root.clone().map(|root| (changed.folder.clone(), root)));
        }
    }
}

fn durable(slug: &str) -> Folder {
    Folder { slug: slug.to_owned(), path: format!("{PLANNING}/{slug}"), transient: false }
}

fn family(folder: Folder, root: Option<Session>) -> Family {
    Family { folder, root, replaced: false }
}

fn not_found(index: &str) -> Refusal {
    Refusal::new("SESSION_NOT_FOUND", format!("no state holds {index}"))
}
