//! A workspace in a temporary directory, and calls such as the engine makes them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use workflow_engine::{Refusal, Registry as _, Reply, StatePath, Target, Timestamp, Workset, index, state::Session};
use workflow_store::{FileStore, FileSystem, Options, SessionStore as _};

pub(crate) const NOW: Timestamp = Timestamp(1_796_000_000_000);

pub(crate) struct Bench {
    dir: TempDir,
    pub(crate) options: Options,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir(base.join("ws")).unwrap();
        let options = Options::new(base.join("ws"), base.join("state"));
        Self { dir, options }
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn planning(&self) -> PathBuf {
        self.options.workspace.join(".engineering/artifacts/planning")
    }

    pub(crate) fn folder(&self, slug: &str) -> PathBuf {
        self.planning().join(slug)
    }

    /// A new process on the same directories.
    pub(crate) fn store(&self) -> FileStore {
        FileStore::open(self.options.clone()).unwrap()
    }

    pub(crate) fn store_on(&self, file_system: Arc<dyn FileSystem>) -> FileStore {
        FileStore::open_on(self.options.clone(), file_system).unwrap()
    }
}

/// A state as a fresh session has it.
pub(crate) fn session(index: &str, workflow: &str) -> Session {
    Session::from_json(&json!({
        "schemaVersion": 1, "status": "running", "workflowId": workflow, "workflowVersion": "1.0.0",
        "agentId": "orchestrator", "sessionIndex": index, "seq": 0, "ts": NOW.seconds(), "startedAt": NOW.text(),
        "history": [{"timestamp": NOW.text(), "type": "workflow_started"}]
    }))
    .unwrap()
}

pub(crate) fn reply() -> Reply {
    Reply::json("AAAAAA", Map::new())
}

/// What `start_session` does to a workset: begins a session where there is none.
pub(crate) fn begin(store: &FileStore, workflow: &str, workset: &mut Workset) -> String {
    let family = &mut workset.families[0];
    if let Some(root) = &family.root {
        return root.session_index.clone();
    }
    let index = index::mint_free(store, &family.folder.path, &|index| store.is_taken(index));
    let mut root = session(&index, workflow);
    root.planning_folder_path = (!family.folder.transient).then(|| family.folder.path.clone());
    family.root = Some(root);
    index
}

pub(crate) fn slug(slug: &str) -> Target {
    Target::Slug { slug: slug.to_owned(), minted: false, transient: false, parent: None }
}

pub(crate) fn at(index: &str) -> Target {
    Target::Session { index: index.to_owned(), parent: false }
}

pub(crate) fn start(store: &FileStore, name: &str) -> Result<String, Refusal> {
    start_at(store, &slug(name), "mini")
}

pub(crate) fn start_at(store: &FileStore, target: &Target, workflow: &str) -> Result<String, Refusal> {
    let mut index = String::new();
    store.transaction(target, &mut |workset| {
        index = begin(store, workflow, workset);
        Ok(reply())
    })?;
    Ok(index)
}

/// One write of a session; answers its `seq`.
pub(crate) fn advance(store: &FileStore, index: &str) -> Result<u64, Refusal> {
    let mut seq = 0;
    store.transaction(&at(index), &mut |workset| {
        let session = workset.session_mut().unwrap();
        session.advance(NOW);
        seq = session.seq;
        Ok(reply())
    })?;
    Ok(seq)
}

pub(crate) fn read(store: &FileStore, index: &str) -> Result<Session, Refusal> {
    store.read(&at(index)).map(|workset| workset.session().unwrap().clone())
}

pub(crate) fn warnings(store: &FileStore, index: &str) -> Vec<&'static str> {
    store.read(&at(index)).unwrap().warnings.iter().map(|warning| warning.code).collect()
}

/// Embeds a child below a session, as `dispatch_child` does.
pub(crate) fn embed(root: &mut Session, child: &Session) -> StatePath {
    let mut value = root.to_json();
    let references = value["triggeredWorkflows"].as_array_mut().unwrap();
    references.push(json!({
        "workflowId": child.workflow_id, "sessionIndex": child.session_index, "triggeredAt": NOW.text(),
        "triggeredFrom": {"activityId": ""}, "status": "running", "state": child.to_json()
    }));
    let path = StatePath(vec![references.len() - 1]);
    *root = Session::from_json(&value).unwrap();
    path
}

pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_type().unwrap().is_file() {
            continue;
        }
        fs::write(to.join(entry.file_name()), fs::read(entry.path()).unwrap()).unwrap();
    }
}

pub(crate) fn seal(folder: &Path) -> String {
    fs::read_to_string(folder.join(".session-token")).unwrap()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn detail<'a>(refusal: &'a Refusal, key: &str) -> &'a str {
    refusal.details.get(key).and_then(Value::as_str).unwrap_or_default()
}
