//! How much is delivered: a full walk of every workflow in both context modes, and one worker for several activities
//! against one worker each.
//!
//! While it measures, it asserts what every reader and every budget relies on (see [`session`]).

mod session;

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};
use workflow_corpus::{Activity, FlatStep, StepKind, Workflow};
use workflow_mcp::Outcome;

use self::session::{Bench, Session, Sizes};

/// Directories of definitions, separated by colons.
const CORPORA: &str = "WORKFLOW_TEST_CORPORA";

/// What an agent that walks a workflow says of its context window.
const CONTEXT_TOKENS: u64 = 200_000;

/// What a worker of several activities says of it: enough for the resources, which spend the budget of a batch too.
const BATCH_TOKENS: u64 = 400_000;

/// The workflow whose activities are batched.
const BATCHED: &str = "work-package";

/// The corpus whose batches are held to the limit; others are shown beside it.
const LIMITED: &str = "2026-08";

/// A run that the specification has figures of (spec 02 §14.1); beside it stand the first three activities.
const PUBLISHED_RUN: [&str; 3] = ["implementation-analysis", "plan-prepare", "assumptions-review"];

/// What a batch may cost at most, in percent of the same activities delivered to a worker each.
const BATCH_LIMIT: u64 = 75;

/// Prints the tables for the corpora that `WORKFLOW_TEST_CORPORA` names, and writes them into the documentation.
///
/// # Errors
/// A figure that breaks one of the promises.
pub(crate) fn run(write: bool) -> anyhow::Result<()> {
    let corpora: Vec<PathBuf> = env::var_os(CORPORA).iter().flat_map(env::split_paths).collect();
    let corpora: Vec<PathBuf> = corpora.into_iter().filter(|path| !path.as_os_str().is_empty()).collect();
    if corpora.is_empty() {
        return crate::print(&format!("nothing to measure: {CORPORA} names no directories\n"));
    }
    let text = page(&corpora)?;
    if write {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sizes.md");
        fs::write(&path, &text).with_context(|| format!("writing {}", path.display()))?;
    }
    crate::print(&text)
}

const PREFACE: &str = "\
# Sizes

Written by `cargo xtask sizes --write` from the corpora that `WORKFLOW_TEST_CORPORA` names; do not edit.

All figures are characters (UTF-16 code units) of answers, without their `batch` and `validation` blocks, for a declared
context of 200,000 tokens. Folders count as their last name.

One agent walks all activities of a workflow in served order: `get_workflow` once, then for each activity `get_activity`,
`get_technique` for every step that did not come with it, and `get_resource` for every resource that a step's technique
links to, once. In a persistent session what the agent holds comes as a marker.

The measurement fails unless in every walk each marker names the hash of content that the same agent received in full
before, no answer without reference delivery holds a marker, the sizes recorded in the session add up to what was sent,
and a persistent session of more than one activity delivers no more than a fresh one.
";

fn page(corpora: &[PathBuf]) -> anyhow::Result<String> {
    let mut text = PREFACE.to_owned();
    let mut batches = String::new();
    for path in corpora {
        let bench = Bench::over(path)?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let _ = write!(text, "\n## {name}\n\n{}", walks(&bench)?);
        if let Ok(workflow) = bench.corpus.workflow(BATCHED) {
            batches.push_str(&runs(&bench, &name, &workflow)?);
        }
    }
    if !batches.is_empty() {
        let _ = write!(
            text,
            "\n## One worker for three activities\n\n`{BATCHED}`: `get_activity` for each, `get_technique` for every step \
             that did not come with it, and once per\nworker `get_resource` for every resource that a step's technique links \
             to. Standalone: a worker each, in full. Batched:\none worker that passes `bundle: reference`. All declare a \
             context of {} tokens. The measurement fails if a batch\nof {LIMITED} costs more than {BATCH_LIMIT} % of its \
             standalone run, by `get_activity` alone or by everything delivered.\n\n\
             | corpus | activities | | get_activity | sum | share | get_technique | get_resource | delivered | share |\n\
             |---|---|---|--:|--:|--:|--:|--:|--:|--:|\n{batches}",
            grouped(BATCH_TOKENS)
        );
    }
    Ok(text)
}

fn walks(bench: &Bench) -> anyhow::Result<String> {
    let mut text = "| workflow | activities | mode | get_workflow | get_activity | get_technique | get_resource | \
                    delivered | of fresh |\n|---|--:|---|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let mut sums = [Sizes::default(), Sizes::default()];
    let mut count = 0;
    for id in bench.corpus.workflow_ids() {
        let Ok(workflow) = bench.corpus.workflow(&id) else { continue };
        let fresh = walk(bench, &workflow, false).with_context(|| format!("{id}, fresh"))?;
        let persistent = walk(bench, &workflow, true).with_context(|| format!("{id}, persistent"))?;
        let (less, more) = (persistent.sum(), fresh.sum());
        // With a single activity there is nothing to refer back to, and the note on markers still goes out.
        let comparable = workflow.activities.len() > 1;
        ensure!(
            !comparable || less <= more,
            "{id}: a persistent session delivers {less} characters, a fresh one {more}"
        );
        rows(&mut text, &format!("`{id}`"), workflow.activities.len(), &[fresh, persistent]);
        for (sum, sizes) in sums.iter_mut().zip([fresh, persistent]) {
            sum.add(sizes);
        }
        count += workflow.activities.len();
    }
    rows(&mut text, "**all**", count, &sums);
    Ok(text)
}

fn rows(text: &mut String, name: &str, activities: usize, walks: &[Sizes; 2]) {
    for (mode, sizes) in ["fresh", "persistent"].into_iter().zip(walks) {
        let _ = write!(text, "| {name} | {activities} | {mode} |");
        for chars in [sizes.workflow, sizes.activity, sizes.technique, sizes.resource, sizes.sum()] {
            let _ = write!(text, " {} |", grouped(chars));
        }
        let _ = writeln!(text, " {} |", share(sizes.sum(), walks[0].sum()));
    }
}

/// One agent takes everything that a workflow has for it.
fn walk(bench: &Bench, workflow: &Workflow, persistent: bool) -> anyhow::Result<Sizes> {
    let mut session = Session::start(bench, workflow.id(), persistent)?;
    session.deliver("get_workflow", json!({}))?;
    let mut agent = Agent { tokens: CONTEXT_TOKENS, ..Agent::default() };
    for activity in &workflow.activities {
        session.call("next_activity", json!({"activity_id": activity.id}))?;
        agent.take(&mut session, workflow, activity)?;
    }
    session.check_recorded_sizes()?;
    Ok(session.sizes)
}

/// Rows for the runs of three activities that a corpus has.
fn runs(bench: &Bench, corpus: &str, workflow: &Workflow) -> anyhow::Result<String> {
    let ids: Vec<&str> = workflow.activities.iter().map(|activity| activity.id.as_str()).collect();
    let mut text = String::new();
    for run in [&ids[..ids.len().min(3)], &PUBLISHED_RUN] {
        let activities: Option<Vec<_>> = run.iter().map(|id| workflow.activity(id)).collect();
        let Some(activities) = activities else { continue };
        let (_, whole) = deliveries(bench, workflow, &activities, false)?;
        let names = run.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
        for (mode, batched) in [("standalone", false), ("batched", true)] {
            let (activities, taken) = deliveries(bench, workflow, &activities, batched)?;
            for (what, part, whole) in
                [("get_activity", taken.activity, whole.activity), ("everything", taken.sum(), whole.sum())]
            {
                ensure!(
                    corpus != LIMITED || !batched || part * 100 <= whole * BATCH_LIMIT,
                    "{corpus}: {what} of {names} costs {part} characters in a batch, {whole} standalone: more than \
                     {BATCH_LIMIT} %"
                );
            }
            let _ = write!(text, "| {corpus} | {names} | {mode} |");
            let each = activities.into_iter().map(grouped).collect::<Vec<_>>().join(" / ");
            let _ = write!(text, " {each} | {} | {} |", grouped(taken.activity), share(taken.activity, whole.activity));
            let _ = write!(text, " {} | {} |", grouped(taken.technique), grouped(taken.resource));
            let _ = writeln!(text, " {} | {} |", grouped(taken.sum()), share(taken.sum(), whole.sum()));
        }
    }
    Ok(text)
}

/// Delivers activities: each to a worker of its own in full, or all to one that refers back.
/// Answers what `get_activity` cost by activity, and all that was delivered by tool.
fn deliveries(
    bench: &Bench,
    workflow: &Workflow,
    run: &[&Arc<Activity>],
    batched: bool,
) -> anyhow::Result<(Vec<u64>, Sizes)> {
    let mut session = Session::start(bench, workflow.id(), false)?;
    let mut activities = Vec::new();
    let mut agent = Agent::default();
    for (number, activity) in run.iter().enumerate() {
        if !batched || number == 0 {
            let name = format!("worker-{number}");
            let mode = if batched { "reference" } else { "full" };
            let passed = [("agent_id".to_owned(), name.into()), ("bundle".to_owned(), mode.into())];
            agent = Agent { passed: passed.into_iter().collect(), tokens: BATCH_TOKENS, resources: Vec::new() };
        }
        session.call("next_activity", json!({"activity_id": activity.id}))?;
        let before = session.sizes.activity;
        agent.take(&mut session, workflow, activity)?;
        activities.push(session.sizes.activity - before);
    }
    session.check_recorded_sizes()?;
    Ok((activities, session.sizes))
}

/// An agent that takes what activities have for it.
#[derive(Default)]
struct Agent {
    /// What it passes with every call.
    passed: Map<String, Value>,
    /// The context window it declares, in tokens.
    tokens: u64,
    /// The resources that it has had.
    resources: Vec<String>,
}

impl Agent {
    /// Takes an activity, the steps that did not come with it, and the resources of its steps that are new.
    fn take(&mut self, session: &mut Session<'_>, workflow: &Workflow, activity: &Activity) -> anyhow::Result<()> {
        let corpus = &session.bench.corpus;
        let with = |name: &str, value: Value| {
            let mut arguments = self.passed.clone();
            arguments.insert(name.to_owned(), value);
            Value::Object(arguments)
        };
        let answer = session.deliver("get_activity", with("context_tokens", self.tokens.into()))?;
        let lazy: Vec<String> = lazy_steps(&answer, activity).into_iter().map(|step| step.qualified_id).collect();
        for step in activity.flat_steps() {
            let Ok(composed) = corpus.step_technique(workflow, activity, &step) else { continue };
            if lazy.contains(&step.qualified_id) {
                session.deliver("get_technique", with("step_id", step.qualified_id.into()))?;
            }
            for id in &composed.resources {
                if !self.resources.contains(id) && corpus.resource(workflow, id).is_ok() {
                    self.resources.push(id.clone());
                    session.deliver("get_resource", with("resource_id", id.as_str().into()))?;
                }
            }
        }
        Ok(())
    }
}

/// The technique steps that did not come with an activity.
fn lazy_steps<'a>(answer: &Outcome, activity: &'a Activity) -> Vec<FlatStep<'a>> {
    let bundled = answer.meta.as_ref().and_then(|meta| meta.get("bundled_steps")).and_then(|ids| ids.as_array());
    let came = |step: &FlatStep<'_>| bundled.is_some_and(|ids| ids.iter().any(|id| *id == step.qualified_id.as_str()));
    let steps = activity.flat_steps().into_iter();
    steps.filter(|step| matches!(step.step.kind, StepKind::Technique { .. }) && !came(step)).collect()
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Percent with one decimal.
fn share(part: u64, whole: u64) -> String {
    let tenths = (part * 2000 + whole) / (2 * whole).max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!((grouped(0), grouped(999), grouped(1_234_567)), ("0".into(), "999".into(), "1,234,567".into()));
        assert_eq!((share(1, 3), share(3, 3), share(0, 0)), ("33.3 %".into(), "100.0 %".into(), "0.0 %".into()));
    }

    #[test]
    fn the_bundled_workflows_keep_the_promises() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
        let text = page(&[corpus]).expect("every promise is kept");
        assert!(text.contains("| `quick-tour` |") && text.contains("| persistent |"), "{text}");
    }
}
