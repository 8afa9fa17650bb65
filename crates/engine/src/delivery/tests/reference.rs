//! What a scope holds is referred to, and only that.

use std::collections::HashMap;

use serde_json::json;

use super::{
    answer::{is_marker, keys},
    sample::{ROUTE, activity, alpha, steps, walk},
};

#[test]
fn reference_delivery_replaces_what_the_scope_holds() {
    let mut world = walk();
    world.enter("first");
    let full = world.get_activity(&json!({"agent_id": "w"}));
    let again = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
    assert_eq!(keys(&again.above)[..2], ["bundle_mode", "bundle_note"]);
    assert!(again.above["bundle_note"].as_str().unwrap().contains("bundle: full"));
    assert!(is_marker(&again.above["techniques"]["shared"]) && is_marker(&again.above["rules"]));
    assert!(is_marker(&again.below["activity_rules"]));
    assert_eq!(again.above["rules"]["content_hash"], full.above["content_hashes"]["rules"]);
    assert_eq!(keys(again.step("a")), ["marker", "delivery", "content_hash"]);
    assert_eq!(again.step("a")["content_hash"], full.step("a")["content_hash"]);
    assert_eq!(again.meta["activity_rules"], json!(["work", "be kind"]), "_meta keeps the list");
    assert_eq!(again.meta["dispatch"], "resume");
    assert_eq!(again.below["id"], "first", "the body is never replaced");
    let forced = world.get_activity(&json!({"agent_id": "w", "bundle": "full"}));
    assert_eq!(forced.above, full.above);
}

#[test]
fn rules_that_are_held_are_not_repeated_for_new_ones_beside_them() {
    let mut world = walk();
    world.enter("first");
    let first = world.get_activity(&json!({"agent_id": "w"}));
    world.enter("second");
    let second = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
    let [shared, plan, brief] = second.above["rules"].as_array().unwrap().as_slice() else {
        panic!("{}", second.above["rules"])
    };
    assert_eq!(
        (&plan[0], &shared[0], &brief[0]),
        (&json!("plan::plan-rule"), &json!("shared"), &json!("alpha::be-brief"))
    );
    assert!(plan[1].is_string() && brief[1].is_string() && is_marker(&shared[1]));
    assert_eq!(shared[1]["content_hash"], first.above["content_hashes"]["rules/shared"]);
    assert_eq!(keys(&second.above["content_hashes"]), ["rules", "rules/plan"]);

    // The third has one new rule; all others are held, in two parts from two answers.
    world.enter("third");
    let third = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
    let rules = third.above["rules"].as_array().unwrap();
    assert!(is_marker(&rules[0][1]) && rules[1][1].is_string() && is_marker(&rules[2][1]), "{rules:?}");
    assert_eq!(
        rules[2],
        json!(["plan", {"delivery": "unchanged", "content_hash": second.above["content_hashes"]["rules/plan"]}])
    );

    // A list that went out in parts is held whole.
    let again = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
    assert_eq!(again.above["rules"]["content_hash"], third.above["content_hashes"]["rules"]);
    let forced = world.get_activity(&json!({"agent_id": "w", "bundle": "full"}));
    assert!(forced.above["rules"].as_array().unwrap().iter().all(|rule| rule[1].is_string()));
    let other = world.get_activity(&json!({"agent_id": "other", "bundle": "reference"}));
    assert_eq!(other.above["rules"], forced.above["rules"], "what another scope holds is not referred to");
}

#[test]
fn shared_blocks_of_a_new_technique_collapse_within_a_response_too() {
    let mut world = walk();
    world.enter("first");
    let answer = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
    assert!(!is_marker(&answer.step("a")["inherited_inputs"]));
    let block = &answer.step("b")["inherited_inputs"];
    assert!(is_marker(block));
    assert_eq!(block["content_hash"], answer.step("a")["inherited_inputs"]["content_hash"]);
    assert!(!is_marker(&answer.step("b")["rules"]), "the rules of the two differ");
}

#[test]
fn equal_techniques_of_two_steps_go_out_once_under_reference_delivery() {
    let list = steps(&[("a", "small"), ("b", "other"), ("c", "small")]);
    let mut world = alpha(&[("01-first", activity("first", &(list + ROUTE)))]);
    world.enter("first");
    let full = world.get_activity(&json!({"agent_id": "w"}));
    assert_eq!(full.step("c")["content_hash"], full.step("a")["content_hash"]);
    assert!(!is_marker(full.step("c")), "without reference delivery nothing is a marker");
    let answer = world.get_activity(&json!({"agent_id": "other", "bundle": "reference"}));
    assert!(!is_marker(answer.step("a")) && is_marker(answer.step("c")));
    assert_eq!(answer.step("c")["content_hash"], answer.step("a")["content_hash"]);
    assert_eq!(answer.meta["bundled_steps"], json!(["a", "b", "c"]));
}

#[test]
fn trap_02_15_t12_both_copies_of_one_technique_stay_known() {
    let binding = |id: &str, value: &str| {
        format!(
            "  - kind: technique\n    id: {id}\n    technique:\n      name: small\n      inputs: {{ main_subject: {value} }}\n"
        )
    };
    let list = format!("steps:\n{}{}{ROUTE}", binding("a", "\"one thing\""), binding("b", "\"another thing\""));
    let mut world = alpha(&[("01-first", activity("first", &list))]);
    world.enter("first");
    let full = world.get_activity(&json!({"agent_id": "w"}));
    assert_ne!(full.step("a")["content_hash"], full.step("b")["content_hash"]);
    for _ in 0..2 {
        let again = world.get_activity(&json!({"agent_id": "w", "bundle": "reference"}));
        for id in ["a", "b"] {
            assert!(is_marker(again.step(id)), "{id}");
            assert_eq!(again.step(id)["content_hash"], full.step(id)["content_hash"]);
        }
    }
}

#[test]
fn trap_02_15_t23_a_scope_is_not_the_session() {
    let mut world = walk();
    world.enter("first");
    world.get_activity(&json!({"agent_id": "one"}));
    let other = world.get_activity(&json!({"agent_id": "two", "bundle": "reference"}));
    assert!(!other.above.to_string().contains("\"shared\":{\"delivery\""));
    assert!(!is_marker(&other.above["rules"]) && !is_marker(other.step("a")));
    for (activity, tokens) in [("first", 1), ("second", 1), ("third", 1), ("fourth", 1)] {
        world.enter(activity);
        let own = world.get_activity(&json!({"context_tokens": tokens}));
        assert_eq!(own.meta["batch"]["may_continue"], true, "the session's agent is unbounded");
    }
}

#[test]
fn trap_02_15_t30_the_session_index_is_part_of_a_resource_hash() {
    let hashes: Vec<HashMap<String, String>> = ["ABCDE2", "ABCDE3"]
        .into_iter()
        .map(|index| {
            let mut world = walk();
            world.session_mut().session_index = index.to_owned();
            for id in ["guide", "guide#part"] {
                world.answer("get_resource", &json!({"resource_id": id}));
            }
            let agent = world.session().agent_id.clone();
            world.session().delivered_content[&agent].clone().into_iter().collect()
        })
        .collect();
    for key in ["resource:guide", "resource:guide#part"] {
        assert_ne!(hashes[0][key], hashes[1][key]);
    }
    assert_ne!(hashes[0]["resource:guide"], hashes[0]["resource:guide#part"]);
}
