//! The binary: commands, configuration, logging.
//!
//! This crate may know everything; what can be decided without a command line belongs into the crates below it.

mod bundled;
mod cli;
mod command;
mod config;
mod exit;
mod log;
mod printer;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::config::{Config, Surroundings};
use crate::exit::Failure;

fn main() -> ExitCode {
    exit::code(run(Cli::parse()))
}

fn run(cli: Cli) -> Result<(), Failure> {
    let cwd = std::env::current_dir().map_err(|error| Failure::failed(format!("no current directory: {error}")))?;
    let env = |name: &str| std::env::var(name).ok();
    let config = Config::read(&cli.flags, &Surroundings { env: &env, cwd }).map_err(Failure::Usage)?;
    match cli.command.unwrap_or(Command::Serve(command::serve::Serve::default())) {
        Command::Serve(serve) => serve.run(&config),
        Command::Call(call) => call.run(&config),
        Command::List(list) => list.run(&config),
        Command::Show(show) => show.run(&config),
        Command::Session(session) => session.run(&config),
        Command::Config(settings) => settings.run(&config),
    }
}
