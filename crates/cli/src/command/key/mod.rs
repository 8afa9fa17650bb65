//! `key`: the key that seals sessions.

mod rotate;
mod show;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::exit::Failure;

/// Shows or rotates the key that seals sessions
///
/// The server makes a key of 32 random bytes when it needs one. It binds each session to this server; without it no
/// session opens, so keep a copy in a safe place.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Key {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    Show(show::Show),
    Rotate(rotate::Rotate),
}

impl Key {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        match &self.command {
            KeyCommand::Show(show) => show.run(config),
            KeyCommand::Rotate(rotate) => rotate.run(config),
        }
    }
}
