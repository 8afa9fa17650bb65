//! What holds of every sequence of deliveries.

use std::collections::{HashMap, HashSet};

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

use super::{
    answer::{counted, is_marker, parsed},
    sample::walk,
    world::World,
};
use crate::{
    delivery::{SEPARATOR, chars},
    state::ContextMode,
};

/// One call of a walk: tool, scope, and further arguments.
#[derive(Clone, Debug)]
enum Move {
    Enter(&'static str),
    Call { tool: &'static str, scope: Option<&'static str>, args: Value },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let scope = || select(vec![None, Some("one"), Some("two")]);
    let mode = || select(vec![Value::Null, json!("reference"), json!("full")]);
    let one = prop_oneof![
        2 => select(vec!["first", "second", "third", "fourth"]).prop_map(Move::Enter),
        4 => (scope(), mode(), select(vec![50_u64, 900, 2_000, 200_000])).prop_map(|(scope, bundle, tokens)| Move::Call {
            tool: "get_activity",
            scope,
            args: json!({"bundle": bundle, "context_tokens": tokens}),
        }),
        4 => (scope(), mode(), any::<bool>(), select(vec!["a", "b", "c", "d", "e", "f"])).prop_map(
            |(scope, bundle, full, step)| Move::Call {
                tool: "get_technique",
                scope,
                args: json!({"bundle": bundle, "full": full, "step_id": step}),
            }
        ),
        2 => (scope(), mode(), select(vec!["guide", "guide#part", "notes"])).prop_map(|(scope, bundle, id)| Move::Call {
            tool: "get_resource",
            scope,
            args: json!({"bundle": bundle, "resource_id": id}),
        }),
        1 => any::<()>().prop_map(|()| Move::Call { tool: "get_workflow", scope: None, args: json!({}) }),
    ];
    prop::collection::vec(one, 1..25)
}

/// What one scope has been sent in full: hashes, and resources by the id they were asked with.
#[derive(Default)]
struct Received {
    hashes: HashSet<String>,
    resources: HashSet<String>,
}

/// Checks markers against what was received before, and notes full copies, in reading order.
fn read(value: &Value, received: &mut Received, markers: &mut usize) {
    if is_marker(value) {
        *markers += 1;
        let hash = value["content_hash"].as_str().unwrap();
        let resource = value["resource_id"].as_str();
        let known = resource.map_or(received.hashes.contains(hash), |id| received.resources.contains(id));
        assert!(known, "a marker for {hash} that nothing sent before carries");
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("content_hash", Value::String(hash)) => {
                        received.hashes.insert(hash.clone());
                    }
                    ("content_hashes", Value::Object(hashes)) => {
                        received.hashes.extend(hashes.values().filter_map(Value::as_str).map(str::to_owned));
                    }
                    _ => read(member, received, markers),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| read(item, received, markers)),
        _ => {}
    }
}

/// The parts of a text answer that are YAML.
fn documents(tool: &str, text: &str) -> Vec<Value> {
    let text = text.split("\nvalidation:\n").next().unwrap_or_default();
    match (tool, text.split_once(SEPARATOR)) {
        (_, Some((above, below))) => vec![parsed(above), parsed(below)],
        ("get_activity", None) => vec![parsed(text)],
        _ => vec![parsed(text.split_once("\n\n").unwrap().1)],
    }
}

fn sizes(world: &World) -> u64 {
    let counted = ["activity_dispatched", "technique_fetched", "resource_fetched"];
    let events = world.session().history.iter().filter(|event| counted.contains(&event.kind()));
    events.filter_map(|event| event.data("chars")?.as_u64()).sum()
}

fn check(moves: &[Move], persistent: bool) {
    let mut world = walk();
    if persistent {
        world.session_mut().context_mode = Some(ContextMode::Persistent);
    }
    world.enter("first");
    let owner = world.session().agent_id.clone();
    let mut received: HashMap<String, Received> = HashMap::new();
    for step in moves {
        let (tool, scope, args) = match step {
            Move::Enter(activity) => {
                world.enter(activity);
                continue;
            }
            Move::Call { tool, scope, args } => (*tool, *scope, args),
        };
        let mut args = args.clone();
        let members = args.as_object_mut().unwrap();
        members.retain(|_, value| !value.is_null());
        if let Some(scope) = scope {
            members.insert("agent_id".to_owned(), scope.into());
        }
        let refers_back = match args["bundle"].as_str() {
            _ if args["full"] == true => false,
            Some(mode) => mode == "reference",
            None => persistent && tool != "get_resource",
        };
        let before = (world.session().delivered_content.clone(), sizes(&world));
        let Ok(rendered) = world.call(tool, &args) else {
            assert_eq!(before, (world.session().delivered_content.clone(), sizes(&world)), "a refusal changes nothing");
            continue;
        };
        let scope = scope.map_or(owner.clone(), str::to_owned);

        let mut markers = 0;
        let received = received.entry(scope.clone()).or_default();
        let resource = rendered.text.strip_prefix("resource_id: ").and_then(|rest| rest.lines().next());
        if let Some(id) = resource {
            received.resources.insert(id.to_owned());
        } else {
            for document in documents(tool, &rendered.text) {
                read(&document, received, &mut markers);
            }
        }
        assert!(refers_back || markers == 0, "no marker unless the call refers back: {tool} {args}");

        for (other, entries) in &before.0 {
            let now = &world.session().delivered_content[other];
            assert!(*other == scope || entries == now, "the ledger of {other} belongs to it alone");
            assert!(entries.keys().all(|key| now.contains_key(key)), "nothing expires");
        }

        let refused = rendered.text.starts_with("status: refused");
        let sent = match tool {
            "get_workflow" => 0,
            _ if refused => 0,
            "get_resource" => chars(rendered.text.split("\n<!-- end").next().unwrap_or_default()),
            _ => counted(&rendered.text),
        };
        assert_eq!(sizes(&world) - before.1, sent, "recorded sizes are what was sent: {tool} {args}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn deliveries_refer_only_to_what_the_scope_received(moves in moves(), persistent in any::<bool>()) {
        check(&moves, persistent);
    }
}
