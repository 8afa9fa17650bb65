//! The binary: commands, configuration, logging.
//!
//! This crate may know everything; what can be decided without a command line belongs into the crates below it.

mod bundled;
mod cli;
mod command;
mod config;
mod confirmation;
mod exit;
mod log;
mod place;
mod plain;
mod printer;
mod report;
mod text;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::config::{Config, Surroundings};
use crate::exit::Failure;

fn main() -> ExitCode {
    match cli::read(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(cli) => exit::code(run(cli)),
        Err(error) => error.exit(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let cwd = std::env::current_dir().map_err(|error| Failure::failed(format!("no current directory: {error}")))?;
    let env = |name: &str| std::env::var(name).ok();
    let command = cli.command.unwrap_or(Command::Serve(command::serve::Serve::default()));
    let surroundings =
        Surroundings { env: &env, cwd, read: if command.reads_file() { Some(&text::read) } else { None } };
    let config = Config::read(&cli.flags, &surroundings).map_err(Failure::Usage)?;
    if command.uses_workspace() {
        config.check_workspace().map_err(Failure::Usage)?;
    }
    match command {
        Command::Serve(serve) => serve.run(&config),
        Command::Demo(demo) => demo.run(),
        Command::Call(call) => call.run(&config),
        Command::List(list) => list.run(&config),
        Command::Show(show) => show.run(&config),
        Command::Session(session) => session.run(&config),
        Command::Key(key) => key.run(&config),
        Command::Config(settings) => settings.run(&config),
    }
}
