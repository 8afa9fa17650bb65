//! `demo`: a whole piece of work in one process, the three roles played by this program.

mod client;
mod script;
mod stage;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use workflow_corpus::Library;
use workflow_mcp::Server;
use workflow_store::FileStore;

use crate::bundled;
use crate::cli::Flags;
use crate::config::{Config, FILE_NAME, SETTINGS, Surroundings};
use crate::exit::Failure;
use crate::printer::{self, DIM, STRONG, styled};
use script::Script;
use stage::{Role, Stage};
use workspace::{Workspace, Writing};

/// Plays the quick tour from beginning to end and shows every call
///
/// This program plays the user, the orchestrator and the workers; the server is the real one, spoken to over its
/// protocol. It works in a temporary directory and touches nothing else.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  workflow-server demo\n  workflow-server demo --slow\n  workflow-server demo --keep     then go on with `workflow-server call`"
)]
pub(crate) struct Demo {
    /// Leave the workspace, to look at it or to go on with `call`; also when the demo is interrupted
    #[arg(long)]
    keep: bool,
    /// Pause between the lines, and leave gates shut for as long as they are in real work
    #[arg(long)]
    slow: bool,
}

/// Planning slug of the demo's session.
const SLUG: &str = "my-tour";

/// Everything that the script is told.
struct Place {
    workspace: PathBuf,
    planning: PathBuf,
    min_response: Duration,
    writing: Writing,
    state: Box<dyn Fn() -> Result<Arc<Server>, Failure>>,
}

impl Demo {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let workspace =
            self.workspace().map_err(|error| Failure::failed(format!("no temporary directory: {error}")))?;
        let place = place(&workspace)?;
        let server = (place.state)()?;
        let mut stage = Stage::new(&server, place.writing.clone(), self.slow, script::SCENES)?;
        drop(server);
        let arguments = json!({"agent_id": "orchestrator", "workflow_id": "quick-tour", "planning_slug": SLUG});
        // The session is there before anything is said about it, so that what is said stays true if this is interrupted.
        let started = stage.quietly(Role::Orchestrator, "start_session", &arguments)?;
        let index = serde_json::from_str::<Value>(&started.text).ok();
        let index = index.and_then(|answer| answer.get("session_index")?.as_str().map(str::to_owned));
        let index = index.ok_or_else(|| Failure::failed(format!("the session did not start: {}", started.text)))?;
        self.introduce(&place, &index)?;
        let mut script = Script { stage, place, index };
        script.play(&arguments, &started)?;
        drop(script);
        self.leave(workspace.path())
    }

    /// The directory, with a file that makes `call` find the same sessions.
    fn workspace(&self) -> std::io::Result<Workspace> {
        let workspace = Workspace::new(self.keep)?;
        let mut file = "# Written by `workflow-server demo`.\nstate_dir = \".state\"\nwith_bundled = true\n".to_owned();
        if !self.slow {
            file.push_str("checkpoint_min_response_ms = 0\n");
        }
        workspace.writing().during(|| std::fs::write(workspace.path().join(FILE_NAME), file))?;
        Ok(workspace)
    }

    fn introduce(&self, place: &Place, index: &str) -> Result<(), Failure> {
        let strong = |text: &str| styled(STRONG, text);
        let mut lines = vec![
            format!(
                "{}  {}{}",
                strong("workspace"),
                place.workspace.display(),
                if self.keep { "" } else { " (temporary)" }
            ),
            format!("{}    {index}", strong("session")),
        ];
        if self.keep {
            lines.push(format!("{}   {}", strong("continue"), command(&place.workspace, "get_workflow_status", index)));
        }
        lines.push(String::new());
        lines.push(
            "Three roles take part. This program plays them; the server that answers is the real one.".to_owned(),
        );
        lines.push("  user          decides".to_owned());
        lines.push("  orchestrator  keeps the work on its way and brings decisions to the user".to_owned());
        lines.push("  worker        is given one activity, with all that it needs for it and no more".to_owned());
        let gates = if self.slow {
            "A gate stays shut for 3 s, so that nobody answers it without reading."
        } else {
            "The demo answers gates at once; in real work a gate stays shut for 3 s, so that it is read."
        };
        lines.push(format!("{gates}\nEvery call carries session_index={index}; it is left out below."));
        printer::print_lines(&lines.join("\n"))?;
        Ok(())
    }

    fn leave(&self, workspace: &Path) -> Result<(), Failure> {
        let binary = binary();
        let mut steps = vec![
            ("what you have just seen, as a definition", format!("{binary} show quick-tour")),
            ("what an agent is told first", format!("{binary} call discover")),
            ("the same again, to watch", format!("{binary} demo --slow")),
        ];
        if self.keep {
            let list = format!("{binary} session list --workspace {}", quoted(&workspace.display().to_string()));
            steps.insert(0, ("the session that was kept", list));
        }
        // Each command on its own line: how long one is depends on where things lie.
        let mut rows: Vec<String> =
            steps.iter().map(|(about, command)| format!("  {}\n    {command}", styled(DIM, about))).collect();
        rows.push(format!("  {}\n    README.md", styled(DIM, "connect your agent; write a workflow of your own")));
        printer::print_lines(&format!("\n{}\n{}", styled(STRONG, "What to do next"), rows.join("\n")))?;
        Ok(())
    }
}

/// The settings of the workspace's own file and nothing else, so that a demo never touches real work.
fn place(workspace: &Workspace) -> Result<Place, Failure> {
    let writing = workspace.writing();
    let workspace = workspace.path().canonicalize()?;
    let flags = Flags { workspace: Some(workspace.clone()), ..Flags::default() };
    let read = |path: &Path| crate::text::read(path);
    let surroundings = Surroundings { env: &|_| None, cwd: workspace.clone(), read: Some(&read) };
    let config = Config::read(&flags, &surroundings).map_err(Failure::Usage)?;
    let options = config.store().map_err(Failure::Usage)?;
    let min_response = Duration::from_millis(config.engine.checkpoint_min_response_ms);
    let opening = writing.clone();
    let state = move || {
        let store = opening.during(|| FileStore::open(options.clone()))?;
        let library = Library::new(vec![bundled::root()], None);
        Ok(Arc::new(Server::new(library, store, config.engine.clone())))
    };
    let planning = workspace.join(".engineering/artifacts/planning").join(SLUG);
    Ok(Place { workspace, planning, min_response, writing, state: Box::new(state) })
}

/// A command line that makes a call in the workspace, whatever this environment says.
fn command(workspace: &Path, tool: &str, index: &str) -> String {
    let names = SETTINGS.iter().flat_map(|setting| setting.env).chain(&["WORKFLOW_SERVER_CONFIG"]);
    let mut unset: Vec<&str> = names.copied().filter(|name| std::env::var_os(name).is_some()).collect();
    unset.dedup();
    // The flag goes over these anyway.
    unset.retain(|name| !matches!(*name, "WORKFLOW_WORKSPACE" | "WORKTREE_ROOT"));
    let prefix = if unset.is_empty() { String::new() } else { format!("env -u {} ", unset.join(" -u ")) };
    let workspace = quoted(&workspace.display().to_string());
    format!("{prefix}{} call {tool} --workspace {workspace} session_index={index}", binary())
}

/// The shortest way to call this program again from the current directory, as a shell takes it.
fn binary() -> String {
    let called = std::env::args_os().next().map(PathBuf::from);
    let called = called.filter(|called| !called.as_os_str().is_empty()).unwrap_or_else(|| "workflow-server".into());
    // A name without a slash was found by PATH and is again; a relative path is as short as it gets.
    if !called.is_absolute() {
        return quoted(&called.to_string_lossy());
    }
    let cwd = std::env::current_dir().unwrap_or_default();
    let real = called.canonicalize().ok();
    let below = std::iter::once(&called).chain(&real).find_map(|path| path.strip_prefix(&cwd).ok());
    let shortest = match below {
        Some(name) if name.components().count() == 1 => &Path::new(".").join(name),
        Some(path) => path,
        None => &called,
    };
    quoted(&shortest.to_string_lossy())
}

/// A word for the shell, in quotes when it needs them.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:=@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_shell_are_quoted_when_they_need_it() {
        for (word, expected) in [
            ("target/release/workflow-server", "target/release/workflow-server"),
            ("/srv/größe_1.0/a+b", "/srv/größe_1.0/a+b"),
            ("/my work/it's", "'/my work/it'\\''s'"),
            ("", "''"),
            ("$(id)", "'$(id)'"),
            ("~", "'~'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
