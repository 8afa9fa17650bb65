//! One session and nothing else, for tests of deliveries.

use std::sync::Arc;

use serde_json::Value;
use workflow_corpus::{Corpus, Library, Root};

use crate::{
    Arguments, Family, Folder, Refusal, Rendered, Settings, StatePath, Timestamp, Workset, apply,
    state::{FreshSession, Session},
    tool,
    workspace::Workspace,
};

/// A session of agent `owner`, and the world around it.
pub(super) struct World {
    around: Workspace,
    workset: Workset,
}

impl World {
    /// A fresh session of this workflow.
    pub(super) fn new(corpus: &Arc<Corpus>, workflow: &str) -> Self {
        let workflow = corpus.workflow(workflow).expect("the workflow loads");
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
        let mut around = Workspace::new();
        around.corpus = Arc::clone(corpus);
        Self { around, workset }
    }

    pub(super) fn settings(&mut self) -> &mut Settings {
        &mut self.around.settings
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
        let mut workset = self.workset.clone();
        let arguments = Arguments::exact(args);
        let reply = self.around.with_env(|env| apply(tool(name).unwrap(), env, &arguments, &mut workset))?;
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
    let files: Vec<(&'static str, &'static str)> =
        files.iter().map(|(path, text)| (&*String::leak(path.clone()), &*String::leak(text.clone()))).collect();
    let root = Root::Embedded { label: "test".to_owned(), files: Vec::leak(files) };
    Library::new(vec![root], None).snapshot()
}
