//! A hermetic workspace and a typed client for a binary under test.
//!
//! Nothing here knows the product's crates: what is tested is the binary whose path is given, and all that it gets of
//! the world is the box that the test made.

mod client;
mod corpus;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub use client::{Answer, Client, ToolAnswer};
pub use corpus::{MINI, write_corpus};

/// A throw-away directory with a workspace, definitions, a home, and the environment that points there.
#[derive(Debug)]
pub struct Sandbox {
    root: TempDir,
    binary: PathBuf,
    env: BTreeMap<String, String>,
}

impl Sandbox {
    /// A sandbox for a binary: an empty workspace, the small corpus [`MINI`], checkpoints that can be answered at once.
    ///
    /// # Panics
    /// When the temporary directory cannot be made.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let root = tempfile::Builder::new().prefix("sandbox-").tempdir().expect("a temporary directory");
        let base = root.path().canonicalize().expect("an existing directory");
        for name in ["ws", "home", "tmp"] {
            fs::create_dir(base.join(name)).expect("a new directory");
        }
        write_corpus(&base.join("wf"), MINI);
        let home = base.join("home");
        let mut env = BTreeMap::new();
        for (name, value) in [
            ("HOME", home.display().to_string()),
            ("XDG_CONFIG_HOME", home.join(".config").display().to_string()),
            ("TMPDIR", base.join("tmp").display().to_string()),
            ("LANG", "C.UTF-8".to_owned()),
            ("CHECKPOINT_MIN_RESPONSE_MS", "0".to_owned()),
        ] {
            env.insert(name.to_owned(), value);
        }
        if let Ok(path) = std::env::var("PATH") {
            env.insert("PATH".to_owned(), path);
        }
        Self { root, binary: binary.into(), env }
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The directory of the sandbox, canonical.
    ///
    /// # Panics
    /// When it is gone.
    pub fn path(&self) -> PathBuf {
        self.root.path().canonicalize().expect("an existing directory")
    }

    /// The workspace.
    pub fn workspace(&self) -> PathBuf {
        self.path().join("ws")
    }

    /// The definitions.
    pub fn workflows(&self) -> PathBuf {
        self.path().join("wf")
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// A planning folder of the workspace.
    pub fn folder(&self, slug: &str) -> PathBuf {
        self.workspace().join(".engineering/artifacts/planning").join(slug)
    }

    /// A command of the binary in this sandbox: nothing is inherited, the current directory is the sandbox.
    pub fn command<S: AsRef<str>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear().envs(&self.env).current_dir(self.path());
        for argument in arguments {
            command.arg(argument.as_ref());
        }
        command
    }

    /// A line for `sh` in this sandbox, in the same environment as [`Sandbox::command`].
    pub fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.env_clear().envs(&self.env).current_dir(self.path()).args(["-c", line]);
        shell
    }

    /// Flags that name workspace and definitions.
    pub fn places(&self) -> Vec<String> {
        vec![
            format!("--workspace={}", self.workspace().display()),
            format!("--workflow-dir={}", self.workflows().display()),
        ]
    }

    /// Runs a command of the binary with [`Sandbox::places`] to its end, without input.
    ///
    /// # Panics
    /// When the binary cannot be started.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let places = self.places();
        let all = arguments.iter().copied().chain(places.iter().map(String::as_str));
        self.command(all).stdin(Stdio::null()).output().expect("the binary starts")
    }

    /// Starts a server with [`Sandbox::places`]; no handshake has been made.
    pub fn start(&self) -> Client {
        Client::spawn(self.command(self.places()))
    }

    /// Starts a server and initializes it.
    pub fn connect(&self) -> Client {
        let mut client = self.start();
        client.initialize("2025-06-18");
        client
    }
}

/// Copies a directory tree.
///
/// # Panics
/// When something cannot be read or written.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}
