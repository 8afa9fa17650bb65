//! The advisory checks of what is reported and done: one function per code, those of spec 03 §7 and further ones. They
//! warn and never refuse.

use std::collections::HashSet;

use workflow_corpus::{
    Activity, Checkpoint, Corpus, FileId, FlatStep, Scope, Step, StepKind, TERMINAL, TransitionEntry, ValueType,
    Warning, Workflow, checkpoint_base, claims_match,
};

use crate::{
    checkpoint,
    state::{DeclaredArtifact, Event, Session},
    variable, visit,
};

/// A manifest entry: the step as named, and what it is said to have produced.
pub(crate) struct ManifestEntry<'a> {
    /// Bare or qualified id.
    pub(crate) step: &'a str,
    /// As stored.
    pub(crate) output: &'a str,
}

/// An entry of the activity manifest.
pub(crate) struct OutcomeEntry<'a> {
    /// Activity id.
    pub(crate) activity: &'a str,
    /// How it ended.
    pub(crate) outcome: &'a str,
    /// Condition that is said to have led on.
    pub(crate) condition: Option<&'a str>,
}

fn warning(code: &'static str, message: String) -> Warning {
    Warning { code, message }
}

fn list<T: AsRef<str>>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    items.iter().map(|item| format!("`{}`", item.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `W_FIRST_ACTIVITY`: the workflow says where to begin, and the session begins elsewhere.
pub(crate) fn first_activity(workflow: &Workflow, requested: &str) -> Option<Warning> {
    let expected = workflow.initial_activity.as_deref().filter(|expected| *expected != requested)?;
    Some(warning(
        "W_FIRST_ACTIVITY",
        format!(
            "the workflow begins with activity `{expected}`, but `{requested}` was entered first; if that was not meant, \
             enter `{expected}` now"
        ),
    ))
}

/// `W_TRANSITION`: the target is none that the activity declares. An activity without any route leads only to itself
/// and to the end.
pub(crate) fn transition(activity: &Activity, requested: &str) -> Option<Warning> {
    if requested == activity.id || requested == TERMINAL {
        return None;
    }
    let targets = activity.targets();
    if targets.iter().any(|target| target == requested) {
        return None;
    }
    let message = if targets.is_empty() {
        format!(
            "activity `{}` is the last one: it declares no way on, so `{requested}` was not expected; end with \
             next_activity {{activity_id: \"{TERMINAL}\"}}",
            activity.id
        )
    } else {
        let end = if targets.iter().any(|target| target == TERMINAL) {
            String::new()
        } else {
            format!(" (and `{TERMINAL}` ends the workflow)")
        };
        format!(
            "`{requested}` is no direct transition from `{}`; it leads to {}{end}; if that was not meant, enter one of \
             these now",
            activity.id,
            list(&targets)
        )
    };
    Some(warning("W_TRANSITION", message))
}

/// `W_VERSION_DRIFT`: the definition is no longer the one that the session was started with.
pub(crate) fn version_drift(session: &Session, workflow: &Workflow) -> Option<Warning> {
    let (recorded, current) = (session.workflow_version.as_str(), workflow.version.as_str());
    if recorded.is_empty() || current.is_empty() || recorded == current {
        return None;
    }
    Some(warning(
        "W_VERSION_DRIFT",
        format!(
            "the session was started with version {recorded} of workflow `{}`; the definition is now version {current}",
            session.workflow_id
        ),
    ))
}

/// `W_CONDITION_MISSING`, `W_CONDITION_ON_DEFAULT`, `W_CONDITION_MISMATCH`: the claimed condition against the entries
/// that lead to the target. Any entry that agrees is enough.
pub(crate) fn condition(activity: &Activity, requested: &str, claimed: &str) -> Option<Warning> {
    let entries: Vec<TransitionEntry> =
        activity.transition_entries().into_iter().filter(|entry| entry.to == requested).collect();
    if entries.is_empty() {
        return None;
    }
    let declared: Vec<&str> = entries.iter().filter_map(|entry| entry.condition.as_deref()).collect();
    let unconditional = |entry: &TransitionEntry| entry.is_default || entry.condition.is_none();
    if claimed.is_empty() || claimed == "default" {
        if requested == activity.id || entries.iter().any(unconditional) {
            return None;
        }
        return Some(warning(
            "W_CONDITION_MISSING",
            format!(
                "the transition from `{}` to `{requested}` has a condition, but none was claimed; declared: {}",
                activity.id,
                list(&declared)
            ),
        ));
    }
    if declared.iter().any(|text| claims_match(text, claimed)) {
        return None;
    }
    if entries.iter().all(|entry| entry.condition.is_none() && entry.is_default) {
        return Some(warning(
            "W_CONDITION_ON_DEFAULT",
            format!(
                "the transition from `{}` to `{requested}` is the default one and has no condition, but `{claimed}` \
                 was claimed",
                activity.id
            ),
        ));
    }
    Some(warning(
        "W_CONDITION_MISMATCH",
        format!(
            "the claimed condition `{claimed}` is not the declared text for the transition from `{}` to `{requested}`: \
             {}; pass the declared text character by character",
            activity.id,
            list(&declared)
        ),
    ))
}

/// `W_MANIFEST_ABSENT`: an activity was left without a report of its steps.
pub(crate) fn manifest_absent(left: &str) -> Warning {
    warning(
        "W_MANIFEST_ABSENT",
        format!("no step_manifest was given for activity `{left}`; report its steps as [{{step_id, output}}]"),
    )
}

/// `W_MANIFEST_UNCHECKABLE`: the activity that is reported on is not in the definition any more.
pub(crate) fn manifest_uncheckable(left: &str, workflow: &Workflow) -> Warning {
    warning(
        "W_MANIFEST_UNCHECKABLE",
        format!(
            "the step_manifest of `{left}` could not be checked: workflow `{}` has no such activity now",
            workflow.id()
        ),
    )
}

/// The checks of a step manifest in order: missing, unexpected, order, empty outputs.
pub(crate) fn step_manifest(activity: &Activity, manifest: &[ManifestEntry<'_>]) -> Vec<Warning> {
    let steps = activity.flat_steps();
    let found: Vec<Option<usize>> = manifest.iter().map(|entry| position(activity, &steps, entry.step)).collect();
    let mut warnings = Vec::new();
    warnings.extend(steps_missing(&activity.id, &steps, &found));
    warnings.extend(steps_unexpected(&activity.id, manifest, &found));
    warnings.extend(step_order(&steps, manifest, &found));
    warnings.extend(manifest.iter().filter(|entry| entry.output.trim().is_empty()).map(|entry| {
        let message = format!("step `{}` is reported with an empty output; say shortly what it produced", entry.step);
        warning("W_STEP_EMPTY_OUTPUT", message)
    }));
    warnings
}

/// Position of the step that a manifest id names: a bare id is the first of that id. A checkpoint may also be named as
/// it was yielded, with the round of its loop, or by its base (spec 03 §6.2).
fn position(activity: &Activity, steps: &[FlatStep<'_>], id: &str) -> Option<usize> {
    let named = |id: &str| steps.iter().position(|step| step.step.id == id);
    named(id)
        .or_else(|| steps.iter().position(|step| step.qualified_id == id))
        .or_else(|| named(id.strip_suffix("~1")?))
        .or_else(|| named(&activity.checkpoint(id)?.0.id))
}

fn steps_missing(activity: &str, steps: &[FlatStep<'_>], found: &[Option<usize>]) -> Option<Warning> {
    let missing: Vec<&FlatStep<'_>> = steps
        .iter()
        .enumerate()
        .filter(|(at, step)| step.top_level && !step.gated && !found.contains(&Some(*at)))
        .map(|(_, step)| step)
        .collect();
    let has_loop = missing.iter().any(|step| matches!(step.step.kind, StepKind::Loop(_)));
    let note = if has_loop { " (a loop is a step too: report it under its own id)" } else { "" };
    let ids: Vec<&str> = missing.iter().map(|step| step.qualified_id.as_str()).collect();
    (!ids.is_empty()).then(|| {
        let message = format!("steps of `{activity}` are missing in the step_manifest{note}: {}", list(&ids));
        warning("W_STEPS_MISSING", message)
    })
}

fn steps_unexpected(activity: &str, manifest: &[ManifestEntry<'_>], found: &[Option<usize>]) -> Option<Warning> {
    let mut unknown: Vec<&str> = Vec::new();
    for (entry, _) in manifest.iter().zip(found).filter(|(_, at)| at.is_none()) {
        if !unknown.contains(&entry.step) {
            unknown.push(entry.step);
        }
    }
    (!unknown.is_empty()).then(|| {
        let message = format!("the step_manifest names steps that `{activity}` does not have: {}", list(&unknown));
        warning("W_STEPS_UNEXPECTED", message)
    })
}

fn step_order(steps: &[FlatStep<'_>], manifest: &[ManifestEntry<'_>], found: &[Option<usize>]) -> Vec<Warning> {
    let recognised: Vec<(usize, &str)> = manifest
        .iter()
        .zip(found)
        .filter_map(|(entry, at)| at.map(|at| (at, entry.step)))
        // A round belongs into a loop, whichever checkpoint of its base it was read as.
        .filter(|(at, id)| steps[*at].top_level && !names_round(steps[*at].step, id))
        .collect();
    recognised
        .windows(2)
        .filter(|pair| pair[1].0 < pair[0].0)
        .map(|pair| {
            warning(
                "W_STEP_ORDER",
                format!("step `{}` is reported after `{}`, but comes before it in the activity", pair[1].1, pair[0].1),
            )
        })
        .collect()
}

/// `W_NO_FETCH`: a manifested technique step whose technique nobody received during this visit. A delivery for that
/// step counts, and so does any delivery that ended at the same file.
pub(crate) fn no_fetch(
    corpus: &Corpus,
    session: &Session,
    activity: &Activity,
    manifest: &[ManifestEntry<'_>],
) -> Option<Warning> {
    let deliveries: Vec<_> = session.history[visit::start(session, Some(activity))..]
        .iter()
        .filter(|event| matches!(event.kind(), "technique_fetched" | "technique_bundled"))
        .collect();
    let bound = Scope { executing: &activity.source, activity: Some(&activity.id) };
    let plain = Scope { executing: &activity.source, activity: None };
    let file = |reference: &str, scope: &Scope<'_>| corpus.resolve(reference, scope).ok().map(|found| found.file);
    let delivered_steps: HashSet<&str> = deliveries.iter().filter_map(|event| event.data_text("stepId")).collect();
    let delivered_files: HashSet<FileId> = deliveries
        .iter()
        .filter_map(|event| event.data_text("techniqueId"))
        // the recorded id is the one that succeeded; only the original recorded ids that need the activity's group
        .filter_map(|id| file(id, &plain).or_else(|| file(id, &bound)))
        .collect();
    let steps = activity.flat_steps();
    let mut uncovered: Vec<&str> = Vec::new();
    for entry in manifest {
        let Some(step) = position(activity, &steps, entry.step).map(|at| &steps[at]) else { continue };
        let StepKind::Technique { binding, .. } = &step.step.kind else { continue };
        let by_step = delivered_steps.contains(step.qualified_id.as_str());
        let covered = by_step || file(&binding.name, &bound).is_some_and(|file| delivered_files.contains(&file));
        if !covered && !uncovered.contains(&entry.step) {
            uncovered.push(entry.step);
        }
    }
    (!uncovered.is_empty()).then(|| {
        warning(
            "W_NO_FETCH",
            format!(
                "steps of `{}` are reported as done, but during this visit nobody was given their techniques as bound to \
                 them: {}; load a technique (get_technique {{step_id}}) before carrying out its step",
                activity.id,
                list(&uncovered)
            ),
        )
    })
}

/// `W_CHECKPOINT_NOT_YIELDED`: a manifested checkpoint that nobody yielded during this visit, so that nobody was asked.
/// A round that is named is that round; else any of the same base will do.
pub(crate) fn not_yielded(session: &Session, activity: &Activity, manifest: &[ManifestEntry<'_>]) -> Option<Warning> {
    let yields = session.history[visit::start(session, Some(activity))..].iter().filter(|event| {
        event.activity() == activity.id
            && matches!(event.kind(), "checkpoint_reached" | "checkpoint_replayed" | "checkpoint_response")
    });
    let asked: HashSet<&str> = yields.map(Event::checkpoint).collect();
    let bases: HashSet<&str> = asked.iter().map(|id| checkpoint_base(id)).collect();
    let mut passed: Vec<&str> = Vec::new();
    for (entry, step, _) in reported_checkpoints(activity, manifest) {
        let was_asked =
            asked.contains(entry.step) || !names_round(step, entry.step) && bases.contains(checkpoint_base(entry.step));
        if !was_asked && !passed.contains(&entry.step) {
            passed.push(entry.step);
        }
    }
    (!passed.is_empty()).then(|| {
        warning(
            "W_CHECKPOINT_NOT_YIELDED",
            format!(
                "checkpoints of `{}` are reported as done, but nobody yielded them, so during this visit nobody was asked: \
                 {}; yield a checkpoint (yield_checkpoint {{checkpoint_id}}) and wait for its answer, or leave it out of \
                 the step_manifest if its condition did not hold",
                activity.id,
                list(&passed)
            ),
        )
    })
}

/// `W_ANSWER_MISREPORTED`: a manifested checkpoint that is said to have been answered with an option which nobody chose.
/// Only a text that is the id of an option says that; any other is a summary.
pub(crate) fn misreported(session: &Session, activity: &Activity, manifest: &[ManifestEntry<'_>]) -> Vec<Warning> {
    let answers: Vec<_> = answers(session, activity).collect();
    let mut warnings = Vec::new();
    for (entry, step, declared) in reported_checkpoints(activity, manifest) {
        let names_round = names_round(step, entry.step);
        let is_meant =
            |asked: &str| asked == entry.step || !names_round && checkpoint_base(asked) == checkpoint_base(entry.step);
        let mut chosen: Vec<&str> = Vec::new();
        for answer in answers.iter().filter(|answer| is_meant(answer.checkpoint())) {
            let option = answer.data_text("optionId").unwrap_or_default();
            if !chosen.contains(&option) {
                chosen.push(option);
            }
        }
        let said = entry.output.trim();
        let is_option = declared.options.iter().any(|option| option.id == said);
        if !is_option || chosen.is_empty() || chosen.contains(&said) {
            continue;
        }
        chosen.retain(|option| *option != checkpoint::DISMISSED);
        let recorded = if chosen.is_empty() {
            "it was dismissed, as its condition did not hold; report that".to_owned()
        } else {
            format!("the recorded answer is {}; report and follow that one", list(&chosen))
        };
        warnings.push(warning(
            "W_ANSWER_MISREPORTED",
            format!(
                "the step_manifest says that checkpoint `{}` was answered with `{said}`, but {recorded}",
                entry.step
            ),
        ));
    }
    warnings
}

/// `W_ANSWER_IGNORED`: of the answers that count in this visit, the newest that leads somewhere leads elsewhere.
pub(crate) fn answer_ignored(
    session: &Session,
    workflow: &Workflow,
    activity: &Activity,
    requested: &str,
) -> Option<Warning> {
    if requested == activity.id {
        return None;
    }
    // A replay counts as old as its answer is.
    let newest = answers(session, activity)
        .filter_map(|event| {
            let answer = session.checkpoint_responses.get(&checkpoint::key(event.activity(), event.checkpoint()))?;
            let is_it = event.data_text("optionId") == Some(&answer.option_id);
            let target = checkpoint::transition_of(answer).filter(|_| is_it)?;
            Some((answer.responded_at.as_str(), event.checkpoint(), answer.option_id.as_str(), target))
        })
        .max_by_key(|(responded_at, ..)| *responded_at);
    let (_, asked, option, target) = newest?;
    let is_there = target == TERMINAL || workflow.activity(target).is_some();
    (target != requested && is_there).then(|| {
        warning(
            "W_ANSWER_IGNORED",
            format!(
                "checkpoint `{asked}` was answered with `{option}`, which leads from `{}` to `{target}`, but `{requested}` \
                 was entered; an answer goes before every other route",
                activity.id
            ),
        )
    })
}

/// The entries of a manifest that name checkpoints, with what they name.
fn reported_checkpoints<'m>(
    activity: &'m Activity,
    manifest: &'m [ManifestEntry<'m>],
) -> impl Iterator<Item = (&'m ManifestEntry<'m>, &'m Step, &'m Checkpoint)> {
    let steps = activity.flat_steps();
    manifest.iter().filter_map(move |entry| {
        let step = steps[position(activity, &steps, entry.step)?].step;
        match &step.kind {
            StepKind::Checkpoint(declared) => Some((entry, step, declared)),
            _ => None,
        }
    })
}

/// Does this name of a checkpoint say which round of its loop is meant?
fn names_round(declared: &Step, id: &str) -> bool {
    id.contains('#') && id != declared.id
}

/// The answers given or replayed during this visit of an activity.
fn answers<'s>(session: &'s Session, activity: &Activity) -> impl Iterator<Item = &'s Event> + use<'s> {
    let id = activity.id.clone();
    session.history[visit::start(session, Some(activity))..].iter().filter(move |event| {
        event.activity() == id && matches!(event.kind(), "checkpoint_response" | "checkpoint_replayed")
    })
}

/// `W_ACTIVITY_MANIFEST_EMPTY`, `W_ACTIVITY_UNKNOWN`, `W_OUTCOME_EMPTY`, `W_ACTIVITY_CONDITION`.
pub(crate) fn activity_manifest(workflow: &Workflow, manifest: &[OutcomeEntry<'_>]) -> Vec<Warning> {
    if manifest.is_empty() {
        let message = "activity_manifest is an empty list; leave it out when there is nothing to report".to_owned();
        return vec![warning("W_ACTIVITY_MANIFEST_EMPTY", message)];
    }
    let mut warnings = Vec::new();
    for entry in manifest {
        let activity = workflow.activity(entry.activity);
        if activity.is_none() {
            let message = format!(
                "the activity_manifest names `{}`, which is no activity of workflow `{}`",
                entry.activity,
                workflow.id()
            );
            warnings.push(warning("W_ACTIVITY_UNKNOWN", message));
        }
        if entry.outcome.trim().is_empty() {
            let message = format!("the activity_manifest gives no outcome for `{}`", entry.activity);
            warnings.push(warning("W_OUTCOME_EMPTY", message));
        }
        if let (Some(activity), Some(claimed)) = (activity, entry.condition.filter(|claimed| !claimed.is_empty())) {
            warnings.extend(activity_condition(activity, claimed));
        }
    }
    warnings
}

fn activity_condition(activity: &Activity, claimed: &str) -> Option<Warning> {
    let entries = activity.transition_entries();
    let agrees = |entry: &TransitionEntry| match &entry.condition {
        Some(declared) => claims_match(declared, claimed) || (entry.is_default && claimed == "default"),
        None => claimed == "default",
    };
    if entries.is_empty() || entries.iter().any(agrees) {
        return None;
    }
    let declared: Vec<&str> = entries.iter().map(|entry| entry.condition.as_deref().unwrap_or("default")).collect();
    Some(warning(
        "W_ACTIVITY_CONDITION",
        format!(
            "the activity_manifest says that `{}` was left by `{claimed}`, which is none of its conditions: {}",
            activity.id,
            list(&declared)
        ),
    ))
}

/// `W_VARIABLE_TYPE`: a value of another type than declared was stored.
pub(crate) fn variable_type(source: &str, name: &str, found: &str, declared: ValueType) -> Warning {
    warning(
        "W_VARIABLE_TYPE",
        format!(
            "{source}: variable `{name}` is declared as {} but got a value of type {found}; stored as written",
            variable::type_name(declared)
        ),
    )
}

/// `W_VARIABLE_UNDECLARED`: a name that no variable has and one nearly has.
pub(crate) fn variable_misspelt(source: &str, name: &str, meant: &str) -> Warning {
    warning(
        "W_VARIABLE_UNDECLARED",
        format!("{source}: no variable `{name}` is declared; did you mean `{meant}`? It was stored as written"),
    )
}

/// `W_ARTIFACT_OUTSIDE`: a reported artifact lies elsewhere than in the planning folder.
pub(crate) fn artifact_outside(id: &str, path: &str, folder: &str) -> Option<Warning> {
    let inside = if path.starts_with('/') {
        within(&normal(path), &normal(folder))
    } else {
        // a relative path is one below the planning folder
        !normal(path).starts_with("..")
    };
    (!inside).then(|| {
        warning(
            "W_ARTIFACT_OUTSIDE",
            format!("artifact `{id}` lies outside the planning folder {folder}: {path}; its state is unknown here"),
        )
    })
}

/// `W_ARTIFACT_UNDECLARED`: files of the planning folder that match no reported artifact.
pub(crate) fn artifacts_undeclared(files: &[String], declared: &[DeclaredArtifact]) -> Option<Warning> {
    const OWN: [&str; 2] = ["session.json", "README.md"];
    let matches = |file: &str| {
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let plain = |name: &str| name.strip_suffix(".md").unwrap_or(name).to_owned();
        declared.iter().any(|artifact| {
            [artifact.name.as_str(), artifact.id.as_str()]
                .iter()
                .any(|known| file == *known || stem == *known || stem == plain(known) || file == plain(known))
                || file.contains(&artifact.id)
        })
    };
    let stray: Vec<&String> =
        files.iter().filter(|file| !file.starts_with('.') && !OWN.contains(&file.as_str()) && !matches(file)).collect();
    (!stray.is_empty()).then(|| {
        warning(
            "W_ARTIFACT_UNDECLARED",
            format!(
                "the planning folder holds files that no reported artifact covers: {}; report them via \
                 artifacts_produced",
                list(&stray)
            ),
        )
    })
}

fn within(path: &str, folder: &str) -> bool {
    path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The path with `.` and `..` worked out, without looking at any disk.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}
