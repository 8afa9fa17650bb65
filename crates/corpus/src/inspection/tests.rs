use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;

use crate::fixture::{activity, corpus, embedded, key, manifest, real_corpora, technique, workflow};
use crate::{Corpus, Library, Root, Scope, StepKind};

/// Checks `file:line:column code` of the technique diagnostics of `w`.
#[track_caller]
fn check(files: &[(&str, String)], expected: &[&str]) {
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let corpus = corpus(&borrowed);
    let found: Vec<String> = corpus
        .technique_diagnostics(&workflow(&corpus, "w"))
        .iter()
        .map(|found| {
            let place = (found.line.unwrap_or(0), found.column.unwrap_or(0));
            format!("{}:{}:{} {}", found.file, place.0, place.1, found.code)
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn files_and_links() {
    let linking = "## Rules\n### r\n[a](../resources/log.md) [b](../resources/gone.md) [c](log#nope) [d](nothing) [e](../resources/log.md#x)\n";
    check(
        &[
            ("w/workflow.yaml", manifest("w", "")),
            ("w/techniques/README.md", "no technique".to_owned()),
            ("w/techniques/bad.md", "no front matter".to_owned()),
            ("w/techniques/links.md", technique(linking)),
            ("w/techniques/links/TECHNIQUE.md", technique("")),
            ("w/techniques/meta/op.md", technique("")),
            ("w/resources/log.md", "# X\n".to_owned()),
            ("meta/techniques/m.md", technique("")),
        ],
        &[
            "w/techniques/bad.md:1:1 technique.parse",
            "w/techniques/links.md:12:30 resource.unresolved",
            "w/techniques/links.md:12:56 resource.anchor",
            "w/techniques/links.md:1:1 technique.ambiguous",
            "w/techniques/meta:1:1 technique.ambiguous",
        ],
    );
}

#[test]
fn references_have_places() {
    let steps = "techniques: [ok, nope]\nsteps:\n  - id: s\n    kind: technique\n    technique: gone\n  - id: l\n    kind: loop\n    \
                 loopType: while\n    when: a_b == 1\n    steps:\n      - id: t\n        kind: technique\n        technique:\n          \
                 name: gone::too\n      - {id: u, kind: technique, technique: op}\n";
    check(
        &[
            (
                "w/workflow.yaml",
                manifest("w", "techniques:\n  workflow: [ok, ok::rule]\n  activity:\n    - ok::other\n"),
            ),
            ("w/activities/01-a.yaml", activity("a", steps)),
            ("w/techniques/ok.md", technique("## Rules\n### rule-x\nx\n")),
            ("w/techniques/a/op.md", technique("")),
        ],
        &[
            "w/workflow.yaml:7:7 technique.unresolved",
            "w/activities/01-a.yaml:4:18 technique.unresolved",
            "w/activities/01-a.yaml:8:16 technique.unresolved",
            "w/activities/01-a.yaml:17:17 technique.unresolved",
        ],
    );
}

/// Everything that one workflow is composed to, as text.
fn compositions(corpus: &Corpus, id: &str) -> String {
    let w = workflow(corpus, id);
    let mut text = format!("{:?}\n", corpus.workflow_bundle(&w));
    for activity in &w.activities {
        let _ = writeln!(text, "{:?} {:?}", corpus.activity_bundle(&w, activity), corpus.artifacts(activity));
        for step in activity.flat_steps() {
            let _ = writeln!(text, "{:?}", corpus.step_technique(&w, activity, &step).map(|found| found.value.clone()));
        }
    }
    text
}

proptest! {
    /// A composition depends on the files, not on the order in which they are found or asked for.
    #[test]
    fn composition_is_deterministic(order in Just((0..9_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let contract = |name: &str| {
            technique(&format!("## Inputs\n### {name}\nx\n## Protocol\n### Initial\n- {name}\n## Rules\n### same\n{name}\n### {name}\nx\n"))
        };
        let all = [
            ("w/workflow.yaml", manifest("w", "techniques:\n  workflow: [g::op, m]\n  activity: [m::same]\n")),
            ("w/activities/01-a.yaml", activity("a", "techniques: [g::op, p/t]\nsteps:\n  - {id: s, kind: technique, technique: g::op}\n  - {id: t, kind: technique, technique: p/t}\n")),
            ("w/techniques/TECHNIQUE.md", contract("root")),
            ("w/techniques/g/TECHNIQUE.md", contract("group")),
            ("w/techniques/g/op.md", contract("op")),
            ("meta/techniques/TECHNIQUE.md", contract("meta_root")),
            ("meta/techniques/m.md", contract("m")),
            ("p/techniques/t.md", contract("t")),
            ("p/techniques/TECHNIQUE.md", contract("p_root")),
        ];
        let made = |order: &[usize]| {
            let files: Vec<(&str, &str)> = order.iter().map(|at| (all[*at].0, all[*at].1.as_str())).collect();
            Library::new(vec![embedded(0, &files)], None).snapshot()
        };
        let straight = made(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let shuffled = made(&order);
        // Warm the caches of one of them in another order.
        let executing = key("w");
        for reference in ["p/t", "m", "g", "g::op"] {
            let composed = shuffled.technique(reference, &Scope { executing: &executing, activity: None });
            prop_assert!(composed.is_ok());
        }
        prop_assert_eq!(compositions(&straight, "w"), compositions(&shuffled, "w"));
        prop_assert_eq!(compositions(&shuffled, "w"), compositions(&shuffled, "w"));
    }

    /// No text makes the reader fail otherwise than by saying what is wrong.
    #[test]
    fn no_text_panics(text in "(---\n|metadata:\n|  version: 1.0.0\n|## Capability\n|## Protocol\n|## Rules\n|## Inputs\n|## Outputs\n|### x\n|#### artifact\n|- a|1. b|\n|  |```|> |\\[a\\]\\(../resources/b.md#c\\)|é|\t){0,40}") {
        let parsed = crate::technique::parse(&text);
        prop_assert!(parsed.technique.is_some() || !parsed.issues.is_empty());
        let resource = crate::resource::parse(&text);
        for anchor in resource.anchors() {
            prop_assert!(resource.section(&anchor).is_some());
        }
    }
}

#[test]
fn every_technique_of_the_real_corpora_composes() {
    for path in real_corpora() {
        let corpus =
            Library::new(vec![Root::Directory { path: path.clone(), label: "real".to_owned() }], None).snapshot();
        let mut failed = Vec::new();
        let mut ids = corpus.workflow_ids();
        ids.push("meta".to_owned());
        for id in ids {
            let Ok(w) = corpus.workflow(&id) else {
                failed.push(format!("{id}: does not load"));
                continue;
            };
            failed.extend(corpus.technique_diagnostics(&w).iter().map(ToString::to_string));
            failed.extend(corpus.workflow_bundle(&w).unresolved);
            for activity in &w.activities {
                failed.extend(corpus.activity_bundle(&w, activity).unresolved);
                for step in activity.flat_steps() {
                    if !matches!(step.step.kind, StepKind::Technique { .. }) {
                        continue;
                    }
                    match corpus.step_technique(&w, activity, &step) {
                        Ok(composed) => {
                            assert!(composed.value.contains_key("capability"));
                            let again = corpus.step_technique(&w, activity, &step).unwrap();
                            assert!(Arc::ptr_eq(&composed, &again));
                        }
                        Err(error) => failed.push(format!("{id} {} {}: {error}", activity.id, step.qualified_id)),
                    }
                }
            }
        }
        for line in &failed {
            println!("{}: {line}", path.display());
        }
        let unresolved = failed.iter().filter(|line| line.contains("not found")).count();
        assert_eq!(unresolved, 0, "{}", path.display());
    }
}

/// A reference to a file that is there and malformed was written right: nothing else is suggested, least of all itself.
#[test]
fn a_malformed_technique_is_no_reason_to_suggest_a_name() {
    let front = |sections: &str| format!("---\nmetadata:\n  version: 1.0.0\n---\n\n{sections}");
    for malformed in [
        String::new(),
        "no front matter\n".to_owned(),
        "---\nname: x\n---\n\n## Capability\n\nDoes it.\n".to_owned(),
        front("## Protocol\n\n- Do it.\n"),
        front("## Capability\n\nDoes it.\n\n## Input\n\n### a_b\n"),
    ] {
        for (written, file) in [
            ("brew-tea", "w/techniques/brew-tea.md"),
            ("brew-tea", "w/techniques/brew-tea/TECHNIQUE.md"),
            ("brew-tea", "w/techniques/a/brew-tea.md"),
            ("group::brew-tea", "w/techniques/group/brew-tea.md"),
            ("group/brew-tea", "w/techniques/group/brew-tea.md"),
            ("w::brew-tea", "w/techniques/brew-tea.md"),
            ("brew-tea", "meta/techniques/brew-tea.md"),
        ] {
            let steps =
                format!("techniques: [{written}]\nsteps:\n  - {{id: s, kind: technique, technique: {written}}}\n");
            let files = [
                ("w/workflow.yaml", manifest("w", "")),
                ("w/activities/01-a.yaml", activity("a", &steps)),
                ("w/techniques/brew-teas.md", technique("")),
                (file, malformed.clone()),
            ];
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
            let corpus = corpus(&files);
            let found = corpus.technique_diagnostics(&workflow(&corpus, "w"));
            let unresolved: Vec<_> = found.iter().filter(|found| found.code == "technique.unresolved").collect();
            assert!(!unresolved.is_empty(), "{written} {file}: {found:?}");
            for found in unresolved {
                let listed_shorthand = found.path.as_deref() == Some("techniques.0") && file.contains("/a/");
                let told = format!("{} {:?}", found.message, found.help);
                assert_eq!(told.contains("did you mean"), listed_shorthand, "{written} {file}: {told}");
                assert_eq!(told.contains("mend the file"), !listed_shorthand, "{written} {file}: {told}");
                assert!(!told.contains(&format!("did you mean `{written}`")), "{told}");
            }
        }
    }
}
