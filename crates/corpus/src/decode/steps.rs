//! Steps from the tree, with everything that a table of fields cannot say (spec 01 §4.2–§4.6, §4.11, §6).

use serde_json::{Map, Value};
use workflow_yaml::{Node, Style};

use super::condition::condition;
use super::sink::{Path, Sink};
use super::tables::{CHECKPOINT_BODY, STEP};
use crate::fragment::{FragmentError, FragmentScope};
use crate::near::did_you_mean;
use crate::when;
use crate::{Action, Binding, Checkpoint, CheckpointOption, Effect, Loop, Replay, Step, StepKind};

/// What has to be written into a step before it is served. There is one note per step, in document order.
#[derive(Debug)]
pub(crate) struct StepNote<'n> {
    /// The step.
    pub(crate) node: &'n Node,
    /// The id it does not write itself.
    pub(crate) derived_id: Option<String>,
    /// The fragment that its `ref` stands for.
    pub(crate) fragment: Option<Node>,
}

/// Reads step lists of one activity.
#[derive(Debug)]
pub(crate) struct StepReader<'n, 's, 'd> {
    pub(crate) fragments: &'s FragmentScope<'s>,
    pub(crate) sink: &'s mut Sink<'d>,
    pub(crate) notes: Vec<StepNote<'n>>,
}

impl<'n> StepReader<'n, '_, '_> {
    /// Reads a list; `scope` names it in messages.
    pub(crate) fn steps(&mut self, node: &'n Node, path: &Path<'_>, scope: &str) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (position, item) in node.as_sequence().unwrap_or_default().iter().enumerate() {
            let path = path.item(position);
            let Some(step) = self.step(item, &path) else { continue };
            if !step.id.is_empty() && steps.iter().any(|earlier| earlier.id == step.id) {
                let technique = match &step.kind {
                    StepKind::Technique { binding, .. } => format!(" (technique `{}`)", binding.name),
                    _ => String::new(),
                };
                let place = item.get("id").or_else(|| item.get("technique")).unwrap_or(item);
                let message = format!("the step id `{}`{technique} occurs twice in {scope}", step.id);
                let help = "give one of the two steps an `id` of its own".to_owned();
                self.sink.error("step.duplicate-id", place.span, &path.key("id"), message).help = Some(help);
            }
            steps.push(step);
        }
        steps
    }

    fn step(&mut self, node: &'n Node, path: &Path<'_>) -> Option<Step> {
        let kind = node.get("kind").and_then(Node::as_str)?;
        STEP.choices.iter().find(|(known, _)| *known == kind)?;
        let at = self.notes.len();
        self.notes.push(StepNote { node, derived_id: None, fragment: None });
        let id = self.id(node, kind, at, path);
        let kind = match kind {
            "technique" => StepKind::Technique { binding: binding(node.get("technique")?)?, actions: actions(node) },
            "action" => StepKind::Action { actions: actions(node) },
            "checkpoint" => StepKind::Checkpoint(self.checkpoint(node, at, path)),
            "loop" => {
                let scope = format!("the loop `{id}`");
                let steps = match node.get("steps") {
                    Some(body) => self.steps(body, &path.key("steps"), &scope),
                    None => Vec::new(),
                };
                StepKind::Loop(Loop {
                    name: text(node, "name"),
                    loop_type: text(node, "loopType").unwrap_or_default(),
                    variable: text(node, "variable"),
                    over: text(node, "over"),
                    break_condition: node.get("breakCondition").and_then(condition),
                    max_iterations: node.get("maxIterations").and_then(whole),
                    steps,
                })
            }
            _ => return None,
        };
        let gate = node.get("condition").or_else(|| self.notes[at].fragment.as_ref()?.get("condition"));
        let gate = gate.and_then(condition);
        if let Some(when) = node.get("when") {
            self.when(when, path);
        }
        Some(Step { id, when: text(node, "when"), condition: gate, required: node.get("required").is_none(), kind })
    }

    fn id(&mut self, node: &Node, kind: &str, at: usize, path: &Path<'_>) -> String {
        let written = node.get("id");
        match written.map(Node::as_str) {
            Some(Some(id)) if !id.is_empty() => return id.to_owned(),
            // Not a string: the shape says so.
            Some(None) => return String::new(),
            Some(Some(_)) | None => {}
        }
        let derived = match (kind, node.get("technique")) {
            ("technique", Some(technique)) => binding(technique).map(|binding| derived_id(&binding.name)),
            _ => None,
        };
        match derived {
            Some(id) if !id.is_empty() => {
                self.notes[at].derived_id = Some(id.clone());
                id
            }
            // A technique step without a usable `technique`: the shape says so.
            None if kind == "technique" => String::new(),
            _ => {
                let place = written.unwrap_or(node);
                let message = format!("this {kind} step has no id");
                let help = "give it an `id` that is unique among its neighbours".to_owned();
                self.sink.error("step.id-missing", place.span, &path.key("id"), message).help = Some(help);
                String::new()
            }
        }
    }

    fn checkpoint(&mut self, node: &Node, at: usize, path: &Path<'_>) -> Checkpoint {
        let replay = match node.get("replay").and_then(Node::as_str) {
            Some("session") => Replay::Session,
            _ => Replay::Visit,
        };
        let Some(reference) = node.get("ref") else {
            let missing: Vec<&str> = ["message", "options"].into_iter().filter(|key| node.get(key).is_none()).collect();
            if !missing.is_empty() {
                let message = format!("the checkpoint has no {}", missing.join(" and no "));
                let help = "write `message` and `options`, or `ref` with the name of a checkpoint fragment".to_owned();
                self.sink.error("checkpoint.body-missing", node.span, path, message).help = Some(help);
            }
            let checkpoint = checkpoint_body(node, replay);
            self.options(&checkpoint, node, None, path);
            return checkpoint;
        };
        let place = path.key("ref");
        for entry in node.as_mapping().unwrap_or_default() {
            if CHECKPOINT_BODY.contains(&entry.key.as_str()) {
                let message = format!("`{}` cannot stand beside `ref`; the fragment supplies it", entry.key);
                let help = "remove it, or write the whole checkpoint here and no `ref`".to_owned();
                let place = path.key(&entry.key);
                self.sink.error("checkpoint.ref-conflict", entry.key_span, &place, message).help = Some(help);
            }
        }
        let Some(name) = reference.as_str() else { return checkpoint_body(node, replay) };
        match self.fragments.checkpoint(name) {
            Ok(fragment) => {
                if let (Some(own), Some(_)) = (node.entry("condition"), fragment.get("condition")) {
                    let message = format!("both the step and the fragment `{name}` have a condition");
                    let help = "use `when` on the step, or take the condition out of one of the two".to_owned();
                    let place = path.key("condition");
                    self.sink.error("checkpoint.condition-twice", own.key_span, &place, message).help = Some(help);
                }
                let checkpoint = checkpoint_body(&fragment, replay);
                self.options(&checkpoint, &fragment, Some(reference), path);
                self.notes[at].fragment = Some(fragment);
                checkpoint
            }
            Err(error) => {
                report_fragment(&error, name, "checkpoint", reference, &place, self.sink);
                checkpoint_body(node, replay)
            }
        }
    }

    /// What FIX-8 asks of the options. `reference` is where to point when the body is in a fragment.
    fn options(&mut self, checkpoint: &Checkpoint, body: &Node, reference: Option<&Node>, path: &Path<'_>) {
        let options = body.get("options").and_then(Node::as_sequence).unwrap_or_default();
        let span = |node: Option<&Node>| reference.or(node).unwrap_or(body).span;
        for (position, option) in checkpoint.options.iter().enumerate() {
            if checkpoint.options[..position].iter().any(|earlier| earlier.id == option.id) {
                let node = options.get(position).and_then(|option| option.get("id"));
                let message = format!("two options have the id `{}`", option.id);
                let list = path.key("options");
                let place = list.item(position);
                self.sink.warning("checkpoint.option", span(node), &place.key("id"), message);
            }
        }
        if let Some(default) = &checkpoint.default_option
            && !checkpoint.options.iter().any(|option| option.id == *default)
        {
            let message = format!("`defaultOption` names `{default}`, which is no option");
            let help = did_you_mean(default, checkpoint.options.iter().map(|option| option.id.as_str()));
            let place = path.key("defaultOption");
            self.sink.warning("checkpoint.option", span(body.get("defaultOption")), &place, message).help = help;
        }
        if checkpoint.auto_advance_ms.is_some() && checkpoint.default_option.is_none() {
            let message = "`autoAdvanceMs` without `defaultOption` advances to nothing".to_owned();
            let place = path.key("autoAdvanceMs");
            self.sink.warning("checkpoint.option", span(body.get("autoAdvanceMs")), &place, message);
        }
    }

    /// An expression that does not parse, or that mixes operators, is a warning (FIX-14, FIX-15).
    fn when(&mut self, node: &Node, path: &Path<'_>) {
        let Some(expression) = node.as_str() else { return };
        let path = path.key("when");
        match when::parse(expression) {
            Err(error) => {
                let at = self.place_in(node, expression, error.offset);
                let message = format!("the gate does not parse, so it never holds: {error}");
                let diagnostic = self.sink.add("when.syntax", crate::Severity::Warning, at, &path, message);
                diagnostic.help = Some(error.excerpt(expression));
            }
            Ok(_) => {
                if let Some(offset) = when::mixes_operators(expression) {
                    let at = self.place_in(node, expression, offset);
                    let message = "`&&` and `||` stand side by side".to_owned();
                    let diagnostic = self.sink.add("when.mixed", crate::Severity::Warning, at, &path, message);
                    diagnostic.help = Some("put parentheses around the part that belongs together".to_owned());
                }
            }
        }
    }

    /// Byte offset in the file of a character of a scalar; its start where the text is not written one to one.
    fn place_in(&self, node: &Node, value: &str, characters: usize) -> usize {
        let quote = usize::from(matches!(node.style, Style::SingleQuoted | Style::DoubleQuoted));
        let start = node.span.start + quote;
        let written = self.sink.text().get(start..node.span.end.saturating_sub(quote));
        match (node.style, written) {
            (Style::Plain | Style::SingleQuoted | Style::DoubleQuoted, Some(written)) if written == value => {
                start + value.chars().take(characters).map(char::len_utf8).sum::<usize>()
            }
            _ => node.span.start,
        }
    }
}

/// Reports a fragment reference that leads nowhere.
pub(crate) fn report_fragment(
    error: &FragmentError,
    name: &str,
    kind: &str,
    node: &Node,
    path: &Path<'_>,
    sink: &mut Sink<'_>,
) {
    let (code, message, help) = match error {
        FragmentError::Malformed => (
            "fragment.malformed",
            format!("`{name}` is no fragment reference"),
            Some("write `name` or `workflow::name`".to_owned()),
        ),
        FragmentError::Unresolved { workflows, nearest } => (
            "fragment.unresolved",
            format!("there is no {kind} fragment `{name}` (looked in {})", workflows.join(", ")),
            nearest
                .clone()
                .or_else(|| Some(format!("add it to `fragments.{kind}s` of the workflow, or name one that is there"))),
        ),
    };
    sink.error(code, node.span, path, message).help = help;
}

/// The id of a technique step that writes none: the last segment of the reference.
pub(crate) fn derived_id(reference: &str) -> String {
    let normalised = reference.replace('/', "::");
    normalised.split("::").filter(|segment| !segment.is_empty()).last().unwrap_or_default().to_owned()
}

pub(crate) fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key)?.as_str().map(str::to_owned)
}

pub(crate) fn texts(node: &Node, key: &str) -> Vec<String> {
    let items = node.get(key).and_then(Node::as_sequence).unwrap_or_default();
    items.iter().filter_map(Node::as_str).map(str::to_owned).collect()
}

pub(crate) fn whole(node: &Node) -> Option<u64> {
    super::check::whole(node.as_scalar()?)
}

pub(crate) fn boolean(node: &Node, key: &str) -> Option<bool> {
    node.get(key)?.as_scalar()?.as_bool()
}

pub(crate) fn object(node: Option<&Node>) -> Map<String, Value> {
    match node.map(Node::to_value) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn binding(node: &Node) -> Option<Binding> {
    if let Some(name) = node.as_str() {
        return Some(Binding { name: name.to_owned(), inputs: Map::new(), outputs: Map::new() });
    }
    Some(Binding {
        name: node.get("name")?.as_str()?.to_owned(),
        inputs: object(node.get("inputs")),
        outputs: object(node.get("outputs")),
    })
}

fn actions(node: &Node) -> Vec<Action> {
    let items = node.get("actions").and_then(Node::as_sequence).unwrap_or_default();
    let action = |item: &Node| Action {
        verb: text(item, "action").unwrap_or_default(),
        target: text(item, "target"),
        message: text(item, "message"),
        value: item.get("value").map(Node::to_value),
        description: text(item, "description"),
        condition: item.get("condition").and_then(condition),
    };
    items.iter().map(action).collect()
}

fn checkpoint_body(node: &Node, replay: Replay) -> Checkpoint {
    let options = node.get("options").and_then(Node::as_sequence).unwrap_or_default();
    Checkpoint {
        message: text(node, "message").unwrap_or_default(),
        options: options.iter().map(option).collect(),
        default_option: text(node, "defaultOption"),
        auto_advance_ms: node.get("autoAdvanceMs").and_then(whole),
        blocking: boolean(node, "blocking"),
        replay,
    }
}

fn option(node: &Node) -> CheckpointOption {
    CheckpointOption {
        id: text(node, "id").unwrap_or_default(),
        label: text(node, "label").unwrap_or_default(),
        description: text(node, "description"),
        effect: node.get("effect").map(|effect| Effect {
            set_variable: object(effect.get("setVariable")),
            transition_to: text(effect, "transitionTo"),
            skip_activities: texts(effect, "skipActivities"),
            source: object(Some(effect)),
        }),
    }
}

/// The value of a step list as it is served: derived ids first, fragments in place of `ref`. Takes the notes of its
/// steps, in order.
pub(crate) fn delivered<'a>(node: &Node, notes: &mut impl Iterator<Item = &'a StepNote<'a>>) -> Value {
    let Some(items) = node.as_sequence() else { return node.to_value() };
    Value::Array(items.iter().map(|item| delivered_step(item, notes)).collect())
}

fn delivered_step<'a>(node: &Node, notes: &mut impl Iterator<Item = &'a StepNote<'a>>) -> Value {
    let Some(note) = notes.next() else { return node.to_value() };
    let mut map = Map::new();
    if let Some(id) = &note.derived_id {
        map.insert("id".to_owned(), Value::from(id.as_str()));
    }
    for entry in node.as_mapping().unwrap_or_default() {
        match (entry.key.as_str(), &note.fragment) {
            ("id", _) if note.derived_id.is_some() => {}
            ("ref", Some(fragment)) => map.extend(fragment_members(fragment)),
            ("steps", _) => {
                map.insert(entry.key.clone(), delivered(&entry.value, notes));
            }
            _ => {
                map.insert(entry.key.clone(), entry.value.to_value());
            }
        }
    }
    Value::Object(map)
}

/// The members of a checkpoint fragment in the order in which they are served.
pub(crate) fn fragment_members(fragment: &Node) -> Map<String, Value> {
    let order = super::tables::FRAGMENT_ORDER;
    order.iter().filter_map(|key| Some(((*key).to_owned(), fragment.get(key)?.to_value()))).collect()
}
