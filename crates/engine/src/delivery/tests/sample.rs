//! The definitions that the tests of deliveries use.

use super::world::{World, corpus};

const ROOT: &str = "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nContract of alpha.\n\n## Inputs\n\n\
    ### project\n\nWhich project it is about.\n\n## Outputs\n\n### journal\n\nWhat happened.\n\n## Rules\n\n\
    ### be-brief\n\nWrite short sentences.\n";

/// A technique of alpha with an input, an output and a protocol of about `size` characters.
pub(super) fn technique(name: &str, size: usize) -> String {
    format!(
        "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nDoes {name}.\n\n## Inputs\n\n### main_subject\n\nWhat \
         {name} is about.\n\n## Outputs\n\n### {name}_result\n\nWhat came out.\n\n#### artifact\n\n`{name}.md`\n\n\
         ## Protocol\n\n- {}\n\n## Rules\n\n### {name}-rule\n\nKeep to {name} from the first line to the last; nothing else belongs there, whoever may ask for it.\n",
        "word ".repeat(size / 5).trim()
    )
}

pub(super) fn activity(id: &str, rest: &str) -> String {
    format!("id: {id}\nversion: 1.0.0\nname: {id}\n{rest}")
}

pub(super) fn steps(list: &[(&str, &str)]) -> String {
    list.iter().fold("steps:\n".to_owned(), |steps, (id, technique)| {
        steps + &format!("  - kind: technique\n    id: {id}\n    technique: {technique}\n")
    })
}

const MANIFEST: &str = "id: alpha\nversion: 1.0.0\ntitle: Alpha\ndescription: For tests\ninitialActivity: first\n\
    rules:\n  workflow: [orchestrate]\n  activity: [work]\n  universal: [be kind]\n\
    techniques:\n  workflow: [plan]\n  activity: [shared]\n\
    variables:\n  - { name: main_subject, type: string, description: What it is about, defaultValue: tea }\n";

/// Alpha with these activities (file stem and text) and a few techniques and resources.
pub(super) fn files(activities: &[(&str, String)]) -> Vec<(String, String)> {
    let mut files = vec![
        ("alpha/workflow.yaml".to_owned(), MANIFEST.to_owned()),
        ("alpha/techniques/TECHNIQUE.md".to_owned(), ROOT.to_owned()),
        (
            "alpha/resources/guide.md".to_owned(),
            "---\nname: guide\nversion: 2.1.0\n---\n\n# Guide\n\nRead it.\n\n## Part\n\nOf it.\n".to_owned(),
        ),
        ("alpha/resources/notes.md".to_owned(), "---\nname: notes\n---\n\n# Notes\n\n😀 ▼\n".to_owned()),
    ];
    for (name, size) in [("plan", 40), ("shared", 60), ("small", 100), ("other", 120), ("large", 5000)] {
        files.push((format!("alpha/techniques/{name}.md"), technique(name, size)));
    }
    for (stem, text) in activities {
        files.push((format!("alpha/activities/{stem}.yaml"), text.clone()));
    }
    files
}

pub(super) fn alpha(activities: &[(&str, String)]) -> World {
    World::new(&corpus(&files(activities)), "alpha")
}

pub(super) const ROUTE: &str = "transitions:\n  - to: second\n    isDefault: true\n";

/// Two activities with a route, one without.
pub(super) fn walk() -> World {
    alpha(&[
        ("01-first", activity("first", &(steps(&[("a", "small"), ("b", "other")]) + ROUTE))),
        (
            "02-second",
            activity("second", &(format!("techniques: [plan]\n{}", steps(&[("c", "small"), ("d", "large")])) + ROUTE)),
        ),
        ("03-third", activity("third", &format!("techniques: [other, plan]\n{}", steps(&[("e", "other")])))),
        ("04-fourth", activity("fourth", &(steps(&[("f", "small")]) + ROUTE))),
    ])
}
