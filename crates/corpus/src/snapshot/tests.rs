use std::fs;
use std::path::Path;

use super::*;
use crate::fixture::{activity, embedded, manifest};
use crate::{FileId, Status};

fn library(path: &Path) -> Library {
    Library::new(vec![Root::Directory { path: path.to_path_buf(), label: "here".to_owned() }], None)
}

/// Writes files below a directory.
fn write(dir: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn only_changes_make_a_new_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let (tea, brew) = (manifest("tea", ""), activity("brew", ""));
    write(dir.path(), &[("tea/workflow.yaml", &tea), ("tea/activities/01-brew.yaml", &brew)]);
    let library = library(dir.path());
    let first = library.snapshot();
    assert!(Arc::ptr_eq(&first, &library.snapshot()));
    // A second edit in the same tick, of the same length: young files are read again.
    write(dir.path(), &[("tea/activities/01-brew.yaml", &brew.replace("name: brew", "name: BREW"))]);
    let second = library.snapshot();
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(second.workflow("tea").unwrap().activities[0].name, "BREW");
    assert_eq!(first.workflow("tea").unwrap().activities[0].name, "brew");
    let file = |corpus: &Corpus, path: &str| Arc::clone(corpus.file(0, path).unwrap());
    assert!(Arc::ptr_eq(&file(&first, "tea/workflow.yaml"), &file(&second, "tea/workflow.yaml")));
    // Writing the same bytes again changes nothing.
    write(dir.path(), &[("tea/workflow.yaml", &tea)]);
    assert!(Arc::ptr_eq(&second, &library.snapshot()));
    write(dir.path(), &[("tea/activities/02-serve.yaml", &activity("serve", ""))]);
    let third = library.snapshot();
    assert_eq!(third.workflow("tea").unwrap().activities.len(), 2);
    fs::remove_file(dir.path().join("tea/activities/01-brew.yaml")).unwrap();
    assert_eq!(library.snapshot().workflow("tea").unwrap().activities.len(), 1);
    fs::create_dir(dir.path().join("tea/techniques")).unwrap();
    assert!(library.snapshot().has_directory(0, "tea/techniques"));
}

#[test]
fn files_are_found_by_prefix_in_byte_order() {
    let root =
        embedded(0, &[("a/b.md", ""), ("a/b/z.md", ""), ("a/b-c/x.md", ""), ("a/b/a.md", ""), ("a/b/.x.md", "")]);
    let corpus = Library::new(vec![root], None).snapshot();
    let paths =
        |prefix: &str| -> Vec<&str> { corpus.files_below(0, prefix).map(|file| file.id.path.as_str()).collect() };
    assert_eq!(paths("a/b"), ["a/b/a.md", "a/b/z.md"]);
    assert_eq!(paths("a/b/"), ["a/b/a.md", "a/b/z.md"]);
    assert_eq!(paths("").len(), 4);
    assert_eq!(corpus.directories_in(0, "a").collect::<Vec<_>>(), ["b", "b-c"]);
    assert_eq!(corpus.file(0, "a/b.md").unwrap().id, FileId { root: 0, path: "a/b.md".to_owned() });
    assert!(corpus.file(0, "a/../a/b.md").is_none() && corpus.file(1, "a/b.md").is_none());
}

#[test]
fn meta_comes_from_the_own_root_then_others_then_the_fallback() {
    let tea = manifest("tea", "");
    let meta = manifest("meta", "");
    let without = embedded(0, &[("tea/workflow.yaml", &tea)]);
    let with = embedded(1, &[("meta/workflow.yaml", &meta)]);
    let fallback = embedded(2, &[("meta/workflow.yaml", &meta), ("cafe/workflow.yaml", &tea)]);
    let key = |root| Some(WorkflowKey { root, id: META.to_owned() });
    let corpus = Library::new(vec![without.clone(), with.clone()], Some(fallback.clone())).snapshot();
    assert_eq!((corpus.meta_for(0), corpus.meta_for(1), corpus.meta_for(2)), (key(1), key(1), key(2)));
    assert_eq!(corpus.find_workflow_dir(0, META, Has::Manifest), key(1));
    let corpus = Library::new(vec![without], Some(fallback)).snapshot();
    assert_eq!(corpus.meta_for(0), key(1));
    assert_eq!(corpus.find_workflow_dir(0, META, Has::Manifest), key(1));
    assert_eq!(corpus.find_workflow_dir(0, "cafe", Has::Manifest), None);
    assert_eq!(corpus.workflow(META).unwrap().key, key(1).unwrap());
    assert!(corpus.workflow("cafe").is_err());
    assert_eq!(corpus.workflow_ids(), ["tea"]);
    let corpus = Library::new(vec![with], None).snapshot();
    assert_eq!(corpus.find_workflow_dir(0, "../meta", Has::Manifest), None);
}

#[test]
fn missing_roots_are_told_unless_they_are_optional() {
    let missing = || Root::Directory { path: "/nonexistent/workflows".into(), label: "gone".to_owned() };
    let told = Library::new(vec![missing(), embedded(1, &[])], None).snapshot().list();
    assert_eq!(told.warnings.len(), 1);
    assert!(told.warnings[0].contains("/nonexistent/workflows"));
    assert_eq!(Library::new(vec![missing()], None).optional(0).snapshot().list().warnings, Vec::<String>::new());
}

#[test]
fn files_without_usable_text_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[("tea/workflow.yaml", &manifest("tea", "")), ("tea/activities/README.md", "")]);
    fs::write(dir.path().join("tea/activities/01-bytes.yaml"), b"id: a\nname: \xff\n").unwrap();
    let large = "#".repeat(usize::try_from(crate::source::MAX_FILE_BYTES).unwrap() + 1);
    fs::write(dir.path().join("tea/activities/02-large.yaml"), large).unwrap();
    let workflow = library(dir.path()).snapshot().workflow("tea").unwrap();
    let errors: Vec<_> =
        workflow.load_errors.iter().map(|error| (error.activity_id.as_str(), error.line, error.column)).collect();
    assert_eq!(errors, [("bytes", 2, 7), ("large", 1, 1)]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_the_root_only() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), &[("secret/workflow.yaml", &manifest("secret", "")), ("02-out.yaml", &activity("out", ""))]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    write(path, &[("tea/workflow.yaml", &manifest("tea", "")), ("tea/activities/01-brew.yaml", &activity("brew", ""))]);
    symlink(path.join("tea"), path.join("alias")).unwrap();
    symlink(outside.path().join("secret"), path.join("secret")).unwrap();
    symlink(path.join("nowhere"), path.join("dangling")).unwrap();
    symlink(path.join("tea"), path.join("tea/loop")).unwrap();
    symlink(outside.path().join("02-out.yaml"), path.join("tea/activities/02-out.yaml")).unwrap();
    symlink(path.join("nowhere"), path.join("tea/activities/03-gone.yaml")).unwrap();
    let corpus = library(path).snapshot();
    assert_eq!(corpus.workflow_ids(), ["alias", "tea"]);
    let listing = corpus.list();
    assert_eq!(listing.warnings.len(), 2, "{:?}", listing.warnings);
    let workflow = corpus.workflow("tea").unwrap();
    let codes: Vec<_> = workflow.diagnostics.iter().map(|found| (found.code, found.file.as_str())).collect();
    assert_eq!(
        codes,
        [
            ("activity.parse", "tea/activities/02-out.yaml"),
            ("activity.parse", "tea/activities/03-gone.yaml"),
            ("corpus.entry", "tea/loop"),
        ]
    );
    assert_eq!(workflow.activities.len(), 1);
    assert_eq!(listing.workflows[1].status, Status::Degraded);
}

#[test]
fn a_file_lies_in_the_root_that_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    write(&place("near"), &[("tea/workflow.yaml", ""), ("both/workflow.yaml", "")]);
    write(&place("far"), &[("cake/workflow.yaml", ""), ("both/workflow.yaml", "")]);
    let root = |name: &str| Root::Directory { path: place(name), label: name.to_owned() };
    let bundled = embedded(2, &[("pie/workflow.yaml", "")]);
    let corpus = Library::new(vec![root("near"), root("far"), bundled], None).snapshot();
    let at = |from, file: &str| corpus.disk_path(from, file);
    assert_eq!(at(0, "both/workflow.yaml"), Some(place("near/both/workflow.yaml")));
    assert_eq!(at(1, "both/workflow.yaml"), Some(place("far/both/workflow.yaml")));
    assert_eq!(at(0, "cake/workflow.yaml"), Some(place("far/cake/workflow.yaml")));
    assert_eq!(at(1, "tea/workflow.yaml"), Some(place("near/tea/workflow.yaml")));
    assert_eq!(at(0, "pie/workflow.yaml"), None);
    assert_eq!(at(1, "cake/activities"), Some(place("far/cake/activities")));
    assert_eq!(at(9, "none.yaml"), None);
}
