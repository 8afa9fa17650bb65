//! Which step techniques come with an activity.

use serde_json::{Value, json};

use super::{
    answer::is_marker,
    sample::{ROUTE, activity, alpha, steps},
};
use crate::Settings;

#[test]
fn trap_02_15_t13_a_stop_is_a_stop_although_a_marker_is_free() {
    let list = steps(&[("a", "small"), ("b", "large"), ("c", "other")]);
    let mut world = alpha(&[("01-first", activity("first", &(list + ROUTE)))]);
    *world.settings() = Settings { bundle_headroom_fraction: 1.0, chars_per_token: 1.0, ..Settings::default() };
    world.enter("first");
    world.answer("get_technique", &json!({"step_id": "c", "agent_id": "w"}));
    let held = world.get_activity(&json!({"agent_id": "w", "bundle": "reference", "context_tokens": 100_000}));
    assert!(is_marker(held.step("c")), "held, when nothing stops in front of it");
    world.enter("first");
    world.answer("get_technique", &json!({"step_id": "c", "agent_id": "v"}));
    let stopped = world.get_activity(&json!({"agent_id": "v", "bundle": "reference", "context_tokens": 3000}));
    assert_eq!(stopped.steps(), ["a"]);
    assert_eq!(stopped.meta["bundled_steps"], json!(["a"]));
}

#[test]
fn trap_02_15_t14_the_cap_skips_and_the_budget_stops() {
    let list = steps(&[("a", "small"), ("b", "large"), ("c", "other")]) + ROUTE;
    let capped = format!("bundleTechniques: {{ maxChars: 3000 }}\n{list}");
    let none = format!("bundleTechniques: {{ maxChars: 0 }}\n{list}");
    let mut world = alpha(&[
        ("01-capped", activity("capped", &capped)),
        ("02-plain", activity("plain", &list)),
        ("03-none", activity("none", &none)),
    ]);
    *world.settings() = Settings { bundle_headroom_fraction: 1.0, chars_per_token: 1.0, ..Settings::default() };
    world.enter("capped");
    assert_eq!(world.get_activity(&json!({"context_tokens": 100_000})).steps(), ["a", "c"]);
    world.enter("plain");
    assert_eq!(world.get_activity(&json!({"context_tokens": 3000})).steps(), ["a"]);
    assert_eq!(world.get_activity(&json!({"context_tokens": 100_000})).steps(), ["a", "b", "c"]);
    world.enter("none");
    let none = world.get_activity(&json!({}));
    assert_eq!(none.above["step_techniques"], Value::Null);
    assert!(!none.meta.contains_key("bundled_steps"));
}

#[test]
fn trap_02_15_t15_a_gate_on_a_loop_keeps_its_body_lazy() {
    let looped = |id: &str, gate: &str, step: &str| {
        format!(
            "  - kind: loop\n    id: {id}\n    loopType: forEach\n    variable: item\n    over: items\n{gate}    steps:\n      \
             - kind: technique\n        id: {step}\n        technique: small\n"
        )
    };
    let gated = "  - kind: technique\n    id: own-gate\n    when: main_subject\n    technique: other\n";
    let list = format!(
        "steps:\n{}{}{gated}{ROUTE}",
        looped("maybe", "    when: main_subject\n", "inside-gated"),
        looped("each", "", "inside-open")
    );
    let mut world = alpha(&[("01-first", activity("first", &list))]);
    world.enter("first");
    assert_eq!(world.get_activity(&json!({})).steps(), ["inside-open"]);
}

#[test]
fn trap_02_15_t16_equal_step_ids_are_told_apart() {
    let list = format!(
        "{}  - kind: loop\n    id: each\n    loopType: forEach\n    variable: item\n    over: items\n    steps:\n      \
         - kind: technique\n        id: record\n        technique: other\n{ROUTE}",
        steps(&[("record", "small")])
    );
    let mut world = alpha(&[("01-first", activity("first", &list))]);
    world.enter("first");
    let answer = world.get_activity(&json!({"agent_id": "w"}));
    assert_eq!(answer.steps(), ["record", "record~2"]);
    assert_eq!(answer.meta["bundled_steps"], json!(["record", "record~2"]));
    assert_eq!(answer.step("record")["marker"], "▼ STEP record · technique small");
    assert_eq!(answer.step("record~2")["marker"], "▼ STEP record~2 · technique other");
    let bundled = world.events("technique_bundled");
    assert_eq!([&bundled[0]["data"]["stepId"], &bundled[1]["data"]["stepId"]], ["record", "record~2"]);
    for (asked, technique, step) in
        [("record", "small", "record"), ("record~1", "small", "record"), ("record~2", "other", "record~2")]
    {
        let fetched = world.answer("get_technique", &json!({"step_id": asked, "agent_id": "w"}));
        assert!(fetched.text.contains(&format!("\ntechnique_id: {technique}\n")), "{asked}: {}", fetched.text);
        assert_eq!(world.events("technique_fetched").last().unwrap()["data"]["stepId"], step);
    }
    assert_eq!(world.events("step_started").len(), 2, "once per activity, step and agent");
}
