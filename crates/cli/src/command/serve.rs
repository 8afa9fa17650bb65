//! `serve`: the server over stdin and stdout.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use clap::{Args, CommandFactory as _};
use workflow_mcp::Server;
use workflow_store::FileStore;

use crate::cli::Cli;
use crate::config::{Config, Origin};
use crate::exit::Failure;
use crate::{log, printer};

/// Serves one client over stdin and stdout
///
/// One JSON-RPC message a line; stdout carries nothing else, the log goes to stderr. Ends when stdin ends, when stdout
/// is closed, or when the process that started it is gone; calls in flight are finished first. Any number of servers
/// may work on one workspace.
#[derive(Debug, Default, Args)]
#[command(
    after_help = "Examples:\n  workflow-server serve\n  workflow-server serve --workspace /src/app --workflow-dir /src/workflows"
)]
pub(crate) struct Serve {
    /// `serve` was written out.
    #[arg(skip = true)]
    asked: bool,
}

impl Serve {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let nothing_said = !self.asked && std::env::args_os().len() == 1;
        if nothing_said && io::stdin().is_terminal() {
            // A person, not a client: tell rather than wait for JSON.
            Cli::command().print_help()?;
            return Ok(());
        }
        let options = config.store().map_err(Failure::Usage)?;
        log::start(&config.log_level, config.log_format);
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let workspace = options.workspace.display().to_string();
        let found = match config.origin("workspace") {
            Origin::Default => "the enclosing git work tree".to_owned(),
            origin => origin.to_string(),
        };
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            workspace,
            workspace_from = found,
            workflow_dirs = config.workflow_dirs().join(", "),
            state_dir = %options.state_dir.display(),
            transport = "stdio",
            "serving"
        );
        if io::stdin().is_terminal() {
            printer::say("Waiting for an MCP client on stdin; Ctrl-D ends.");
        }
        // Definitions may come while the server runs; agents are told of the warning too.
        if let Err(missing) = config.check_workflow_dirs() {
            missing.lines().for_each(|line| tracing::warn!("{line}"));
        }
        let explicit = config.explicit_dirs().to_vec();
        let problems = move || {
            let missing = explicit.iter().filter(|path| !path.is_dir());
            missing.map(|path| format!("workflow directory {} is not there", path.display())).collect()
        };
        let store = FileStore::open(options)?;
        let server = Server::new(config.library(), store, config.engine.clone())
            .with_problems(problems)
            .with_full_audit(config.audit_full);
        workflow_mcp::serve(&Arc::new(server), io::stdin(), io::stdout(), abandoned())?;
        tracing::info!("ended");
        Ok(())
    }
}

/// Tells whether nobody is left to serve: another process has taken the place of the parent, or nobody can read stdout
/// any more, which a server that waits for its next request would not notice.
#[cfg(unix)]
fn abandoned() -> impl Fn() -> bool + Send + 'static {
    let parent = rustix::process::getppid();
    move || rustix::process::getppid() != parent || is_closed(&io::stdout())
}

/// Whether the other end of a pipe or socket is closed. What cannot be asked counts as open.
#[cfg(unix)]
fn is_closed(output: &impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut asked = [PollFd::new(output, PollFlags::empty())];
    poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
        && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Elsewhere the end of stdin is the only sign.
#[cfg(not(unix))]
fn abandoned() -> impl Fn() -> bool + Send + 'static {
    || false
}
