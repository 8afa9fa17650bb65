//! Tests of the real binary, and of the shape of the workspace.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod bundled;
mod call;
mod command;
mod demo;
mod dialogue;
mod document;
mod graph;
mod key;
mod lifetime;
mod original;
mod protocol;
mod report;
mod restart;
mod secrets;
mod settings;
#[cfg(target_os = "linux")]
mod terminal;
mod words;

use std::path::{Path, PathBuf};

use testkit::Sandbox;

/// The binary under test.
fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_workflow-server"))
}

fn sandbox() -> Sandbox {
    Sandbox::new(binary())
}

/// The root of the repository.
fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
