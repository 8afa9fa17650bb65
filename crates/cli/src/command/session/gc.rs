//! `session gc`: removes transient sessions that nobody came back to, and what promotions and crashes left.

use std::time::Duration;

use anstyle::Style;
use clap::Args;
use workflow_mcp::{Clock as _, SystemClock};
use workflow_store::{Collected, Leftover};

use crate::config::Config;
use crate::confirmation::confirmed;
use crate::exit::Failure;
use crate::printer::{self, DIM, POOR, STRONG, Text};

/// Removes transient sessions that have not been used for a while, and leftovers beside them
///
/// Transient are sessions that were opened without a name and never handed anything over. Leftovers are notes of sessions
/// that moved to a folder which is gone, and files that a crash left half written. All of it lies below the state
/// directory; sessions in planning folders are never touched. Says what goes and why, then asks; without a terminal it
/// needs --yes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  workflow-server session gc --dry-run               what would go\n  workflow-server session gc --older-than 7d --yes   without asking"
)]
pub(crate) struct Gc {
    /// Keep what was used within this time: a number with d, h, m or s
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = time)]
    older_than: Duration,
    /// Only say what would go
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Gc {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let store = super::store(config)?;
        let collect = |remove| store.collect_transient(self.older_than, SystemClock.now(), remove);
        let planned = collect(false)?;
        if planned.is_empty() {
            printer::say("nothing to remove: no transient sessions, no leftovers");
            return Ok(());
        }
        printer::print(&as_table(&planned))?;
        let going = planned.iter().filter(|one| one.kept_because.is_none()).count();
        if going == 0 {
            printer::say("nothing is old enough to go; see --older-than");
            return Ok(());
        }
        if self.dry_run {
            printer::say(&format!("{going} would go; nothing was changed"));
            return Ok(());
        }
        if !self.yes {
            confirmed(&format!("Remove {going}?"), "nothing was removed")?;
        }
        // Looked at once more under the locks: what was used meanwhile stays.
        let done = collect(true)?;
        let removed = done.iter().filter(|one| one.removed).count();
        printer::print_line(&format!("removed {removed} of {going}"))?;
        let failed: Vec<&Collected> = done
            .iter()
            .filter(|one| !one.removed && planned.iter().any(|p| p.path == one.path && p.kept_because.is_none()))
            .collect();
        for one in &failed {
            printer::warn(&format!("{}: {}", one.path, one.kept_because.as_deref().unwrap_or("kept")));
        }
        if failed.is_empty() { Ok(()) } else { Err(Failure::Told) }
    }
}

fn as_table(collected: &[Collected]) -> Text {
    let rows: Vec<_> = collected
        .iter()
        .map(|one| {
            let (style, action, why) = match &one.kept_because {
                Some(reason) => (DIM, "stays", reason),
                None => (POOR, "goes", &one.reason),
            };
            let what = match (one.what, &one.session_index) {
                (Leftover::Session, Some(index)) => {
                    format!("session {index} {}", one.workflow_id.as_deref().unwrap_or_default())
                }
                (Leftover::Session, None) => "session".to_owned(),
                (Leftover::Folder, _) => "folder".to_owned(),
                (Leftover::Note, _) => "note".to_owned(),
                (Leftover::Staged, _) => "half-written file".to_owned(),
            };
            vec![(style, action.to_owned()), (STRONG, one.slug.clone()), (Style::new(), what), (DIM, why.clone())]
        })
        .collect();
    Text::table(&rows)
}

/// `30d`, `12h`, `90m`, `0s`.
fn time(text: &str) -> Result<Duration, String> {
    let wanted = || "a whole number followed by d, h, m or s is wanted, such as 30d".to_owned();
    let text = text.trim();
    let unit = text.chars().next_back().ok_or_else(wanted)?;
    let seconds = match unit {
        'd' => 86_400,
        'h' => 3600,
        'm' => 60,
        's' => 1,
        _ => return Err(wanted()),
    };
    let count: u64 = text[..text.len() - unit.len_utf8()].trim().parse().map_err(|_| wanted())?;
    count.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("30d", 2_592_000), ("12h", 43_200), (" 90m ", 5400), ("0s", 0)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "30", "d", "-1d", "1.5d", "3 weeks", "99999999999999999999d", "9999999999999999d", "3é"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
