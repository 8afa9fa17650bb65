//! Death of the process and of the machine, at every operation of every mutating tool.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::machine::{Defect, Image, Machine};
use crate::promise::{Expected, Told, check, goes_on};
use crate::scenario::{Call, Content, Process, SCENARIOS, Scenario, content, ready};

/// Of the disks that a failure leaves, each so manieth is worked on further; with `WORKFLOW_TEST_LONG` all are.
const STRIDE: usize = 4;

/// Whether there is time for everything.
pub(crate) fn takes_long() -> bool {
    std::env::var_os("WORKFLOW_TEST_LONG").is_some()
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Operations at which something happened.
    pub(crate) points: usize,
    /// Disks that were opened afterwards.
    pub(crate) disks: usize,
}

/// One recorded call.
struct Run {
    /// The disk before it, and after each operation that changes something.
    images: Vec<Image>,
    /// Halves of writes.
    acknowledged: bool,
    after: Content,
    syncs: BTreeSet<String>,
}

fn record(image: &Image, call: &Call, defect: &Defect) -> Result<Run, String> {
    let process = Process::on(Machine::on(image, defect, true));
    let outcome = process.call(call);
    let mut images = vec![image.clone()];
    images.extend(process.machine.images());
    let syncs = process.machine.operations().into_iter().filter_map(|operation| operation.kind).collect();
    let after = content(&Process::on(Machine::on(&process.machine.image(), defect, false)))?;
    Ok(Run { images, acknowledged: !outcome.is_error, after, syncs })
}

/// What became of a scenario, and the kinds of syncs that it made.
fn explore(scenario: &Scenario, defect: &Defect, tally: &mut Tally) -> Result<BTreeSet<String>, String> {
    let (image, call) = ready(scenario);
    let before = content(&Process::fresh(&image))?;
    let run = record(&image, &call, defect)?;
    if !run.acknowledged {
        return Err("the call is refused without any failure".to_owned());
    }
    let expected = Expected::of(&[&before, &run.after]);
    let mut seen = BTreeSet::new();
    let stride = if takes_long() { 1 } else { STRIDE };
    let last = run.images.len() - 1;
    for (nth, image) in run.images.iter().enumerate() {
        tally.points += 1;
        let acknowledged = nth == last;
        let mut disks = vec![image.after_death(defect)];
        disks.extend(image.after_power_cut(defect));
        for disk in disks {
            if !seen.insert((disk.fingerprint(), acknowledged)) {
                continue;
            }
            tally.disks += 1;
            let at = |problem: String| format!("{}, after {nth} changes of {last}: {problem}", scenario.name);
            check(&disk, &expected, if acknowledged { Told::All } else { Told::Nothing }, defect).map_err(at)?;
            if tally.disks.is_multiple_of(stride) {
                goes_on(&disk, &call, &expected, defect).map_err(at)?;
            }
        }
    }
    let mut syncs = run.syncs;
    if nested(scenario) {
        syncs.extend(explore_twice(scenario, &call, &run.images, &before, &run.after, defect, tally)?);
    }
    Ok(syncs)
}

/// Scenarios whose recovery is interrupted as well.
fn nested(scenario: &Scenario) -> bool {
    [
        "next_activity",
        "start_session: an own-folder child",
        "dispatch_child: promoting",
        "start_session: fresh",
        "start_session: the first ever, with a new key",
        "dispatch_child: replacing",
    ]
    .contains(&scenario.name)
}

/// The process dies at each change; the next one makes the call again, or another one, and then the power goes off at
/// each of its changes. What it acknowledged was there for good, whoever wrote it.
fn explore_twice(
    scenario: &Scenario,
    call: &Call,
    images: &[Image],
    before: &Content,
    after: &Content,
    defect: &Defect,
    tally: &mut Tally,
) -> Result<BTreeSet<String>, String> {
    let mut syncs = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let touched = after.sessions.iter().filter(|(folder, state)| before.sessions.get(*folder) != Some(*state));
    let slug = touched.map(|(folder, _)| folder.as_str()).find(|folder| !folder.starts_with("transient/"));
    let resume = Call {
        tool: "start_session",
        arguments: json!({"planning_slug": slug.unwrap_or("alpha"), "user_request": "Go on"}),
    };
    let step = if takes_long() { 1 } else { 2 };
    for (first, died) in images.iter().enumerate().rev().step_by(step) {
        let died = died.after_death(defect);
        for (next, only) in [(call, Told::All), (&resume, slug.map_or(Told::Nothing, Told::Folder))] {
            let at = |problem: String| {
                format!("{}, death after {first} changes, then {}{problem}", scenario.name, next.tool)
            };
            let run = record(&died, next, defect).map_err(|problem| at(format!(": {problem}")))?;
            if !run.acknowledged {
                continue;
            }
            let expected = Expected::of(&[before, after, &run.after]);
            syncs.extend(run.syncs.iter().cloned());
            let last = run.images.len() - 1;
            for (nth, image) in run.images.iter().enumerate() {
                tally.points += 1;
                for disk in image.after_power_cut(defect) {
                    if !seen.insert((disk.fingerprint(), nth == last, run.after.sessions.clone())) {
                        continue;
                    }
                    tally.disks += 1;
                    let told = if nth == last { only } else { Told::Nothing };
                    check(&disk, &expected, told, defect)
                        .map_err(|problem| at(format!(", power cut after {nth} of {last}: {problem}")))?;
                }
            }
        }
    }
    Ok(syncs)
}

/// Nothing acknowledged is lost at any operation of any tool; and without any one of the syncs, without the pending
/// seal, or without recovery, something is.
#[test]
fn death_and_power_cuts_lose_nothing_and_every_part_of_the_protocol_is_needed() {
    let mut tally = Tally::default();
    let mut problems = Vec::new();
    let mut kinds: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (nth, scenario) in SCENARIOS.iter().enumerate() {
        let old = tally;
        match explore(scenario, &Defect::None, &mut tally) {
            Ok(syncs) => {
                for kind in syncs {
                    kinds.entry(kind).or_default().push(nth);
                }
            }
            Err(problem) => problems.push(problem),
        }
        println!("{:>6} points {:>6} disks  {}", tally.points - old.points, tally.disks - old.disks, scenario.name);
    }
    println!("{} points, {} different disks opened", tally.points, tally.disks);
    assert!(problems.is_empty(), "{}", problems.join("\n"));

    let all: Vec<usize> = (0..SCENARIOS.len()).collect();
    let mut defects = vec![(Defect::Pending, all.clone()), (Defect::Recovery, all)];
    defects.extend(kinds.into_iter().map(|(kind, at)| (Defect::Sync(kind), at)));
    for (defect, scenarios) in &defects {
        let explored = |nth: &usize| explore(&SCENARIOS[*nth], defect, &mut Tally::default()).err();
        let found = scenarios.iter().rev().find_map(explored);
        let name = match defect {
            Defect::Sync(kind) => kind,
            Defect::Pending => "pending seal",
            Defect::None | Defect::Recovery => "recovery",
        };
        println!(
            "without {name}: {}",
            found.as_deref().unwrap_or("nobody notices").chars().take(160).collect::<String>()
        );
        problems.extend(found.is_none().then(|| format!("nobody notices that there is no {name}")));
    }
    println!("{} defects", defects.len());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
