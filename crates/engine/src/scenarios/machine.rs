//! Random walks of the session machine against a small model: a gate never opens without a valid answer, refusals
//! change nothing, and every state that results can be opened again.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Run;
use crate::state::{Event, Session, parse_text};

const ACTIVITIES: [&str; 8] = ["plan", "review", "spin", "steps", "ship", "complete", "__terminal__", "nowhere"];
const CHECKPOINTS: [&str; 9] =
    ["confirm", "timed", "maybe", "standing", "pick#1", "pick#2", "round", "farewell", "surprise"];
const OPTIONS: [&str; 9] = ["go", "again", "skip", "carry_on", "sure", "always", "left", "done", "bye"];

#[derive(Clone, Debug)]
enum Move {
    Go(&'static str, bool),
    Yield(&'static str, bool),
    Answer(&'static str),
    Advance(Value),
    Dismiss(Value),
    TwoModes,
    Resume,
    Deliver,
    Wait(i64),
}

fn moves() -> impl Strategy<Value = Move> {
    let flag =
        || prop::sample::select(vec![json!(true), json!("true"), json!(false), json!("false"), json!(null), json!(0)]);
    prop_oneof![
        3 => (prop::sample::select(ACTIVITIES.to_vec()), any::<bool>()).prop_map(|(id, sets)| Move::Go(id, sets)),
        4 => (prop::sample::select(CHECKPOINTS.to_vec()), any::<bool>()).prop_map(|(id, own)| Move::Yield(id, own)),
        4 => prop::sample::select(OPTIONS.to_vec()).prop_map(Move::Answer),
        1 => flag().prop_map(Move::Advance),
        1 => flag().prop_map(Move::Dismiss),
        1 => Just(Move::TwoModes),
        1 => Just(Move::Resume),
        1 => Just(Move::Deliver),
        2 => (-5000_i64..8000).prop_map(Move::Wait),
    ]
}

impl Move {
    fn call(&self) -> Option<(&'static str, Value)> {
        let two = || json!([{"id": "go", "label": "Go"}, {"id": "left", "label": "Left"}]);
        Some(match self {
            Self::Go(id, true) => ("next_activity", json!({"activity_id": id, "variables_changed": {"is_ready": 1}})),
            Self::Go(id, false) => ("next_activity", json!({"activity_id": id})),
            Self::Yield(id, true) => {
                ("yield_checkpoint", json!({"checkpoint_id": id, "message": "What?", "options": two()}))
            }
            Self::Yield(id, false) => ("yield_checkpoint", json!({"checkpoint_id": id})),
            Self::Answer(option) => ("respond_checkpoint", json!({"option_id": option})),
            Self::Advance(flag) => ("respond_checkpoint", json!({"auto_advance": flag})),
            Self::Dismiss(flag) => ("respond_checkpoint", json!({"condition_not_met": flag})),
            Self::TwoModes => ("respond_checkpoint", json!({"auto_advance": true, "condition_not_met": true})),
            Self::Resume => ("resume_checkpoint", json!({})),
            Self::Deliver => ("get_activity", json!({"context_tokens": 50_000})),
            Self::Wait(_) => return None,
        })
    }

    /// Whether this answers the checkpoint that waits, after so many milliseconds.
    fn is_valid_answer(&self, session: &Session, elapsed: i64) -> bool {
        let Some(active) = &session.active_checkpoint else { return false };
        let declared: &[&str] = match (active.checkpoint_id.as_str(), &active.adhoc) {
            (_, Some(_)) => &["go", "left"],
            ("confirm", _) => &["go", "again", "skip"],
            ("timed", _) => &["carry_on", "halt"],
            ("maybe", _) => &["sure", "never"],
            ("standing", _) => &["always"],
            ("pick#1" | "pick#2", _) => &["left", "right"],
            ("round", _) => &["more", "done"],
            ("farewell", _) => &["bye"],
            _ => &[],
        };
        let given = |flag: &Value| *flag == json!(true) || *flag == json!("true");
        match self {
            Self::Answer(option) => declared.contains(option) && elapsed >= 3000,
            Self::Advance(flag) => {
                given(flag) && active.adhoc.is_none() && active.checkpoint_id == "timed" && elapsed >= 5000
            }
            Self::Dismiss(flag) => {
                given(flag) && active.adhoc.is_none() && ["maybe", "standing"].contains(&active.checkpoint_id.as_str())
            }
            _ => false,
        }
    }
}

fn check_state(before: &Session, after: &Session, changed: bool) -> Result<(), TestCaseError> {
    prop_assert!(after.validate().is_ok());
    let text = after.canonical_text();
    let read = Session::from_json(&parse_text(text.as_bytes()).expect("JSON")).expect("a state");
    prop_assert_eq!(read.canonical_text(), text);
    prop_assert!(after.history.iter().map(Event::time).is_sorted());
    prop_assert!(after.history.starts_with(&before.history), "the history is only appended to");
    prop_assert_eq!(after.seq, before.seq + u64::from(changed));
    prop_assert!(!after.completed_activities.contains(&"__terminal__".to_owned()));
    let yields: Vec<&str> =
        after.history.iter().filter(|event| event.kind() == "checkpoint_reached").map(Event::timestamp).collect();
    prop_assert!(yields.windows(2).all(|pair| pair[0] < pair[1]), "no two yields share a moment");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_gate_never_opens_without_a_valid_answer(walk in prop::collection::vec(moves(), 1..40)) {
        let run = Run::patient("plan");
        for step in walk {
            let Some((tool, arguments)) = step.call() else {
                if let Move::Wait(milliseconds) = step { run.wait(milliseconds) }
                continue;
            };
            let before = run.session();
            let outcome = run.ws.try_call(tool, run.addressed(arguments));
            let after = run.session();
            let yielded = before.active_checkpoint.as_ref().and_then(|active| crate::Timestamp::parse(&active.yielded_at));
            let elapsed = yielded.map_or(0, |yielded| (run.ws.now.get().0 - yielded.0).max(0));
            let opened = before.active_checkpoint.is_some() && after.active_checkpoint.is_none();
            prop_assert_eq!(opened, step.is_valid_answer(&before, elapsed), "{:?}: {:?}", step, outcome);
            if before.active_checkpoint.is_some() && !opened {
                prop_assert!(outcome.is_err(), "{:?} went through a closed gate", step);
            }
            match &outcome {
                Err(_) => prop_assert_eq!(&before, &after, "a refusal changes nothing"),
                Ok(reply) => {
                    let idle = reply.repeated || reply.plain_text().contains("\"already_done\": true");
                    check_state(&before, &after, !idle)?;
                }
            }
        }
    }
}
