//! `list`: the workflows, and with `--sessions` the sessions.

use clap::Args;
use serde_json::{Value, json};
use workflow_corpus::{ListedWorkflow, Listing, Status};

use super::session;
use crate::config::Config;
use crate::exit::Failure;
use crate::place;
use crate::printer::{self, BAD, DIM, GOOD, POOR, STRONG, Text};
use crate::report::counted;

/// Lists the workflows that can be started
///
/// With their state: ok, degraded (it loads, with errors), or broken; "does not load" stands where not even title and
/// version can be read, which --json calls broken too. `show` says what is wrong and where.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// List the sessions of the workspace instead
    #[arg(long)]
    sessions: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        if self.sessions {
            return session::list::print(config, self.json);
        }
        config.check_workflow_dirs().map_err(Failure::Usage)?;
        let corpus = config.library().snapshot();
        let listing = corpus.list();
        for warning in &listing.warnings {
            // An entry directly in a root is named as it is there.
            let entry =
                corpus.entry_problems().find(|entry| *warning == format!("`{}`: {}", entry.file, entry.message));
            match entry {
                Some(entry) => {
                    printer::warn(&format!("{}: {}", place::shown(&corpus, 0, &entry.file), entry.message));
                }
                None => printer::warn(warning),
            }
        }
        for error in &listing.load_errors {
            let path = place::shown(&corpus, 0, &error.file);
            printer::warn(&format!("{path}:{}:{}: [{}] {}", error.line, error.column, error.code, error.error));
        }
        let broken = listing.workflows.iter().filter(|workflow| workflow.status != Status::Ok);
        let ids: Vec<&str> = broken.map(|workflow| workflow.id.as_str()).chain(unlisted(&listing)).collect();
        if self.json {
            return Ok(printer::data(&as_json(&listing))?);
        }
        printer::print(&as_table(&listing))?;
        for id in ids {
            printer::say(&format!("`workflow-server show {id}` says what is wrong and what to do"));
        }
        Ok(())
    }
}

/// Ids of those whose manifest says too little to list them: the names of their directories.
fn unlisted(listing: &Listing) -> impl Iterator<Item = &str> {
    listing.load_errors.iter().filter_map(|error| error.file.split('/').next())
}

/// Rows of both kinds in the order of their ids.
fn in_order<T>(
    listing: &Listing,
    listed: impl Fn(&ListedWorkflow) -> T,
    not_listed: impl Fn(&str) -> T,
) -> impl Iterator<Item = T> {
    let rows = listing.workflows.iter().map(|workflow| (workflow.id.as_str(), listed(workflow)));
    let mut rows: Vec<(&str, T)> = rows.chain(unlisted(listing).map(|id| (id, not_listed(id)))).collect();
    rows.sort_by_key(|(id, _)| *id);
    rows.into_iter().map(|(_, row)| row)
}

fn as_json(listing: &Listing) -> String {
    let not_listed = |id: &str| {
        json!({
            "id": id,
            "title": null,
            "version": null,
            "tags": [],
            "status": Status::Broken.as_str(),
            "errors": 1,
            "warnings": 0,
            "source": null,
        })
    };
    format!("{:#}", in_order(listing, ListedWorkflow::to_value, not_listed).collect::<Value>())
}

fn as_table(listing: &Listing) -> Text {
    let listed = |workflow: &ListedWorkflow| {
        let style = match workflow.status {
            Status::Ok => GOOD,
            Status::Degraded => POOR,
            Status::Broken => BAD,
        };
        let state = match workflow.status {
            Status::Ok if workflow.warnings > 0 => format!("ok, {}", counted(workflow.warnings, "warning")),
            Status::Ok => "ok".to_owned(),
            other => format!("{other}, {}", counted(workflow.errors, "error")),
        };
        vec![
            (STRONG, workflow.id.clone()),
            (DIM, workflow.version.clone()),
            (style, state),
            (DIM, workflow.source.clone()),
            (anstyle::Style::new(), workflow.title.clone()),
        ]
    };
    let not_listed = |id: &str| vec![(STRONG, id.to_owned()), (DIM, String::new()), (BAD, "does not load".to_owned())];
    let rows: Vec<_> = in_order(listing, listed, not_listed).collect();
    if rows.is_empty() { Text::of("no workflows") } else { Text::table(&rows) }
}
