//! `session verify`: opens folders as a server would, and changes nothing.

use clap::Args;
use workflow_store::SessionListing;

use crate::config::Config;
use crate::exit::Failure;
use crate::place;
use crate::printer::{self, BAD, GOOD, POOR, Text};

/// Checks that sessions open: seal, state, place
///
/// Without a folder all of the workspace. Exit code 1 when one does not open.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Slug of the folder, or its path
    #[arg(value_name = "FOLDER")]
    folders: Vec<String>,
}

impl Verify {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let store = super::store(config)?;
        let listings = if self.folders.is_empty() {
            store.sessions()?
        } else {
            self.folders.iter().map(|folder| store.verify(&place::session(&store, folder))).collect::<Result<_, _>>()?
        };
        if listings.is_empty() {
            printer::print(&Text::of("no sessions"))?;
        }
        let mut failed = 0;
        for listing in &listings {
            failed += usize::from(listing.session.is_err());
            printer::print(&text(listing))?;
        }
        match failed {
            0 => Ok(()),
            failed => Err(Failure::failed(format!("{failed} of {} do not open", listings.len()))),
        }
    }
}

fn text(listing: &SessionListing) -> Text {
    match &listing.session {
        Ok(facts) => {
            let mut text = Text::of(&format!(
                "{}  {}  {} {}, {} writes, {} seal",
                printer::styled(GOOD, "ok"),
                listing.folder,
                facts.session_index,
                facts.workflow_id,
                facts.seq,
                facts.seal
            ));
            for warning in &facts.warnings {
                text.lines("    ", &format!("{} {}", printer::styled(POOR, warning.code), warning.message));
            }
            text
        }
        Err(refusal) => {
            let mut text = Text::of(&format!("{}  {}", printer::styled(BAD, "no"), listing.folder));
            text.lines("    ", &refusal.text());
            text
        }
    }
}
