//! `session`: what an operator does with session folders.

mod adopt;
mod export;
mod gc;
pub(crate) mod list;
mod migrate;
mod release;
mod show;
mod verify;

use clap::{Args, Subcommand};
use workflow_mcp::Server;
use workflow_store::{FileStore, Options};

use crate::config::Config;
use crate::exit::Failure;
use crate::{log, printer};

/// Lists, shows, checks and repairs sessions
///
/// A session is a folder with two files: its state, and a seal that binds the state to this server's key, the folder
/// and the workspace.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Session {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    List(list::List),
    Show(show::Show),
    Export(export::Export),
    Verify(verify::Verify),
    Adopt(adopt::Adopt),
    Migrate(migrate::Migrate),
    Release(release::Release),
    Gc(gc::Gc),
}

impl Session {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        match &self.command {
            SessionCommand::List(list) => list.run(config),
            SessionCommand::Show(show) => show.run(config),
            SessionCommand::Export(export) => export.run(config),
            SessionCommand::Verify(verify) => verify.run(config),
            SessionCommand::Adopt(adopt) => adopt.run(config),
            SessionCommand::Migrate(migrate) => migrate.run(config),
            SessionCommand::Release(release) => release.run(config),
            SessionCommand::Gc(gc) => gc.run(config),
        }
    }
}

/// The store that the settings name.
pub(crate) fn store(config: &Config) -> Result<FileStore, Failure> {
    open(config, config.store().map_err(Failure::Usage)?)
}

/// A store with these options, for a command that prints for people.
pub(crate) fn open(config: &Config, options: Options) -> Result<FileStore, Failure> {
    log::start("warn", config.log_format);
    for warning in &config.warnings {
        printer::warn(warning);
    }
    Ok(FileStore::open(options)?)
}

/// A server on these sessions, for commands that also need the definitions.
fn server(config: &Config) -> Result<Server, Failure> {
    Ok(Server::new(config.library(), store(config)?, config.engine.clone()))
}
