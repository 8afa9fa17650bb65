//! `key show`: where the key lies and whether it is safe; never the key.

use std::time::{SystemTime, UNIX_EPOCH};

use anstyle::Style;
use clap::Args;
use serde_json::{Value, json};
use workflow_engine::Timestamp;
use workflow_store::{FileStore, KeyFile, KeyReport};

use crate::command::session;
use crate::config::Config;
use crate::exit::Failure;
use crate::printer::{self, BAD, DIM, GOOD, POOR, STRONG, Text};

/// Shows where the key lies, its id, and whether others may read it; never the key
///
/// The id is the one that seals name. Previous keys only verify; each is needed for as long as a session is sealed with
/// it. Exit code 1 when there is a key that cannot be used.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  workflow-server key show\n  workflow-server key show --json\n  WORKFLOW_SERVER_KEY_DIR=/run/secrets workflow-server key show --allow-open-key"
)]
pub(crate) struct Show {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        // The key is the machine's: without a workspace there are no sessions to count, and that is all.
        let store = session::open(config, config.store_without_sessions().map_err(Failure::Usage)?)?;
        let report = store.key_report();
        let waiting = if report.previous.is_empty() { None } else { sealed_with_previous(&store) };
        if self.json {
            printer::data(&as_json(&report, waiting))?;
        } else {
            printer::print(&as_text(&report, waiting))?;
        }
        let usable = report.current.as_ref().is_none_or(|file| file.problem.is_none());
        if usable { Ok(()) } else { Err(Failure::Told) }
    }
}

/// Sessions of this workspace that only a previous key verifies; `None` when they cannot be listed.
pub(super) fn sealed_with_previous(store: &FileStore) -> Option<usize> {
    // Without a current key, listing would make one.
    store.key_report().current.filter(|file| file.problem.is_none())?;
    let by_previous = |listing: &workflow_store::SessionListing| {
        listing.session.as_ref().is_ok_and(|facts| facts.warnings.iter().any(|w| w.code == "W_KEY_PREVIOUS"))
    };
    Some(store.sessions().ok()?.iter().filter(|listing| by_previous(listing)).count())
}

fn as_text(report: &KeyReport, waiting: Option<usize>) -> Text {
    let Some(current) = &report.current else {
        return Text::of(&format!("no key yet; the first session makes one at {}", report.path.display()));
    };
    let mut rows = vec![
        vec![(DIM, "key".to_owned()), (STRONG, current.id.clone().unwrap_or_else(|| "unusable".to_owned()))],
        vec![(DIM, "path".to_owned()), (Style::new(), current.path.display().to_string())],
        vec![(DIM, "written".to_owned()), (Style::new(), date(current.written))],
        vec![(DIM, "permissions".to_owned()), verdict(current)],
    ];
    for file in &report.previous {
        let id = file.id.clone().unwrap_or_else(|| "unusable".to_owned());
        let note = match (&file.problem, file.id == current.id) {
            (Some(problem), _) => problem.clone(),
            (None, true) => "a copy of the current key, left by a rotation that did not finish".to_owned(),
            (None, false) => format!("replaced {}, verifies only", date(file.written)),
        };
        let style = if file.problem.is_some() { BAD } else { Style::new() };
        rows.push(vec![(DIM, "previous".to_owned()), (style, format!("{id}  {note}"))]);
    }
    let mut text = Text::table(&rows);
    match waiting {
        None => {}
        Some(0) => {
            text.line("");
            text.line("No session of this workspace needs a previous key any more. Others may share the key.");
        }
        Some(waiting) => {
            text.line("");
            text.line(&format!(
                "Sessions of this workspace that still need a previous key: {waiting}. The next write of each seals it anew."
            ));
        }
    }
    if let Some(problem) = &current.problem {
        text.line("");
        text.lines("", problem);
    }
    text
}

fn verdict(file: &KeyFile) -> (Style, String) {
    let mode = file.mode.map(|mode| format!("mode {mode:04o}")).unwrap_or_default();
    match (&file.exposure, &file.problem) {
        (Some(exposure), None) => (POOR, format!("allowed as it is: {exposure}")),
        (Some(exposure), Some(_)) => (BAD, format!("not safe: {exposure}")),
        (None, Some(_)) => (BAD, mode),
        (None, None) if mode.is_empty() => (Style::new(), "unknown on this platform".to_owned()),
        (None, None) => (GOOD, format!("only its owner may read it ({mode})")),
    }
}

fn date(time: Option<SystemTime>) -> String {
    time.and_then(stamp).map_or_else(|| "at an unknown time".to_owned(), Timestamp::date)
}

fn stamp(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp)
}

fn as_json(report: &KeyReport, waiting: Option<usize>) -> String {
    let file = |file: &KeyFile| -> Value {
        json!({
            "path": file.path.display().to_string(),
            "key_id": file.id,
            "written": file.written.and_then(stamp).map(Timestamp::text),
            "mode": file.mode.map(|mode| format!("{mode:04o}")),
            "exposure": file.exposure,
            "problem": file.problem,
        })
    };
    let report = json!({
        "path": report.path.display().to_string(),
        "current": report.current.as_ref().map(file),
        "previous": report.previous.iter().map(file).collect::<Vec<_>>(),
        "sessions_needing_previous": waiting,
    });
    format!("{report:#}")
}
