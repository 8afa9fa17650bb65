//! One session in memory, for tests of deliveries.

use std::sync::Arc;

use serde_json::Value;
use workflow_corpus::{Corpus, Library, Root};

use crate::{
    Arguments, Environment, Family, Folder, Purpose, Randomness, Refusal, Registry, Rendered, Settings, Signer,
    StatePath, Timestamp, TraceLog, TraceSlice, Workset, apply,
    state::{FreshSession, Session},
    tool,
};

/// Nothing outside the session.
struct Nowhere;

impl Signer for Nowhere {
    fn mac(&self, _purpose: Purpose, message: &[u8]) -> [u8; 32] {
        let mut mac = [0; 32];
        mac.iter_mut().zip(message).for_each(|(byte, given)| *byte = *given);
        mac
    }
}

impl Randomness for Nowhere {
    fn uuid(&self) -> String {
        "00000000-0000-4000-8000-000000000000".to_owned()
    }
}

impl Registry for Nowhere {
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

impl TraceLog for Nowhere {
    fn read(&self, _session_index: &str) -> TraceSlice {
        TraceSlice::default()
    }
}

/// A corpus, a session of agent `owner`, and the settings of the server.
pub(super) struct World {
    pub(super) settings: Settings,
    corpus: Arc<Corpus>,
    workset: Workset,
    now: i64,
}

impl World {
    /// A fresh session of this workflow.
    pub(super) fn new(corpus: &Arc<Corpus>, workflow: &str) -> Self {
        let workflow = corpus.workflow(workflow).expect("the workflow loads");
        assert!(workflow.load_errors.is_empty(), "{:?}", workflow.load_errors);
        let path = "/planning/2026-01-02-tea";
        let fresh = FreshSession {
            workflow: &workflow,
            agent_id: "owner",
            session_index: "ABCDE2",
            planning_folder_path: Some(path),
            repo: None,
            context_mode: None,
            parent_session: None,
            user_request: None,
        };
        let folder = Folder { slug: "2026-01-02-tea".to_owned(), path: path.to_owned(), transient: false };
        let family = Family { folder, root: Some(Session::fresh(fresh, Timestamp(0))), replaced: false };
        let workset = Workset { families: vec![family], path: StatePath::default(), warnings: Vec::new() };
        Self { settings: Settings::default(), corpus: Arc::clone(corpus), workset, now: 0 }
    }

    pub(super) fn session(&self) -> &Session {
        self.workset.session().unwrap()
    }

    pub(super) fn session_mut(&mut self) -> &mut Session {
        self.workset.session_mut().unwrap()
    }

    /// Makes an activity current.
    pub(super) fn enter(&mut self, activity: &str) {
        activity.clone_into(&mut self.session_mut().current_activity);
    }

    /// Calls a tool; a refusal leaves the session as it was.
    pub(super) fn call(&mut self, name: &str, args: &Value) -> Result<Rendered, Refusal> {
        let mut args = args.as_object().cloned().unwrap();
        args.insert("session_index".to_owned(), self.session().session_index.clone().into());
        self.now += 1000;
        let env = Environment {
            corpus: &self.corpus,
            settings: &self.settings,
            now: Timestamp(self.now),
            signer: &Nowhere,
            randomness: &Nowhere,
            registry: &Nowhere,
            traces: &Nowhere,
            uptime_seconds: 0,
            problems: &Vec::new,
        };
        let mut workset = self.workset.clone();
        let reply = apply(tool(name).unwrap(), &env, &Arguments::exact(args), &mut workset)?;
        self.workset = workset;
        Ok(reply.render())
    }

    pub(super) fn answer(&mut self, name: &str, args: &Value) -> Rendered {
        self.call(name, args).unwrap_or_else(|refusal| panic!("{name} {args}: {}", refusal.text()))
    }

    pub(super) fn refusal(&mut self, name: &str, args: &Value) -> Refusal {
        self.call(name, args).expect_err("the call is refused")
    }
}

/// A corpus of one root with these files (path and text).
pub(super) fn corpus(files: &[(String, String)]) -> Arc<Corpus> {
    let files: Vec<(&'static str, &'static str)> = files
        .iter()
        .map(|(path, text)| (&*String::leak(path.clone()), &*String::leak(text.clone())))
        .collect();
    let root = Root::Embedded { label: "test".to_owned(), files: Vec::leak(files) };
    Library::new(vec![root], None).snapshot()
}
