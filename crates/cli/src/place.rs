//! Where a file of a definition is opened from the current directory.

use std::path::Path;

use workflow_corpus::Corpus;

use crate::plain::plain;

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
