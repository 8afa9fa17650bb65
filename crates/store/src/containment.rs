//! Whether a path stays inside its root once links are resolved (spec 03 §1.10, 04 §3.4).

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use workflow_engine::Refusal;

use crate::{
    fs::{Disk, Kind, is_missing},
    refusals,
};

/// The path without links: its deepest existing ancestor resolved, the rest appended.
///
/// # Errors
/// `PATH_ESCAPE` for `..` in the part that does not exist and for a link that leads nowhere; `WORKSPACE_INVALID` when
/// an ancestor cannot be looked at.
pub(crate) fn resolved(disk: &Disk, path: &Path) -> Result<PathBuf, Refusal> {
    let mut rest: Vec<OsString> = Vec::new();
    let mut ancestor = path;
    loop {
        match disk.canonicalize(ancestor) {
            Ok(canonical) => {
                let mut whole = canonical;
                whole.extend(rest.iter().rev());
                return Ok(whole);
            }
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(refusals::workspace_invalid(ancestor, &error.to_string())),
        }
        // Anything else that is there now was made by somebody between the two looks, and is no link to resolve.
        if disk.stat_link(ancestor).is_ok_and(|stat| stat.kind == Kind::Symlink) {
            return Err(refusals::path_escape(ancestor, "it is a link that leads nowhere"));
        }
        let Some(Component::Normal(name)) = ancestor.components().next_back() else {
            return Err(refusals::path_escape(path, "a part that does not exist must be plain names"));
        };
        rest.push(name.to_owned());
        let Some(parent) = ancestor.parent() else {
            return Err(refusals::path_escape(path, "no part of it exists"));
        };
        ancestor = parent;
    }
}

/// [`resolved`], and inside `root`, which has no links itself.
pub(crate) fn within(disk: &Disk, root: &Path, path: &Path) -> Result<PathBuf, Refusal> {
    let whole = resolved(disk, path)?;
    if whole.starts_with(root) {
        Ok(whole)
    } else {
        Err(refusals::path_escape(path, &format!("it must lie inside {}", root.display())))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{os::unix::fs::symlink, sync::Arc};

    use super::*;
    use crate::OsFileSystem;

    #[test]
    fn links_are_resolved_before_the_comparison() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let root = base.join("data");
        for dir in ["data/in", "data-evil", "out"] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        symlink(base.join("out"), root.join("away")).unwrap();
        symlink(root.join("in"), root.join("near")).unwrap();
        symlink(base.join("nowhere"), root.join("dangling")).unwrap();
        let disk = Disk(Arc::new(OsFileSystem));
        let outcome = |path: &str| match within(&disk, &root, &base.join(path)) {
            Ok(path) => path.strip_prefix(&base).unwrap().display().to_string(),
            Err(refusal) => refusal.code.to_owned(),
        };
        for (path, expected) in [
            ("data", "data"),
            ("data/new", "data/new"),
            ("data/new/deeper", "data/new/deeper"),
            ("data/near/x", "data/in/x"),
            ("data-evil", "PATH_ESCAPE"),
            ("data-evil/x", "PATH_ESCAPE"),
            ("data/away", "PATH_ESCAPE"),
            ("data/away/x", "PATH_ESCAPE"),
            ("data/new/../x", "PATH_ESCAPE"),
            ("data/../out", "PATH_ESCAPE"),
            ("data/dangling", "PATH_ESCAPE"),
        ] {
            assert_eq!(outcome(path), expected, "{path}");
        }
    }
}
