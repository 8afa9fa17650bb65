//! `config`: what is set, and where it came from.

use clap::{Args, Subcommand};

use crate::config::{Config, Origin, Stage};
use crate::exit::Failure;
use crate::printer::{self, DIM, POOR, STRONG};

/// Shows the settings
///
/// Each is taken from its flag, else from its environment variables, else it has its default.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Settings {
    #[command(subcommand)]
    command: SettingsCommand,
}

#[derive(Debug, Subcommand)]
enum SettingsCommand {
    /// Prints every setting with its value and where that came from
    Show,
}

impl Settings {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        match self.command {
            SettingsCommand::Show => show(config),
        }
    }
}

fn show(config: &Config) -> Result<(), Failure> {
    let plain = anstyle::Style::new();
    let rows: Vec<_> = config
        .effective
        .iter()
        .map(|effective| {
            let value = if effective.texts.is_empty() {
                effective.setting.default.to_owned()
            } else {
                effective.texts.join(", ")
            };
            let origin = match effective.setting.stage {
                Stage::Now => effective.origin.to_string(),
                Stage::Later => format!("{}, unused", effective.origin),
                Stage::Ignored => format!("{}, ignored", effective.origin),
            };
            let style = if effective.origin == Origin::Default { DIM } else { POOR };
            vec![
                (STRONG, effective.setting.key.to_owned()),
                (plain, if value.is_empty() { "-".to_owned() } else { value }),
                (style, origin),
                (DIM, effective.setting.about.to_owned()),
            ]
        })
        .collect();
    printer::print(&printer::table(&rows))?;
    Ok(())
}
