//! `session list`: every session folder, and whether it opens.

use clap::Args;
use workflow_mcp::Server;
use workflow_store::SessionListing;

use crate::config::Config;
use crate::exit::Failure;
use crate::printer::{self, BAD, DIM, GOOD, POOR, STRONG, Text};

/// Lists the sessions of the workspace
///
/// With index, workflow, activity and status; a folder that does not open is listed with the code of the
/// reason, and `verify` says more.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        print(config, self.json)
    }
}

/// Prints the list, as `list --sessions` does too.
pub(crate) fn print(config: &Config, json: bool) -> Result<(), Failure> {
    let store = super::store(config)?;
    if json {
        let sessions = Server::new(config.library(), store, config.engine.clone()).sessions()?;
        printer::data(&format!("{sessions:#}"))?;
        return Ok(());
    }
    let sessions = store.sessions()?;
    if sessions.is_empty() {
        printer::say("no sessions");
        return Ok(());
    }
    let rows: Vec<_> = sessions.iter().map(row).collect();
    printer::print(&Text::table(&rows))?;
    let mut advice: Vec<String> = sessions.iter().filter_map(|listing| next(listing, &sessions)).collect();
    advice.dedup();
    for line in &advice {
        printer::say(line);
    }
    Ok(())
}

/// What to do about a session that does not open.
fn next(listing: &SessionListing, all: &[SessionListing]) -> Option<String> {
    let refusal = listing.session.as_ref().err()?;
    let slug = &listing.slug;
    if all.iter().filter(|other| other.slug == *slug).count() > 1 || workflow_engine::slug::check(slug).is_err() {
        // The name is not enough to tell which one is meant.
        return Some("`workflow-server session verify` says what is wrong and what to do".to_owned());
    }
    Some(match refusal.code {
        "MIGRATION_REQUIRED" => format!("`workflow-server session migrate {slug}` makes a session of today of it"),
        _ => format!("`workflow-server session verify {slug}` says what is wrong and what to do"),
    })
}

fn row(listing: &SessionListing) -> Vec<(anstyle::Style, String)> {
    match &listing.session {
        Ok(facts) => {
            let style = match facts.status {
                "completed" => DIM,
                "blocked" => POOR,
                _ => GOOD,
            };
            let activity = if facts.current_activity.is_empty() { "-" } else { &facts.current_activity };
            vec![
                (STRONG, facts.session_index.clone()),
                (style, facts.status.to_owned()),
                (anstyle::Style::new(), facts.workflow_id.clone()),
                (anstyle::Style::new(), activity.to_owned()),
                (if listing.transient { DIM } else { anstyle::Style::new() }, listing.slug.clone()),
            ]
        }
        Err(refusal) => vec![
            (BAD, "-".to_owned()),
            (BAD, refusal.code.to_owned()),
            (DIM, "-".to_owned()),
            (DIM, "-".to_owned()),
            (anstyle::Style::new(), listing.slug.clone()),
        ],
    }
}
