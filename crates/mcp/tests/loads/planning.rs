//! A planning root with very many sessions.

use std::time::Instant;

use serde_json::json;

use crate::{Place, bounded, delivery, usage};

#[test]
fn a_call_does_not_look_at_other_sessions() {
    let place = Place::new();
    let process = place.process();
    let (few, many) = (20, bounded(150, 5000));
    let mut indexes = Vec::new();
    let mut cost = Vec::new();
    for wanted in [few, many] {
        let begun = Instant::now();
        while indexes.len() < wanted {
            indexes.push(process.start(&format!("session-{:05}", indexes.len())));
        }
        println!("{wanted} sessions are there after {:?}", begun.elapsed());
        let index = &indexes[wanted / 2];
        let advance = json!({"session_index": index, "activity_id": "plan"});
        let counts = [
            process.measured("known", "record_usage", &usage(index)).1,
            process.measured("known", "get_workflow_status", &json!({"session_index": index})).1,
            process.measured("known", "next_activity", &advance).1,
            process.measured("known", "get_activity", &delivery(index)).1,
        ];
        cost.push(counts);
    }
    // Trace files and gates differ a little from call to call.
    assert!(cost[0].iter().zip(&cost[1]).all(|(few, many)| *many <= few + 12), "{cost:?}");

    let fresh = place.process();
    let (index, slug) = (&indexes[many - 7], format!("session-{:05}", many - 9));
    fresh.measured("fresh process", "get_workflow_status", &json!({"session_index": index}));
    let (status, by_index) = fresh.measured("then", "get_workflow_status", &json!({"session_index": index}));
    assert_eq!(status["session_index"], **index);
    assert!(by_index < 40, "{by_index}");
    let (other, _) = fresh.measured("another", "get_workflow_status", &json!({"session_index": indexes[3]}));
    assert_eq!(other["session_index"], *indexes[3]);
    let (resumed, by_slug) = fresh.measured("by slug", "start_session", &json!({"planning_slug": slug}));
    assert_eq!(resumed["session_index"], *indexes[many - 9]);
    // A tree is walked for a slug, so that a folder below another is found: a few looks for each folder.
    assert!(by_slug < 100 + 12 * many, "{by_slug}");
    let (_, unknown) = fresh.measured("new", "start_session", &json!({"workflow_id": "mini", "planning_slug": "new"}));
    assert!(unknown < 200 + 12 * many, "{unknown}");
    let begun = Instant::now();
    assert_eq!(fresh.server.sessions().unwrap().as_array().unwrap().len(), many + 1);
    println!("listed in {:?}", begun.elapsed());
}

#[cfg(unix)]
#[test]
fn links_that_lead_in_circles_are_walked_once() {
    let place = Place::new();
    let process = place.process();
    let index = process.start("alpha");
    for level in 0..40 {
        let name = format!("loop-{level}");
        std::os::unix::fs::symlink("..", place.planning().join("alpha").join(&name)).unwrap();
        std::os::unix::fs::symlink(".", place.planning().join(&name)).unwrap();
    }
    let fresh = place.process();
    let (_, count) = fresh.measured("circles", "get_workflow_status", &json!({"session_index": index}));
    assert!(count < 1000, "{count}");
    let (resumed, count) = fresh.measured("circles", "start_session", &json!({"planning_slug": "alpha"}));
    assert_eq!(resumed["session_index"], *index);
    assert!(count < 3000, "{count}");
}
