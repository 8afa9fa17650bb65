//! Where things lie as seen from the current directory.

use std::path::{Component, Path, PathBuf};

use workflow_corpus::Corpus;
use workflow_store::FileStore;

use crate::plain::plain;

/// What the store takes for a session that somebody named by slug, index or path. A path may be one below the planning root,
/// or one from the current directory; whether it leads to a session of this workspace is the store's to say.
pub(crate) fn session(store: &FileStore, given: &str) -> String {
    let cwd = std::env::current_dir().unwrap_or_default();
    match named(&cwd, given) {
        Named::Plainly => given.to_owned(),
        Named::There(path) => path,
        Named::Either { below, there } => {
            // What lies in the planning root goes first: there is no other way to say it, but for an absolute path.
            if store.verify(&below).is_err() && Path::new(&there).is_dir() { there } else { below }
        }
    }
}

/// How a session was named.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    /// By a slug or an index.
    Plainly,
    /// By a path that can mean one place only.
    There(String),
    /// By a relative path.
    Either { below: String, there: String },
}

fn named(cwd: &Path, given: &str) -> Named {
    // Without `.` in between and separators at the end; `..` stays, for it may follow a link.
    let tidy = |path: &Path| path.components().collect::<PathBuf>().to_str().map(str::to_owned);
    let path = Path::new(given);
    // Others are taken out, or cannot stand in the way to a session below the planning root.
    let from_here = path.components().any(|part| matches!(part, Component::CurDir | Component::ParentDir));
    if !from_here && !given.contains(std::path::is_separator) {
        return Named::Plainly;
    }
    match (tidy(path), tidy(&cwd.join(path))) {
        (_, Some(there)) if from_here || path.has_root() => Named::There(there),
        (Some(below), Some(there)) => Named::Either { below, there },
        _ => Named::Plainly,
    }
}

/// The path of a file that a diagnostic names, `root` being that of its workflow: relative below the current directory,
/// else absolute. What is compiled in has only its name in the corpus.
pub(crate) fn shown(corpus: &Corpus, root: usize, file: &str) -> String {
    let Some(path) = corpus.disk_path(root, file) else { return plain(file) };
    let cwd = std::env::current_dir().unwrap_or_default();
    plain(&from(&cwd, &path).display().to_string())
}

fn from<'a>(cwd: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(cwd).ok().filter(|below| !below.as_os_str().is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_session_is_named_by_word_or_path() {
        let there = |path: &str| Named::There(path.to_owned());
        let either = |below: &str, there: &str| Named::Either { below: below.to_owned(), there: there.to_owned() };
        for (given, expected) in [
            ("s1", Named::Plainly),
            ("ABC234", Named::Plainly),
            ("", Named::Plainly),
            (".hidden", Named::Plainly),
            ("s1/", either("s1", "/w/s1")),
            ("a//b/./c/", either("a/b/c", "/w/a/b/c")),
            ("a/../b", there("/w/a/../b")),
            (".", there("/w")),
            ("./", there("/w")),
            ("./s1/", there("/w/s1")),
            ("..", there("/w/..")),
            ("../s1", there("/w/../s1")),
            ("/v/s1/.//", there("/v/s1")),
            ("/", there("/")),
        ] {
            assert_eq!(named(Path::new("/w"), given), expected, "{given}");
        }
    }

    #[test]
    fn what_lies_below_is_relative() {
        for (path, expected) in [
            ("/w/.workflows/a/workflow.yaml", ".workflows/a/workflow.yaml"),
            ("/w/./a.yaml", "a.yaml"),
            ("/wide/a.yaml", "/wide/a.yaml"),
            ("/w", "/w"),
        ] {
            assert_eq!(from(Path::new("/w"), Path::new(path)), Path::new(expected));
        }
    }
}
