//! `session gc`: removes transient sessions that nobody came back to.

use std::time::Duration;

use clap::Args;
use workflow_mcp::{Clock as _, SystemClock};

use crate::config::Config;
use crate::exit::Failure;
use crate::printer;

/// Removes transient sessions that have not been used for a while
///
/// Transient are sessions that were opened without a name and never handed anything over. Sessions in planning folders
/// are never touched. Without --remove it only says what it would do.
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Keep what was used within so many days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    days: u64,
    /// Remove them
    #[arg(long)]
    remove: bool,
}

impl Gc {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let store = super::store(config)?;
        let unused_for = Duration::from_secs(self.days.saturating_mul(24 * 60 * 60));
        let collected = store.collect_transient(unused_for, SystemClock.now(), self.remove)?;
        if collected.is_empty() {
            printer::say("no transient sessions");
        }
        for one in collected {
            let what = match (&one.kept_because, one.removed) {
                (Some(reason), _) => format!("kept: {reason}"),
                (None, true) => "removed".to_owned(),
                (None, false) => "would be removed; say --remove".to_owned(),
            };
            printer::print(&format!("{}  {what}", one.slug))?;
        }
        Ok(())
    }
}
