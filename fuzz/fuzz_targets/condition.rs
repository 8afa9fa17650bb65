//! Any bytes are read as an activity with its steps, conditions and routes.
#![no_main]

use workflow_corpus::{Condition, Step, StepKind, claims_match};
use workflow_fuzz::{bag, definitions, scratch};

const MANIFEST: &[u8] = b"id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n";

fn check(condition: &Condition) {
    let (text, bag) = (condition.text(), bag());
    assert!(claims_match(&text, &text));
    assert_eq!(condition.holds(&bag), !Condition::Not(Box::new(condition.clone())).holds(&bag));
    let _read = (condition.to_value(), condition.reads());
}

fn steps(all: &[Step]) {
    for step in all {
        step.condition.iter().for_each(check);
        match &step.kind {
            StepKind::Loop(repeat) => {
                repeat.break_condition.iter().for_each(check);
                steps(&repeat.steps);
            }
            StepKind::Action { .. } | StepKind::Technique { .. } | StepKind::Checkpoint(_) => {}
        }
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let corpus = definitions(scratch(), &[("w/workflow.yaml", MANIFEST), ("w/activities/01-a.yaml", data)]);
    let workflow = corpus.workflow("w").expect("the manifest is sound");
    for diagnostic in &workflow.diagnostics {
        assert!(diagnostic.line != Some(0) && diagnostic.column != Some(0), "{diagnostic:?}");
    }
    for activity in &workflow.activities {
        steps(&activity.steps);
        activity.transitions.iter().filter_map(|transition| transition.condition.as_ref()).for_each(check);
        let branches = activity.decisions.iter().flat_map(|decision| &decision.branches);
        branches.filter_map(|branch| branch.condition.as_ref()).for_each(check);
        let _derived = (activity.transition_entries(), activity.targets(), activity.checkpoints());
        for step in activity.flat_steps() {
            assert!(activity.find_step(&step.qualified_id).is_some(), "{}", step.qualified_id);
        }
        let _bundle = corpus.activity_bundle(&workflow, activity);
    }
    let _listed = corpus.list();
});
