//! `session adopt`: seals a moved, copied or restored folder for this place.

use clap::Args;
use workflow_store::Adoption;

use crate::config::Config;
use crate::confirmation::confirmed;
use crate::exit::Failure;
use crate::place;
use crate::printer::{self, STRONG, Text};

/// Accepts a session folder as it is, for this key, folder and workspace
///
/// For folders that were moved, renamed, copied, restored, or sealed elsewhere. Says what does not fit and what is
/// known to have changed, then asks; without a terminal it needs --yes. The state is kept; a session whose index is
/// taken here gets another one.
#[derive(Debug, Args)]
pub(crate) struct Adopt {
    /// Slug of the folder, or its path
    #[arg(value_name = "FOLDER")]
    folder: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Adopt {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let store = super::store(config)?;
        let folder = place::session(&store, &self.folder);
        let planned = store.adoption(&folder)?;
        let Some(reason) = &planned.reason else {
            printer::print_line(&format!(
                "{} opens as it is; nothing to do. Its index is {}.",
                planned.folder, planned.session_index
            ))?;
            return Ok(());
        };
        printer::print(&description(&planned, reason))?;
        if !self.yes {
            confirmed("Adopt it?", "not adopted; nothing was changed")?;
        }
        let done = store.adopt(&folder)?;
        printer::print_line(&format!(
            "adopted {}, index {}",
            done.folder,
            printer::styled(STRONG, &done.session_index)
        ))?;
        for (old, new) in done.reindexed {
            printer::print_line(&format!("  the session {old} is now {new}"))?;
        }
        Ok(())
    }
}

fn description(planned: &Adoption, reason: &str) -> Text {
    let mut text = Text::of(&format!("{} does not open: {reason}", planned.folder));
    for (name, value) in [("the seal says", &planned.sealed), ("found", &planned.found)] {
        if !value.is_empty() {
            text.line(&format!("  {name}: {value}"));
        }
    }
    for change in &planned.changes {
        text.line(&format!("  - {change}"));
    }
    for (old, new) in &planned.reindexed {
        text.line(&format!("  - the index {old} is taken; it becomes {new}"));
    }
    text
}
