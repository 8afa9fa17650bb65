//! Technique bundles: what `get_workflow` and `get_activity` begin with (spec 02 §3; spec 01 §8.3, §8.5).

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::compose::Link;
use crate::reference::Reference;
use crate::resolve::{Found, Resolved, Scope, Search};
use crate::snapshot::Corpus;
use crate::technique::Technique;
use crate::{Activity, FileId, Warning, Workflow, WorkflowKey};

/// Resolved references of one audience.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    /// Key `[workflow/]technique[::name]` and body, without `content_hash`, in reference order.
    pub techniques: Vec<(String, Map<String, Value>)>,
    /// `owner::name` and text.
    pub rules: Vec<(String, String)>,
    /// References that name nothing, as written.
    pub unresolved: Vec<String>,
    /// Why they do not, and what was passed over on the way.
    pub warnings: Vec<Warning>,
}

/// References of the orchestrator for a `meta` that lists none (spec 02 §3.1).
const CORE_WORKFLOW: [&str; 20] = [
    "workflow-engine::dispatch-activity",
    "workflow-engine::evaluate-transition",
    "workflow-engine::commit-and-persist",
    "workflow-engine::handle-sub-workflow",
    "workflow-engine::compose-prompt",
    "workflow-engine::present-checkpoint-to-user",
    "workflow-engine::respond-checkpoint",
    "version-control::commit-submodule",
    "version-control::commit-regular-files",
    "workflow-engine::sync-progress-status",
    "harness-compat::spawn-agent",
    "harness-compat::continue-agent",
    "harness-compat::resolve-harness-operation",
    "harness-compat::claude-code",
    "harness-compat::cursor",
    "harness-compat::cline",
    "harness-compat::generic",
    "agent-conduct::orchestrator",
    "agent-conduct::checkpoint-discipline",
    "agent-conduct::operational-discipline",
];

/// The same for workers.
const CORE_ACTIVITY: [&str; 8] = [
    "workflow-engine::activity-worker",
    "workflow-engine::yield-checkpoint",
    "workflow-engine::resume-from-checkpoint",
    "workflow-engine::finalize-activity",
    "agent-conduct::checkpoint-discipline",
    "agent-conduct::operational-discipline",
    "agent-conduct::file-sensitivity",
    "agent-conduct::code-commentary",
];

/// The technique whose rules are split by audience, and the reference that names the orchestrator's part.
const CONDUCT: &str = "agent-conduct";
const ORCHESTRATOR: &str = "orchestrator";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Workflow,
    Activity,
}

/// One reference with the workflow it stands in.
struct Request<'a> {
    reference: &'a str,
    executing: &'a WorkflowKey,
    /// From the built-in lists: left out without a word when it names nothing.
    built_in: bool,
}

impl Corpus {
    /// The bundle of the orchestrator: `techniques.workflow`, then the core references.
    pub fn workflow_bundle(&self, workflow: &Workflow) -> Bundle {
        let key = (workflow.key.clone(), None);
        let made = self.derived.bundles.get(&key, || {
            let own = references(&workflow.techniques.workflow, &workflow.key);
            self.bundle(workflow, own, Audience::Workflow)
        });
        made.as_ref().clone()
    }

    /// The bundle of a worker: `techniques.activity`, the activity's own `techniques`, then the core references. Those
    /// of a borrowed activity stand in the workflow it comes from (FIX-34).
    pub fn activity_bundle(&self, workflow: &Workflow, activity: &Activity) -> Bundle {
        let key = (workflow.key.clone(), Some(activity.id.clone()));
        let made = self.derived.bundles.get(&key, || {
            let mut own = references(&workflow.techniques.activity, &workflow.key);
            own.extend(references(&activity.techniques, &activity.source));
            self.bundle(workflow, own, Audience::Activity)
        });
        made.as_ref().clone()
    }

    fn bundle(&self, workflow: &Workflow, own: Vec<Request<'_>>, audience: Audience) -> Bundle {
        let meta = self.meta_for(workflow.key.root).and_then(|key| self.workflow_at(&key).ok());
        let core = meta.as_ref().and_then(|meta| meta.core.as_ref());
        let listed = core.map(|core| match audience {
            Audience::Workflow => &core.workflow,
            Audience::Activity => &core.activity,
        });
        let default: &[&str] = match audience {
            Audience::Workflow => &CORE_WORKFLOW,
            Audience::Activity => &CORE_ACTIVITY,
        };
        let executing = &workflow.key;
        let core: Vec<Request<'_>> = match listed {
            Some(listed) => references(listed, executing),
            None => default.iter().map(|reference| Request { reference, executing, built_in: true }).collect(),
        };
        let mut requests: Vec<Request<'_>> = own.into_iter().chain(core).collect();
        let mut seen = HashSet::new();
        requests.retain(|request| seen.insert((request.reference, request.executing)));
        let mut walk = Walk::new(self, executing, audience);
        for request in &requests {
            walk.request(request);
        }
        walk.finish(&requests)
    }
}

/// The rules that a reference names.
pub(crate) struct RulesFound {
    /// The technique that holds them.
    resolved: Resolved,
    technique: Arc<Technique>,
    names: Vec<String>,
    /// The reference is the name of one rule, not of a group.
    exact: bool,
}

impl Corpus {
    /// Reads a nested reference as one to a rule or a group of rules, in the executing workflow first (spec 02 §1.4,
    /// FIX-31).
    fn find_rules(&self, reference: &str, executing: &WorkflowKey, search: &mut Search) -> Option<RulesFound> {
        let reference = Reference::parse(reference).ok()?;
        let (prefix, rest) = self.split_prefix(&reference, executing);
        let [holder, wanted @ ..] = rest else { return None };
        let wanted = wanted.join("/");
        let prefixed = prefix.is_some();
        let mut bases = self.bases(prefix, executing).into_iter().filter(|_| !wanted.is_empty());
        bases.find_map(|workflow| {
            let segments = vec![holder.clone()];
            let mut tried = Search::default();
            let found = self.technique_file(&workflow, &segments, &mut tried);
            search.malformed.append(&mut tried.malformed);
            let (file, technique) = found?;
            let (names, exact) = named_rules(&technique.rules, &wanted);
            let resolved = Resolved { id: reference.id(), file: file.id.clone(), workflow, prefixed, segments };
            (!names.is_empty()).then_some(RulesFound { resolved, technique, names, exact })
        })
    }

    /// Why an entry of a list of references names neither a technique nor rules.
    pub(crate) fn reference_problem(&self, reference: &str, executing: &WorkflowKey) -> Option<String> {
        let mut search = self.search(reference, &Scope { executing, activity: None }).err()?;
        self.find_rules(reference, executing, &mut search).is_none().then(|| self.reason(reference, executing, &search))
    }
}

fn references<'a>(list: &'a [String], executing: &'a WorkflowKey) -> Vec<Request<'a>> {
    list.iter().map(|reference| Request { reference, executing, built_in: false }).collect()
}

/// A file whose rules are delivered.
#[derive(Clone)]
struct Touched {
    link: Link,
    /// Path below `techniques`; empty for a root contract.
    segments: Vec<String>,
    /// Files whose equally named rules it overrides.
    above: Vec<FileId>,
}

/// One rule to deliver.
struct Delivered {
    touched: usize,
    name: String,
    text: String,
}

struct Walk<'a> {
    corpus: &'a Corpus,
    executing: &'a WorkflowKey,
    audience: Audience,
    bundle: Bundle,
    /// File behind each key of the bundle.
    files: Vec<FileId>,
    /// Every file that gave rules, touched or not.
    sources: Vec<Touched>,
    /// Positions in `sources`, in the order of touching.
    touched: Vec<usize>,
    rules: Vec<Delivered>,
    malformed: Search,
}

impl<'a> Walk<'a> {
    fn new(corpus: &'a Corpus, executing: &'a WorkflowKey, audience: Audience) -> Self {
        Self {
            corpus,
            executing,
            audience,
            bundle: Bundle::default(),
            files: Vec::new(),
            sources: Vec::new(),
            touched: Vec::new(),
            rules: Vec::new(),
            malformed: Search::default(),
        }
    }

    fn request(&mut self, request: &Request<'_>) {
        let scope = Scope { executing: request.executing, activity: None };
        let mut failed = match self.corpus.search(request.reference, &scope) {
            Ok((found, search)) => {
                self.malformed.malformed.extend(search.malformed);
                return self.technique(request, &found);
            }
            Err(failed) => failed,
        };
        if let Some(found) = self.corpus.find_rules(request.reference, request.executing, &mut failed) {
            self.malformed.malformed.append(&mut failed.malformed);
            return self.rules(request, found);
        }
        if request.built_in && failed.malformed.is_empty() {
            return;
        }
        let reason = self.corpus.reason(request.reference, request.executing, &failed);
        let message = format!("technique reference `{}` is unresolved: {reason}", request.reference);
        self.bundle.warnings.push(Warning { code: "W_REFERENCE_UNRESOLVED", message });
        if !request.built_in && !self.bundle.unresolved.iter().any(|known| known == request.reference) {
            self.bundle.unresolved.push(request.reference.to_owned());
        }
    }

    fn technique(&mut self, request: &Request<'_>, found: &Found) {
        let resolved = &found.resolved;
        let composition = self.corpus.compose(found, request.executing, self.executing);
        self.bundle.warnings.extend(composition.warnings.iter().cloned());
        let mut key = bundle_key(resolved, request.executing);
        if let Some(at) = self.bundle.techniques.iter().position(|(known, _)| *known == key)
            && self.files[at] != resolved.file
            && !key.contains('/')
        {
            // Two workflows' techniques under one bare name: the later one says where it is from.
            key = format!("{}/{key}", resolved.workflow.id);
        }
        if let Some(at) = self.bundle.techniques.iter().position(|(known, _)| *known == key) {
            self.bundle.techniques[at].1 = composition.body();
            self.files[at] = resolved.file.clone();
        } else {
            self.bundle.techniques.push((key, composition.body()));
            self.files.push(resolved.file.clone());
        }
        let own = self.source(resolved, Arc::clone(&found.technique), request.executing);
        self.touch(own);
        if let [group @ .., _] = resolved.segments.as_slice()
            && !group.is_empty()
        {
            let mut search = Search::default();
            if let Some((file, technique)) = self.corpus.technique_file(&resolved.workflow, group, &mut search) {
                let container = Resolved {
                    id: group.join("::"),
                    file: file.id.clone(),
                    workflow: resolved.workflow.clone(),
                    prefixed: resolved.prefixed,
                    segments: group.to_vec(),
                };
                let source = self.source(&container, technique, request.executing);
                self.touch(source);
            }
        }
    }

    fn rules(&mut self, request: &Request<'_>, found: RulesFound) {
        let holder = &found.resolved.segments;
        let conduct = matches!(holder.as_slice(), [only] if only == CONDUCT);
        let source = self.source(&found.resolved, found.technique, request.executing);
        for name in &found.names {
            self.deliver(source, name);
        }
        if found.exact || conduct {
            self.touch(source);
        }
    }

    /// Position in `sources` of a file, added when new.
    fn source(&mut self, resolved: &Resolved, technique: Arc<Technique>, executing: &WorkflowKey) -> usize {
        let mut search = Search::default();
        let ancestors = self.corpus.ancestors(resolved, executing, &mut search);
        let above: Vec<FileId> = ancestors.into_iter().map(|link| link.file).collect();
        if let Some(at) = self.sources.iter().position(|known| known.link.file == resolved.file) {
            self.sources[at].above.extend(above);
            return at;
        }
        let link = Link { file: resolved.file.clone(), workflow: resolved.workflow.clone(), technique };
        self.sources.push(Touched { link, segments: resolved.segments.clone(), above });
        self.sources.len() - 1
    }

    fn touch(&mut self, source: usize) {
        if !self.touched.contains(&source) {
            self.touched.push(source);
        }
    }

    fn deliver(&mut self, source: usize, name: &str) {
        let touched = &self.sources[source];
        if self.rules.iter().any(|rule| rule.touched == source && rule.name == name) || self.withheld(touched, name) {
            return;
        }
        let Some((_, text)) = touched.link.technique.rules.iter().find(|(known, _)| known == name) else { return };
        let text = self.corpus.served_text(self.executing, &touched.link, text);
        self.rules.push(Delivered { touched: source, name: name.to_owned(), text });
    }

    /// Is this one of `agent-conduct`'s orchestrator rules, in a worker's bundle (spec 02 §3.3)?
    fn withheld(&self, source: &Touched, name: &str) -> bool {
        self.audience == Audience::Activity
            && matches!(source.segments.as_slice(), [only] if only == CONDUCT)
            && named_rules(&source.link.technique.rules, ORCHESTRATOR).0.iter().any(|known| known == name)
    }

    /// Touches the root contract of a workflow.
    fn touch_root(&mut self, workflow: &WorkflowKey) {
        let mut search = Search::default();
        let Some((file, technique)) = self.corpus.root_contract(workflow, &mut search) else {
            self.malformed.malformed.append(&mut search.malformed);
            return;
        };
        let link = Link { file: file.id.clone(), workflow: workflow.clone(), technique };
        let source = if let Some(at) = self.sources.iter().position(|known| known.link.file == link.file) {
            at
        } else {
            self.sources.push(Touched { link, segments: Vec::new(), above: Vec::new() });
            self.sources.len() - 1
        };
        self.touch(source);
    }

    fn finish(mut self, requests: &[Request<'_>]) -> Bundle {
        let borrowed = requests.iter().map(|request| request.executing).find(|other| *other != self.executing);
        if let Some(source) = borrowed {
            self.touch_root(source);
        }
        self.touch_root(self.executing);
        for source in self.touched.clone() {
            let names: Vec<String> =
                self.sources[source].link.technique.rules.iter().map(|(name, _)| name.clone()).collect();
            for name in names {
                self.deliver(source, &name);
            }
        }
        let overridden = |rule: &Delivered| {
            let file = &self.sources[rule.touched].link.file;
            let mut others = self.rules.iter().filter(|other| other.name == rule.name);
            others.any(|other| self.sources[other.touched].above.contains(file))
        };
        let kept = self.rules.iter().filter(|rule| !overridden(rule));
        self.bundle.rules = kept
            .map(|rule| (format!("{}::{}", owner(&self.sources[rule.touched]), rule.name), rule.text.clone()))
            .collect();
        self.bundle.warnings.extend(self.malformed.warnings());
        let mut known = HashSet::new();
        self.bundle.warnings.retain(|warning| known.insert(warning.message.clone()));
        self.bundle
    }
}

/// The path of the file below `techniques`, joined with `::`; the workflow's id for a root contract.
fn owner(source: &Touched) -> String {
    if source.segments.is_empty() { source.link.workflow.id.clone() } else { source.segments.join("::") }
}

/// `[workflow/]technique[::name]`: with the workflow when the reference names one, or for a nested technique of the
/// executing workflow (other than `meta`).
fn bundle_key(resolved: &Resolved, executing: &WorkflowKey) -> String {
    let nested = resolved.segments.len() > 1;
    let local = nested && resolved.workflow == *executing && executing.id != crate::META;
    let workflow = if resolved.prefixed || local { format!("{}/", resolved.workflow.id) } else { String::new() };
    match resolved.segments.as_slice() {
        [first, rest @ ..] if nested => format!("{workflow}{first}::{}", rest.join("/")),
        segments => format!("{workflow}{}", segments.concat()),
    }
}

/// The rules that `technique::wanted` names, and whether it is the exact name of one (spec 02 §1.4).
fn named_rules(rules: &[(String, String)], wanted: &str) -> (Vec<String>, bool) {
    if rules.iter().any(|(name, _)| name == wanted) {
        return (vec![wanted.to_owned()], true);
    }
    let group = format!("{wanted}-");
    (rules.iter().map(|(name, _)| name).filter(|name| name.starts_with(&group)).cloned().collect(), false)
}

#[cfg(test)]
mod tests;
