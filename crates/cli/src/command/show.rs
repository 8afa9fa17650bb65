//! `show`: a workflow or one of its activities.

use clap::Args;
use workflow_corpus::{Activity, Diagnostic, Has, Severity, Step, StepKind, TERMINAL, Workflow, WorkflowError};
use workflow_mcp::definition;

use crate::config::Config;
use crate::exit::Failure;
use crate::place;
use crate::plain::plain;
use crate::printer::{self, BAD, DIM, GOOD, POOR, STRONG, Text, styled};
use crate::report::{counted, inline};

/// Characters of a line of prose.
const WIDTH: usize = 100;
/// Characters of a message, a condition or a default on its line.
const SHORT: usize = 70;

/// Shows a workflow as a graph, or one of its activities as agents are served it
///
/// The graph has the activities in the order of their routes, with their steps by kind, the gates at which somebody is
/// asked, and where each activity leads. --yaml prints the definition as it was understood instead. What is wrong goes to
/// stderr, with its place and what to do. Exit code 1 when there is an error among it, also when the definition loads in
/// spite of it and is shown; warnings alone are exit code 0.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflow-server show quick-tour            activities, gates and routes
  workflow-server show quick-tour --yaml     the definition as it was understood
  workflow-server show quick-tour/look-around")]
pub(crate) struct Show {
    /// What to show
    #[arg(value_name = "WORKFLOW[/ACTIVITY]")]
    what: String,
    /// Print the definition as YAML
    #[arg(long)]
    yaml: bool,
}

impl Show {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        config.check_workflow_dirs().map_err(Failure::Usage)?;
        let corpus = config.library().snapshot();
        let (id, activity) = match self.what.split_once('/') {
            Some((id, activity)) => (id, Some(activity)),
            None => (self.what.as_str(), None),
        };
        let root = corpus.find_workflow_dir(0, id, Has::Manifest).map_or(0, |key| key.root);
        let path = |file: &str| place::shown(&corpus, root, file);
        let diagnose = |diagnostic: &Diagnostic| printer::diagnose(diagnostic, &path(&diagnostic.file));
        let workflow = match corpus.workflow(id) {
            Ok(workflow) => workflow,
            Err(WorkflowError::Invalid { issues, .. }) => {
                issues.iter().for_each(diagnose);
                return Err(Failure::failed(format!("{id} does not load")));
            }
            Err(error) => return Err(Failure::failed(error.to_string())),
        };
        // The same that `list` counts.
        let techniques = corpus.technique_diagnostics(&workflow);
        let found = || workflow.diagnostics.iter().chain(techniques.iter());
        found().for_each(diagnose);
        match activity {
            None if self.yaml => printer::data(&workflow_yaml::to_string(&definition::workflow(&workflow)))?,
            None => printer::print(&overview(&workflow, corpus.root_label(root), path))?,
            Some(activity) => printer::data(&body(&workflow, activity, path)?)?,
        }
        let whole = workflow.load_errors.is_empty() && found().all(|one| one.severity != Severity::Error);
        if whole { Ok(()) } else { Err(Failure::Told) }
    }
}

fn body(workflow: &Workflow, id: &str, path: impl Fn(&str) -> String) -> Result<String, Failure> {
    if let Some(activity) = workflow.activity(id) {
        return Ok(activity.body.clone());
    }
    if let Some(error) = workflow.load_error(id) {
        // What is wrong with the file has been said.
        return Err(Failure::failed(format!("{id} does not load: {}", path(&error.file))));
    }
    let ids: Vec<&str> = workflow.activities.iter().map(|activity| activity.id.as_str()).collect();
    Err(Failure::failed(format!("{} has no activity {id}; it has {}", workflow.key.id, ids.join(", "))))
}

fn overview(workflow: &Workflow, source: &str, path: impl Fn(&str) -> String) -> Text {
    let mut text = Text::of(&format!(
        "{}  {} {}",
        styled(STRONG, &workflow.title),
        workflow.key.id,
        styled(DIM, &workflow.version)
    ));
    for line in workflow.description.iter().flat_map(|description| wrapped(description)) {
        text.line(&line);
    }
    let mut facts = vec![format!("from {source}")];
    if !workflow.tags.is_empty() {
        facts.push(format!("tags {}", workflow.tags.join(", ")));
    }
    let rules = workflow.rules.workflow.len() + workflow.rules.activity.len() + workflow.rules.universal.len();
    if rules > 0 {
        facts.push(counted(rules, "rule"));
    }
    text.line(&styled(DIM, &facts.join(" · ")));
    for activity in workflow.activities_by_route() {
        text.line("");
        text.append(&node(workflow, activity));
    }
    for error in &workflow.load_errors {
        let place = format!("{}:{}:{}", path(&error.file), error.line, error.column);
        text.line("");
        text.line(&format!(" {} {}  does not load: {place}", styled(BAD, "✗"), styled(BAD, &error.activity_id)));
    }
    text.append(&variables(workflow));
    text
}

/// One activity: its steps by kind, its gates, and the arrows that leave it.
fn node(workflow: &Workflow, activity: &Activity) -> Text {
    let is_first = workflow.initial_activity.as_deref() == Some(activity.id.as_str());
    let sign = if is_first { styled(GOOD, "▶") } else { "●".to_owned() };
    let mut notes = Vec::new();
    if is_first {
        notes.push("begins here".to_owned());
    }
    if !activity.required {
        notes.push("optional".to_owned());
    }
    if activity.source != workflow.key {
        notes.push(format!("borrowed from {}", activity.source.id));
    }
    let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
    let mut text =
        Text::of(&format!(" {sign} {}  {}{}", styled(STRONG, &activity.id), activity.name, styled(DIM, &notes)));
    let mut line = |words: &str| text.line(&format!(" │   {words}"));
    line(&styled(DIM, &steps(activity)));
    for (step, checkpoint) in activity.checkpoints() {
        let options: Vec<&str> = checkpoint.options.iter().map(|option| option.id.as_str()).collect();
        let gated = if step.when.is_some() || step.condition.is_some() { "  (under a condition)" } else { "" };
        line(&format!("{} {}: {}{}", styled(POOR, "◆"), step.id, options.join(" / "), styled(DIM, gated)));
    }
    for trigger in &activity.triggers {
        line(&format!("{} child workflow {}", styled(GOOD, "↳"), trigger.workflow));
    }
    text.append(&routes(workflow, activity));
    text
}

/// `4 steps: 2 techniques, 1 action, 1 checkpoint; 1 loop with 2 of them`.
fn steps(activity: &Activity) -> String {
    let flat = activity.flat_steps();
    if flat.is_empty() {
        return "no steps".to_owned();
    }
    let count = |is: fn(&Step) -> bool| flat.iter().filter(|entry| is(entry.step)).count();
    let kinds = [
        (count(|step| matches!(step.kind, StepKind::Technique { .. })), "technique"),
        (count(|step| matches!(step.kind, StepKind::Action { .. })), "action"),
        (count(|step| matches!(step.kind, StepKind::Checkpoint(_))), "checkpoint"),
        (count(|step| matches!(step.kind, StepKind::Loop(_))), "loop"),
    ];
    let parts: Vec<String> =
        kinds.into_iter().filter(|(count, _)| *count > 0).map(|(count, kind)| counted(count, kind)).collect();
    let inside = flat.iter().filter(|entry| !entry.top_level).count();
    let inside = if inside > 0 { format!("; {inside} in loops") } else { String::new() };
    format!("{}: {}{inside}", counted(flat.len(), "step"), parts.join(", "))
}

fn routes(workflow: &Workflow, activity: &Activity) -> Text {
    let entries = activity.transition_entries();
    if entries.is_empty() {
        return Text::of(&format!(" └─▷ {}", styled(DIM, "the end")));
    }
    let width = entries.iter().map(|entry| name(&entry.to).chars().count()).max().unwrap_or(0);
    let mut text = Text::default();
    for (nth, entry) in entries.iter().enumerate() {
        let branch = if nth + 1 == entries.len() { "└─▷" } else { "├─▷" };
        let there = workflow.activity(&entry.to);
        let style = match there {
            _ if entry.to == TERMINAL => DIM,
            None => BAD,
            Some(_) => STRONG,
        };
        let mut why = match &entry.condition {
            Some(condition) => match condition.strip_prefix("checkpoint:").and_then(|rest| rest.rsplit_once(':')) {
                Some((checkpoint, option)) => format!("when {checkpoint} is answered {option}"),
                None => format!("when {}", shortened(condition)),
            },
            None if entries.len() > 1 || !entry.is_default => "otherwise".to_owned(),
            None => String::new(),
        };
        if entry.to == activity.id {
            why.push_str("  ↺ once more");
        } else if there.is_some() && leads(workflow, &entry.to, &activity.id) {
            why.push_str("  ↺ can come back");
        } else if there.is_none() && entry.to != TERMINAL {
            let is_broken = workflow.load_error(&entry.to).is_some();
            why.push_str(if is_broken { "  ✗ does not load" } else { "  ✗ no such activity" });
        }
        let target = name(&entry.to);
        let mut line = format!(" {branch} {}", styled(style, target));
        if !why.is_empty() {
            let gap = width.saturating_sub(target.chars().count()) + 2;
            line.extend([" ".repeat(gap).as_str(), &styled(DIM, plain(&why).trim_start())]);
        }
        text.line(&line);
    }
    text
}

/// Whether an activity leads to another one, over any number of others.
fn leads(workflow: &Workflow, from: &str, to: &str) -> bool {
    let (mut open, mut seen) = (vec![from.to_owned()], vec![from.to_owned()]);
    while let Some(id) = open.pop() {
        for target in workflow.activity(&id).map(|activity| activity.targets()).unwrap_or_default() {
            if target == to {
                return true;
            }
            if !seen.contains(&target) {
                seen.push(target.clone());
                open.push(target);
            }
        }
    }
    false
}

fn name(target: &str) -> &str {
    if target == TERMINAL { "the end" } else { target }
}

fn variables(workflow: &Workflow) -> Text {
    if workflow.variables.is_empty() {
        return Text::default();
    }
    let rows: Vec<_> = workflow
        .variables
        .iter()
        .map(|variable| {
            let kind = variable.declaration.get("type").map(inline).unwrap_or_default();
            let default = variable.default.as_ref().map(|value| format!("= {value}")).unwrap_or_default();
            let description = variable.declaration.get("description").map(inline).unwrap_or_default();
            let mut row = vec![
                (anstyle::Style::new(), format!("  {}", variable.name)),
                (DIM, kind),
                (anstyle::Style::new(), shortened(&plain(&default))),
                (DIM, shortened(&plain(&description))),
            ];
            while row.last().is_some_and(|(_, text)| text.is_empty()) {
                row.pop();
            }
            row
        })
        .collect();
    let mut text = Text::default();
    text.line("");
    text.line(&styled(STRONG, "Variables"));
    text.append(&Text::table(&rows));
    text
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(SHORT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in plain(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < WIDTH => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
