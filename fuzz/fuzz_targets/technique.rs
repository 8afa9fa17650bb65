//! Any bytes are read as a technique and as a resource; what is composed of them has an end.
#![no_main]

use workflow_corpus::Scope;
use workflow_fuzz::{definitions, scratch};

const MANIFEST: &[u8] =
    b"id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\ntechniques:\n  workflow: [x]\n  activity: [x, g::y]\n";
const ACTIVITY: &[u8] =
    b"id: a\nversion: 1.0.0\nname: A\nsteps:\n  - kind: technique\n    id: s\n    technique:\n      name: x\n      \
    inputs:\n        topic: other\n  - kind: technique\n    id: t\n    technique:\n      name: g::y\n";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let half = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (one, other) = (&data[..half], data.get(half + 1..).unwrap_or_default());
    let other = if other.is_empty() { one } else { other };
    let corpus = definitions(
        scratch(),
        &[
            ("w/workflow.yaml", MANIFEST),
            ("w/activities/01-a.yaml", ACTIVITY),
            ("w/techniques/TECHNIQUE.md", other),
            ("w/techniques/x.md", one),
            ("w/techniques/g/TECHNIQUE.md", other),
            ("w/techniques/g/y.md", one),
            ("w/resources/r.md", one),
        ],
    );
    let _listed = corpus.list();
    let workflow = corpus.workflow("w").expect("the manifest is sound");
    let diagnostics = corpus.technique_diagnostics(&workflow);
    for diagnostic in diagnostics.iter() {
        assert!(diagnostic.line != Some(0) && diagnostic.column != Some(0), "{diagnostic:?}");
    }
    let _bundle = corpus.workflow_bundle(&workflow);
    let activity = workflow.activity("a").expect("the activity is sound");
    let _bundle = corpus.activity_bundle(&workflow, activity);
    for step in activity.flat_steps() {
        let _technique = corpus.step_technique(&workflow, activity, &step);
    }
    let _artifacts = corpus.artifacts(activity);
    for reference in ["x", "g::y", "g", "w::x", "x::rule"] {
        let _technique = corpus.technique(reference, &Scope { executing: &workflow.key, activity: Some("a") });
    }
    let text = String::from_utf8_lossy(one);
    let names = text.lines().filter_map(|line| line.strip_prefix('#')).take(8);
    for section in names.map(|line| line.trim_start_matches('#').trim()).chain(["", "part", "g"]) {
        let _section = corpus.resource(&workflow, &format!("r#{section}"));
    }
    let _resource = corpus.resource(&workflow, "r");
    let _resource = corpus.resource(&workflow, text.lines().next().unwrap_or_default());
});
