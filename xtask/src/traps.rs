//! Which test holds which trap of the specification.
//!
//! A test says so by its name: `trap_<document>_<section>_<number>_<what>`, for example `trap_03_14_13_…` for trap 13 of
//! document 03 §14 and `trap_02_15_t16_…` for T-16 of document 02 §15; `hazard_h13_…` for hazard H13 of document 03 §15.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};

/// The lists of traps: prefix of the test names and the numbers in the list.
const LISTS: [(&str, &str, u32); 4] = [
    ("trap_01_14_", "01 §14, definitions", 39),
    ("trap_02_15_t", "02 §15, delivery", 31),
    ("trap_03_14_", "03 §14, sessions", 36),
    ("hazard_h", "03 §15, hazards", 27),
];

/// Prints trap → tests.
///
/// # Errors
/// A trap without a test.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut tests: BTreeMap<(usize, u32), Vec<String>> = BTreeMap::new();
    for file in rust_files(&root.join("crates"))? {
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let shown = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        for line in text.lines() {
            let Some(name) = line.trim_start().strip_prefix("fn ").and_then(|rest| rest.split('(').next()) else {
                continue;
            };
            if let Some(trap) = trap_of(name) {
                tests.entry(trap).or_default().push(format!("{name}  ({shown})"));
            }
        }
    }
    let (report, missing) = report(&tests);
    crate::print(&report)?;
    ensure!(missing.is_empty(), "traps without a test: {}", missing.join(", "));
    Ok(())
}

fn trap_of(name: &str) -> Option<(usize, u32)> {
    LISTS.iter().enumerate().find_map(|(list, (prefix, _, last))| {
        let digits = name.strip_prefix(prefix)?.split('_').next()?;
        let number = digits.parse().ok()?;
        (1..=*last).contains(&number).then_some((list, number))
    })
}

fn report(tests: &BTreeMap<(usize, u32), Vec<String>>) -> (String, Vec<String>) {
    let mut text = String::new();
    let mut missing = Vec::new();
    for (list, (_, title, last)) in LISTS.iter().enumerate() {
        let _ = writeln!(text, "{title}");
        for number in 1..=*last {
            let Some(names) = tests.get(&(list, number)) else {
                let _ = writeln!(text, "  {number:>2}  -");
                missing.push(format!("{title} {number}"));
                continue;
            };
            for name in names {
                let _ = writeln!(text, "  {number:>2}  {name}");
            }
        }
    }
    (text, missing)
}

pub(crate) fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_name_names_its_trap() {
        assert_eq!(trap_of("trap_03_14_13_false_is_no_mode"), Some((2, 13)));
        assert_eq!(trap_of("trap_02_15_t16_equal_ids"), Some((1, 16)));
        assert_eq!(trap_of("trap_01_14_07_when_true"), Some((0, 7)));
        assert_eq!(trap_of("hazard_h07_a_copy"), Some((3, 7)));
        assert_eq!(trap_of("trap_01_14_99_beyond"), None);
        assert_eq!(trap_of("another_test"), None);
    }

    #[test]
    fn a_trap_without_a_test_is_missing() {
        let mut tests = BTreeMap::new();
        tests.insert((0, 1), vec!["trap_01_14_01_x".to_owned()]);
        let (text, missing) = report(&tests);
        assert!(text.contains("   1  trap_01_14_01_x"), "{text}");
        assert_eq!(missing.len(), 38 + 31 + 36 + 27);
    }
}
