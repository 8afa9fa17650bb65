//! `respond_checkpoint`: the answer of the user, and the only key to a gate (spec 03 §5.15, §6.5).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use workflow_corpus::{Checkpoint, CheckpointOption, Effect, Step, Workflow};

use super::present_checkpoint::{elapsed_ms, whole_seconds};
use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool,
    address::Address,
    checkpoint::{self, DISMISSED, Resolution},
    handle::{self, Standing},
    schema::input_schema,
    state::{ActiveCheckpoint, CheckpointResponse, Event},
    variable,
};

pub(crate) static TOOL: Tool = Tool {
    name: "respond_checkpoint",
    title: "Answer a checkpoint",
    description: "Resolves a yielded checkpoint and opens the gate; the orchestrator's call. Pass the checkpoint_handle (or \
                  session_index) and exactly one of: option_id, what the user chose, never your own choice; auto_advance: \
                  true, which takes the default option of a checkpoint that declares defaultOption and autoAdvanceMs, once \
                  that time has passed; condition_not_met: true, which dismisses a checkpoint with a structured condition \
                  that does not hold. An answer right after the yield is refused: show the checkpoint to the user first. \
                  The effect comes back: setVariable and skipActivities are already recorded; transitionTo is for you to \
                  enact with next_activity. Then resume the worker, which calls resume_checkpoint. A repetition answers \
                  the same with already_done.",
    annotations: Annotations { read_only: false, idempotent: false },
    gated: false,
    retryable: true,
    traced: true,
    schema: input_schema::<Params>,
    target,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The handle that the worker yielded.
    #[serde(default)]
    #[schemars(length(min = 1))]
    checkpoint_handle: Option<String>,
    /// Instead of the handle: the session that waits.
    #[serde(default)]
    session_index: Option<String>,
    /// The option that the user chose.
    #[serde(default)]
    #[schemars(length(min = 1))]
    option_id: Option<String>,
    /// true: take the default option; its timer must have run out.
    #[serde(default, deserialize_with = "given")]
    auto_advance: bool,
    /// true: the checkpoint's condition does not hold.
    #[serde(default, deserialize_with = "given")]
    condition_not_met: bool,
}

/// `true` or `"true"` is given; any false form is not.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match Value::deserialize(from)? {
        Value::Bool(flag) => Ok(flag),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" || text.is_empty() => Ok(false),
        Value::Null => Ok(false),
        other => Err(serde::de::Error::custom(format!("expected true, found {other}"))),
    }
}

/// How the checkpoint is to be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    Option(String),
    AutoAdvance,
    ConditionNotMet,
}

impl Params {
    fn read(arguments: &Arguments) -> Result<Self, Refusal> {
        let params: Self = arguments.decode(TOOL.name)?;
        if params.option_id.as_deref() == Some("") {
            return Err(Refusal::invalid_params(TOOL.name, "option_id: must not be empty"));
        }
        Ok(params)
    }

    fn address(&self) -> Result<Address, Refusal> {
        Address::read(self.session_index.as_deref(), self.checkpoint_handle.as_deref())
    }

    fn mode(&self) -> Result<Mode, Refusal> {
        let mut modes: Vec<Mode> = Vec::new();
        modes.extend(self.option_id.clone().map(Mode::Option));
        modes.extend(self.auto_advance.then_some(Mode::AutoAdvance));
        modes.extend(self.condition_not_met.then_some(Mode::ConditionNotMet));
        let arrived: Vec<&str> = modes.iter().map(Mode::name).collect();
        match (modes.pop(), modes.is_empty()) {
            (Some(mode), true) => Ok(mode),
            _ => Err(Refusal::new(
                "CHECKPOINT_MODE",
                format!(
                    "{} given; a checkpoint is resolved by exactly one of option_id, auto_advance: true, \
                     condition_not_met: true. The gate stays closed.",
                    if arrived.is_empty() { "none was".to_owned() } else { format!("{} were", arrived.join(", ")) }
                ),
            )
            .with("given", arrived)),
        }
    }
}

impl Mode {
    fn name(&self) -> &'static str {
        match self {
            Self::Option(_) => "option_id",
            Self::AutoAdvance => "auto_advance",
            Self::ConditionNotMet => "condition_not_met",
        }
    }
}

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    Params::read(arguments)?.address().map(Address::target)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params = Params::read(call.arguments)?;
    let address = params.address()?;
    call.warnings.extend(address.warning.clone());
    let session = call.session()?;
    let standing = address.standing(call.env.signer, session)?;
    let mode = params.mode()?;
    if let Standing::Spent(reached) = standing {
        return again(call, reached, &mode);
    }
    let active = session.active_checkpoint.clone().ok_or_else(|| checkpoint::none_active(session))?;
    let choice = if let Some(adhoc) = &active.adhoc {
        choose_undeclared(call, &active, adhoc, &mode)?
    } else {
        let workflow = call.workflow()?;
        let activity = workflow.activity(&active.activity_id);
        let found = activity.and_then(|activity| activity.checkpoint(&active.checkpoint_id));
        let (step, declared) = found.ok_or_else(|| gone(&workflow, &session.session_index, &active))?;
        choose(call, &active, step, declared, &mode)?
    };
    let handle = handle::of_active(call.env.signer, &session.session_index, &active);
    let effect = commit(call, &active, &choice)?;
    let index = call.session()?.session_index.clone();
    Ok(Reply::json(&index, result(&index, &active.checkpoint_id, &choice.option, effect, handle)))
}

/// A chosen option, or a dismissal.
struct Choice {
    option: String,
    effect: Option<Effect>,
    /// Nobody answered in time, so that the default was taken.
    by_default: bool,
}

fn choose(
    call: &Call<'_>,
    active: &ActiveCheckpoint,
    step: &Step,
    declared: &Checkpoint,
    mode: &Mode,
) -> Result<Choice, Refusal> {
    let take = |option: &CheckpointOption, by_default: bool| Choice {
        option: option.id.clone(),
        effect: option.effect.clone(),
        by_default,
    };
    match mode {
        Mode::Option(id) => {
            shown_long_enough(call, active)?;
            let ids: Vec<&str> = declared.options.iter().map(|option| option.id.as_str()).collect();
            let found = declared.options.iter().find(|option| option.id == *id);
            found.map(|option| take(option, false)).ok_or_else(|| no_such_option(active, id, &ids))
        }
        Mode::AutoAdvance => {
            let after = declared.auto_advance_ms.filter(|after| *after > 0);
            let (Some(default), Some(after)) = (&declared.default_option, after) else {
                let mut missing = Vec::new();
                missing.extend(declared.default_option.is_none().then_some("defaultOption"));
                missing.extend(after.is_none().then_some("autoAdvanceMs"));
                return Err(no_auto_advance(active, &missing));
            };
            let elapsed = elapsed_ms(active, call.now());
            if elapsed < after {
                return Err(too_early("AUTO_ADVANCE_TOO_EARLY", active, elapsed, after));
            }
            let found = declared.options.iter().find(|option| option.id == *default);
            found.map(|option| take(option, true)).ok_or_else(|| bad_default(active, default))
        }
        Mode::ConditionNotMet if step.condition.is_some() => {
            Ok(Choice { option: DISMISSED.to_owned(), effect: None, by_default: false })
        }
        Mode::ConditionNotMet => Err(not_conditional(active)),
    }
}

fn choose_undeclared(
    call: &Call<'_>,
    active: &ActiveCheckpoint,
    adhoc: &Map<String, Value>,
    mode: &Mode,
) -> Result<Choice, Refusal> {
    match mode {
        Mode::Option(id) => {
            shown_long_enough(call, active)?;
            let options = adhoc.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let ids: Vec<&str> = options.iter().filter_map(|option| option.get("id")?.as_str()).collect();
            if !ids.contains(&id.as_str()) {
                return Err(no_such_option(active, id, &ids));
            }
            Ok(Choice { option: id.clone(), effect: None, by_default: false })
        }
        Mode::AutoAdvance => Err(no_auto_advance(active, &["defaultOption", "autoAdvanceMs"])),
        Mode::ConditionNotMet => Err(not_conditional(active)),
    }
}

fn shown_long_enough(call: &Call<'_>, active: &ActiveCheckpoint) -> Result<(), Refusal> {
    let (elapsed, required) = (elapsed_ms(active, call.now()), call.env.settings.checkpoint_min_response_ms);
    if elapsed < required { Err(too_early("CHECKPOINT_TOO_FAST", active, elapsed, required)) } else { Ok(()) }
}

/// Opens the gate and does what the option says; returns the effect as it is answered.
fn commit(call: &mut Call<'_>, active: &ActiveCheckpoint, choice: &Choice) -> Result<Option<Value>, Refusal> {
    let now = call.now();
    let workflow = call.workflow();
    let activity = active.activity_id.as_str();
    let mut warnings = Vec::new();
    let session = call.session_mut()?;
    session.active_checkpoint = None;
    let event = Event::new("checkpoint_response")
        .with_activity(activity)
        .with_checkpoint(&active.checkpoint_id)
        .with_data("optionId", choice.option.as_str())
        .with_optional_data("mode", choice.by_default.then_some(checkpoint::BY_DEFAULT));
    let responded_at = session.record(event, now);
    let response = CheckpointResponse {
        option_id: choice.option.clone(),
        responded_at,
        effects: choice.effect.as_ref().and_then(checkpoint::recorded_effects),
        extra: Map::new(),
    };
    let answered = checkpoint::answered_effect(&response);
    session.checkpoint_responses.insert(checkpoint::key(activity, &active.checkpoint_id), response);
    if let Some(effect) = &choice.effect {
        // an effect comes from the definition, so the definition is there
        let workflow = workflow?;
        for (name, value) in &effect.set_variable {
            let write = variable::Write { name, value: value.clone(), activity, source: "setVariable" };
            warnings.extend(variable::write(session, &workflow, write, now));
        }
        for skipped in &effect.skip_activities {
            if !session.skipped_activities.contains(skipped) {
                session.skipped_activities.push(skipped.clone());
                session.record(Event::new("activity_skipped").with_activity(skipped), now);
            }
        }
    }
    session.advance(now);
    call.warnings.append(&mut warnings);
    Ok(answered)
}

fn result(index: &str, checkpoint: &str, option: &str, effect: Option<Value>, handle: String) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("checkpoint_id".to_owned(), checkpoint.into());
    members.insert("resolved".to_owned(), true.into());
    members.insert("session_index".to_owned(), index.into());
    if option != DISMISSED {
        members.insert("resolved_option".to_owned(), option.into());
    }
    if let Some(effect) = effect {
        members.insert("effect".to_owned(), effect);
    }
    if option == DISMISSED {
        members.insert("dismissed".to_owned(), true.into());
    }
    members.insert("checkpoint_handle".to_owned(), handle.into());
    members.insert("next".to_owned(), "resume_checkpoint".into());
    members
}

/// The answer to a handle whose checkpoint is resolved: the same again if the same is asked for, else a refusal.
fn again(call: &Call<'_>, reached: &Event, mode: &Mode) -> Result<Reply, Refusal> {
    let session = call.session()?;
    let Some(resolution) = checkpoint::resolution_of(session, reached) else {
        return Err(checkpoint::spent(session, reached));
    };
    let declared = declared_option(call, reached, resolution);
    let same = match mode {
        Mode::Option(id) => id == resolution.option(),
        Mode::ConditionNotMet => resolution.option() == DISMISSED,
        Mode::AutoAdvance => declared.as_ref().is_some_and(|(_, is_default)| *is_default),
    };
    if !same {
        return Err(checkpoint::spent(session, reached));
    }
    let effect = effect_of(call, reached, resolution);
    let handle = handle::of_event(call.env.signer, &session.session_index, reached);
    let mut members = result(&session.session_index, reached.checkpoint(), resolution.option(), effect, handle);
    members.insert("already_done".to_owned(), true.into());
    Ok(Reply::json(&session.session_index, members))
}

/// What a resolution did: as recorded, or when a newer answer stands under its key, as the definition says.
pub(super) fn effect_of(call: &Call<'_>, reached: &Event, resolution: Resolution<'_>) -> Option<Value> {
    match resolution.response {
        Some(_) => resolution.effect(),
        None => declared_option(call, reached, resolution)?.0,
    }
}

/// Effect of the resolved option as the definition has it now, and whether it is the default option.
fn declared_option(call: &Call<'_>, reached: &Event, resolution: Resolution<'_>) -> Option<(Option<Value>, bool)> {
    let workflow = call.workflow().ok()?;
    let (_, declared) = workflow.activity(reached.activity())?.checkpoint(reached.checkpoint())?;
    let option = declared.options.iter().find(|option| option.id == resolution.option())?;
    let response = CheckpointResponse {
        option_id: option.id.clone(),
        responded_at: String::new(),
        effects: option.effect.as_ref().and_then(checkpoint::recorded_effects),
        extra: Map::new(),
    };
    Some((checkpoint::answered_effect(&response), declared.default_option.as_deref() == Some(&option.id)))
}

/// The definition of an active checkpoint is gone.
pub(super) fn gone(workflow: &Workflow, session_index: &str, active: &ActiveCheckpoint) -> Refusal {
    let command = format!("workflow-server session release {session_index}");
    let advice = format!(
        "Its definition was changed while it waited, so it can be neither shown nor answered, and condition_not_met \
         cannot dismiss it either. Bring the definition back, or let the operator run: {command}"
    );
    match workflow.activity(&active.activity_id) {
        Some(activity) => checkpoint::unknown(activity, &active.checkpoint_id, &advice),
        None => Refusal::new(
            "CHECKPOINT_NOT_FOUND",
            format!(
                "checkpoint `{}` belongs to activity `{}`, which workflow `{}` does not have any more. {advice}",
                active.checkpoint_id,
                active.activity_id,
                workflow.id()
            ),
        )
        .with("checkpoint_id", active.checkpoint_id.as_str())
        .with("activity_id", active.activity_id.as_str()),
    }
    .with("command", command)
}

fn too_early(code: &'static str, active: &ActiveCheckpoint, elapsed: u64, required: u64) -> Refusal {
    let wait = whole_seconds(required.saturating_sub(elapsed));
    let advice = if code == "CHECKPOINT_TOO_FAST" {
        "Show it to the user first and send the user's own answer."
    } else {
        "Ask the user meanwhile; an answer with option_id is possible."
    };
    Refusal::new(
        code,
        format!(
            "checkpoint `{}` was yielded {elapsed} ms ago; at least {required} ms have to pass. {advice} The same call is \
             possible in {wait} s.",
            active.checkpoint_id
        ),
    )
    .retryable()
    .with("elapsed_ms", elapsed)
    .with("required_ms", required)
    .with("retry_after_seconds", wait)
}

fn no_such_option(active: &ActiveCheckpoint, given: &str, valid: &[&str]) -> Refusal {
    Refusal::new(
        "CHECKPOINT_OPTION_INVALID",
        format!(
            "checkpoint `{}` has no option `{given}`; valid: {}. Pass the id of the option that the user chose.",
            active.checkpoint_id,
            valid.join(", ")
        ),
    )
    .with("option_id", given)
    .with("valid", valid.iter().map(|id| Value::from(*id)).collect::<Vec<_>>())
}

fn no_auto_advance(active: &ActiveCheckpoint, missing: &[&str]) -> Refusal {
    Refusal::new(
        "AUTO_ADVANCE_UNAVAILABLE",
        format!(
            "checkpoint `{}` cannot be advanced automatically: it does not declare {}. It needs the user's answer: pass \
             option_id.",
            active.checkpoint_id,
            missing.join(" and ")
        ),
    )
    .with("missing", missing.iter().map(|name| Value::from(*name)).collect::<Vec<_>>())
}

fn bad_default(active: &ActiveCheckpoint, default: &str) -> Refusal {
    Refusal::new(
        "CHECKPOINT_DEFINITION_INVALID",
        format!(
            "checkpoint `{}` of activity `{}` names the default option `{default}`, which is none of its options. Its \
             author has to repair the definition; until then pass option_id.",
            active.checkpoint_id, active.activity_id
        ),
    )
    .with("default_option", default)
}

fn not_conditional(active: &ActiveCheckpoint) -> Refusal {
    Refusal::new(
        "CHECKPOINT_NOT_CONDITIONAL",
        format!(
            "checkpoint `{}` has no structured `condition` (an inline `when` is none), so it cannot be dismissed. Ask the \
             user and pass option_id.",
            active.checkpoint_id
        ),
    )
    .with("missing", "condition")
}
