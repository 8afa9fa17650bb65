//! SIGKILL at random moments while calls are in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Client, Sandbox};

use crate::{bounded, is_success, kept, sandbox, usage};

/// Kills in one workspace.
const ROUNDS: usize = 50;
/// Rows sent in each round.
const ROWS: usize = 10;

/// Numbers that look random and come again in the next run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What clients have been told.
#[derive(Default)]
struct Acknowledged {
    rows: BTreeSet<String>,
    /// Slug and index of own-folder children.
    children: BTreeMap<String, Value>,
}

#[derive(Debug, Default)]
struct Figures {
    kills: usize,
    /// Kills after which a commit was found half done.
    within_a_commit: usize,
    answers: usize,
}

/// Whether a writer has left something between the first and the last operation of a commit: what it staged, or the
/// pending seal, which goes by the last rename.
fn is_half_done(planning: &Path) -> bool {
    let folders = std::fs::read_dir(planning).into_iter().flatten().flatten();
    let mut names = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    names.any(|entry| {
        let name = entry.file_name().into_string().unwrap();
        name.contains(".tmp.") || name.ends_with(".pending")
    })
}

/// Sends a round of calls, kills, and notes what was answered before.
fn round(mut client: Client, index: &str, nth: usize, delay: Duration, told: &mut Acknowledged, figures: &mut Figures) {
    let mut sent = BTreeMap::new();
    let slug = format!("child-{nth}");
    let child = json!({"workflow_id": "child", "planning_slug": slug, "parent_planning_slug": "main"});
    for row in 0..ROWS {
        let label = format!("{nth}-{row}");
        sent.insert(client.post("tools/call", usage(index, &label)), label);
        if row == 2 && nth.is_multiple_of(3) {
            sent.insert(client.post("tools/call", json!({"name": "start_session", "arguments": child})), slug.clone());
        }
    }
    std::thread::sleep(delay);
    client.kill_only();
    for answer in client.drain() {
        let Some(what) = answer["id"].as_u64().and_then(|id| sent.get(&id)) else { continue };
        assert!(is_success(&answer), "{answer}");
        figures.answers += 1;
        if *what == slug {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            let started: Value = serde_json::from_str(text).unwrap();
            told.children.insert(slug.clone(), started["session_index"].clone());
        } else {
            told.rows.insert(what.clone());
        }
    }
    figures.kills += 1;
}

/// How long a round takes that is not cut short, so that kills fall everywhere in one.
fn time_of_a_round(client: &mut Client, index: &str, told: &mut Acknowledged) -> Duration {
    let begun = Instant::now();
    let labels: Vec<String> = (0..ROWS).map(|row| format!("whole-{row}")).collect();
    for label in &labels {
        client.post("tools/call", usage(index, label));
    }
    for _ in &labels {
        assert!(is_success(&client.receive()));
    }
    told.rows.extend(labels);
    begun.elapsed()
}

/// A fresh process finds everything that was acknowledged.
fn verify(client: &mut Client, sandbox: &Sandbox, index: &str, told: &Acknowledged) {
    client.call("get_workflow_status", json!({"session_index": index})).ok();
    let missing: Vec<_> = told.rows.difference(&kept(&sandbox.folder("main"))).cloned().collect();
    assert!(missing.is_empty(), "acknowledged and missing: {missing:?}");
    for (slug, index) in &told.children {
        client.call("get_workflow_status", json!({"session_index": index})).ok();
        assert!(sandbox.folder(slug).join("session.json").is_file());
    }
}

#[test]
fn kills_lose_nothing_that_was_acknowledged() {
    // Where a kill falls is chance, and how much of the time is spent in commits differs from disk to disk: on with it
    // until enough have fallen into one.
    let (kills, within, most) = (bounded(40, 1000), bounded(4, 300), bounded(2_000, 20_000));
    let mut dice = Dice(0x5EED);
    let mut figures = Figures::default();
    while figures.kills < kills || figures.within_a_commit < within && figures.kills < most {
        let sandbox = sandbox();
        let planning = sandbox.folder("main").parent().unwrap().to_path_buf();
        let mut told = Acknowledged::default();
        let mut client = sandbox.connect();
        let started = client.call("start_session", json!({"workflow_id": "mini", "planning_slug": "main"})).json();
        let index = started["session_index"].as_str().unwrap().to_owned();
        let whole = time_of_a_round(&mut client, &index, &mut told);
        for nth in 0..ROUNDS.min(kills) {
            let delay = Duration::from_micros(dice.below(u64::try_from(whole.as_micros()).unwrap()));
            round(client, &index, nth, delay, &mut told, &mut figures);
            figures.within_a_commit += usize::from(is_half_done(&planning));
            client = sandbox.connect();
            verify(&mut client, &sandbox, &index, &told);
            // What was left over goes with the first write.
            client.call("start_session", json!({"planning_slug": "main", "user_request": format!("round {nth}")})).ok();
        }
        settled(&mut client, &sandbox, &planning);
    }
    println!("{figures:?}: 0 unreadable, 0 acknowledged missing");
    assert!(figures.within_a_commit >= within, "too few kills fell into a commit: {figures:?}");
}

/// Every folder opens and takes a write, nothing is left over, and the parent knows its children.
fn settled(client: &mut Client, sandbox: &Sandbox, planning: &Path) {
    let mut children = BTreeSet::new();
    for folder in std::fs::read_dir(planning).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        let slug = folder.file_name().into_string().unwrap();
        if slug != "main" && !folder.path().join("session.json").exists() {
            // Made for a session whose first write never came: still free.
            let arguments = json!({"workflow_id": "child", "planning_slug": slug, "parent_planning_slug": "main"});
            client.call("start_session", arguments).ok();
        }
        let arguments = json!({"planning_slug": slug, "user_request": "settle"});
        let opened = client.call("start_session", arguments).json();
        if slug != "main" {
            children.insert(opened["session_index"].as_str().unwrap().to_owned());
        }
    }
    assert!(!is_half_done(planning), "something is left over");
    let state: Value =
        serde_json::from_slice(&std::fs::read(sandbox.folder("main").join("session.json")).unwrap()).unwrap();
    let known = state["triggeredWorkflows"].as_array().unwrap().iter();
    let known: BTreeSet<String> = known.map(|child| child["sessionIndex"].as_str().unwrap().to_owned()).collect();
    assert_eq!(known, children, "the parent knows its children");
}
