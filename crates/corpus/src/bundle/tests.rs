use std::sync::Arc;

use crate::fixture::{activity, corpus, manifest, technique, workflow};
use crate::{Bundle, Corpus};

type Files<'a> = Vec<(&'a str, String)>;

fn load(files: &Files<'_>) -> Arc<Corpus> {
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    corpus(&borrowed)
}

/// The orchestrator's bundle of `w` with these references.
fn bundle_of(files: &[(&str, String)], references: &[&str]) -> Bundle {
    let mut files: Files<'_> = files.to_vec();
    files.retain(|(path, _)| *path != "w/workflow.yaml");
    files.push(("w/workflow.yaml", manifest("w", &format!("techniques:\n  workflow: [{}]\n", references.join(", ")))));
    let corpus = load(&files);
    corpus.workflow_bundle(&workflow(&corpus, "w"))
}

#[track_caller]
fn check(files: &[(&str, String)], references: &[&str], keys: &[&str], rules: &[&str], unresolved: &[&str]) {
    let bundle = bundle_of(files, references);
    let found: Vec<&str> = bundle.techniques.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(found, keys, "keys of {references:?}");
    let found: Vec<&str> = bundle.rules.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, rules, "rules of {references:?}");
    assert_eq!(bundle.unresolved, unresolved, "unresolved of {references:?}");
    let reasons = bundle.warnings.iter().filter(|warning| warning.code == "W_REFERENCE_UNRESOLVED").count();
    assert_eq!(reasons, unresolved.len(), "{:?}", bundle.warnings);
}

fn worked() -> Vec<(&'static str, String)> {
    crate::compose::tests::worked_example()
}

#[test]
fn worked_example_01_8_6_bundles() {
    check(&worked(), &["g::op"], &["w/g::op"], &["g::g-rule", "w::root-rule"], &[]);
    check(&worked(), &["nope", "g::nope"], &[], &["w::root-rule"], &["nope", "g::nope"]);
    check(&worked(), &["t::k"], &[], &["t::k-a", "t::k-b", "w::root-rule"], &[]);
    check(&worked(), &["t::r"], &[], &["t::r", "t::k-a", "t::k-b", "w::root-rule"], &[]);
    check(&worked(), &["t"], &["t"], &["t::r", "t::k-a", "t::k-b", "w::root-rule"], &[]);
    let bundle = bundle_of(&worked(), &["t", "g::op"]);
    let members = |at: usize| bundle.techniques[at].1.keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(members(0), ["capability", "inherited_inputs", "protocol"]);
    assert_eq!(members(1), ["capability", "inherited_inputs", "protocol"]);
}

/// Trap 19: a group of rules does not touch its technique, an exact rule does.
#[test]
fn trap_01_14_19_rule_groups() {
    let files = vec![(
        "w/techniques/conduct.md",
        technique("## Rules\n### checkpoint-x\nx\n### checkpoint-y\ny\n### other\no\n"),
    )];
    check(&files, &["conduct::checkpoint"], &[], &["conduct::checkpoint-x", "conduct::checkpoint-y"], &[]);
    check(
        &files,
        &["conduct::checkpoint-y"],
        &[],
        &["conduct::checkpoint-y", "conduct::checkpoint-x", "conduct::other"],
        &[],
    );
}

/// Trap 20: the root's rules are in every bundle.
#[test]
fn trap_01_14_20_root_rules_ride_along() {
    let files = vec![("w/techniques/TECHNIQUE.md", technique("## Rules\n### r\nx\n"))];
    check(&files, &[], &[], &["w::r"], &[]);
}

/// Trap 21: when a key carries the workflow.
#[test]
fn trap_01_14_21_bundle_keys() {
    let files = vec![
        ("w/techniques/boil.md", technique("")),
        ("w/techniques/brewing/boil.md", technique("")),
        ("w/techniques/brewing/deep/leaf.md", technique("")),
        ("meta/techniques/m.md", technique("")),
        ("meta/techniques/g/op.md", technique("")),
        ("other/techniques/o.md", technique("")),
    ];
    let references =
        ["brewing::boil", "boil", "m", "g/op", "meta::m", "w/boil", "other/o", "brewing/deep/leaf", "w::brewing::boil"];
    let keys = ["w/brewing::boil", "boil", "m", "g::op", "meta/m", "w/boil", "other/o", "w/brewing::deep/leaf"];
    check(&files, &references, &keys, &[], &[]);
}

/// Trap 35: a rule of a local technique needs no prefix (FIX-31).
#[test]
fn trap_01_14_35_local_rule_reference() {
    let files = vec![
        ("w/techniques/grp/TECHNIQUE.md", technique("## Rules\n### grp-rule\nx\n")),
        ("meta/techniques/grp.md", technique("## Rules\n### grp-rule\nmeta\n")),
    ];
    check(&files, &["grp::grp-rule"], &[], &["grp::grp-rule"], &[]);
    assert_eq!(bundle_of(&files, &["grp::grp-rule"]).rules[0].1, "x");
    check(&files, &["w::grp::grp-rule"], &[], &["grp::grp-rule"], &[]);
}

#[test]
fn rules_are_delivered_once_with_their_owner() {
    let files = vec![
        ("w/techniques/TECHNIQUE.md", technique("## Rules\n### same\nroot\n### root\nx\n")),
        ("w/techniques/g/TECHNIQUE.md", technique("## Rules\n### same\ngroup\n### group\nx\n")),
        ("w/techniques/g/op.md", technique("## Rules\n### same\nop\n")),
        ("w/techniques/a/one.md", technique("## Rules\n### spawn\none\n")),
        ("w/techniques/a/two.md", technique("## Rules\n### spawn\ntwo\n")),
    ];
    // The innermost of an overridden name stays, whatever was spelled how often.
    check(&files, &["g::op", "w::g::op", "g"], &["w/g::op", "g"], &["g::op::same", "g::group", "w::root"], &[]);
    check(&files, &["g"], &["g"], &["g::same", "g::group", "w::root"], &[]);
    // Techniques beside each other override nothing.
    check(
        &files,
        &["a::one", "a/two"],
        &["w/a::one", "w/a::two"],
        &["a::one::spawn", "a::two::spawn", "w::same", "w::root"],
        &[],
    );
}

fn conduct(rules: &str) -> Vec<(&'static str, String)> {
    vec![
        ("meta/techniques/agent-conduct.md", technique(rules)),
        ("meta/techniques/mine.md", technique("## Rules\n### orchestrator-of-mine\nx\n")),
        ("w/workflow.yaml", manifest("w", "techniques:\n  activity: [mine]\n")),
        ("w/activities/01-a.yaml", activity("a", "")),
    ]
}

#[test]
fn agent_conduct_is_split_by_audience() {
    let check_both = |rules: &str, orchestrator: &[&str], worker: &[&str]| {
        let corpus = load(&conduct(rules));
        let w = workflow(&corpus, "w");
        let names = |bundle: &Bundle| bundle.rules.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&corpus.workflow_bundle(&w)), orchestrator, "orchestrator");
        assert_eq!(names(&corpus.activity_bundle(&w, w.activity("a").unwrap())), worker, "worker");
    };
    // The group of that name.
    check_both(
        "## Rules\n### commentary\nx\n### orchestrator-one\nx\n### checkpoint-discipline\nx\n",
        &["agent-conduct::orchestrator-one", "agent-conduct::checkpoint-discipline", "agent-conduct::commentary"],
        &["agent-conduct::checkpoint-discipline", "mine::orchestrator-of-mine", "agent-conduct::commentary"],
    );
    // The exact rule of that name; then the prefix means nothing.
    check_both(
        "## Rules\n### orchestrator\nx\n### orchestrator-one\nx\n### file-sensitivity-a\nx\n",
        &["agent-conduct::orchestrator", "agent-conduct::orchestrator-one", "agent-conduct::file-sensitivity-a"],
        &["agent-conduct::file-sensitivity-a", "mine::orchestrator-of-mine", "agent-conduct::orchestrator-one"],
    );
}

#[test]
fn core_references() {
    let files = |core: &str| {
        vec![
            ("meta/workflow.yaml", manifest("meta", core)),
            ("meta/techniques/workflow-engine/yield-checkpoint.md", technique("")),
            ("meta/techniques/mine.md", technique("")),
            ("w/workflow.yaml", manifest("w", "techniques:\n  activity: [mine, nope]\n")),
            ("w/activities/01-a.yaml", activity("a", "techniques: [mine]\n")),
        ]
    };
    let worker = |core: &str| {
        let corpus = load(&files(core));
        let w = workflow(&corpus, "w");
        let bundle = corpus.activity_bundle(&w, w.activity("a").unwrap());
        let keys: Vec<String> = bundle.techniques.into_iter().map(|(key, _)| key).collect();
        (keys, bundle.unresolved)
    };
    // The built-in list: what `meta` lacks is left out in silence.
    let expected = vec!["mine".to_owned(), "workflow-engine::yield-checkpoint".to_owned()];
    assert_eq!(worker(""), (expected, vec!["nope".to_owned()]));
    // Its own list: an ordinary reference that is reported.
    let listed = worker("techniques:\n  core:\n    activity: [workflow-engine::gone]\n");
    assert_eq!(listed, (vec!["mine".to_owned()], vec!["nope".to_owned(), "workflow-engine::gone".to_owned()]));
}

#[test]
fn a_corpus_without_meta_is_served() {
    let files = vec![("w/workflow.yaml", manifest("w", "")), ("w/techniques/x.md", technique(""))];
    check(&files, &["x"], &["x"], &[], &[]);
}

#[test]
fn rules_carry_qualified_links() {
    let files = vec![
        ("meta/techniques/t.md", technique("## Rules\n### r\n[a](../resources/log.md)\n")),
        ("meta/resources/log.md", "x".to_owned()),
    ];
    assert_eq!(bundle_of(&files, &["t"]).rules[0].1, "[a](meta/log)");
}
