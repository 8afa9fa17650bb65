//! Loading one workflow: its manifest, its activity set, what belongs together (spec 01 §4.9, §10.3).

use std::collections::HashMap;
use std::sync::Arc;

use workflow_yaml::{Node, Span};

use crate::decode::activity::{Origin, activity};
use crate::decode::manifest::{self, manifest};
use crate::decode::sink::{Path, Sink};
use crate::decode::steps::text;
use crate::diagnostic::{Diagnostic, Severity};
use crate::fragment::FragmentScope;
use crate::near::did_you_mean;
use crate::snapshot::{Corpus, Has, WorkflowError, is_plain_segment};
use crate::source::SourceFile;
use crate::{Activity, ActivityLoadError, FileId, TERMINAL, Variable, Workflow, WorkflowKey};

impl Workflow {
    /// What clients call it: the name of its directory.
    pub fn id(&self) -> &str {
        &self.key.id
    }

    /// The activity of this id.
    pub fn activity(&self, id: &str) -> Option<&Arc<Activity>> {
        self.activities.iter().find(|activity| activity.id == id)
    }

    /// Why the activity of this id was left out, if it was.
    pub fn load_error(&self, id: &str) -> Option<&ActivityLoadError> {
        self.load_errors.iter().find(|error| error.activity_id == id)
    }

    /// The declaration of a variable; the last one when it is declared twice, as its default wins.
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().rev().find(|variable| variable.name == name)
    }
}

/// Loads a workflow; everything that is wrong with it is in its diagnostics, or in the error.
pub(crate) fn load(corpus: &Corpus, key: &WorkflowKey) -> Result<Workflow, WorkflowError> {
    let Some(file) = corpus.manifest(key.root, &key.id) else {
        return Err(WorkflowError::NotFound { id: key.id.clone(), available: corpus.workflow_ids() });
    };
    let invalid = |issues| WorkflowError::Invalid { id: key.id.clone(), issues };
    let mut sink = Sink::new(&key.id, file);
    if !sink.take_parse_problems("manifest.parse") {
        return Err(invalid(sink.found));
    }
    let root = &file.yaml().root;
    let scope = FragmentScope { corpus, declaring: key };
    let workflow = manifest(root, key, &scope, &mut sink);
    let mut loader = Loader {
        corpus,
        key,
        manifest: file,
        sink,
        others: Vec::new(),
        activities: Vec::new(),
        places: Vec::new(),
        load_errors: Vec::new(),
        read: Vec::new(),
    };
    loader.local_files(root);
    loader.listed(root);
    // What makes the whole workflow fail: everything in the manifest but a rule reference (FIX-16) and the entries of
    // `activities` (FIX-10).
    let fatal = |found: &Diagnostic| {
        found.severity == Severity::Error && (found.code.starts_with("manifest.") || found.code == "variable.name")
    };
    if loader.sink.found.iter().any(fatal) {
        loader.sink.sort();
        loader.sink.found.append(&mut loader.others);
        return Err(invalid(loader.sink.found));
    }
    Ok(loader.finish(workflow, root))
}

/// So many activities are named where none looks like the one that is meant.
const MOST_NAMED: usize = 12;

/// Where the definition of a loaded activity stands.
#[derive(Debug)]
struct Place {
    file: Arc<SourceFile>,
    /// Position in `activities` of the manifest, for one that is written there.
    inline: Option<usize>,
    borrowed: bool,
}

/// An activity file to read.
#[derive(Debug)]
struct Candidate<'a> {
    file: &'a Arc<SourceFile>,
    source: &'a WorkflowKey,
    /// `file` of a load error.
    shown: &'a str,
    borrowed: bool,
}

#[derive(Debug)]
struct Loader<'a> {
    corpus: &'a Corpus,
    key: &'a WorkflowKey,
    manifest: &'a Arc<SourceFile>,
    /// Problems of the manifest.
    sink: Sink<'a>,
    /// Problems of other files.
    others: Vec<Diagnostic>,
    activities: Vec<Arc<Activity>>,
    places: Vec<Place>,
    load_errors: Vec<ActivityLoadError>,
    /// Files looked at so far.
    read: Vec<FileId>,
}

impl<'a> Loader<'a> {
    /// Directory of the workflow with a slash, or nothing for a legacy file.
    fn base(&self) -> String {
        if self.manifest.id.path.contains('/') { format!("{}/", self.key.id) } else { String::new() }
    }

    /// Reads every file of the activities directory whose name has a number (spec 01 §1.2).
    fn local_files(&mut self, root: &Node) {
        let written = root.get("activitiesDir").and_then(Node::as_str);
        let dir = written.unwrap_or("activities").trim_end_matches('/');
        if !dir.split('/').all(is_plain_segment) {
            if let Some(node) = root.get("activitiesDir") {
                let message = "the directory must lie inside that of the workflow".to_owned();
                let help = "write a name below it, or leave the key out for `activities`".to_owned();
                let path = Path::Root.key("activitiesDir");
                self.sink.error(manifest::CODE, node.span, &path, message).help = Some(help);
            }
            return;
        }
        let dir = format!("{}{dir}", self.base());
        let listed: Vec<&str> = entries(root).iter().filter_map(Node::as_str).collect();
        for name in self.corpus.directories_in(self.key.root, &dir) {
            if file_name(name).is_some() {
                let path = format!("{dir}/{name}");
                let message = "an activity is a file; this is a directory".to_owned();
                let problem = Diagnostic::of_file("activity.parse", Severity::Error, &self.key.id, &path, message)
                    .with_help("write the activity into a file of this name, or rename the directory");
                self.excluded(&path, file_name(name).map_or(name, |(_, id)| id), std::slice::from_ref(&problem));
                self.others.push(problem);
            }
        }
        let mut files = Vec::new();
        for file in self.corpus.files_below(self.key.root, &dir) {
            let name = file.name();
            let directly = file.id.path.len() == dir.len() + 1 + name.len();
            if !directly || !matches!(name.rsplit('.').next(), Some("yaml" | "yml")) {
                continue;
            }
            match file_name(name) {
                Some((number, _)) => files.push((number, file)),
                None if listed.contains(&name) => {}
                None => {
                    let message = "the file name has no number in front, so the file is not loaded".to_owned();
                    let problem = Diagnostic::of_file(
                        "activity.filename",
                        Severity::Warning,
                        &self.key.id,
                        &file.id.path,
                        message,
                    );
                    self.others
                        .push(problem.with_help(format!("call it `NN-<activity id>.yaml`, such as `01-{name}`")));
                }
            }
        }
        files.sort_by(|a, b| a.0.cmp(b.0));
        for (_, file) in files {
            self.file(&Candidate { file, source: self.key, shown: &file.id.path, borrowed: false });
        }
    }

    /// Resolves the entries of `activities` in order (spec 01 §4.9).
    fn listed(&mut self, root: &'a Node) {
        let items = entries(root);
        if let Some(node) = root.get("activities")
            && node.as_sequence().is_some_and(<[Node]>::is_empty)
            && self.read.is_empty()
        {
            let message = "the list is empty and there are no activity files".to_owned();
            let help = "leave the key out".to_owned();
            self.sink.error(manifest::CODE, node.span, &Path::Root.key("activities"), message).help = Some(help);
        }
        for (position, item) in items.iter().enumerate() {
            if let Some(reference) = item.as_str() {
                self.borrow(reference, item.span, position);
            } else if item.as_mapping().is_some() {
                self.inline(item, position);
            }
        }
    }

    fn borrow(&mut self, reference: &str, span: Span, position: usize) {
        let (corpus, key) = (self.corpus, self.key);
        let segments: Vec<&str> = reference.split('/').collect();
        let source = match segments.as_slice() {
            [_] => Some(key.clone()),
            [workflow, ..] => corpus.find_workflow_dir(key.root, workflow, Has::Folder("activities")),
            [] => None,
        };
        let below = segments.get(usize::from(segments.len() > 1)..).unwrap_or_default();
        let below = if below.first() == Some(&"activities") && below.len() > 1 { &below[1..] } else { below };
        let plain = segments.iter().all(|segment| is_plain_segment(segment));
        let file = source.as_ref().filter(|_| plain).and_then(|source| {
            let base = if *source == *key { self.base() } else { format!("{}/", source.id) };
            corpus.file(source.root, &format!("{base}activities/{}", below.join("/")))
        });
        let (Some(source), Some(file)) = (source, file) else {
            let message = if plain {
                format!("there is no activity file `{reference}`")
            } else {
                format!("`{reference}` is no path below a workflow")
            };
            let help = "write `<file>` of this workflow or `<workflow>/<file>` of another".to_owned();
            let list = Path::Root.key("activities");
            let problem = self.sink.error("activity.borrow-unresolved", span, &list.item(position), message);
            problem.help = Some(help);
            let problem = problem.clone();
            let name = segments.last().copied().unwrap_or_default();
            self.excluded(reference, file_name(name).map_or(name, |(_, id)| id), &[problem]);
            return;
        };
        self.file(&Candidate { file, source: &source, shown: reference, borrowed: source != *key });
    }

    fn inline(&mut self, item: &'a Node, position: usize) {
        let list = Path::Root.key("activities");
        let path = list.item(position);
        let before = self.sink.found.len();
        let scope = FragmentScope { corpus: self.corpus, declaring: self.key };
        let origin = Origin { source: self.key.clone(), file: None, prefix: None };
        if let Some(activity) = activity(item, &path, origin, &scope, &mut self.sink) {
            let file = Arc::clone(self.manifest);
            return self.add(activity, Place { file, inline: Some(position), borrowed: false });
        }
        let id = text(item, "id").unwrap_or_else(|| path.to_string());
        let mut found = self.sink.found[before..].to_vec();
        found.sort_by_key(|found| (found.line, found.column));
        self.excluded(&self.manifest.id.path.clone(), &id, &found);
    }

    fn file(&mut self, candidate: &Candidate<'_>) {
        let Candidate { file, source, shown, borrowed } = *candidate;
        if self.read.contains(&file.id) {
            return;
        }
        self.read.push(file.id.clone());
        let name = file.name();
        let (number, file_id) = file_name(name).map_or((None, stem(name)), |(number, id)| (Some(number), id));
        let mut sink = Sink::new(&self.key.id, file);
        let loaded = if sink.take_parse_problems("activity.parse") {
            let scope = FragmentScope { corpus: self.corpus, declaring: source };
            let origin =
                Origin { source: source.clone(), file: Some(file.id.clone()), prefix: number.map(str::to_owned) };
            activity(&file.yaml().root, &Path::Root, origin, &scope, &mut sink)
        } else {
            None
        };
        if let Some(activity) = &loaded {
            let node = file.yaml().root.get("id");
            let span = node.map_or(Span::empty(0), |node| node.span);
            let path = Path::Root.key("id");
            if activity.id != file_id && !borrowed {
                let message = format!("the activity calls itself `{}`, its file `{file_id}`", activity.id);
                let help = "give both the same name; the one inside the file counts".to_owned();
                sink.warning("activity.id-mismatch", span, &path, message).help = Some(help);
            }
            if !borrowed && self.activities.iter().any(|earlier| earlier.id == activity.id) {
                let message = format!("another activity file has the id `{}` already", activity.id);
                let help = "give one of the two another `id`, or remove its file".to_owned();
                sink.error("activity.duplicate-id", span, &path, message).help = Some(help);
            }
        }
        sink.sort();
        let failed = sink.has_errors();
        if failed {
            self.excluded(shown, file_id, &sink.found);
        }
        // Warnings about a borrowed file belong to the workflow that holds it.
        self.others.extend(sink.found.into_iter().filter(|found| !borrowed || found.severity == Severity::Error));
        if let (Some(activity), false) = (loaded, failed) {
            self.add(activity, Place { file: Arc::clone(file), inline: None, borrowed });
        }
    }

    /// Appends an activity unless its id is there already; local files come first and win.
    fn add(&mut self, activity: Activity, place: Place) {
        if !self.activities.iter().any(|earlier| earlier.id == activity.id) {
            self.activities.push(Arc::new(activity));
            self.places.push(place);
        }
    }

    fn excluded(&mut self, file: &str, activity_id: &str, found: &[Diagnostic]) {
        let errors = || found.iter().filter(|found| found.severity == Severity::Error);
        let Some(first) = errors().next() else { return };
        self.load_errors.push(ActivityLoadError {
            file: file.to_owned(),
            line: first.line.unwrap_or(1),
            column: first.column.unwrap_or(1),
            code: first.code.to_owned(),
            activity_id: activity_id.to_owned(),
            error: errors().map(Diagnostic::issue).collect::<Vec<_>>().join("; "),
        });
    }

    fn finish(mut self, mut workflow: Workflow, root: &Node) -> Workflow {
        self.initial_activity(&workflow, root);
        self.targets();
        self.colliding_answers();
        workflow.activities = self.activities;
        workflow.load_errors = self.load_errors;
        self.sink.sort();
        workflow.diagnostics = self.sink.found;
        workflow.diagnostics.append(&mut self.others);
        let prefix = format!("{}/", self.key.id);
        for problem in self.corpus.root_problems(self.key.root) {
            let known = workflow.diagnostics.iter().any(|known| known.file == problem.file);
            if problem.file.starts_with(&prefix) && !known {
                workflow.diagnostics.push(problem.clone());
            }
        }
        workflow
    }

    /// Is there an activity of this name, or one that was left out and is reported already?
    fn is_known(&self, id: &str) -> bool {
        self.activities.iter().any(|activity| activity.id == id)
            || self.load_errors.iter().any(|error| error.activity_id == id)
    }

    fn no_activity(&self, id: &str) -> (String, Option<String>) {
        let ids = || self.activities.iter().map(|activity| activity.id.as_str());
        let advice = did_you_mean(id, ids()).or_else(|| {
            let known: Vec<&str> = ids().take(MOST_NAMED).collect();
            let more = if self.activities.len() > MOST_NAMED { ", …" } else { "" };
            let none = || "add an activity file of this name".to_owned();
            Some(if known.is_empty() { none() } else { format!("known activities: {}{more}", known.join(", ")) })
        });
        (format!("there is no activity `{id}`"), advice)
    }

    fn initial_activity(&mut self, workflow: &Workflow, root: &Node) {
        let (Some(initial), Some(node)) = (&workflow.initial_activity, root.get("initialActivity")) else { return };
        if !self.is_known(initial) {
            let (message, help) = self.no_activity(initial);
            let path = Path::Root.key("initialActivity");
            self.sink.error("transition.target", node.span, &path, message).help = help;
        }
    }

    /// Routes that lead to no activity.
    fn targets(&mut self) {
        let mut found = Vec::new();
        for place in &self.places {
            let mut sink = Sink::new(&self.key.id, &place.file);
            let root = &place.file.yaml().root;
            let list = Path::Root.key("activities");
            let (node, path) = match place.inline {
                Some(position) => (entries(root).get(position), list.item(position)),
                None => (Some(root), Path::Root),
            };
            let Some(node) = node else { continue };
            routes(node, &path, &mut |target, path| {
                let Some(id) = target.as_str() else { return };
                if id != TERMINAL && !self.is_known(id) {
                    let (message, help) = self.no_activity(id);
                    let whose = if place.borrowed { format!(" in `{}`", self.key.id) } else { String::new() };
                    sink.error("transition.target", target.span, path, format!("{message}{whose}")).help = help;
                }
            });
            found.append(&mut sink.found);
        }
        self.others.append(&mut found);
    }

    /// Answers are kept under `<activity>-<checkpoint>`; two checkpoints may come out the same (spec 03 §6.2).
    fn colliding_answers(&mut self) {
        let mut keys: HashMap<String, (&str, &str)> = HashMap::new();
        let mut found = Vec::new();
        for (activity, place) in self.activities.iter().zip(&self.places) {
            for (step, _) in activity.checkpoints() {
                let key = format!("{}-{}", activity.id, step.id);
                let Some((other, checkpoint)) = keys.insert(key.clone(), (&activity.id, &step.id)) else { continue };
                if other != activity.id {
                    let message = format!(
                        "answers to `{}` and to `{checkpoint}` of the activity `{other}` share the key `{key}`",
                        step.id
                    );
                    let file = &place.file.id.path;
                    let problem =
                        Diagnostic::of_file("checkpoint.key-collision", Severity::Warning, &self.key.id, file, message);
                    found.push(problem.with_help("rename one of the two checkpoints"));
                }
            }
        }
        self.others.append(&mut found);
    }
}

fn entries(root: &Node) -> &[Node] {
    root.get("activities").and_then(Node::as_sequence).unwrap_or_default()
}

/// Every place of an activity that names another one, fragments aside.
fn routes(node: &Node, path: &Path<'_>, found: &mut impl FnMut(&Node, &Path<'_>)) {
    let list = path.key("transitions");
    for (position, transition) in items(node, "transitions") {
        if let Some(to) = transition.get("to") {
            found(to, &list.item(position).key("to"));
        }
    }
    let list = path.key("decisions");
    for (position, decision) in items(node, "decisions") {
        let path = list.item(position);
        let branches = path.key("branches");
        for (position, branch) in items(decision, "branches") {
            if let Some(to) = branch.get("transitionTo") {
                found(to, &branches.item(position).key("transitionTo"));
            }
        }
    }
    step_routes(node, path, found);
}

fn step_routes(node: &Node, path: &Path<'_>, found: &mut impl FnMut(&Node, &Path<'_>)) {
    let list = path.key("steps");
    for (position, step) in items(node, "steps") {
        let path = list.item(position);
        let options = path.key("options");
        for (position, option) in items(step, "options") {
            let Some(effect) = option.get("effect") else { continue };
            let option_path = options.item(position);
            let path = option_path.key("effect");
            if let Some(to) = effect.get("transitionTo") {
                found(to, &path.key("transitionTo"));
            }
            let skipped = path.key("skipActivities");
            for (position, target) in items(effect, "skipActivities") {
                found(target, &skipped.item(position));
            }
        }
        step_routes(step, &path, found);
    }
}

fn items<'n>(node: &'n Node, key: &str) -> impl Iterator<Item = (usize, &'n Node)> {
    node.get(key).and_then(Node::as_sequence).unwrap_or_default().iter().enumerate()
}

/// Number and id of a file name `NN-id.yaml` (spec 01 §1.2).
fn file_name(name: &str) -> Option<(&str, &str)> {
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"))?;
    let (number, id) = stem.split_once('-')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !id.is_empty() && !id.contains(['\n', '\r'])).then_some((number, id))
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests;
