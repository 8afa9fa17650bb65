//! Everything that is wrong with the techniques of a workflow, with places (spec 01 §7.7, §10.4, §10.5).

use std::collections::BTreeSet;

use workflow_yaml::{Node, Span};

use crate::diagnostic::{Diagnostic, Severity};
use crate::resolve::Scope;
use crate::resource::ResourceError;
use crate::snapshot::{Corpus, Has};
use crate::source::SourceFile;
use crate::{Activity, StepKind, Workflow, WorkflowKey};

impl Corpus {
    /// Problems of the technique files of a workflow, of their links to resources, and of the technique references in
    /// its manifest and in its own activities. Worked out once per snapshot.
    pub fn technique_diagnostics(&self, workflow: &Workflow) -> std::sync::Arc<Vec<Diagnostic>> {
        self.derived.diagnostics.get(&workflow.key, || {
            let mut found = self.file_diagnostics(&workflow.key);
            self.shadow_diagnostics(&workflow.key, &mut found);
            self.reference_diagnostics(workflow, &mut found);
            found
        })
    }

    fn file_diagnostics(&self, workflow: &WorkflowKey) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for file in self.files_below(workflow.root, &format!("{}/techniques/", workflow.id)) {
            if file.name() == "README.md" || file.name().strip_suffix(".md").is_none() {
                continue;
            }
            let path = file.id.path.as_str();
            if let Some(problem) = &file.problem {
                let known = self.root_problems(workflow.root).iter().any(|known| known.file == path);
                if !known {
                    let (line, column) = problem.position();
                    let mut record =
                        Diagnostic::of_file("technique.parse", Severity::Error, &workflow.id, path, problem.message())
                            .with_help(problem.help());
                    (record.line, record.column) = (Some(line), Some(column));
                    found.push(record);
                }
                continue;
            }
            let parsed = file.technique();
            found.extend(parsed.issues.iter().map(|issue| issue.diagnostic(&workflow.id, path)));
            for link in parsed.technique.iter().flat_map(|technique| &technique.links) {
                let bare = link.target.workflow.is_none();
                if !(link.rewritten || bare && self.has_resource(workflow, &link.target.slug)) {
                    continue;
                }
                if let Err(error) = self.check_link(workflow, &link.target) {
                    let code = match error {
                        ResourceError::SectionNotFound { .. } => "resource.anchor",
                        ResourceError::NotFound { .. } | ResourceError::InvalidId { .. } => "resource.unresolved",
                    };
                    let message = format!("the link to `{}` leads nowhere: {error}", link.target.id());
                    let mut record = Diagnostic::of_file(code, Severity::Warning, &workflow.id, path, message);
                    (record.line, record.column) = (Some(link.line), Some(link.column));
                    found.push(record);
                }
            }
        }
        found
    }

    /// Names that hide others.
    fn shadow_diagnostics(&self, workflow: &WorkflowKey, found: &mut Vec<Diagnostic>) {
        let mut seen = BTreeSet::new();
        let mut groups = BTreeSet::new();
        for segments in self.technique_paths(workflow) {
            let path = segments.join("/");
            let stem = format!("{}/techniques/{path}", workflow.id);
            if segments.len() > 1 {
                groups.insert(segments[0].clone());
            }
            if !seen.insert(path) {
                let message = format!("`{stem}.md` hides `{stem}/TECHNIQUE.md`, also as the contract of the group");
                let record = Diagnostic::of_file(
                    "technique.ambiguous",
                    Severity::Warning,
                    &workflow.id,
                    &format!("{stem}.md"),
                    message,
                );
                found.push(record.with_help("keep one of the two files"));
            }
        }
        for group in groups.iter().filter(|group| **group != workflow.id) {
            if self.find_workflow_dir(workflow.root, group, Has::Folder("techniques")).is_some() {
                let message =
                    format!("the group `{group}` has the name of a workflow, so `{group}::…` means that workflow");
                let file = format!("{}/techniques/{group}", workflow.id);
                let record =
                    Diagnostic::of_file("technique.ambiguous", Severity::Warning, &workflow.id, &file, message);
                found.push(record.with_help(format!("write `{}::{group}::…`, or rename the group", workflow.id)));
            }
        }
    }

    fn reference_diagnostics(&self, workflow: &Workflow, found: &mut Vec<Diagnostic>) {
        let own = &workflow.key;
        let lists = [Some(&workflow.techniques), workflow.core.as_ref()];
        let mut listed = lists.into_iter().flatten().flat_map(|refs| refs.workflow.iter().chain(&refs.activity));
        let inline = workflow.activities.iter().filter(|activity| activity.file.is_none());
        let manifest_bad = listed.any(|reference| self.reference_problem(reference, own).is_some())
            || inline.clone().any(|activity| self.has_bad_reference(activity));
        if let (true, Some(file)) = (manifest_bad, self.manifest(own.root, &own.id)) {
            self.locate_references(own, file, None, found);
        }
        for activity in &workflow.activities {
            let file = activity.file.as_ref().filter(|_| activity.source == *own);
            let Some(file) = file.and_then(|id| self.file(id.root, &id.path)) else { continue };
            if self.has_bad_reference(activity) {
                self.locate_references(own, file, Some(&activity.id), found);
            }
        }
    }

    fn has_bad_reference(&self, activity: &Activity) -> bool {
        let scope = Scope { executing: &activity.source, activity: Some(&activity.id) };
        let listed = activity.techniques.iter().any(|name| self.reference_problem(name, &activity.source).is_some());
        listed
            || activity.flat_steps().iter().any(|step| match &step.step.kind {
                StepKind::Technique { binding, .. } => self.search(&binding.name, &scope).is_err(),
                StepKind::Action { .. } | StepKind::Checkpoint(_) | StepKind::Loop(_) => false,
            })
    }

    /// Finds the places of the references in a file that name nothing.
    fn locate_references(
        &self,
        workflow: &WorkflowKey,
        file: &SourceFile,
        activity: Option<&str>,
        found: &mut Vec<Diagnostic>,
    ) {
        let mut sites = Vec::new();
        collect(&file.yaml().root, "", activity, &mut sites);
        for site in sites {
            let scope = Scope { executing: workflow, activity: site.activity.filter(|_| !site.listed) };
            let reason = if site.listed {
                self.reference_problem(site.reference, workflow)
            } else {
                self.find(site.reference, &scope).err().map(|unresolved| unresolved.reason)
            };
            let Some(reason) = reason else { continue };
            let message = format!("the technique reference `{}` is unresolved: {reason}", site.reference);
            let mut record =
                Diagnostic::of_file("technique.unresolved", Severity::Error, &workflow.id, &file.id.path, message);
            let place = file.line_index().position(&file.text, site.span.start);
            (record.line, record.column, record.path) = (Some(place.line), Some(place.column), Some(site.path));
            let malformed = self.search(site.reference, &scope).is_err_and(|search| !search.malformed.is_empty());
            found.push(record.with_help(if malformed { MEND } else { REFERENCE }));
        }
    }
}

/// What to do about a reference that names nothing.
const REFERENCE: &str = "write `name`, `group::name` or `workflow::name` of a technique that is there";
/// What to do about one to a file that cannot be used.
const MEND: &str = "mend the file that is malformed; the reference can stay as it is";

/// A technique reference in a YAML file.
struct Site<'a> {
    reference: &'a str,
    /// In a list, where rules may be named; else bound by a step.
    listed: bool,
    activity: Option<&'a str>,
    span: Span,
    path: String,
}

fn collect<'a>(node: &'a Node, path: &str, activity: Option<&'a str>, sites: &mut Vec<Site<'a>>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if let Some(items) = node.as_sequence() {
        for (index, item) in items.iter().enumerate() {
            collect(item, &below(&index.to_string()), activity, sites);
        }
    }
    let inline = node.get("steps").and_then(|_| node.get("id")?.as_str());
    let activity = activity.or(inline);
    for entry in node.as_mapping().unwrap_or_default() {
        let here = below(&entry.key);
        match entry.key.as_str() {
            "technique" => {
                let (node, path) = match entry.value.get("name") {
                    Some(name) => (name, format!("{here}.name")),
                    None => (&entry.value, here),
                };
                if let Some(reference) = node.as_str() {
                    sites.push(Site { reference, listed: false, activity, span: node.span, path });
                }
            }
            "techniques" => listed(&entry.value, &here, sites),
            _ => collect(&entry.value, &here, activity, sites),
        }
    }
}

fn listed<'a>(node: &'a Node, path: &str, sites: &mut Vec<Site<'a>>) {
    if let Some(reference) = node.as_str() {
        sites.push(Site { reference, listed: true, activity: None, span: node.span, path: path.to_owned() });
    }
    for (index, item) in node.as_sequence().unwrap_or_default().iter().enumerate() {
        listed(item, &format!("{path}.{index}"), sites);
    }
    for entry in node.as_mapping().unwrap_or_default() {
        listed(&entry.value, &format!("{path}.{}", entry.key), sites);
    }
}

#[cfg(test)]
mod tests;
