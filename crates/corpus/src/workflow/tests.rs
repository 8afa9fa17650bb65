use std::sync::Arc;

use serde_json::{Value, json};

use crate::fixture::{activity, corpora, corpus, manifest, real_corpora};
use crate::{Library, Root, Severity, Status, StepKind, Workflow, WorkflowError};

/// Loads the workflow `tea` of these files.
fn tea(files: &[(&str, &str)]) -> Workflow {
    let loaded = corpus(files).workflow("tea");
    Workflow::clone(&loaded.unwrap_or_else(|error| panic!("{error}")))
}

/// `code line:column path` of every diagnostic of a workflow.
fn found(workflow: &Workflow) -> Vec<String> {
    workflow.diagnostics.iter().map(show).collect()
}

fn show(diagnostic: &crate::Diagnostic) -> String {
    let place = |number: Option<usize>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    format!(
        "{} {}:{} {}",
        diagnostic.code,
        place(diagnostic.line),
        place(diagnostic.column),
        diagnostic.path.as_deref().unwrap_or("-")
    )
}

/// A workflow `tea` with one activity `brew` that has these lines.
fn brew(more: &str) -> Workflow {
    tea(&[("tea/workflow.yaml", &manifest("tea", "")), ("tea/activities/01-brew.yaml", &activity("brew", more))])
}

#[test]
fn real_corpora_load() {
    for path in real_corpora() {
        let library = Library::new(vec![Root::Directory { path: path.clone(), label: "real".to_owned() }], None);
        let corpus = library.snapshot();
        assert!(Arc::ptr_eq(&corpus, &library.snapshot()), "nothing changed between two snapshots");
        let mut kinds = [0; 4];
        for id in corpus.workflow_ids().iter().map(String::as_str).chain([crate::META]) {
            let workflow = corpus.workflow(id).unwrap_or_else(|error| panic!("{id}: {error}"));
            for diagnostic in &workflow.diagnostics {
                println!("{id}: {diagnostic}");
                assert_ne!(diagnostic.severity, Severity::Error, "{diagnostic}");
            }
            assert!(workflow.load_errors.is_empty(), "{:?}", workflow.load_errors);
            assert!(!workflow.activities.is_empty(), "{id} has activities");
            for activity in &workflow.activities {
                let document = workflow_yaml::parse(&activity.body);
                assert!(!document.has_errors(), "{id}/{}: {:?}", activity.id, document.problems);
                assert_eq!(document.root.get("id").and_then(|id| id.as_str()), Some(activity.id.as_str()));
                for flat in activity.flat_steps() {
                    assert!(!flat.step.id.is_empty());
                    let by_id = activity.find_step(&flat.qualified_id).expect("every step is found again");
                    assert!(std::ptr::eq(by_id.step, flat.step));
                    kinds[match flat.step.kind {
                        StepKind::Technique { .. } => 0,
                        StepKind::Action { .. } => 1,
                        StepKind::Checkpoint(_) => 2,
                        StepKind::Loop(_) => 3,
                    }] += 1;
                }
            }
        }
        println!("{}: technique, action, checkpoint, loop steps: {kinds:?}", path.display());
        for listed in corpus.list().workflows {
            println!("{} {} {} {}", listed.id, listed.status, listed.errors, listed.warnings);
        }
    }
}

#[test]
fn body_of_real_activities_keeps_the_file() {
    for path in real_corpora() {
        let library = Library::new(vec![Root::Directory { path: path.clone(), label: "real".to_owned() }], None);
        let corpus = library.snapshot();
        let mut edited = 0;
        for key in corpus.workflow_keys() {
            let workflow = corpus.workflow_at(&key).unwrap_or_else(|error| panic!("{error}"));
            for activity in &workflow.activities {
                let file = activity.file.as_ref().and_then(|id| corpus.file(id.root, &id.path)).expect("it has a file");
                let without_refs = |text: &str| -> Vec<String> {
                    text.lines().filter(|line| !line.trim_start().starts_with("ref: ")).map(str::to_owned).collect()
                };
                let body: Vec<String> = activity.body.lines().map(str::to_owned).collect();
                edited += usize::from(activity.body != file.text);
                let mut rest = body.iter();
                for line in without_refs(&file.text) {
                    assert!(rest.any(|kept| *kept == line), "{}: the line `{line}` is kept", file.id.path);
                }
            }
        }
        println!("{}: {edited} bodies differ from their file", path.display());
        assert!(edited > 0);
    }
}
