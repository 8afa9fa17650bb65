//! `config`: what is set, and where it came from.

mod init;
mod show;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::exit::Failure;

/// Shows the settings, or writes a file for them
///
/// Each is taken from its flag, else from its environment variables, else from workflow-server.toml, else it has its
/// default. The file is the one that --config or WORKFLOW_SERVER_CONFIG names, else the one in the workspace, else the
/// one in your configuration directory.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Settings {
    #[command(subcommand)]
    command: SettingsCommand,
}

#[derive(Debug, Subcommand)]
enum SettingsCommand {
    Show(show::Show),
    Init(init::Init),
}

impl Settings {
    /// Whether the file is written rather than read.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.command, SettingsCommand::Init(_))
    }

    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        match &self.command {
            SettingsCommand::Show(show) => show.run(config),
            SettingsCommand::Init(init) => init.run(config),
        }
    }
}
