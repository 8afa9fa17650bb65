//! Definitions in very many files.

use std::time::Instant;

use workflow_corpus::{Library, Root};

use crate::bounded;

#[test]
fn very_many_definition_files() {
    let dir = tempfile::tempdir().unwrap();
    let workflows = bounded(50, 1000);
    testkit::write_corpus(dir.path(), testkit::MINI);
    for nth in 0..workflows {
        let id = format!("flow-{nth:04}");
        let manifest =
            format!("id: {id}\nversion: 1.0.0\ntitle: Flow\ndescription: One of many.\ninitialActivity: a0\n");
        let mut files = vec![(format!("{id}/workflow.yaml"), manifest)];
        for part in 0..3 {
            let activity = format!(
                "id: a{part}\nversion: 1.0.0\nname: A\nsteps:\n  - kind: technique\n    id: t\n    technique: t{part}\n"
            );
            files.push((format!("{id}/activities/{part:02}-a{part}.yaml"), activity));
            let technique = "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nDoes it.\n";
            files.push((format!("{id}/techniques/t{part}.md"), technique.to_owned()));
            let resource = "---\nname: r\nmetadata:\n  version: 1.0.0\n---\n\n# R\n\nText.\n";
            files.push((format!("{id}/resources/r{part}.md"), resource.to_owned()));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        testkit::write_corpus(dir.path(), &files);
    }
    let root = Root::Directory { path: dir.path().to_path_buf(), label: "many".to_owned() };
    let library = Library::new(vec![root], None);
    let timed = |what: &str, work: &dyn Fn() -> usize| {
        let begun = Instant::now();
        let count = work();
        println!("{} files, {what}: {count} in {:?}", workflows * 10, begun.elapsed());
        count
    };
    timed("first snapshot", &|| library.snapshot().workflow_ids().len());
    let count = timed("unchanged snapshot", &|| library.snapshot().workflow_ids().len());
    // Two more, beside `meta`, come with the small corpus.
    assert_eq!(count, workflows + 2);
    assert!(std::sync::Arc::ptr_eq(&library.snapshot(), &library.snapshot()));
    timed("listing", &|| library.snapshot().list().workflows.len());
    timed("one workflow", &|| library.snapshot().workflow("flow-0007").unwrap().activities.len());
    let changed = dir.path().join("flow-0007/activities/00-a0.yaml");
    std::fs::write(&changed, std::fs::read_to_string(&changed).unwrap().replace("name: A", "name: Renamed")).unwrap();
    timed("snapshot with one change", &|| library.snapshot().workflow_ids().len());
    assert_eq!(library.snapshot().workflow("flow-0007").unwrap().activities[0].name, "Renamed");
}
