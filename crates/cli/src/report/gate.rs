//! Checkpoints: the one that is open, and every question that was asked with its answer.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use workflow_corpus::Checkpoint;
use workflow_engine::state::{CheckpointResponse, Event};
use workflow_engine::{BY_DEFAULT, DISMISSED, Timestamp};

use super::Source;

/// How a question was settled, by the event that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// Somebody chose.
    Answered,
    /// Nobody answered in time, so the default was taken.
    ByDefault,
    /// Its condition did not hold.
    Dismissed,
}

impl Settled {
    pub(super) fn of(event: &Event) -> Self {
        match (event.data_text("optionId"), event.data_text("mode")) {
            (Some(DISMISSED), _) => Self::Dismissed,
            (_, Some(BY_DEFAULT)) => Self::ByDefault,
            _ => Self::Answered,
        }
    }
}

/// The question that a session waits for.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) activity: String,
    pub(crate) checkpoint: String,
    pub(crate) yielded_at: String,
    pub(crate) yielded_by: Option<String>,
    pub(crate) wording: Option<Wording>,
}

/// What a checkpoint says.
#[derive(Clone, Debug)]
pub(crate) struct Wording {
    pub(crate) message: String,
    pub(crate) options: Vec<Choice>,
    /// Worded by the agent, not by the definition.
    pub(crate) adhoc: bool,
}

/// One option.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) description: Option<String>,
}

/// One question with its answer.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) activity: String,
    pub(crate) checkpoint: String,
    /// `None` for answers that were taken over from an older format.
    pub(crate) reached_at: Option<String>,
    pub(crate) yielded_by: Option<String>,
    pub(crate) answered_at: Option<String>,
    /// The agent that recorded the answer.
    pub(crate) recorded_by: Option<String>,
    /// Between question and answer.
    pub(crate) waited_ms: Option<i64>,
    /// The option, `None` while it waits; no option of the question when it was dismissed.
    pub(crate) option: Option<String>,
    /// Its condition did not hold, so nobody was asked.
    pub(crate) dismissed: bool,
    /// Nobody answered in time, so the default was taken.
    pub(crate) by_default: bool,
    /// How often the answer was used again instead of asking.
    pub(crate) replays: usize,
    /// What the answer did: `variablesSet`, `transitionedTo`, `activitiesSkipped`.
    pub(crate) effects: Map<String, Value>,
    /// `None` when neither the session nor the definition has it.
    pub(crate) wording: Option<Wording>,
}

impl Round {
    /// The label of the option that was chosen.
    pub(crate) fn label(&self) -> Option<&str> {
        let option = self.option.as_deref()?;
        let wording = self.wording.as_ref()?;
        wording.options.iter().find(|choice| choice.id == option).map(|choice| choice.label.as_str())
    }
}

pub(super) fn open(source: &Source<'_>) -> Option<Gate> {
    let active = source.session.active_checkpoint.as_ref()?;
    let wording = match &active.adhoc {
        Some(adhoc) => Some(adhoc_wording(source, adhoc)),
        None => declared(source, &active.activity_id, &active.checkpoint_id),
    };
    let mut workers = HashMap::new();
    let reached = |event: &&Event| event.kind() != "checkpoint_reached" || event.timestamp() != active.yielded_at;
    source.session.history.iter().take_while(reached).for_each(|event| note_worker(&mut workers, event));
    Some(Gate {
        activity: active.activity_id.clone(),
        checkpoint: active.checkpoint_id.clone(),
        yielded_by: yielded_by(source, &workers, &active.activity_id, &active.yielded_at),
        yielded_at: active.yielded_at.clone(),
        wording,
    })
}

/// The agent that asked. The tool takes none, so it is the worker that was sent the activity last before, unless the trace
/// knows better.
fn yielded_by(source: &Source<'_>, workers: &HashMap<&str, &str>, activity: &str, stamp: &str) -> Option<String> {
    let traced = Timestamp::parse(stamp).and_then(|at| source.trace.agent("yield_checkpoint", at));
    let traced = traced.filter(|agent| *agent != source.session.agent_id);
    let agent = traced.or_else(|| workers.get(activity).copied())?;
    Some(source.redaction.text(agent))
}

/// Notes to whom an activity was sent.
fn note_worker<'a>(workers: &mut HashMap<&'a str, &'a str>, event: &'a Event) {
    if event.kind() == "activity_dispatched"
        && let Some(agent) = event.data_text("agentId")
    {
        workers.insert(event.activity(), agent);
    }
}

pub(super) fn rounds(source: &Source<'_>) -> Vec<Round> {
    let session = source.session;
    let mut rounds: Vec<Round> = Vec::new();
    let mut workers = HashMap::new();
    for (position, event) in session.history.iter().enumerate() {
        note_worker(&mut workers, event);
        let newest = |rounds: &[Round]| {
            rounds
                .iter()
                .rposition(|round| round.activity == event.activity() && round.checkpoint == event.checkpoint())
        };
        match event.kind() {
            "checkpoint_reached" => rounds.push(reached(source, &workers, event)),
            "checkpoint_response" => {
                let waiting = newest(&rounds).filter(|at| rounds.get(*at).is_some_and(|r| r.option.is_none()));
                let at = waiting.unwrap_or_else(|| {
                    rounds.push(Round { reached_at: None, yielded_by: None, ..reached(source, &workers, event) });
                    rounds.len() - 1
                });
                if let Some(round) = rounds.get_mut(at) {
                    answer(source, round, event, session.history.get(position + 1..).unwrap_or_default());
                }
            }
            "checkpoint_replayed" => {
                if let Some(round) = newest(&rounds).and_then(|at| rounds.get_mut(at)) {
                    round.replays += 1;
                }
            }
            _ => {}
        }
    }
    let told: HashSet<String> = rounds.iter().map(|round| format!("{}-{}", round.activity, round.checkpoint)).collect();
    for (key, response) in &session.checkpoint_responses {
        if !told.contains(key) {
            rounds.push(without_events(source, key, response));
        }
    }
    rounds
}

fn reached(source: &Source<'_>, workers: &HashMap<&str, &str>, event: &Event) -> Round {
    let adhoc = event.data("adhoc").is_some();
    let active = source.session.active_checkpoint.as_ref();
    let still_open = active.filter(|active| active.yielded_at == event.timestamp());
    let wording = match still_open.and_then(|active| active.adhoc.as_ref()) {
        Some(adhoc) => Some(adhoc_wording(source, adhoc)),
        None if adhoc => None,
        None => declared(source, event.activity(), event.checkpoint()),
    };
    Round {
        activity: event.activity().to_owned(),
        checkpoint: event.checkpoint().to_owned(),
        reached_at: Some(event.timestamp().to_owned()),
        yielded_by: yielded_by(source, workers, event.activity(), event.timestamp()),
        answered_at: None,
        recorded_by: None,
        waited_ms: None,
        option: None,
        dismissed: false,
        by_default: false,
        replays: 0,
        effects: Map::new(),
        wording,
    }
}

fn answer(source: &Source<'_>, round: &mut Round, event: &Event, after: &[Event]) {
    let option = event.data_text("optionId").unwrap_or_default();
    let reached = round.reached_at.as_deref().and_then(Timestamp::parse);
    round.waited_ms = event.time().zip(reached).map(|(answered, reached)| (answered.0 - reached.0).max(0));
    round.answered_at = Some(event.timestamp().to_owned());
    let settled = Settled::of(event);
    round.dismissed = settled == Settled::Dismissed;
    round.by_default = settled == Settled::ByDefault;
    round.option = Some(option.to_owned());
    // The tool takes no agent of its own: it is the session's that answers.
    let traced = event.time().and_then(|time| source.trace.agent("respond_checkpoint", time));
    round.recorded_by = Some(source.redaction.text(traced.unwrap_or(&source.session.agent_id)));
    let mut set = Map::new();
    let mut skipped: Vec<Value> = Vec::new();
    for event in after {
        match event.kind() {
            "variable_set" if event.data_text("source") == Some("setVariable") => {
                let name = event.data_text("name").unwrap_or_default();
                let value = event.data("value").unwrap_or(&Value::Null);
                set.insert(source.redaction.text(name), source.redaction.value(name, value));
            }
            "activity_skipped" => skipped.push(event.activity().into()),
            _ => break,
        }
    }
    if !set.is_empty() {
        round.effects.insert("variablesSet".to_owned(), set.into());
    }
    let key = format!("{}-{}", round.activity, round.checkpoint);
    let recorded = source.session.checkpoint_responses.get(&key);
    let recorded = recorded.filter(|response| response.responded_at == event.timestamp());
    if let Some(to) = recorded.and_then(|response| response.effects.as_ref()?.get("transitionedTo")) {
        round.effects.insert("transitionedTo".to_owned(), to.clone());
    }
    if !skipped.is_empty() {
        round.effects.insert("activitiesSkipped".to_owned(), skipped.into());
    }
}

/// An answer of an older format: it has no events, and its key does not say where the activity's name ends.
fn without_events(source: &Source<'_>, key: &str, response: &CheckpointResponse) -> Round {
    let activities = source.workflow.map(|workflow| workflow.activities.as_slice()).unwrap_or_default();
    let split = activities.iter().find_map(|activity| {
        let checkpoint = key.strip_prefix(activity.id.as_str())?.strip_prefix('-')?;
        activity.checkpoint(checkpoint).map(|_| (activity.id.clone(), checkpoint.to_owned()))
    });
    let (activity, checkpoint) = split.unwrap_or_else(|| (String::new(), key.to_owned()));
    let effects = response.effects.as_ref().map(|effects| source.redaction.value("", &Value::Object(effects.clone())));
    Round {
        wording: declared(source, &activity, &checkpoint),
        activity,
        checkpoint,
        reached_at: None,
        yielded_by: None,
        answered_at: Some(response.responded_at.clone()),
        recorded_by: None,
        waited_ms: None,
        dismissed: response.option_id == DISMISSED,
        by_default: false,
        option: Some(response.option_id.clone()),
        replays: 0,
        effects: match effects {
            Some(Value::Object(effects)) => effects,
            _ => Map::new(),
        },
    }
}

fn declared(source: &Source<'_>, activity: &str, checkpoint: &str) -> Option<Wording> {
    let (_, found): (_, &Checkpoint) = source.workflow?.activity(activity)?.checkpoint(checkpoint)?;
    let options = found.options.iter().map(|option| Choice {
        id: option.id.clone(),
        label: option.label.clone(),
        description: option.description.clone(),
    });
    Some(Wording { message: found.message.clone(), options: options.collect(), adhoc: false })
}

fn adhoc_wording(source: &Source<'_>, adhoc: &Map<String, Value>) -> Wording {
    let text = |value: &Value, key: &str| value.get(key)?.as_str().map(|text| source.redaction.text(text));
    let options = adhoc.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Wording {
        message: adhoc.get("message").and_then(Value::as_str).map(|m| source.redaction.text(m)).unwrap_or_default(),
        options: options
            .iter()
            .map(|option| Choice {
                id: text(option, "id").unwrap_or_default(),
                label: text(option, "label").unwrap_or_default(),
                description: text(option, "description"),
            })
            .collect(),
        adhoc: true,
    }
}
