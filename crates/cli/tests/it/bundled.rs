//! The bundled workflows: nothing wrong with them, everything used, every payload small.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::{Client, ToolAnswer};
use workflow_corpus::{Condition, Corpus, Library, Replay, Root, StepKind, Workflow};

use crate::{repository, sandbox};

const WORKFLOWS: &[&str] = &["meta", "postcard", "quick-tour"];

/// Most bytes that one answer may have (design §5: 10 KiB).
const LIMIT: usize = 10_240;

fn corpus(root: &Path) -> std::sync::Arc<Corpus> {
    let root = Root::Directory { path: root.to_owned(), label: "test".to_owned() };
    let bundled = Root::Directory { path: repository().join("corpus"), label: "bundled".to_owned() };
    Library::new(vec![root], Some(bundled)).snapshot()
}

/// Nothing at all is said about these workflows, their techniques and resources.
pub(crate) fn assert_without_diagnostics(root: &Path, ids: &[&str]) {
    let corpus = corpus(root);
    assert_eq!(corpus.entry_problems().count(), 0);
    for id in ids {
        let workflow = corpus.workflow(id).unwrap_or_else(|error| panic!("{error}"));
        let said: Vec<String> = workflow
            .diagnostics
            .iter()
            .chain(corpus.technique_diagnostics(&workflow).iter())
            .map(ToString::to_string)
            .collect();
        assert!(said.is_empty(), "{id}: {said:#?}");
        assert!(workflow.load_errors.is_empty(), "{id}");
    }
}

#[test]
fn nothing_is_wrong_with_them() {
    assert_without_diagnostics(&repository().join("corpus"), WORKFLOWS);
    let sandbox = sandbox();
    let workspace = format!("--workspace={}", sandbox.workspace().display());
    for id in WORKFLOWS {
        let shown = sandbox.command(["show", id, &workspace]).output().unwrap();
        assert!(shown.status.success() && shown.stderr.is_empty(), "{}", String::from_utf8_lossy(&shown.stderr));
    }
    let listed = sandbox.command(["list", "--json", &workspace]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    for workflow in listed.as_array().unwrap() {
        assert_eq!((&workflow["status"], &workflow["warnings"]), (&json!("ok"), &json!(0)), "{workflow}");
    }
}

/// Every construct of the format that the quick tour and what it uses have.
fn constructs(workflow: &Workflow, found: &mut BTreeSet<String>) {
    let mut has = |name: &str, there: bool| {
        if there {
            found.insert(name.to_owned());
        }
    };
    for activity in &workflow.activities {
        has("borrowed activity", activity.source != workflow.key);
        has("decision", !activity.decisions.is_empty());
        has("trigger", !activity.triggers.is_empty());
        has("bundleTechniques", activity.bundle_max_chars.is_some());
        has("activity techniques", !activity.techniques.is_empty());
        has("activity rules", !activity.rules.is_empty());
        has("optional activity", !activity.required);
        has("terminal transition", activity.transitions.iter().any(|transition| transition.to == "__terminal__"));
        has("default transition", activity.transitions.iter().any(|transition| transition.is_default));
        has("conditional transition", activity.transitions.iter().any(|transition| transition.condition.is_some()));
        has("activity without a route", activity.targets().is_empty());
        for flat in activity.flat_steps() {
            has("when", flat.step.when.is_some());
            has("optional step", !flat.step.required);
            if let Some(condition) = &flat.step.condition {
                conditions(condition, &mut has);
            }
            match &flat.step.kind {
                StepKind::Technique { binding, actions } => {
                    has("technique step", true);
                    has("nested technique", binding.name.contains("::"));
                    has("technique of another workflow", binding.name.starts_with("meta::"));
                    has("binding inputs", !binding.inputs.is_empty());
                    has("binding outputs", !binding.outputs.is_empty());
                    has("technique step with actions", !actions.is_empty());
                    for action in actions {
                        has(&format!("action {}", action.verb), true);
                    }
                }
                StepKind::Action { actions } => {
                    has("action step", true);
                    for action in actions {
                        has(&format!("action {}", action.verb), true);
                    }
                }
                StepKind::Checkpoint(checkpoint) => {
                    has("checkpoint step", true);
                    has("checkpoint instance", flat.step.id.contains('#') && !flat.top_level);
                    has("auto-advance", checkpoint.auto_advance_ms.is_some() && checkpoint.default_option.is_some());
                    has("replay: session", checkpoint.replay == Replay::Session);
                    has("blocking", checkpoint.blocking.is_some());
                    has("conditional checkpoint", flat.step.condition.is_some());
                    for effect in checkpoint.options.iter().filter_map(|option| option.effect.as_ref()) {
                        has("setVariable", !effect.set_variable.is_empty());
                        has("transitionTo", effect.transition_to.is_some());
                        has("skipActivities", !effect.skip_activities.is_empty());
                    }
                }
                StepKind::Loop(body) => {
                    has(&format!("loop {}", body.loop_type), true);
                    has("breakCondition", body.break_condition.is_some());
                    has("maxIterations", body.max_iterations.is_some());
                }
            }
        }
    }
}

fn conditions(condition: &Condition, has: &mut impl FnMut(&str, bool)) {
    match condition {
        Condition::Simple { .. } => has("condition simple", true),
        Condition::And(parts) => {
            has("condition and", true);
            for part in parts {
                conditions(part, has);
            }
        }
        Condition::Or(parts) => {
            has("condition or", true);
            for part in parts {
                conditions(part, has);
            }
        }
        Condition::Not(part) => {
            has("condition not", true);
            conditions(part, has);
        }
    }
}

/// What only the files tell: fragments, contracts, artifacts, resources.
fn written(workflow: &str, found: &mut BTreeSet<String>) {
    let mut files = Vec::new();
    collect(&repository().join("corpus").join(workflow), &mut files);
    for (path, text) in files {
        for (name, mark) in [
            ("rule fragment", "  rules:\n    small-steps:"),
            ("rule fragment of another workflow", "ref: meta::"),
            ("checkpoint fragment", "    ref: ready-to-send"),
            ("Initial block", "### Initial\n"),
            ("Final block", "### Final\n"),
            ("artifact", "#### artifact\n"),
            ("audience", "#### audience\n"),
            ("default", "#### default\n"),
            ("component", "#### section\n"),
            ("optional input", "*(optional)*"),
            ("titled protocol", "### 1. "),
            ("technique rule", "## Rules\n\n### "),
            ("resource with anchor", ".md#"),
            ("resource", "](../../resources/travel-guide.md)"),
            ("tags", "\ntags: ["),
            ("passContext", "passContext:"),
        ] {
            if text.contains(mark) {
                found.insert(name.to_owned());
            }
        }
        if path.ends_with("techniques/TECHNIQUE.md") {
            found.insert("workflow contract".to_owned());
        } else if path.ends_with("TECHNIQUE.md") {
            found.insert("group contract".to_owned());
        }
    }
}

fn collect(directory: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn the_tour_uses_every_construct() {
    let corpus = corpus(&repository().join("corpus"));
    let mut found = BTreeSet::new();
    for id in ["quick-tour", "postcard"] {
        let workflow = corpus.workflow(id).unwrap();
        constructs(&workflow, &mut found);
        written(id, &mut found);
        for kind in workflow.variables.iter().map(|variable| format!("{:?}", variable.kind).to_lowercase()) {
            found.insert(format!("variable {kind}"));
        }
    }
    let expected = [
        "action emit",
        "action log",
        "action message",
        "action set",
        "action step",
        "action validate",
        "activity rules",
        "activity techniques",
        "activity without a route",
        "artifact",
        "audience",
        "auto-advance",
        "binding inputs",
        "binding outputs",
        "blocking",
        "borrowed activity",
        "breakCondition",
        "bundleTechniques",
        "checkpoint fragment",
        "checkpoint instance",
        "checkpoint step",
        "component",
        "condition and",
        "condition not",
        "condition or",
        "condition simple",
        "conditional checkpoint",
        "conditional transition",
        "decision",
        "default",
        "default transition",
        "Final block",
        "group contract",
        "Initial block",
        "loop doWhile",
        "loop forEach",
        "loop while",
        "maxIterations",
        "nested technique",
        "optional activity",
        "optional input",
        "optional step",
        "passContext",
        "replay: session",
        "resource",
        "resource with anchor",
        "rule fragment",
        "rule fragment of another workflow",
        "setVariable",
        "skipActivities",
        "tags",
        "technique of another workflow",
        "technique rule",
        "technique step",
        "technique step with actions",
        "terminal transition",
        "titled protocol",
        "transitionTo",
        "trigger",
        "variable array",
        "variable boolean",
        "variable number",
        "variable string",
        "when",
        "workflow contract",
    ];
    let missing: Vec<&str> = expected.into_iter().filter(|name| !found.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// One walk: every activity in the listed order, everything that is to be had in it.
struct Walk {
    client: Client,
    index: String,
}

impl Walk {
    #[track_caller]
    fn call(&mut self, tool: &str, mut arguments: Value) -> ToolAnswer {
        if !self.index.is_empty() {
            arguments["session_index"] = self.index.as_str().into();
        }
        let answer = self.client.call(tool, arguments.clone());
        let what = format!("{tool} {arguments}");
        assert!(answer.text.len() <= LIMIT, "{what}: {} bytes", answer.text.len());
        assert!(!answer.ok().contains("UNRESOLVED") && !answer.text.contains("unresolved"), "{what}: {}", answer.text);
        let warned = &answer.meta["validation"]["warnings"];
        // The listed order is no route; everything else has to be without a word.
        assert!(tool == "next_activity" || warned.as_array().is_none_or(Vec::is_empty), "{what}: {warned}");
        answer
    }

    /// All resources that a text links to, whole and by the section that is named.
    fn resources(&mut self, text: &str) {
        let links: BTreeSet<&str> =
            text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|l| l.0).collect();
        for link in links {
            self.call("get_resource", json!({"resource_id": link}));
            if let Some((whole, _)) = link.split_once('#') {
                self.call("get_resource", json!({"resource_id": whole}));
            }
        }
    }
}

fn walk(id: &str, mode: &str) {
    let sandbox = sandbox();
    let mut client = Client::spawn(sandbox.command([format!("--workspace={}", sandbox.workspace().display())]));
    client.initialize("2025-06-18");
    let mut walk = Walk { client, index: String::new() };
    walk.call("discover", json!({}));
    walk.call("list_workflows", json!({}));
    let arguments = json!({"workflow_id": id, "planning_slug": format!("walk-{id}"), "context_mode": mode});
    let started = walk.call("start_session", arguments).json();
    started["session_index"].as_str().unwrap().clone_into(&mut walk.index);
    let about = walk.call("get_workflow", json!({}));
    walk.resources(&about.text);
    walk.call("get_workflow", json!({}));
    let workflow = corpus(&repository().join("corpus")).workflow(id).unwrap();
    let (mut gates, mut techniques) = (0, 0);
    for (number, activity) in workflow.activities.iter().enumerate() {
        let agent = if mode == "persistent" { "worker".to_owned() } else { format!("worker-{number}") };
        let arguments = json!({"activity_id": activity.id});
        let entered = walk.call("next_activity", arguments);
        let token = entered.meta["trace_token"].clone();
        let arguments = json!({"agent_id": agent, "context_tokens": 2_000_000});
        let served = walk.call("get_activity", arguments.clone());
        if served.text.starts_with("status: refused") {
            // The batch of this worker is full; the next one has a new name.
            let fresh = json!({"agent_id": format!("fresh-{number}"), "context_tokens": 2_000_000});
            let served = walk.call("get_activity", fresh);
            walk.resources(&served.text);
        } else {
            walk.resources(&served.text);
            walk.call("get_activity", arguments);
        }
        for flat in activity.flat_steps() {
            match &flat.step.kind {
                StepKind::Technique { .. } => {
                    techniques += 1;
                    for full in [false, true] {
                        let arguments = json!({"step_id": flat.qualified_id, "full": full, "agent_id": agent});
                        let technique = walk.call("get_technique", arguments);
                        walk.resources(&technique.text);
                    }
                }
                StepKind::Checkpoint(checkpoint) => {
                    gates += 1;
                    let id = flat.step.id.replace("{current_stop}", "gates");
                    walk.call("yield_checkpoint", json!({"checkpoint_id": id}));
                    walk.call("present_checkpoint", json!({}));
                    walk.call("respond_checkpoint", json!({"option_id": checkpoint.options[0].id}));
                    walk.call("resume_checkpoint", json!({}));
                    walk.call("yield_checkpoint", json!({"checkpoint_id": id}));
                }
                StepKind::Action { .. } | StepKind::Loop(_) => {}
            }
        }
        walk.call("get_workflow_status", json!({}));
        walk.call("get_trace", json!({"trace_tokens": [token]}));
    }
    walk.call("next_activity", json!({"activity_id": "__terminal__"}));
    assert_eq!(walk.call("get_workflow_status", json!({})).json()["status"], "completed");
    for view in ["summary", "identity", "variables", "checkpoints", "activities", "history", "children", "usage"] {
        walk.call("inspect_session", json!({"view": view}));
    }
    assert!(gates > 0 && techniques > 0);
}

#[test]
fn every_payload_is_below_ten_kibibytes() {
    for id in WORKFLOWS {
        for mode in ["fresh", "persistent"] {
            walk(id, mode);
        }
    }
}
