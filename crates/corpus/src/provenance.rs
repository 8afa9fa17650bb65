//! Where the inputs of a step's technique come from and where its outputs go (spec 02 §8). Static: corpus and step
//! decide, never a session.

use std::collections::HashMap;

use serde_json::Value;

use crate::compose::{Composition, Member};
use crate::resolve::Scope;
use crate::snapshot::Corpus;
use crate::{Action, Activity, Binding, FlatStep, StepKind, Warning, Workflow};

/// Names that a caller may supply from outside the workflow.
const AMBIENT: [&str; 3] = ["target_symbol", "impact_report", "model_id"];

/// One place that gives a bag variable a value.
#[derive(Clone, Debug)]
struct Site {
    /// Position of the step over all activities in served order.
    ordinal: usize,
    via: Via,
    step: String,
    activity: String,
}

#[derive(Clone, Debug)]
enum Via {
    Output,
    /// With the id that the output has in its technique.
    Remap(String),
    Checkpoint,
    Action,
    Loop,
}

impl Site {
    fn text(&self) -> String {
        let place = format!("'{}' (activity '{}')", self.step, self.activity);
        match &self.via {
            Via::Output => format!("output of step {place}"),
            Via::Remap(output) => format!("output of step {place}, remapped from output '{output}'"),
            Via::Checkpoint => format!("set by checkpoint {place}"),
            Via::Action => format!("set by step {place}"),
            Via::Loop => format!("bound by loop {place}"),
        }
    }
}

/// All places that give bag variables values, of one workflow.
#[derive(Debug, Default)]
pub(crate) struct ProducerIndex {
    sites: HashMap<String, Vec<Site>>,
    /// Ordinal of the first step of each activity.
    first: HashMap<String, usize>,
}

impl ProducerIndex {
    fn of(corpus: &Corpus, workflow: &Workflow) -> Self {
        let mut index = Self::default();
        let mut ordinal = 0;
        for activity in &workflow.activities {
            index.first.entry(activity.id.clone()).or_insert(ordinal);
            for step in activity.flat_steps() {
                for (name, via) in produced(corpus, activity, &step) {
                    let site = Site { ordinal, via, step: step.step.id.clone(), activity: activity.id.clone() };
                    index.sites.entry(name).or_default().push(site);
                }
                ordinal += 1;
            }
        }
        index
    }
}

/// The names that a step gives values to, in the order that counts.
fn produced(corpus: &Corpus, activity: &Activity, step: &FlatStep<'_>) -> Vec<(String, Via)> {
    let mut names = Vec::new();
    match &step.step.kind {
        StepKind::Technique { binding, actions } => {
            for (output, name) in &binding.outputs {
                names.extend(name.as_str().map(|name| (name.to_owned(), Via::Remap(output.clone()))));
            }
            let scope = Scope { executing: &activity.source, activity: Some(&activity.id) };
            if let Ok((found, _)) = corpus.search(&binding.name, &scope) {
                let outputs = found.technique.outputs.iter().filter(|item| !binding.outputs.contains_key(&item.id));
                names.extend(outputs.map(|item| (item.id.clone(), Via::Output)));
            }
            names.extend(set_targets(actions));
        }
        StepKind::Action { actions } => names.extend(set_targets(actions)),
        StepKind::Checkpoint(checkpoint) => {
            let effects = checkpoint.options.iter().filter_map(|option| option.effect.as_ref());
            names.extend(
                effects.flat_map(|effect| effect.set_variable.keys().map(|name| (name.clone(), Via::Checkpoint))),
            );
        }
        StepKind::Loop(body) => names.extend(body.variable.iter().map(|name| (name.clone(), Via::Loop))),
    }
    names
}

fn set_targets(actions: &[Action]) -> impl Iterator<Item = (String, Via)> {
    let sets = actions.iter().filter(|action| action.verb == "set");
    sets.filter_map(|action| action.target.clone()).filter(|name| !name.is_empty()).map(|name| (name, Via::Action))
}

/// What a bag name resolves to at one step (spec 02 §8.2).
#[derive(Debug)]
enum Origin<'a> {
    Prior(&'a Site),
    Declared,
    DeclaredLater(&'a Site),
    Later(&'a Site),
    Ambient,
}

impl Origin<'_> {
    fn text(&self, name: &str) -> String {
        match self {
            Self::Prior(site) => site.text(),
            Self::Declared => format!("workflow variable '{name}' (declared)"),
            Self::DeclaredLater(site) => {
                format!("workflow variable '{name}' (declared; {}, produced later in the workflow)", site.text())
            }
            Self::Later(site) => format!("{}, produced later in the workflow", site.text()),
            Self::Ambient => format!("ambient context '{name}'"),
        }
    }
}

/// One step, with what is known about the values around it.
struct Seam<'a> {
    index: &'a ProducerIndex,
    workflow: &'a Workflow,
    ordinal: usize,
    binding: &'a Binding,
}

/// The text for one input, whether an inherited one shows it, and what is missing.
struct Source {
    text: String,
    notable: bool,
    unresolved: Option<String>,
}

impl<'a> Seam<'a> {
    fn origin(&self, name: &str) -> Option<Origin<'a>> {
        let sites = self.index.sites.get(name).map_or(&[][..], Vec::as_slice);
        // Of several sites of the last step before this one the first recorded counts.
        let prior = sites.iter().filter(|site| site.ordinal < self.ordinal);
        if let Some(last) = prior.clone().next_back() {
            return prior.into_iter().find(|site| site.ordinal == last.ordinal).map(Origin::Prior);
        }
        let later = sites.iter().find(|site| site.ordinal >= self.ordinal);
        if self.workflow.variables.iter().any(|variable| variable.name == name) {
            return Some(later.map_or(Origin::Declared, Origin::DeclaredLater));
        }
        later.map(Origin::Later).or_else(|| AMBIENT.contains(&name).then_some(Origin::Ambient))
    }

    fn source(&self, member: &Member) -> Source {
        let item = &member.item;
        if let Some(value) = self.binding.inputs.get(&item.id) {
            return self.bound(value);
        }
        if let Some(origin) = self.origin(&item.id) {
            let notable = matches!(origin, Origin::Later(_) | Origin::DeclaredLater(_));
            return Source { text: origin.text(&item.id), notable, unresolved: None };
        }
        let quiet = |text: &str| Source { text: text.to_owned(), notable: false, unresolved: None };
        if item.default.is_some() {
            quiet("declared default of the input")
        } else if item.description.as_deref().is_some_and(is_optional) {
            quiet("optional input, nothing in the workflow sets it")
        } else if member.own {
            Source { notable: false, ..missing(&item.id) }
        } else {
            quiet("ambient session context")
        }
    }

    fn bound(&self, value: &Value) -> Source {
        let literal = || Source { text: format!("step-binding literal {value}"), notable: true, unresolved: None };
        let Some(text) = value.as_str() else { return literal() };
        let whole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).filter(|name| is_identifier(name));
        if let Some(name) = whole {
            return match self.origin(name) {
                Some(origin) => through_binding(&origin.text(name)),
                None => missing(name),
            };
        }
        if text.contains('{') {
            let unknown: Vec<String> = tokens(text)
                .into_iter()
                .filter(|name| self.origin(name).is_none())
                .map(|name| format!("'{{{name}}}'"))
                .collect();
            let template = format!("step-binding template {value}");
            if unknown.is_empty() {
                return Source { text: template, notable: true, unresolved: None };
            }
            let reason = format!("no producer for {}", unknown.join(", "));
            return Source { text: format!("{template}, {reason}"), notable: true, unresolved: Some(reason) };
        }
        match self.origin(text) {
            Some(origin) => through_binding(&origin.text(text)),
            None => literal(),
        }
    }
}

fn through_binding(inner: &str) -> Source {
    Source { text: format!("step-binding: {inner}"), notable: true, unresolved: None }
}

fn missing(name: &str) -> Source {
    let reason = format!("nothing in the workflow gives '{name}' a value");
    Source { text: format!("UNRESOLVED: {reason}"), notable: true, unresolved: Some(reason) }
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Names in braces, in order, without repetition.
fn tokens(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for part in text.split('{').skip(1) {
        if let Some((name, _)) = part.split_once('}')
            && is_identifier(name)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// Does a description begin with an optional marker: up to two `*` or `_`, `(optional`, a word boundary, then text up
/// to `)`?
pub(crate) fn is_optional(description: &str) -> bool {
    let text = description.trim();
    let emphasis = text.bytes().take_while(|byte| matches!(byte, b'*' | b'_')).take(2).count();
    let rest = &text[emphasis..];
    let Some(word) = rest.get(..9) else { return false };
    let after = &rest[9..];
    let boundary = !after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    word.eq_ignore_ascii_case("(optional") && boundary && after.contains(')')
}

impl Corpus {
    /// Adds `source` and `destination` to a composition bound to a step, and warns of inputs without a value.
    pub(crate) fn annotate(
        &self,
        workflow: &Workflow,
        activity: &Activity,
        step: &FlatStep<'_>,
        binding: &Binding,
        resolved_id: &str,
        composition: &mut Composition,
    ) {
        composition.step_bound = true;
        let index = self.derived.producers.get(&workflow.key, || ProducerIndex::of(self, workflow));
        let steps = activity.flat_steps();
        let position = steps.iter().position(|other| other.qualified_id == step.qualified_id).unwrap_or(0);
        let ordinal = index.first.get(&activity.id).copied().unwrap_or(0) + position;
        let seam = Seam { index: &index, workflow, ordinal, binding };
        for member in &mut composition.inputs {
            let source = seam.source(member);
            if member.own || source.notable {
                member.annotation = Some(source.text);
            }
            if let (Some(reason), true) = (source.unresolved, member.own) {
                let message = format!(
                    "Input '{}' of technique '{resolved_id}' is UNRESOLVED at step '{}': {reason}",
                    member.item.id, step.qualified_id
                );
                composition.warnings.push(Warning { code: "W_INPUT_UNRESOLVED", message });
            }
        }
        for member in &mut composition.outputs {
            let name = binding.outputs.get(&member.item.id).and_then(Value::as_str);
            member.annotation = name.map(|name| format!("lands as session variable '{name}'"));
        }
    }
}

#[cfg(test)]
mod tests;
