//! Every activity of the corpora that `WORKFLOW_TEST_CORPORA` names, delivered.

use serde_json::json;
use workflow_corpus::{Library, Root, StepKind};

use super::{
    answer::{Answer, is_marker, parsed},
    world::World,
};
use crate::delivery::chars;

#[test]
fn every_activity_is_delivered_readably() {
    let Ok(folders) = std::env::var("WORKFLOW_TEST_CORPORA") else {
        eprintln!("skipped: WORKFLOW_TEST_CORPORA names no corpora");
        return;
    };
    for folder in folders.split(':').filter(|folder| !folder.is_empty()) {
        let root = Root::Directory { path: folder.into(), label: "test".to_owned() };
        let corpus = Library::new(vec![root], None).snapshot();
        let (mut workflows, mut activities, mut sum_workflow, mut sum_activity) = (0, 0, 0, 0);
        for id in corpus.workflow_ids() {
            let Ok(workflow) = corpus.workflow(&id) else { continue };
            let mut world = World::new(&corpus, &id);
            let answer = Answer::of(world.answer("get_workflow", &json!({})));
            workflows += 1;
            sum_workflow += chars(&answer.text);
            for activity in &workflow.activities {
                let at = format!("{folder} {id} {}", activity.id);
                world.enter(&activity.id);
                let args = json!({"agent_id": activity.id, "context_tokens": 200_000});
                let full = Answer::of(world.answer("get_activity", &args));
                assert_eq!(full.below["id"], activity.id.as_str(), "{at}");
                assert_eq!(full.below["batch"], full.meta["batch"], "{at}");
                assert!(full.text.contains(&activity.body), "{at}: the file stands as written");
                activities += 1;
                sum_activity += chars(&full.text);
                let args = json!({"agent_id": activity.id, "context_tokens": 200_000, "bundle": "reference"});
                let again = Answer::of(world.answer("get_activity", &args));
                assert!(again.above["rules"].is_null() || is_marker(&again.above["rules"]), "{at}");
                assert!(again.steps().iter().all(|step| is_marker(again.step(step))), "{at}");
                for step in activity.flat_steps() {
                    if matches!(step.step.kind, StepKind::Technique { .. }) {
                        let args = json!({"step_id": step.qualified_id, "agent_id": activity.id});
                        if let Ok(fetched) = world.call("get_technique", &args) {
                            let text = fetched.text.split("\nvalidation:\n").next().unwrap();
                            let (_, body) = text.split_once("\n\n").unwrap();
                            assert!(parsed(body)["content_hash"].is_string(), "{at}");
                        }
                    }
                }
            }
        }
        assert!(activities > 0, "{folder} holds workflows");
        eprintln!("{folder}: {workflows} workflows {sum_workflow}, {activities} activities {sum_activity}");
    }
}
