//! What tools do to a disk: one scenario for each way in which a mutating tool writes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use workflow_corpus::{Library, Root};
use workflow_engine::{Settings, Timestamp};
use workflow_mcp::{Clock, Outcome, Server};
use workflow_store::{FileStore, Options};

use crate::machine::{Defect, Image, Machine};

pub(crate) const WORKSPACE: &str = "/srv/ws";
pub(crate) const STATE: &str = "/srv/home/.workflow-server";
pub(crate) const PLANNING: &str = "/srv/ws/.engineering/artifacts/planning";

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_796_000_000_000)
    }
}

/// A server process on a machine.
pub(crate) struct Process {
    pub(crate) machine: Machine,
    pub(crate) server: Server,
}

pub(crate) fn options() -> Options {
    Options::new(WORKSPACE, STATE)
}

impl Process {
    pub(crate) fn on(machine: Machine) -> Self {
        let store = FileStore::open_on(options(), Arc::new(machine.clone())).unwrap();
        let root = Root::Embedded { label: "test".to_owned(), files: testkit::MINI };
        let settings = Settings { checkpoint_min_response_ms: 0, ..Settings::default() };
        let server = Server::new(Library::new(vec![root], None), store, settings).with_clock(FixedClock);
        Self { machine, server }
    }

    /// A process without defects on a disk.
    pub(crate) fn fresh(image: &Image) -> Self {
        Self::on(Machine::on(image, &Defect::None, false))
    }

    pub(crate) fn call(&self, call: &Call) -> Outcome {
        let Value::Object(arguments) = &call.arguments else { panic!("arguments are an object") };
        self.server.call(call.tool, arguments, "test", &|| false)
    }

    /// A call that must be answered; its text as JSON, where it is.
    pub(crate) fn must(&self, tool: &'static str, arguments: Value) -> Value {
        let outcome = self.call(&Call { tool, arguments });
        assert!(!outcome.is_error, "{tool}: {}", outcome.text);
        serde_json::from_str(&outcome.text).unwrap_or(Value::Null)
    }

    fn start(&self, arguments: Value) -> String {
        self.must("start_session", arguments)["session_index"].as_str().unwrap().to_owned()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

fn call(tool: &'static str, arguments: Value) -> Call {
    Call { tool, arguments }
}

/// One way to write.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Makes what was there before, and says the call.
    pub(crate) prepare: fn(&Process) -> Call,
}

fn mini(process: &Process, slug: &str) -> String {
    process.start(json!({"workflow_id": "mini", "planning_slug": slug}))
}

/// A session in its first activity.
fn planning(process: &Process) -> String {
    let index = mini(process, "alpha");
    process.must("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    index
}

/// A session with an open question, and the handle of it.
fn asking(process: &Process) -> (String, Value) {
    let index = planning(process);
    let asked = process.must("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}));
    (index, asked["checkpoint_handle"].clone())
}

/// A transient session, its index and slug.
fn transient(process: &Process) -> (String, String) {
    let started = process.must("start_session", json!({"agent_id": "meta-orchestrator"}));
    let text = |name: &str| started[name].as_str().unwrap().to_owned();
    (text("session_index"), text("planning_slug"))
}

/// A parent and its own-folder child, which is in its last activity.
fn family(process: &Process) -> (String, String) {
    let parent = planning(process);
    let child =
        process.start(json!({"workflow_id": "child", "planning_slug": "below", "parent_planning_slug": "alpha"}));
    process.must("next_activity", json!({"session_index": child, "activity_id": "only"}));
    (parent, child)
}

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "start_session: the first ever, with a new key",
        prepare: |_| call("start_session", json!({"workflow_id": "mini", "planning_slug": "alpha"})),
    },
    Scenario {
        name: "start_session: fresh",
        prepare: |process| {
            mini(process, "other");
            call("start_session", json!({"workflow_id": "mini", "planning_slug": "alpha"}))
        },
    },
    Scenario {
        name: "start_session: resumed, with a new request",
        prepare: |process| {
            planning(process);
            call("start_session", json!({"planning_slug": "alpha", "user_request": "Do it"}))
        },
    },
    Scenario {
        name: "start_session: resumed, nothing new",
        prepare: |process| {
            planning(process);
            call("start_session", json!({"planning_slug": "alpha"}))
        },
    },
    Scenario {
        name: "start_session: resumed below another folder",
        prepare: |process| {
            planning(process);
            let above = Path::new(PLANNING).join("2026");
            process.machine.move_below(&Path::new(PLANNING).join("alpha"), &above);
            process.server.store().adopt("2026/alpha").unwrap();
            call("start_session", json!({"planning_slug": "alpha", "user_request": "Do it"}))
        },
    },
    Scenario {
        name: "start_session: an own-folder child",
        prepare: |process| {
            planning(process);
            let arguments = json!({"workflow_id": "child", "planning_slug": "below", "parent_planning_slug": "alpha"});
            call("start_session", arguments)
        },
    },
    Scenario {
        name: "start_session: an own-folder child of a transient session",
        prepare: |process| {
            let (_, slug) = transient(process);
            let arguments = json!({"workflow_id": "child", "planning_slug": "below", "parent_planning_slug": slug});
            call("start_session", arguments)
        },
    },
    Scenario {
        name: "start_session: transient",
        prepare: |process| {
            mini(process, "other");
            call("start_session", json!({"agent_id": "meta-orchestrator"}))
        },
    },
    Scenario {
        name: "dispatch_child: embedded",
        prepare: |process| {
            let index = planning(process);
            call("dispatch_child", json!({"session_index": index, "workflow_id": "child"}))
        },
    },
    Scenario {
        name: "dispatch_child: promoting",
        prepare: |process| {
            let (index, _) = transient(process);
            call("dispatch_child", json!({"session_index": index, "workflow_id": "mini"}))
        },
    },
    Scenario {
        name: "dispatch_child: promoting to a named folder beside others",
        prepare: |process| {
            mini(process, "other");
            let (index, _) = transient(process);
            call("dispatch_child", json!({"session_index": index, "workflow_id": "mini", "planning_slug": "topic"}))
        },
    },
    Scenario {
        name: "dispatch_child: replacing",
        prepare: |process| {
            planning(process);
            let (index, _) = transient(process);
            let arguments = json!({
                "session_index": index, "workflow_id": "mini", "planning_slug": "alpha", "on_existing": "replace"
            });
            call("dispatch_child", arguments)
        },
    },
    Scenario {
        name: "dispatch_child: resuming what is there",
        prepare: |process| {
            let (first, _) = transient(process);
            process
                .must("dispatch_child", json!({"session_index": first, "workflow_id": "mini", "planning_slug": "p"}));
            let (second, _) = transient(process);
            let arguments = json!({
                "session_index": second, "workflow_id": "mini", "planning_slug": "p", "on_existing": "resume"
            });
            call("dispatch_child", arguments)
        },
    },
    Scenario {
        name: "next_activity",
        prepare: |process| {
            let index = mini(process, "alpha");
            call("next_activity", json!({"session_index": index, "activity_id": "plan"}))
        },
    },
    Scenario {
        name: "next_activity: the end, told to an own-folder parent",
        prepare: |process| {
            let (_, child) = family(process);
            call("next_activity", json!({"session_index": child, "activity_id": "__terminal__"}))
        },
    },
    Scenario {
        name: "next_activity: the end of an embedded child",
        prepare: |process| {
            let parent = planning(process);
            let child = process.must("dispatch_child", json!({"session_index": parent, "workflow_id": "child"}));
            let child = child["session_index"].clone();
            process.must("next_activity", json!({"session_index": child, "activity_id": "only"}));
            call("next_activity", json!({"session_index": child, "activity_id": "__terminal__"}))
        },
    },
    Scenario {
        name: "get_workflow",
        prepare: |process| {
            let index = planning(process);
            call("get_workflow", json!({"session_index": index}))
        },
    },
    Scenario {
        name: "get_activity",
        prepare: |process| {
            let index = planning(process);
            call("get_activity", json!({"session_index": index, "agent_id": "w1", "context_tokens": 200_000}))
        },
    },
    Scenario {
        name: "get_technique",
        prepare: |process| {
            let index = planning(process);
            call("get_technique", json!({"session_index": index, "step_id": "say-hello", "agent_id": "w1"}))
        },
    },
    Scenario {
        name: "get_resource",
        prepare: |process| {
            let index = planning(process);
            call("get_resource", json!({"session_index": index, "resource_id": "notes", "agent_id": "w1"}))
        },
    },
    Scenario {
        name: "yield_checkpoint",
        prepare: |process| {
            let index = planning(process);
            call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}))
        },
    },
    Scenario {
        name: "respond_checkpoint",
        prepare: |process| {
            let (_, handle) = asking(process);
            call("respond_checkpoint", json!({"checkpoint_handle": handle, "option_id": "go"}))
        },
    },
    Scenario {
        name: "resume_checkpoint",
        prepare: |process| {
            let (index, handle) = asking(process);
            process.must("respond_checkpoint", json!({"checkpoint_handle": handle, "option_id": "go"}));
            call("resume_checkpoint", json!({"session_index": index, "checkpoint_handle": handle}))
        },
    },
    Scenario {
        name: "record_usage",
        prepare: |process| {
            let index = planning(process);
            call("record_usage", usage(&index))
        },
    },
    Scenario {
        name: "get_trace",
        prepare: |process| {
            let index = planning(process);
            call("get_trace", json!({"session_index": index}))
        },
    },
];

/// A call that writes any session that opens.
pub(crate) fn usage(index: &str) -> Value {
    json!({"session_index": index, "activity": "plan", "usage": {"input_tokens": 1}, "basis": "delta"})
}

/// A scenario made ready: the disk before the call, with what is not synced yet, and the call.
pub(crate) fn ready(scenario: &Scenario) -> (Image, Call) {
    let mut image = Image::with_directory(&PathBuf::from(WORKSPACE));
    image.make_durable_directory(&PathBuf::from("/srv/home"));
    let process = Process::fresh(&image);
    let call = (scenario.prepare)(&process);
    (process.machine.image(), call)
}

/// What a workspace holds: the bytes of each session, by its folder, and of each backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// `alpha`, or `transient/<slug>`.
    pub(crate) sessions: std::collections::BTreeMap<String, String>,
    /// State and seal.
    pub(crate) backups: Vec<(String, String)>,
    /// Where the sessions lie.
    pub(crate) places: std::collections::BTreeMap<String, PathBuf>,
    /// The seals of the sessions.
    pub(crate) seals: std::collections::BTreeMap<String, String>,
}

/// Opens everything as a fresh process; says what does not open.
pub(crate) fn content(process: &Process) -> Result<Content, String> {
    let listed = process.server.store().sessions().map_err(|refusal| refusal.text())?;
    let image = process.machine.image();
    let mut content = Content::default();
    for listing in listed {
        if let Err(refusal) = listing.session {
            return Err(format!("{} does not open: {}", listing.folder, refusal.text()));
        }
        let folder = PathBuf::from(&listing.folder);
        let text = |file: &str| image.read(&folder.join(file)).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let state = text("session.json").ok_or("a listed session has no state")?;
        let name = if listing.transient { format!("transient/{}", listing.slug) } else { listing.slug };
        content.seals.extend(text(".session-token").map(|seal| (name.clone(), seal)));
        if content.places.insert(name.clone(), folder.clone()).is_some() {
            return Err(format!("two folders are named {name}"));
        }
        content.sessions.insert(name, state);
        for file in image.list(&folder) {
            if let Some(number) = file.strip_prefix("session.").and_then(|rest| rest.strip_suffix(".bak.json")) {
                let seal = text(&format!(".session-token.{number}.bak"));
                content.backups.push((text(&file).unwrap_or_default(), seal.unwrap_or_default()));
            }
        }
    }
    Ok(content)
}

pub(crate) fn parsed(state: &str) -> Map<String, Value> {
    serde_json::from_str(state).unwrap()
}
