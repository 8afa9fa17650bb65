//! Writes the table of the bundled corpus: every file of `corpus/` at the repository root.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest.join("../../corpus").canonicalize()?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let below = file.strip_prefix(&root).map_err(io::Error::other)?;
        let name: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let _ = writeln!(table, "    ({:?}, include_str!({:?})),", name.join("/"), file.display().to_string());
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("bundled.rs"), table)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "md") {
            files.push(path);
        }
    }
    Ok(())
}
