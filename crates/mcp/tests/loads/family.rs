//! Very many children, and long chains of parents.

use serde_json::json;

use crate::{Place, bounded, usage};

#[test]
fn very_many_embedded_children() {
    let place = Place::new();
    let process = place.process();
    let parent = process.start("alpha");
    let count = bounded(40, 200);
    let mut children = Vec::new();
    for _ in 0..count {
        let child = process.must("dispatch_child", &json!({"session_index": parent, "workflow_id": "child"}));
        children.push(child["session_index"].as_str().unwrap().to_owned());
    }
    let fresh = place.process();
    for child in [&children[0], &children[count - 1]] {
        fresh.measured("embedded", "next_activity", &json!({"session_index": child, "activity_id": "only"}));
        fresh.measured("embedded", "next_activity", &json!({"session_index": child, "activity_id": "__terminal__"}));
    }
    let (status, _) = fresh.measured("parent", "get_workflow_status", &json!({"session_index": parent}));
    assert_eq!(status["session_index"], *parent);
    let state: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.planning().join("alpha/session.json")).unwrap()).unwrap();
    let ended = state["triggeredWorkflows"].as_array().unwrap().iter().filter(|child| child["status"] == "completed");
    assert_eq!(ended.count(), 2);
}

#[test]
fn very_many_children_with_folders() {
    let place = Place::new();
    let process = place.process();
    let parent = process.start("alpha");
    let count = bounded(30, 200);
    let mut children = Vec::new();
    for nth in 0..count {
        let arguments =
            json!({"workflow_id": "child", "planning_slug": format!("c{nth}"), "parent_planning_slug": "alpha"});
        children.push(process.must("start_session", &arguments)["session_index"].as_str().unwrap().to_owned());
    }
    let fresh = place.process();
    let child = &children[count / 2];
    fresh.must("next_activity", &json!({"session_index": child, "activity_id": "only"}));
    let end = json!({"session_index": child, "activity_id": "__terminal__"});
    let (_, operations) = fresh.measured("own folder", "next_activity", &end);
    assert!(operations < 150 + 8 * count, "{operations}");
    fresh.measured("parent", "start_session", &json!({"planning_slug": "alpha"}));
    fresh.measured("parent", "record_usage", &usage(&parent));
    let state: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.planning().join("alpha/session.json")).unwrap()).unwrap();
    assert_eq!(state["triggeredWorkflows"].as_array().unwrap().len(), count);
}

/// Each child records its parent with that one's parents: files grow along a chain, and only up to the limit of 1 MiB.
#[test]
fn a_chain_of_parents_is_bounded() {
    let place = Place::new();
    let process = place.process();
    process.start("link-0");
    let mut last = String::new();
    for nth in 1..=32 {
        let arguments = json!({
            "workflow_id": "mini", "planning_slug": format!("link-{nth}"),
            "parent_planning_slug": format!("link-{}", nth - 1), "user_request": "x".repeat(60_000),
        });
        last = process.must("start_session", &arguments)["session_index"].as_str().unwrap().to_owned();
    }
    let arguments = json!({"workflow_id": "mini", "planning_slug": "link-33", "parent_planning_slug": "link-32"});
    let outcome = process.call("start_session", &arguments);
    // The chain is trimmed before it is too deep.
    println!("link 33: {}", outcome.text.lines().next().unwrap_or_default());
    let bytes = std::fs::metadata(place.planning().join("link-32/session.json")).unwrap().len();
    println!("the last of 33 has {bytes} bytes");
    assert!(bytes < 2 << 20, "{bytes}");
    let fresh = place.process();
    fresh.measured("chain", "next_activity", &json!({"session_index": last, "activity_id": "plan"}));
    fresh.measured("chain", "get_workflow_status", &json!({"session_index": last}));
}
