//! `session release`: opens a gate whose checkpoint is gone from the definition.

use clap::Args;
use workflow_engine::{Released, Reply, Target, release_gate};
use workflow_mcp::{Clock as _, SystemClock};
use workflow_store::SessionStore as _;

use crate::config::Config;
use crate::confirmation::confirmed;
use crate::exit::Failure;
use crate::printer;
use crate::report;

/// Opens the gate of a session whose checkpoint is gone from its definition
///
/// Such a checkpoint can be neither answered nor dismissed. No answer is recorded, only that an operator opened the
/// gate; a checkpoint that can be answered is never released. Asks; without a terminal it needs --yes.
#[derive(Debug, Args)]
pub(crate) struct Release {
    /// Slug or index of the session, as `session list` shows them, or the path of its folder
    #[arg(value_name = "SLUG|INDEX")]
    session: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Release {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let store = super::store(config)?;
        let corpus = config.library().snapshot();
        let mut found = report::find(&store, &self.session)?;
        let planned = release_gate(&corpus, &mut found, SystemClock.now())?;
        let target = Target::Session { index: planned.session_index.clone(), parent: false };
        printer::print_line(&description(&planned))?;
        if !self.yes {
            confirmed("Open the gate without an answer?", "not released; nothing was changed")?;
        }
        store.transaction(&target, &mut |workset| {
            let done = release_gate(&corpus, workset, SystemClock.now())?;
            Ok(Reply::text(&done.session_index, description(&done)))
        })?;
        printer::print_line(&format!("released; the session goes on in activity {}", planned.activity))?;
        Ok(())
    }
}

fn description(planned: &Released) -> String {
    format!(
        "session {}: checkpoint {} of activity {}, waiting since {}, is no longer in the definition",
        planned.session_index, planned.checkpoint, planned.activity, planned.yielded_at
    )
}
