//! `session migrate`: from older formats, and back to the original's.

use clap::{Args, ValueEnum};
use workflow_mcp::{Clock as _, SystemClock};
use workflow_store::{Migrated, ToOriginal};

use crate::config::Config;
use crate::exit::Failure;
use crate::place;
use crate::printer::{self, STRONG, Text};

/// Turns a folder of an older format into a session, or a session back into the original's form
///
/// Says what was carried over and what was dropped. Answers of checkpoints are only taken from a folder whose old token
/// was signed with this server's key.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Slug of the folder, or its path
    #[arg(value_name = "FOLDER")]
    folder: String,
    /// Write the form that the original server reads; the way back from a sealed envelope
    #[arg(long, value_name = "FORM")]
    to: Option<Form>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// The original's: a bare seal, without events that it does not know.
    Original,
}

impl Migrate {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let store = super::store(config)?;
        let folder = place::session(&store, &self.folder);
        let text = match self.to {
            None => migrated(&store.migrate(&folder, SystemClock.now())?),
            Some(Form::Original) => original(&store.migrate_to_original(&folder)?),
        };
        printer::print(&text)?;
        Ok(())
    }
}

fn migrated(done: &Migrated) -> Text {
    let index = printer::styled(STRONG, &done.session_index);
    if done.already_done {
        return Text::of(&format!("{} is a session already, index {index}; nothing to do", done.folder));
    }
    let verified =
        if done.verified { "its old token is signed with this server's key" } else { "its origin is not verified" };
    let mut text =
        Text::of(&format!("migrated {}, index {index}, workflow {}; {verified}", done.folder, done.workflow_id));
    for (name, phrases) in [("carried over", &done.carried), ("dropped", &done.dropped)] {
        for phrase in phrases {
            text.line(&format!("  {name}: {phrase}"));
        }
    }
    text
}

fn original(done: &ToOriginal) -> Text {
    let index = printer::styled(STRONG, &done.session_index);
    let mut text = Text::of(&format!(
        "{} now has the original's form, index {index}; the pair as it was is kept beside it",
        done.folder
    ));
    for (kind, count) in &done.stripped {
        text.line(&format!("  left out: {count} events {kind}"));
    }
    text
}
