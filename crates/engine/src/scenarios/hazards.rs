//! Hazards of spec 03 §15 that lie in the machine itself.

use serde_json::{Value, json};

use proptest::prelude::*;

use super::{Run, codes};

const TWO: &str = r#"[{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]"#;

fn two() -> Value {
    serde_json::from_str(TWO).unwrap()
}

/// Whatever is sent without naming exactly one way out leaves the gate closed and the session as it was.
#[test]
fn hazard_h02_a_gate_opens_by_one_named_answer_only() {
    let mut run = Run::at("plan");
    run.ws.settings.checkpoint_min_response_ms = 3_600_000;
    assert_eq!(run.stop("confirm"), "yielded");
    let closed = run.session();
    for answer in [
        json!({}),
        json!({"auto_advance": false}),
        json!({"condition_not_met": false}),
        json!({"auto_advance": false, "condition_not_met": false}),
        json!({"auto_advance": true}),
        json!({"condition_not_met": true}),
        json!({"auto_advance": true, "condition_not_met": true}),
        json!({"option_id": "go", "auto_advance": true}),
        json!({"option_id": "go", "condition_not_met": true}),
        json!({"option_id": ""}),
        json!({"option_id": "__unknown__"}),
        json!({"option_id": "__condition_not_met__"}),
        json!({"option_id": "GO"}),
        json!({"option_id": "go"}),
        json!({"option_id": "go", "checkpoint_handle": "cp1.ABCDE2.OoYG17oXA0k83PJBm9bC-4"}),
    ] {
        run.refused("respond_checkpoint", answer.clone());
        assert_eq!(run.session(), closed, "{answer}");
    }
    for (tool, arguments) in [
        ("next_activity", json!({"activity_id": "review"})),
        ("next_activity", json!({"activity_id": "__terminal__"})),
        ("get_activity", json!({"context_tokens": 20_000})),
        ("get_technique", json!({})),
        ("get_workflow", json!({})),
        ("get_resource", json!({"resource_id": "x"})),
        ("yield_checkpoint", json!({"checkpoint_id": "maybe"})),
        ("yield_checkpoint", json!({"checkpoint_id": "confirm"})),
        ("resume_checkpoint", json!({})),
    ] {
        run.refused(tool, arguments);
        assert_eq!(run.session().active_checkpoint, closed.active_checkpoint, "{tool}");
    }
    run.wait(3_600_000);
    assert_eq!(run.answer("go")["resolved_option"], "go");
}

/// What a caller sends is bounded before it reaches the state, and so is the state.
#[test]
fn hazard_h14_nothing_a_caller_sends_grows_without_bound() {
    let mut run = Run::at("plan");
    run.ws.settings.max_string_bytes = 100;
    run.ws.settings.max_map_bytes = 300;
    run.ws.settings.max_array_entries = 3;
    let before = run.session();
    let long = "x".repeat(101);
    let deep = (0..65).fold(json!(1), |inner, _| json!([inner]));
    for variables in
        [json!({"a": long}), json!({"a": {"b": ["y", long]}}), json!({ long.as_str(): 1 }), json!({"a": deep})]
    {
        let refused = run.refused("next_activity", json!({"activity_id": "review", "variables_changed": variables}));
        assert_eq!(refused.code, "PARAM_TOO_LARGE");
        assert!(refused.text().len() < 1000, "{}", refused.text().len());
    }
    let many: serde_json::Map<String, Value> = (0..60).map(|n| (format!("v{n}"), json!(n))).collect();
    let entries: Vec<Value> = (0..4).map(|n| json!({"step_id": format!("s{n}"), "output": ""})).collect();
    for more in [json!({"variables_changed": many}), json!({"step_manifest": entries})] {
        let mut arguments = json!({"activity_id": "review"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(run.refused("next_activity", arguments).code, "PARAM_TOO_LARGE");
    }
    assert_eq!(run.session(), before);

    run.ws.settings.max_session_bytes = before.canonical_text().len() + 4000;
    let mut filled = 0;
    let refused = loop {
        let variables = json!({format!("v{filled}"): "x".repeat(90)});
        let activity = if filled % 2 == 0 { "review" } else { "plan" };
        let arguments = run.addressed(json!({"activity_id": activity, "variables_changed": variables}));
        match run.ws.try_call("next_activity", arguments) {
            Ok(_) => filled += 1,
            Err(refused) => break refused,
        }
        assert!(filled < 100, "it never ends");
    };
    assert_eq!(refused.code, "SESSION_TOO_LARGE");
    assert!(run.session().canonical_text().len() <= run.ws.settings.max_session_bytes);
    run.go("__terminal__");
}

/// The minimum is exact to the millisecond, and a clock that goes back shortens nothing.
#[test]
fn hazard_h18_the_minimum_response_time_is_whole() {
    for (waited, opens) in [(-5000, false), (0, false), (1000, false), (1999, false), (2000, true)] {
        let run = Run::patient("plan");
        run.stop("confirm");
        // The call itself takes another second.
        run.wait(waited);
        let outcome = run.ws.try_call("respond_checkpoint", run.addressed(json!({"option_id": "go"})));
        assert_eq!(outcome.err().map(|refused| refused.code), (!opens).then_some("CHECKPOINT_TOO_FAST"), "{waited}");
        let yielded = run.events("checkpoint_reached")[0].time().unwrap();
        for answered in run.events("checkpoint_response") {
            assert!(answered.time().unwrap().0 - yielded.0 >= 3000);
        }
    }
    let run = Run::at("plan");
    run.stop("confirm");
    run.wait(-60_000);
    run.answer("go");
    let stamp = |kind: &str| run.events(kind)[0].time().unwrap();
    assert!(stamp("checkpoint_response") >= stamp("checkpoint_reached"), "an answer is never older than its question");
}

/// An answer holds for its visit; a question of one's own never takes the answer of another.
#[test]
fn hazard_h19_no_answer_outlives_its_question() {
    let run = Run::at("plan");
    run.ask("confirm", "again");
    run.stop("maybe");
    run.json("respond_checkpoint", json!({"condition_not_met": true}));
    run.go("plan");
    assert_eq!(run.stop("confirm"), "yielded", "a declared way back asks again");
    run.answer("go");
    assert_eq!(run.stop("maybe"), "yielded", "so does what was dismissed");
    run.answer("sure");

    let first = json!({"checkpoint_id": "extra", "message": "Delete the branch?", "options": two()});
    assert_eq!(run.json("yield_checkpoint", first.clone())["status"], "yielded");
    run.answer("yes");
    let other = json!({"checkpoint_id": "extra", "message": "Delete the repository?", "options": two()});
    let refused = run.refused("yield_checkpoint", other);
    assert_eq!(refused.code, "CHECKPOINT_ID_REUSED");
    assert_eq!(run.json("yield_checkpoint", first)["resolved_option"], "yes", "the same question has its answer");
}

/// `a` + `b-c` and `a-b` + `c` share a key and not an answer.
#[test]
fn hazard_h25_two_questions_with_one_key_are_told_apart() {
    let run = Run::at("a");
    run.ask("b-c", "one");
    run.go("a-b");
    assert_eq!(run.stop("c"), "yielded");
    run.answer("two");
    run.go("a");
    assert_eq!(run.stop("b-c"), "yielded", "the key holds the other's answer now");
}

/// `agent_id` is a name, not a proof: taking another one while the user is being asked is told, and changes no gate.
#[test]
fn hazard_h26_another_name_opens_nothing_and_is_told() {
    let run = Run::at("plan");
    run.stop("confirm");
    let slug = "2026-07-13-alpha";
    let reply = run.ws.call("start_session", json!({"planning_slug": slug, "agent_id": "somebody"}));
    assert_eq!(codes(&reply), ["W_AGENT_REBOUND"]);
    assert!(run.session().active_checkpoint.is_some());
    assert_eq!(
        run.refused("next_activity", json!({"activity_id": "review", "agent_id": "user"})).code,
        "CHECKPOINT_ACTIVE"
    );
    // Without a name in the resume the recorded one stays.
    run.ws.call("start_session", json!({"planning_slug": slug}));
    assert_eq!(run.session().agent_id, "somebody");
}

/// Names that mean something to a language of scripts are names like any other.
#[test]
fn hazard_h27_variables_of_any_name_stay() {
    let run = Run::at("plan");
    let variables = json!({
        "__proto__": {"polluted": true}, "constructor": "c", "toString": null, "prototype": [1], "": "blank", "a.b": 1
    });
    run.call("next_activity", json!({"activity_id": "review", "variables_changed": variables}));
    for (name, value) in variables.as_object().unwrap() {
        assert_eq!(run.session().variables.get(name), Some(value), "{name:?}");
    }
    let text = run.session().canonical_text();
    let value = crate::state::parse_text(text.as_bytes()).unwrap();
    assert_eq!(value["variables"]["__proto__"], json!({"polluted": true}));
    let status = run.json("get_workflow_status", json!({}));
    assert_eq!(status["variables"]["__proto__"], json!({"polluted": true}));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// No text but the handle that was issued opens the gate, and no text but what was issued is a trace token.
    #[test]
    fn no_made_up_text_is_a_handle_or_a_token(
        noise in any::<String>(),
        alike in "(cp1\\.)?[A-Z2-7]{6}\\.[A-Za-z0-9_-]{0,30}",
        at in 0_usize..33,
        with in any::<char>(),
        cut in 0_usize..33,
    ) {
        let run = Run::at("plan");
        let yielded = run.json("yield_checkpoint", json!({"checkpoint_id": "confirm"}));
        let handle = yielded["checkpoint_handle"].as_str().unwrap();
        let closed = run.session();
        let mut edited: Vec<char> = handle.chars().collect();
        edited[at] = with;
        let texts = [noise, alike, edited.into_iter().collect(), handle[..cut].to_owned()];
        for text in texts.iter().filter(|text| *text != handle && **text != run.index) {
            let arguments = run.addressed(json!({"checkpoint_handle": text, "option_id": "go"}));
            prop_assert!(run.ws.try_call("respond_checkpoint", arguments).is_err(), "{:?}", text);
            prop_assert_eq!(&run.session(), &closed);
        }
        prop_assert_eq!(&run.answer("go")["resolved_option"], "go");
        for text in texts {
            let told = run.call("get_trace", json!({"trace_tokens": [text]})).render().text;
            prop_assert!(told.contains("TRACE_TOKEN_"), "{:?}: {}", text, told);
        }
    }
}
