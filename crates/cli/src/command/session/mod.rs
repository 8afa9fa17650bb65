//! `session`: what an operator does with session folders.

mod adopt;
mod gc;
pub(crate) mod list;
mod migrate;
mod release;
mod verify;

use clap::{Args, Subcommand};
use workflow_store::FileStore;

use crate::config::Config;
use crate::exit::Failure;
use crate::{log, printer};

/// Lists, checks and repairs sessions
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
            SessionCommand::Verify(verify) => verify.run(config),
            SessionCommand::Adopt(adopt) => adopt.run(config),
            SessionCommand::Migrate(migrate) => migrate.run(config),
            SessionCommand::Release(release) => release.run(config),
            SessionCommand::Gc(gc) => gc.run(config),
        }
    }
}

/// The store that the settings name.
fn store(config: &Config) -> Result<FileStore, Failure> {
    let options = config.store().map_err(Failure::Usage)?;
    log::start("warn", config.log_format);
    for warning in &config.warnings {
        printer::warn(warning);
    }
    Ok(FileStore::open(options)?)
}
