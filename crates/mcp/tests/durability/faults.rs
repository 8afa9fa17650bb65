//! Every file operation of every mutating tool fails, in every way: what is said is what is on the disk.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use serde_json::Value;
use workflow_mcp::Outcome;

use crate::machine::{Defect, Fault, Image, Machine};
use crate::power::takes_long;
use crate::promise::{Expected, Told, goes_on, index};
use crate::scenario::{Call, Content, Process, SCENARIOS, Scenario, content, ready};

/// EIO, ENOSPC, EROFS, EACCES.
const KINDS: [ErrorKind; 4] =
    [ErrorKind::Other, ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied];

/// Of the faults of an operation each so manieth is tried, another one at each operation; all with
/// `WORKFLOW_TEST_LONG`.
const STRIDE: usize = 3;

/// Codes with which a call says that it could not read or write something.
const TOLD: &[&str] = &[
    "WRITE_FAILED",
    "KEY_UNREADABLE",
    "KEY_NOT_WRITABLE",
    "WORKSPACE_INVALID",
    "SESSION_NOT_FOUND",
    "SESSION_UNREADABLE",
    "PARENT_NOT_FOUND",
];

fn faults(changes: bool) -> Vec<Fault> {
    let interrupted = ErrorKind::Interrupted;
    if !changes {
        return vec![Fault::Refuse(interrupted), Fault::Refuse(KINDS[0]), Fault::Refuse(KINDS[3])];
    }
    let mut faults = vec![Fault::Refuse(interrupted), Fault::DoneButFailed(interrupted)];
    faults.extend(KINDS.into_iter().flat_map(|kind| [Fault::Refuse(kind), Fault::DoneButFailed(kind)]));
    faults
}

/// A content without what differs from run to run: minted slugs, indexes of new sessions, the answer kept for retries.
fn comparable(content: &Content, before: &Content) -> Content {
    let mut plain = Content { backups: content.backups.clone(), seals: content.seals.clone(), ..Content::default() };
    let strip = |state: &str| {
        let Ok(mut state) = serde_json::from_str(state) else { return "half a state".to_owned() };
        forget_last_call(&mut state);
        state.to_string()
    };
    for (folder, state) in &content.sessions {
        let (mut name, mut text) = (folder.clone(), strip(state));
        if before.sessions.values().all(|known| index(known) != index(state)) {
            text = text.replace(&index(state), "AAAAAA");
            if name.starts_with("transient/") {
                "transient/new".clone_into(&mut name);
            }
        }
        plain.sessions.insert(name, text);
    }
    plain.backups.iter_mut().for_each(|(state, _)| *state = strip(state));
    plain
}

fn forget_last_call(state: &mut Value) {
    match state {
        Value::Object(members) => {
            members.shift_remove("lastCall");
            members.values_mut().for_each(forget_last_call);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_last_call),
        _ => {}
    }
}

fn code(outcome: &Outcome) -> &str {
    outcome.meta.as_ref().and_then(|meta| meta.get("error")?.get("code")?.as_str()).unwrap_or_default()
}

struct Bench {
    image: Image,
    call: Call,
    before: Content,
    expected: Expected,
    /// Folders and states of a call that its parent is not told of yet.
    told: Vec<(String, String)>,
    after: Content,
}

impl Bench {
    /// Makes one operation go wrong; says what the call answered, and what is wrong with it.
    fn strike(&self, at: usize, fault: Fault, further: bool) -> (String, Result<(), String>) {
        let process = Process::on(Machine::on(&self.image, &Defect::None, false));
        process.machine.fail(at, fault);
        let outcome = process.call(&self.call);
        let disk = process.machine.image();
        let answer = if outcome.is_error { code(&outcome).to_owned() } else { "success".to_owned() };
        (answer, self.judge(&outcome, &disk, fault, further))
    }

    fn judge(&self, outcome: &Outcome, disk: &Image, fault: Fault, further: bool) -> Result<(), String> {
        let found = content(&Process::fresh(disk))?;
        let plain = comparable(&found, &self.before);
        if outcome.is_error {
            self.expected.judge(&plain, Told::Nothing)?;
            let detail = outcome.meta.as_ref().and_then(|meta| meta.get("error")?.get("details")?.get("changed"));
            let same = plain.sessions == comparable(&self.before, &self.before).sessions;
            if detail == Some(&Value::Bool(false)) && !same {
                return Err(format!("it says that nothing was changed: {}", outcome.text));
            }
            let unread = code(outcome) == "SESSION_CORRUPT" && outcome.text.contains("could not be read");
            if !TOLD.contains(&code(outcome)) && !unread {
                return Err(format!("a strange answer: {}", outcome.text));
            }
            if fault == Fault::Refuse(ErrorKind::Interrupted) {
                return Err(format!("an interruption is no failure: {}", outcome.text));
            }
        } else if outcome.text.contains("was not told") {
            self.expected.judge(&plain, Told::Nothing)?;
            if let Some((folder, _)) =
                self.told.iter().find(|(folder, state)| plain.sessions.get(folder) != Some(state))
            {
                return Err(format!("{folder} was acknowledged and is lost"));
            }
        } else {
            self.expected.judge(&plain, Told::All)?;
        }
        if further {
            goes_on(disk, &self.call, &Expected::of(&[&self.before, &found]), &Defect::None)?;
        }
        Ok(())
    }
}

fn bench(scenario: &Scenario) -> (Bench, Vec<(String, bool)>) {
    let (image, call) = ready(scenario);
    let before = content(&Process::fresh(&image)).unwrap();
    let process = Process::fresh(&image);
    assert!(!process.call(&call).is_error, "{}", scenario.name);
    let operations = process.machine.operations().into_iter().map(|one| (one.what, one.changes)).collect();
    let after = content(&process).unwrap();
    let (old, new) = (comparable(&before, &before), comparable(&after, &before));
    // A parent is one that was there and is not addressed.
    let addressed = call.arguments["session_index"].as_str().unwrap_or("none");
    let told = new
        .sessions
        .iter()
        .filter(|(folder, _)| before.sessions.get(*folder).is_none_or(|state| index(state) == addressed));
    let bench = Bench {
        expected: Expected::of(&[&old, &new]),
        told: told.map(|(folder, state)| (folder.clone(), state.clone())).collect(),
        image,
        call,
        before,
        after,
    };
    (bench, operations)
}

#[test]
fn a_failed_operation_is_told_as_it_is() {
    let (mut points, mut runs) = (0, 0);
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (nth, scenario) in SCENARIOS.iter().enumerate() {
        let (bench, operations) = bench(scenario);
        assert!(!bench.after.sessions.is_empty());
        for (at, (what, changes)) in operations.iter().enumerate() {
            points += 1;
            for (number, fault) in faults(*changes).into_iter().enumerate() {
                if !takes_long() && (at + number + nth) % STRIDE != 0 {
                    continue;
                }
                runs += 1;
                // Below the planning root, a folder that one may not list counts as somebody else's.
                if fault == Fault::Refuse(ErrorKind::PermissionDenied) && what.ends_with("planning/2026") {
                    continue;
                }
                let (answer, verdict) = bench.strike(at, fault, takes_long() || runs % 5 == 0);
                *answers.entry(answer).or_default() += 1;
                if let Err(problem) = verdict {
                    problems.push(format!("{}, {fault:?} at {at} ({what}): {problem}", scenario.name));
                }
            }
        }
    }
    println!("{points} points, {runs} runs; answers: {answers:?}");
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems[..problems.len().min(40)].join("\n"));
}
