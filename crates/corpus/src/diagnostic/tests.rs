//! Every error says what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;
use crate::fixture::{activity, corpus, manifest, technique};
use crate::{Library, Root, WorkflowError};

/// Codes that only warn, or are no diagnostics of a definition.
const NO_ERRORS: &[&str] = &[
    "activity.filename",
    "activity.id-mismatch",
    "checkpoint.key-collision",
    "checkpoint.option",
    "manifest.id-mismatch",
    "resource.anchor",
    "resource.unresolved",
    "technique.ambiguous",
    "technique.duplicate-id",
    "technique.lost-content",
    "variable.default-type",
    "variable.duplicate",
    "when.mixed",
    "when.syntax",
    "workflow.unknown-key",
];

/// Everything that is found in the workflow `w` of a corpus.
fn diagnostics(corpus: &crate::Corpus) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = corpus.entry_problems().cloned().collect();
    match corpus.workflow("w") {
        Ok(workflow) => {
            found.extend(workflow.diagnostics.iter().cloned());
            found.extend(corpus.technique_diagnostics(&workflow).iter().cloned());
        }
        Err(WorkflowError::Invalid { issues, .. }) => found.extend(issues),
        Err(error) => panic!("{error}"),
    }
    found
}

/// A workflow `w` with one more file, or with one of its files replaced.
fn with(path: &str, text: &str) -> Vec<(String, String)> {
    let mut files = BTreeMap::from([
        ("w/workflow.yaml".to_owned(), manifest("w", "")),
        ("w/activities/01-a.yaml".to_owned(), activity("a", "")),
        ("w/techniques/t.md".to_owned(), technique("")),
    ]);
    files.insert(path.to_owned(), text.to_owned());
    files.into_iter().collect()
}

fn errors(files: &[(String, String)]) -> Vec<Diagnostic> {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let errors = diagnostics(&corpus(&files)).into_iter().filter(|found| found.severity == Severity::Error);
    errors.collect()
}

/// Definitions with errors: code, file, text. Of the activity and the manifest what follows behind the heads.
const BAD: &[(&str, &str, &str)] = &[
    ("activity.borrow-unresolved", "w/workflow.yaml", "activities: [nowhere.yaml]\n"),
    ("activity.borrow-unresolved", "w/workflow.yaml", "activities: [../../x.yaml]\n"),
    ("activity.duplicate-id", "w/activities/02-a.yaml", ""),
    ("activity.parse", "w/activities/01-a.yaml", "steps: [\n"),
    ("activity.parse", "w/activities/01-a.yaml", "a: *b\n"),
    ("activity.parse", "w/activities/01-a.yaml", "id: again\n"),
    ("activity.parse", "w/activities/01-a.yaml", "? [x]\n: y\n"),
    ("activity.parse", "w/activities/01-a.yaml", "a: b: c\n"),
    ("activity.parse", "w/activities/01-a.yaml", "a: &x [*x]\n"),
    ("activity.parse", "w/activities/01-a.yaml", "\tx: y\n"),
    ("activity.parse", "w/activities/01-a.yaml", "a: 'x\n"),
    ("activity.parse", "w/activities/01-a.yaml", "a: !!int x\n--- \nb: c\n"),
    ("activity.parse", "w/activities/02-b.yaml/x.yaml", ""),
    ("activity.schema", "w/activities/01-a.yaml", "steps: 1\n"),
    ("activity.schema", "w/activities/01-a.yaml", "nobody: 1\n"),
    ("activity.schema", "w/activities/01-a.yaml", "steps: [{id: x}]\n"),
    ("activity.schema", "w/activities/01-a.yaml", "decisions: [{id: x, name: x, branches: []}]\n"),
    ("checkpoint.body-missing", "w/activities/01-a.yaml", "steps: [{kind: checkpoint, id: x}]\n"),
    ("checkpoint.ref-conflict", "w/activities/01-a.yaml", "steps: [{kind: checkpoint, id: x, ref: r, message: y}]\n"),
    ("fragment.malformed", "w/activities/01-a.yaml", "steps: [{kind: checkpoint, id: x, ref: 'a::b::c'}]\n"),
    ("fragment.unresolved", "w/activities/01-a.yaml", "steps: [{kind: checkpoint, id: x, ref: nothing}]\n"),
    ("fragment.unresolved", "w/workflow.yaml", "rules: {workflow: [{ref: nothing}]}\n"),
    ("manifest.parse", "w/workflow.yaml", "x: [\n"),
    ("manifest.schema", "w/workflow.yaml", "tags: 1\n"),
    ("manifest.schema", "w/workflow.yaml", "activitiesDir: ../x\n"),
    ("manifest.schema", "w/workflow.yaml", "activitiesDir: none\nactivities: []\n"),
    ("step.duplicate-id", "w/activities/01-a.yaml", "steps: [{kind: action, id: x}, {kind: action, id: x}]\n"),
    ("step.id-missing", "w/activities/01-a.yaml", "steps: [{kind: action}]\n"),
    ("technique.artifact-name", "w/techniques/t.md", "## Outputs\n\n### a_b\n\n#### artifact\n\nno name\n"),
    ("technique.audience", "w/techniques/t.md", "## Outputs\n\n### a_b\n\n#### audience\n\nnobody\n"),
    ("technique.rules-shape", "w/techniques/t.md", "## Rules\n\nBe good.\n"),
    ("technique.section", "w/techniques/t.md", "## Input\n\n### a_b\n"),
    ("technique.unresolved", "w/activities/01-a.yaml", "techniques: [nothing]\n"),
    ("technique.unresolved", "w/activities/01-a.yaml", "techniques: ['']\n"),
    ("technique.unresolved", "w/activities/01-a.yaml", "steps: [{kind: technique, technique: tt}]\n"),
    ("transition.target", "w/activities/01-a.yaml", "transitions: [{to: nowhere}]\n"),
    ("transition.target", "w/workflow.yaml", "initialActivity: nowhere\n"),
    ("variable.name", "w/workflow.yaml", "variables: [{name: X, type: string}]\n"),
    ("variable.name", "w/workflow.yaml", "variables: [{name: 1, type: string}]\n"),
];

#[test]
fn every_error_says_what_to_do() {
    let mut cases: Vec<(&str, Vec<(String, String)>)> = Vec::new();
    for (code, path, more) in BAD {
        let text = match *path {
            "w/workflow.yaml" => manifest("w", more),
            "w/techniques/t.md" => technique(more),
            _ => activity("a", more),
        };
        cases.push((code, with(path, &text)));
    }
    let fragment = "fragments: {checkpoints: {r: {message: m, options: [{id: o, label: l}], condition: \
                    {type: simple, variable: a_b, operator: exists}}}}\n";
    let twice =
        "steps: [{kind: checkpoint, id: x, ref: r, condition: {type: simple, variable: a_b, operator: exists}}]\n";
    let mut files = with("w/workflow.yaml", &manifest("w", fragment));
    files[0].1 = activity("a", twice);
    cases.push(("checkpoint.condition-twice", files));
    cases.push(("technique.parse", with("w/techniques/t.md", "Nothing.\n")));
    cases.push(("technique.version", with("w/techniques/t.md", "---\nname: x\n---\n\n## Capability\n\nX.\n")));
    let version = "---\nmetadata:\n  version: 1.0\n---\n\n## Capability\n\nX.\n";
    cases.push(("technique.version", with("w/techniques/t.md", version)));
    cases.push(("technique.capability", with("w/techniques/t.md", "---\nmetadata:\n  version: 1.0.0\n---\n")));
    cases.push(("manifest.schema", with("w/workflow.yaml", "[]\n")));

    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (code, files) in &cases {
        let found = errors(files);
        assert!(found.iter().any(|found| found.code == *code), "{code}: {found:?} {files:?}");
        check(&found, &mut seen);
    }
    check(&unreadable(), &mut seen);
    let missing: Vec<String> = codes()
        .into_iter()
        .filter(|code| !seen.contains(code.as_str()) && !NO_ERRORS.contains(&code.as_str()))
        .collect();
    assert!(missing.is_empty(), "no case above has {missing:?}");
    assert!(NO_ERRORS.iter().all(|code| !seen.contains(code)), "{seen:?}");
}

fn check(found: &[Diagnostic], seen: &mut BTreeSet<&'static str>) {
    for found in found {
        seen.insert(found.code);
        assert!(found.help.as_deref().is_some_and(|help| !help.trim().is_empty()), "{found}");
    }
}

/// What can only be wrong with files on disk.
fn unreadable() -> Vec<Diagnostic> {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in with("w/techniques/bytes.md", "") {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    for path in ["w/techniques/bytes.md", "w/activities/02-bytes.yaml"] {
        std::fs::write(dir.path().join(path), [0xff]).unwrap();
    }
    #[cfg(unix)]
    for (path, target) in [("w/techniques/gone.md", "nothing"), ("w/again", ".."), ("w/activities/03-out.yaml", "/")] {
        std::os::unix::fs::symlink(target, dir.path().join(path)).unwrap();
    }
    let root = Root::Directory { path: dir.path().to_owned(), label: "disk".to_owned() };
    let found = diagnostics(&Library::new(vec![root], None).snapshot());
    let mut found: Vec<Diagnostic> = found.into_iter().filter(|found| found.severity == Severity::Error).collect();
    assert!(found.len() >= 2, "{found:?}");
    if cfg!(not(unix)) {
        // Nothing to make one with.
        found.push(Diagnostic::of_file("corpus.entry", Severity::Error, "w", "w", String::new()).with_help("x"));
    }
    found
}

/// Every code that the sources of this crate write.
fn codes() -> BTreeSet<String> {
    let areas =
        "activity checkpoint corpus fragment manifest resource step technique transition variable when workflow";
    let mut codes = BTreeSet::new();
    let mut paths = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for word in text.split('"').skip(1) {
            let Some((area, defect)) = word.split_once('.') else { continue };
            let plain = !defect.is_empty() && defect.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            if plain && areas.split(' ').any(|known| known == area) && !matches!(defect, "yaml" | "md") {
                codes.insert(word.to_owned());
            }
        }
    }
    assert!(codes.len() > 30, "{codes:?}");
    codes
}
