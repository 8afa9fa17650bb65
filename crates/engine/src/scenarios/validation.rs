//! Every advisory check, fed with what triggers it (spec 03 §7).

use serde_json::{Value, json};

use super::{Run, codes};
use crate::validation;

/// Goes from one activity to another with these arguments; expects these warnings.
#[track_caller]
fn check(from: &str, to: &str, arguments: impl Into<Value>, expected: &[&str]) -> Vec<String> {
    let run = if from.is_empty() { Run::new() } else { Run::at(from) };
    if !from.is_empty() {
        let activity = run.activity(from);
        yielded(&run, from, &activity.checkpoints().iter().map(|(step, _)| step.id.as_str()).collect::<Vec<_>>());
    }
    let mut arguments = arguments.into();
    arguments["activity_id"] = to.into();
    let reply = run.call("next_activity", arguments.clone());
    assert_eq!(codes(&reply), expected, "{from} → {to} {arguments}: {:#?}", reply.warnings);
    reply.warnings.into_iter().map(|warning| warning.message).collect()
}

/// Records that these checkpoints were reached.
fn yielded(run: &Run, activity: &str, ids: &[&str]) {
    run.ws.change(&run.index, |session| {
        for id in ids {
            let event = crate::state::Event::new("checkpoint_reached").with_activity(activity).with_checkpoint(id);
            session.record(event, crate::Timestamp(0));
        }
    });
}

fn manifest(ids: &[&str]) -> Value {
    let entries: Vec<Value> = ids.iter().map(|id| json!({"step_id": id, "output": "done"})).collect();
    json!({ "step_manifest": entries })
}

fn with(mut left: Value, right: impl Into<Value>) -> Value {
    let Value::Object(right) = right.into() else { panic!("an object") };
    left.as_object_mut().unwrap().extend(right);
    left
}

/// All required steps of `plan`.
fn plan() -> Value {
    manifest(&["think", "confirm", "timed", "standing", "each"])
}

#[test]
fn first_activity_and_transitions() {
    check("", "plan", json!({}), &[]);
    let texts = check("", "review", json!({}), &["W_FIRST_ACTIVITY"]);
    assert!(texts[0].contains("`plan`") && texts[0].contains("`review`"));
    check("plan", "review", plan(), &[]);
    check("plan", "plan", plan(), &[]);
    check("plan", "__terminal__", plan(), &[]);
    let texts = check("plan", "ship", plan(), &["W_TRANSITION"]);
    assert!(texts[0].contains("`review`, `steps`, `complete`, `plan`"), "{}", texts[0]);
    check("review", "ship", manifest(&["look"]), &[]);
    check("review", "plan", manifest(&["look"]), &[]);
    // a last activity leads to itself and to the end
    let sent = || manifest(&["send_it"]);
    check("ship", "ship", sent(), &[]);
    check("ship", "__terminal__", sent(), &[]);
    let texts = check("ship", "plan", sent(), &["W_TRANSITION"]);
    assert!(texts[0].contains("__terminal__"));
}

#[test]
fn version_drift_warns_on_every_call() {
    let run = Run::at("plan");
    yielded(&run, "plan", &["confirm", "timed", "standing"]);
    run.ws.change(&run.index, |session| session.workflow_version = "0.9.0".to_owned());
    for (tool, arguments) in [
        ("get_workflow", json!({})),
        ("get_workflow_status", json!({})),
        ("inspect_session", json!({})),
        ("get_activity", json!({"context_tokens": 100_000})),
        ("yield_checkpoint", json!({"checkpoint_id": "confirm"})),
        ("present_checkpoint", json!({})),
        ("respond_checkpoint", json!({"option_id": "go"})),
        ("resume_checkpoint", json!({})),
        ("get_trace", json!({})),
        ("record_usage", json!({"activity": "plan", "usage": {}, "basis": "delta"})),
    ] {
        let reply = run.call(tool, arguments);
        let drift: Vec<_> = reply.warnings.iter().filter(|warning| warning.code == "W_VERSION_DRIFT").collect();
        assert_eq!(drift.len(), 1, "{tool}");
        assert!(drift[0].message.contains("0.9.0") && drift[0].message.contains("1.0.0"), "{tool}");
    }
    let reply = run.call("next_activity", with(json!({"activity_id": "ship", "transition_condition": "x"}), plan()));
    assert_eq!(codes(&reply), ["W_TRANSITION", "W_VERSION_DRIFT"], "in the order of the table");
    let reply = run.ws.call("start_session", json!({"planning_slug": "2026-07-13-alpha"}));
    assert_eq!(codes(&reply), ["W_VERSION_DRIFT"]);
    assert_eq!(run.session().workflow_version, "0.9.0");
}

#[test]
fn claimed_conditions_are_compared_character_by_character() {
    let claim = |text: &str| with(plan(), json!({"transition_condition": text}));
    check("plan", "review", claim("is_ready == true"), &[]);
    check("plan", "review", claim("is_ready==true"), &["W_CONDITION_MISMATCH"]);
    let texts = check("plan", "review", claim(""), &["W_CONDITION_MISSING"]);
    assert!(texts[0].contains("is_ready == true"));
    check("plan", "review", claim("default"), &["W_CONDITION_MISSING"]);
    check("plan", "complete", claim("default"), &[]);
    check("plan", "complete", claim(""), &[]);
    check("plan", "complete", claim("is_ready == true"), &["W_CONDITION_ON_DEFAULT"]);
    check("plan", "plan", claim("checkpoint:confirm:again"), &[]);
    check("plan", "plan", claim(""), &[]);
    check("plan", "plan", claim("again"), &["W_CONDITION_MISMATCH"]);
    // several entries for one target: any agreement is enough
    let looked = |text: &str| with(manifest(&["look"]), json!({"transition_condition": text}));
    check("review", "ship", looked("is_ready == true"), &[]);
    check("review", "plan", looked("default"), &[]);
    // a condition-less entry that is not the default one
    let round = |text: &str| with(manifest(&["round"]), json!({"transition_condition": text}));
    check("spin", "spin", round("default"), &[]);
    check("spin", "spin", round("x"), &["W_CONDITION_MISMATCH"]);
}

#[test]
fn trap_03_14_21_an_absent_claim_is_not_checked_and_an_empty_one_is() {
    check("plan", "review", plan(), &[]);
    check("plan", "review", with(plan(), json!({"transition_condition": ""})), &["W_CONDITION_MISSING"]);
}

#[test]
fn trap_03_14_22_declared_text_has_no_parentheses_and_presence_no_value() {
    let claim = |text: &str| with(manifest(&["s1", "s2", "s3", "s4", "each"]), json!({"transition_condition": text}));
    let declared = "is_ready == true AND chosen_name == \"two\" OR item_count == 3";
    check("steps", "ship", claim(declared), &["W_NO_FETCH"]);
    check("steps", "ship", claim(&format!("({declared})")), &["W_CONDITION_MISMATCH", "W_NO_FETCH"]);
    for text in ["chosen_name exists", "chosen_name exists undefined"] {
        check("plan", "steps", with(plan(), json!({ "transition_condition": text })), &[]);
    }
}

#[test]
fn step_manifests_are_complete_known_ordered_and_say_something() {
    check("plan", "review", json!({}), &["W_MANIFEST_ABSENT"]);
    let texts = check("plan", "review", manifest(&["think", "timed", "standing"]), &["W_STEPS_MISSING"]);
    assert!(texts[0].contains("`confirm`, `each`"), "{}", texts[0]);
    // a structured condition and an inline gate make a step optional, and both may be reported
    check("plan", "review", manifest(&["think", "confirm", "timed", "maybe", "inline", "standing", "each"]), &[]);
    let texts = check("review", "ship", manifest(&["look", "guess", "guess"]), &["W_STEPS_UNEXPECTED"]);
    assert!(texts[0].ends_with("`guess`"), "{}", texts[0]);
    let blank = json!({"step_manifest": [{"step_id": "look", "output": " \n"}]});
    check("review", "ship", blank, &["W_STEP_EMPTY_OUTPUT"]);
    check("review", "ship", json!({"step_manifest": [{"step_id": "look", "output": {}}]}), &["W_STEP_EMPTY_OUTPUT"]);
    check("review", "ship", json!({"step_manifest": []}), &["W_STEPS_MISSING"]);
    let odd = json!({"step_manifest": [{"step_id": "guess", "output": ""}]});
    check("review", "ship", odd, &["W_STEPS_MISSING", "W_STEPS_UNEXPECTED", "W_STEP_EMPTY_OUTPUT"]);
}

#[test]
fn trap_03_14_23_the_order_is_relative() {
    let run = Run::at("steps");
    let reply = run.call(
        "next_activity",
        with(json!({"activity_id": "ship"}), manifest(&["s1", "gated_loop", "each", "gated_loop"])),
    );
    let order: Vec<&str> = reply
        .warnings
        .iter()
        .filter(|warning| warning.code == "W_STEP_ORDER")
        .map(|warning| warning.message.as_str())
        .collect();
    assert_eq!(order.len(), 1);
    assert!(order[0].contains("`each` is reported after `gated_loop`"), "{}", order[0]);
}

#[test]
fn trap_03_14_24_an_ungated_loop_is_required_and_its_body_never() {
    let texts =
        check("steps", "ship", manifest(&["s1", "s2", "s3", "s4", "b1", "b1"]), &["W_STEPS_MISSING", "W_NO_FETCH"]);
    assert!(texts[0].ends_with("`each`"), "{}", texts[0]);
}

#[test]
fn a_reported_checkpoint_was_yielded_in_this_visit() {
    let leave = |run: &Run| {
        let reply = run.call("next_activity", with(json!({"activity_id": "review"}), plan()));
        let found = reply.warnings.into_iter().find(|warning| warning.code == "W_CHECKPOINT_NOT_YIELDED");
        found.map(|warning| warning.message).unwrap_or_default()
    };
    let text = leave(&Run::at("plan"));
    assert!(text.contains("`confirm`, `timed`, `standing`;") && !text.contains("`think`"), "{text}");
    let run = Run::at("plan");
    run.ask("confirm", "go");
    run.ask("timed", "halt");
    let text = leave(&run);
    assert!(text.contains("asked: `standing`;"), "{text}");
    // What was answered in an earlier visit is replayed, and that is a yield too.
    run.go("plan");
    assert!(leave(&run).contains("`confirm`, `timed`, `standing`;"));
}

#[test]
fn a_checkpoint_of_a_loop_is_reported_as_written_as_yielded_or_by_its_base() {
    let activity = activity_with_rounds();
    let check = |ids: &[&str]| {
        let entries: Vec<_> = ids.iter().map(|step| validation::ManifestEntry { step, output: "done" }).collect();
        validation::step_manifest(&activity, &entries)
    };
    for ids in [&["each", "keep#{item}"][..], &["each", "keep#one", "keep#two"], &["each", "keep"]] {
        assert_eq!(check(ids), [], "{ids:?}");
    }
    let odd = check(&["each", "kept#one"]);
    assert!(odd[0].message.contains("`kept#one`"), "{odd:?}");
}

/// An activity whose loop asks in every round.
const ROUNDS: &[(&str, &str)] = &[
    ("rounds/workflow.yaml", "id: rounds\nversion: 1.0.0\ntitle: Rounds\ninitialActivity: go\n"),
    (
        "rounds/activities/01-go.yaml",
        "id: go\nversion: 1.0.0\nname: Go\nsteps:\n  - kind: loop\n    id: each\n    loopType: forEach\n    \
             variable: item\n    over: items\n    steps:\n      - kind: checkpoint\n        id: \"keep#{item}\"\n        \
             message: Keep?\n        options:\n          - id: yes_please\n            label: Yes\n          - id: no_thanks\n            \
             label: No\n",
    ),
];

fn activity_with_rounds() -> std::sync::Arc<workflow_corpus::Activity> {
    let ws = crate::workspace::Workspace::over(ROUNDS);
    ws.corpus.workflow("rounds").expect("it loads").activity("go").expect("the activity").clone()
}

#[test]
fn an_answer_is_reported_as_it_was_given_and_followed() {
    let leave = |run: &Run, to: &str, entries: Value| {
        let reply = run.call("next_activity", json!({"activity_id": to, "step_manifest": entries}));
        let codes = codes(&reply);
        let known = ["W_ANSWER_MISREPORTED", "W_ANSWER_IGNORED"];
        let texts = reply.warnings.iter().map(|warning| warning.message.clone()).collect::<Vec<_>>().join("\n");
        (codes.into_iter().filter(|code| known.contains(code)).collect::<Vec<_>>(), texts)
    };
    let said = |output: &str| json!([{"step_id": "confirm", "output": output}]);
    let asked = |option: &str| {
        let run = Run::at("plan");
        run.ask("confirm", option);
        run
    };
    // `again` leads back to `plan`; `go` leads nowhere by itself.
    assert_eq!(leave(&asked("go"), "review", said("go")).0, [""; 0]);
    assert_eq!(leave(&asked("go"), "review", said("the user is happy")).0, [""; 0], "any other text is a summary");
    let (codes, texts) = leave(&asked("go"), "review", said(" again "));
    assert_eq!(codes, ["W_ANSWER_MISREPORTED"]);
    assert!(texts.contains("with `again`, but the recorded answer is `go`"), "{texts}");
    let (codes, texts) = leave(&asked("again"), "review", said("go"));
    assert_eq!(codes, ["W_ANSWER_IGNORED", "W_ANSWER_MISREPORTED"]);
    assert!(texts.contains("`again`, which leads from `plan` to `plan`, but `review` was entered"), "{texts}");
    assert_eq!(leave(&asked("again"), "plan", said("again")).0, [""; 0]);
    // What was dismissed has no answer to report.
    let run = Run::at("plan");
    run.stop("maybe");
    run.json("respond_checkpoint", json!({"condition_not_met": true}));
    let (_, texts) = leave(&run, "review", json!([{"step_id": "maybe", "output": "never"}]));
    assert!(texts.contains("it was dismissed") && !texts.contains("__"), "{texts}");
    // The newest answer that leads somewhere counts, and only in its visit.
    let run = asked("again");
    run.go("plan");
    assert_eq!(leave(&run, "review", json!([])).0, [""; 0]);
}

/// Gates whose answers lead to different places, some of which do not exist, and names that mean two things.
const FORKS: &[(&str, &str)] = &[
    ("forks/workflow.yaml", "id: forks\nversion: 1.0.0\ntitle: Forks\ninitialActivity: a\n"),
    (
        "forks/activities/01-a.yaml",
        "id: a\nversion: 1.0.0\nname: A\nsteps:\n\
         - { kind: checkpoint, id: g1, message: M, options: [{ id: x, label: X, effect: { transitionTo: c } }, { id: w, label: W }] }\n\
         - { kind: checkpoint, id: g2, message: M, options: [{ id: y, label: Y, effect: { transitionTo: b } }, { id: w, label: W }] }\n\
         - { kind: checkpoint, id: g3, message: M, options: [{ id: z, label: Z, effect: { transitionTo: d } }, { id: w, label: W }] }\n\
         - { kind: action, id: pick }\n\
         - kind: loop\n  id: l1\n  loopType: forEach\n  variable: it\n  over: items\n  steps:\n  \
           - { kind: checkpoint, id: \"pick#{it}\", message: M, options: [{ id: yes_, label: Y }, { id: no_, label: N }] }\n\
         - kind: loop\n  id: l2\n  loopType: forEach\n  variable: jt\n  over: items\n  steps:\n  \
           - { kind: checkpoint, id: \"pick#{jt}\", message: M, options: [{ id: yes_, label: Y }, { id: no_, label: N }] }\n\
         - { kind: checkpoint, id: \"stage#final\", message: M, options: [{ id: yes_, label: Y }, { id: no_, label: N }] }\n\
         transitions: [{ to: b }, { to: c }]\n",
    ),
    ("forks/activities/02-b.yaml", "id: b\nversion: 1.0.0\nname: B\nsteps: [{ kind: action, id: s }]\n"),
    ("forks/activities/03-c.yaml", "id: c\nversion: 1.0.0\nname: C\nsteps: [{ kind: action, id: s }]\n"),
];

/// A session in the first activity of [`FORKS`].
struct Fork(crate::workspace::Workspace, Value);

impl Fork {
    fn new() -> Self {
        let ws = crate::workspace::Workspace::over(FORKS);
        let index =
            ws.json("start_session", json!({"workflow_id": "forks", "planning_slug": "a"}))["session_index"].clone();
        let fork = Self(ws, index);
        fork.call("next_activity", json!({"activity_id": "a"}));
        fork
    }

    fn call(&self, tool: &str, arguments: Value) -> crate::Reply {
        self.0.call(tool, with(arguments, json!({"session_index": self.1})))
    }

    fn ask(&self, checkpoint: &str, option: &str) {
        self.call("yield_checkpoint", json!({ "checkpoint_id": checkpoint }));
        self.call("respond_checkpoint", json!({ "option_id": option }));
    }

    /// Codes of the checks on answers when the activity is left.
    fn leave(&self, to: &str, entries: &[(&str, &str)]) -> Vec<&'static str> {
        let entries: Vec<Value> =
            entries.iter().map(|(step, output)| json!({"step_id": step, "output": output})).collect();
        let reply = self.call("next_activity", json!({"activity_id": to, "step_manifest": entries}));
        let known = ["W_ANSWER_IGNORED", "W_ANSWER_MISREPORTED", "W_CHECKPOINT_NOT_YIELDED", "W_STEP_ORDER"];
        codes(&reply).into_iter().filter(|code| known.contains(code)).collect()
    }
}

#[test]
fn a_replay_is_as_old_as_its_answer() {
    let fork = Fork::new();
    fork.ask("g1", "x");
    fork.ask("g2", "y");
    fork.call("yield_checkpoint", json!({"checkpoint_id": "g1"}));
    assert_eq!(fork.leave("b", &[]), [""; 0]);
    let fork = Fork::new();
    fork.ask("g2", "y");
    fork.ask("g1", "x");
    assert_eq!(fork.leave("b", &[]), ["W_ANSWER_IGNORED"]);
    // Nobody can go where nothing is.
    let fork = Fork::new();
    fork.ask("g3", "z");
    assert_eq!(fork.leave("b", &[]), [""; 0]);
}

#[test]
fn names_that_mean_two_things_alarm_nobody() {
    let fork = Fork::new();
    fork.ask("pick#1", "yes_");
    fork.ask("pick#2", "yes_");
    let entries = [
        ("pick", "no_"),
        ("l1", "done"),
        ("pick#1", "yes_"),
        ("pick#{it}", "yes_"),
        ("l2", "done"),
        ("pick#{jt}", "yes_"),
    ];
    assert_eq!(fork.leave("b", &entries), [""; 0], "`pick` is the action, and any gate of the base was asked");
    let fork = Fork::new();
    assert_eq!(fork.leave("b", &[("pick#{jt}", "yes_")]), ["W_CHECKPOINT_NOT_YIELDED"]);
}

#[test]
fn only_a_round_of_a_loop_can_be_missing() {
    for (id, expected) in
        [("stage", false), ("pick#", true), ("pick#{}", true), ("pick#{jt}", true), ("pick", true), ("pick#7", false)]
    {
        let reply = Fork::new().call("yield_checkpoint", json!({ "checkpoint_id": id }));
        assert_eq!(codes(&reply).contains(&"W_ROUND_UNNAMED"), expected, "{id}");
    }
}

#[test]
fn a_replay_for_a_round_that_was_not_named_says_how_to_ask_again() {
    for (id, expected) in [("pick", true), ("pick#{it}", true), ("pick#1", false), ("g1", false)] {
        let fork = Fork::new();
        fork.ask(id, if id == "g1" { "w" } else { "yes_" });
        let text = fork.call("yield_checkpoint", json!({ "checkpoint_id": id })).plain_text();
        assert!(text.contains("replayed"), "{text}");
        assert_eq!(text.contains("yield `pick#…`"), expected, "{text}");
    }
}

#[test]
fn a_session_does_not_end_before_its_children_unnoticed() {
    let run = Run::at("plan");
    let child = run.json("dispatch_child", json!({"workflow_id": "walk"}))["session_index"].clone();
    let reply = run.go("__terminal__");
    let found = reply.warnings.iter().find(|warning| warning.code == "W_CHILD_RUNNING").unwrap();
    assert!(found.message.contains(child.as_str().unwrap()), "{found:?}");
    run.go("plan");
    run.ws.call("next_activity", json!({"session_index": child, "activity_id": "__terminal__"}));
    assert!(!codes(&run.go("__terminal__")).contains(&"W_CHILD_RUNNING"));
    // The child itself is asked: what is noted of it may be older.
    run.go("plan");
    run.ws.call("next_activity", json!({"session_index": child, "activity_id": "plan"}));
    assert!(codes(&run.go("__terminal__")).contains(&"W_CHILD_RUNNING"));
    run.ws.call("next_activity", json!({"session_index": child, "activity_id": "__terminal__"}));
    let own = json!({"workflow_id": "walk", "planning_slug": "own", "parent_planning_slug": "2026-07-13-alpha"});
    let own = run.ws.json("start_session", own)["session_index"].clone();
    run.go("plan");
    assert!(codes(&run.go("__terminal__")).contains(&"W_CHILD_RUNNING"));
    run.ws.change(own.as_str().unwrap(), |session| session.status = crate::state::Status::Completed);
    run.go("plan");
    assert!(!codes(&run.go("__terminal__")).contains(&"W_CHILD_RUNNING"), "the link says running");
}

#[test]
fn a_reported_round_is_one_that_was_yielded() {
    let ws = crate::workspace::Workspace::over(ROUNDS);
    let started = ws.json("start_session", json!({"workflow_id": "rounds", "planning_slug": "a"}));
    let index = &started["session_index"];
    ws.call("next_activity", json!({"session_index": index, "activity_id": "go"}));
    ws.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "keep#one"}));
    ws.call("respond_checkpoint", json!({"session_index": index, "option_id": "yes_please"}));
    for (reported, expected) in
        [(&["keep#one"][..], ""), (&["keep"], ""), (&["keep#{item}"], ""), (&["keep#one", "keep#two"], "`keep#two`;")]
    {
        let mut arguments = manifest(&[&["each"], reported].concat());
        arguments["session_index"] = index.clone();
        arguments["activity_id"] = "go".into();
        let reply = ws.call("next_activity", arguments);
        let found = reply.warnings.iter().find(|warning| warning.code == "W_CHECKPOINT_NOT_YIELDED");
        let text = found.map(|warning| warning.message.as_str()).unwrap_or_default();
        assert!(if expected.is_empty() { text.is_empty() } else { text.contains(expected) }, "{reported:?}: {text}");
        assert!(!text.contains("`keep#one`"), "{text}");
    }
}

#[test]
fn a_checkpoint_of_rounds_is_yielded_for_one() {
    for (id, expected) in [("keep", true), ("keep#{item}", true), ("keep#one", false)] {
        let ws = crate::workspace::Workspace::over(ROUNDS);
        let started = ws.json("start_session", json!({"workflow_id": "rounds", "planning_slug": "a"}));
        let index = &started["session_index"];
        ws.call("next_activity", json!({"session_index": index, "activity_id": "go"}));
        let reply = ws.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": id}));
        assert_eq!(codes(&reply).contains(&"W_ROUND_UNNAMED"), expected, "{id}");
    }
}

#[test]
fn a_manifest_of_a_lost_activity_cannot_be_checked() {
    let run = Run::at("plan");
    run.ws.change(&run.index, |session| session.current_activity = "removed".to_owned());
    let reply = run.call("next_activity", with(json!({"activity_id": "review"}), plan()));
    assert_eq!(codes(&reply), ["W_MANIFEST_UNCHECKABLE"]);
    run.ws.change(&run.index, |session| session.current_activity = "removed".to_owned());
    assert_eq!(codes(&run.go("review")), ["W_MANIFEST_ABSENT"]);
}

/// Delivers by a call, reports these steps, and says which of them count as never delivered.
#[track_caller]
fn undelivered(run: &Run, steps: &[&str]) -> Vec<String> {
    let activity = run.activity("steps");
    let entries: Vec<validation::ManifestEntry<'_>> =
        steps.iter().map(|step| validation::ManifestEntry { step, output: "done" }).collect();
    let warning = validation::no_fetch(&run.ws.corpus, &run.session(), &activity, &entries);
    let listed = warning.map(|warning| warning.message).unwrap_or_default();
    steps.iter().filter(|step| listed.contains(&format!("`{step}`"))).map(|step| (*step).to_owned()).collect()
}

fn fetch(run: &Run, step: &str, agent: &str) {
    run.call("get_technique", json!({"step_id": step, "agent_id": agent}));
}

#[test]
fn a_delivery_of_the_same_file_covers_a_step() {
    let run = Run::at("steps");
    let all = ["s1", "s3", "s4", "s5", "b2"];
    assert_eq!(undelivered(&run, &all), ["s3", "s4", "s5", "b2"], "an action needs no technique");
    fetch(&run, "s3", "somebody");
    assert_eq!(undelivered(&run, &all), ["s5", "b2"], "one file for two steps, whoever received it");
    fetch(&run, "b2", "another");
    assert_eq!(undelivered(&run, &all), ["s5"]);
    // what get_activity inlines counts too
    let run = Run::at("steps");
    run.call("get_activity", json!({"context_tokens": 200_000, "agent_id": "w"}));
    assert_eq!(undelivered(&run, &all), ["s5"], "a gated step is not inlined");
}

#[test]
fn trap_03_14_25_a_delivery_counts_for_its_visit() {
    let run = Run::at("steps");
    fetch(&run, "s3", "w");
    run.go("steps");
    assert_eq!(undelivered(&run, &["s3"]), [""; 0], "a plain re-entry is the same visit");
    run.go("ship");
    run.go("steps");
    assert_eq!(undelivered(&run, &["s3"]), ["s3"]);
    // an unchanged answer is a delivery
    run.ws.change(&run.index, |session| session.context_mode = Some(crate::state::ContextMode::Persistent));
    fetch(&run, "s3", "w");
    assert!(run.events("technique_fetched").last().unwrap().data_text("delivery") == Some("unchanged"));
    assert_eq!(undelivered(&run, &["s3"]), [""; 0]);
}

/// `greet` is both `techniques/greet.md` and `techniques/steps/greet.md`; bound in activity `steps` it is the latter.
#[test]
fn trap_03_14_26_the_group_form_covers_the_bare_one() {
    for (recorded, covered) in [("steps::greet", true), ("greet", false), ("walk::steps::greet", true)] {
        let run = Run::at("steps");
        run.ws.change(&run.index, |session| {
            let event = crate::state::Event::new("technique_fetched")
                .with_activity("steps")
                .with_data("techniqueId", recorded)
                .with_data("agentId", "w");
            session.record(event, crate::Timestamp(0));
        });
        assert_eq!(undelivered(&run, &["s5"]).is_empty(), covered, "{recorded}");
    }
}

#[test]
fn activity_manifests() {
    let report = |entries: Value| with(manifest(&["look"]), json!({ "activity_manifest": entries }));
    check("review", "ship", report(json!([])), &["W_ACTIVITY_MANIFEST_EMPTY"]);
    let entry = |id: &str, outcome: &str, condition: &str| json!([{"activity_id": id, "outcome": outcome, "transition_condition": condition}]);
    check("review", "ship", report(entry("plan", "done", "is_ready == true")), &[]);
    check("review", "ship", report(entry("plan", "done", "default")), &[]);
    check("review", "ship", report(entry("plan", "done", "")), &[]);
    check("review", "ship", report(entry("ship", "done", "anything")), &[]);
    check("review", "ship", report(entry("plan", "done", "whatever")), &["W_ACTIVITY_CONDITION"]);
    check("review", "ship", report(entry("nowhere", " ", "x")), &["W_ACTIVITY_UNKNOWN", "W_OUTCOME_EMPTY"]);
}

#[test]
fn variables_of_another_type_are_stored_and_warned_about() {
    let change = |value: Value| with(plan(), json!({"variables_changed": value}));
    check("plan", "review", change(json!({"is_ready": true, "free": 3})), &[]);
    check("plan", "review", change(json!({"is_ready": "{later}"})), &[]);
    for (value, kind) in [(json!("{a}{b}"), "string"), (json!(null), "null"), (json!([1]), "array")] {
        let texts = check("plan", "review", change(json!({ "is_ready": value })), &["W_VARIABLE_TYPE"]);
        for part in ["variables_changed", "`is_ready`", kind, "boolean", "stored as written"] {
            assert!(texts[0].contains(part), "{}", texts[0]);
        }
    }
}

#[test]
fn a_slip_in_the_name_of_a_variable_is_told_once() {
    let change = |value: Value| with(plan(), json!({"variables_changed": value}));
    for free in ["free", "ready", "is_redy_too", "item_counter_2", "x"] {
        check("plan", "review", change(json!({ free: 1 })), &[]);
    }
    for (name, meant) in [("is_raedy", "is_ready"), ("item_cuont", "item_count"), ("chosen_nam", "chosen_name")] {
        let texts = check("plan", "review", change(json!({ name: 1 })), &["W_VARIABLE_UNDECLARED"]);
        assert!(texts[0].contains(&format!("`{name}`")) && texts[0].contains(&format!("`{meant}`")), "{texts:?}");
    }
    let run = Run::at("plan");
    run.call("next_activity", with(json!({"activity_id": "review"}), change(json!({"is_raedy": 1}))));
    let again =
        run.call("next_activity", with(json!({"activity_id": "ship"}), json!({"variables_changed": {"is_raedy": 2}})));
    assert!(!codes(&again).contains(&"W_VARIABLE_UNDECLARED"), "it is in use now");
}

#[test]
fn artifacts_outside_the_planning_folder() {
    let report =
        |path: &str| with(plan(), json!({"artifacts_produced": [{"id": "doc", "name": "doc.md", "path": path}]}));
    let inside = format!("{}/2026-07-13-alpha/notes/../doc.md", crate::workspace::PLANNING);
    for path in ["doc.md", "./sub/../doc.md", &inside] {
        check("plan", "review", report(path), &[]);
    }
    let beside = format!("{}/2026-07-13-alphabet/doc.md", crate::workspace::PLANNING);
    for path in ["/etc/doc.md", "../doc.md", "a/../../doc.md", &beside] {
        check("plan", "review", report(path), &["W_ARTIFACT_OUTSIDE"]);
    }
}

#[test]
fn files_that_nobody_declared() {
    let declared = |id: &str, name: &str| crate::state::DeclaredArtifact {
        id: id.to_owned(),
        name: name.to_owned(),
        path: None,
        extra: serde_json::Map::new(),
    };
    let known = [declared("plan_doc", "the-plan.md"), declared("report", "final")];
    let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let matched =
        ["the-plan.md", "plan_doc.md", "plan_doc", "final.txt", "my-report-2.pdf", "session.json", "README.md", ".x"];
    assert_eq!(validation::artifacts_undeclared(&files(&matched), &known), None);
    let stray = validation::artifacts_undeclared(&files(&["the-plan.md", "notes.md"]), &known).unwrap();
    assert_eq!(stray.code, "W_ARTIFACT_UNDECLARED");
    assert!(stray.message.contains("`notes.md`") && stray.message.contains("artifacts_produced"));
}
