//! `list`: the workflows, and with `--sessions` the sessions.

use clap::Args;
use serde_json::{Value, json};
use workflow_corpus::{ListedWorkflow, Listing, Status};

use super::session;
use crate::config::Config;
use crate::exit::Failure;
use crate::place;
use crate::printer::{self, BAD, DIM, GOOD, POOR, STRONG};
use crate::report::counted;

/// Lists the workflows that can be started
///
/// With their state: ok, degraded (it loads, with errors), or broken. `show` says what is wrong and where.
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
        let missing = listing.load_errors.iter().filter_map(|error| error.file.split('/').next());
        let ids: Vec<&str> = broken.map(|workflow| workflow.id.as_str()).chain(missing).collect();
        let text = if self.json { as_json(&listing) } else { as_table(&listing.workflows) };
        printer::print(&text)?;
        if !self.json {
            for id in ids {
                printer::say(&format!("`workflow-server show {id}` says what is wrong and what to do"));
            }
        }
        Ok(())
    }
}

fn as_json(listing: &Listing) -> String {
    let workflows: Vec<Value> = listing
        .workflows
        .iter()
        .map(|workflow| {
            json!({
                "id": workflow.id,
                "title": workflow.title,
                "version": workflow.version,
                "tags": workflow.tags,
                "status": workflow.status.as_str(),
                "errors": workflow.errors,
                "warnings": workflow.warnings,
                "source": workflow.source,
            })
        })
        .collect();
    format!("{:#}", Value::from(workflows))
}

fn as_table(workflows: &[ListedWorkflow]) -> String {
    if workflows.is_empty() {
        return "no workflows".to_owned();
    }
    let rows: Vec<_> = workflows
        .iter()
        .map(|workflow| {
            let style = match workflow.status {
                Status::Ok => GOOD,
                Status::Degraded => POOR,
                Status::Broken => BAD,
            };
            let state = match workflow.status {
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
        })
        .collect();
    printer::table(&rows)
}
