//! Very large sessions, and the limits of size (spec 03 §3.8).

use std::time::Instant;

use serde_json::json;
use workflow_engine::Settings;

use crate::{Place, Process, bounded, delivery, usage};

/// Steps of one call of `next_activity`, each an event.
const STEPS: usize = 900;

/// Fills a session with events.
fn fill(process: &Process, index: &str, events: usize) {
    for round in 0..events.div_ceil(STEPS) {
        let manifest: Vec<_> =
            (0..STEPS).map(|nth| json!({"step_id": format!("s{round}-{nth}"), "output": "done"})).collect();
        process
            .must("next_activity", &json!({"session_index": index, "activity_id": "plan", "step_manifest": manifest}));
    }
}

#[test]
fn a_session_with_very_many_events_goes_on() {
    let place = Place::new();
    let process = place.process();
    let index = process.start("alpha");
    let events = bounded(3_000, 50_000);
    let begun = Instant::now();
    process.must("next_activity", &json!({"session_index": index, "activity_id": "plan"}));
    fill(&process, &index, events);
    println!("{events} events are there after {:?}", begun.elapsed());
    let fresh = place.process();
    fresh.measured("fresh process", "get_workflow_status", &json!({"session_index": index}));
    fresh.measured("large", "record_usage", &usage(&index));
    fresh.measured("large", "get_activity", &delivery(&index));
    fresh.measured("large", "inspect_session", &json!({"session_index": index, "view": "history"}));
    let (history, _) = fresh.measured("large", "inspect_session", &json!({"session_index": index, "view": "history"}));
    let counted: u64 = history["byType"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert!(usize::try_from(counted).unwrap() >= events, "{counted}");
}

#[test]
fn a_session_of_very_many_bytes_goes_on() {
    let place = Place::new();
    let process = place.process();
    let index = process.start("alpha");
    process.must("next_activity", &json!({"session_index": index, "activity_id": "plan"}));
    // Each call adds a mebibyte of values, and another one of events that hold them.
    let calls = bounded(2, 20);
    let text = "x".repeat(250_000);
    for nth in 0..calls {
        let names = (0..4).map(|part| (format!("text_{nth}_{part}"), json!(text)));
        let variables: serde_json::Map<_, _> = names.collect();
        process.must(
            "next_activity",
            &json!({"session_index": index, "activity_id": "plan", "variables_changed": variables}),
        );
    }
    let bytes = std::fs::metadata(place.planning().join("alpha/session.json")).unwrap().len();
    println!("{bytes} bytes");
    assert!(bytes >= calls as u64 * 2_000_000);
    let fresh = place.process();
    fresh.measured("fresh process", "get_workflow_status", &json!({"session_index": index}));
    fresh.measured("large", "record_usage", &usage(&index));
    fresh.measured("large", "yield_checkpoint", &json!({"session_index": index, "checkpoint_id": "confirm"}));
    fresh.measured("large", "respond_checkpoint", &json!({"checkpoint_handle": index, "option_id": "go"}));
}

/// Growth is refused beyond the limit; answering a checkpoint, ending and reading stay possible.
#[test]
fn a_full_session_can_still_be_ended() {
    let place = Place::new();
    let process =
        place.process_with(Settings { large_session_bytes: 20_000, max_session_bytes: 40_000, ..Settings::default() });
    let index = process.start("alpha");
    process.must("next_activity", &json!({"session_index": index, "activity_id": "plan"}));
    process.must("yield_checkpoint", &json!({"session_index": index, "checkpoint_id": "confirm"}));
    process.must("respond_checkpoint", &json!({"checkpoint_handle": index, "option_id": "go"}));
    let grow = |bytes: usize| {
        let variables = json!({"text": "x".repeat(bytes)});
        process.call(
            "next_activity",
            &json!({"session_index": index, "activity_id": "plan", "variables_changed": variables}),
        )
    };
    let warned = grow(12_000);
    assert!(!warned.is_error && warned.text.contains("has grown to"), "{}", warned.text);
    process.must("yield_checkpoint", &json!({"session_index": index, "checkpoint_id": "ask", "message": "Really?", "options": [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]}));
    let tight =
        place.process_with(Settings { large_session_bytes: 1_000, max_session_bytes: 2_000, ..Settings::default() });
    let refused = tight.call("start_session", &json!({"planning_slug": "alpha", "user_request": "more"}));
    assert!(refused.is_error && refused.text.starts_with("SESSION_TOO_LARGE"), "{}", refused.text);
    tight.must("respond_checkpoint", &json!({"checkpoint_handle": index, "option_id": "a"}));
    tight.must("resume_checkpoint", &json!({"session_index": index}));
    let refused = tight.call("record_usage", &usage(&index));
    assert!(refused.is_error && refused.text.starts_with("SESSION_TOO_LARGE"), "{}", refused.text);
    tight.must("get_workflow_status", &json!({"session_index": index}));
    tight.must("inspect_session", &json!({"session_index": index, "view": "history"}));
    tight.must("next_activity", &json!({"session_index": index, "activity_id": "__terminal__"}));
    let status = tight.must("get_workflow_status", &json!({"session_index": index}));
    assert_eq!(status["status"], "completed");
}
