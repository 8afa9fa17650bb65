//! `session export`: one session as one file that can be passed on.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use workflow_mcp::{Clock as _, SystemClock};

use crate::config::Config;
use crate::exit::Failure;
use crate::printer::{self, STRONG, styled};
use crate::report::{self, Redaction};

/// Writes a report of one session: one HTML page, or JSON
///
/// The page holds everything and loads nothing: timeline, activities with their times, questions with options and answers,
/// variables, usage, sizes sent, children, calls. Values that have the name or the look of a secret are hidden, the user's
/// request and long values are cut; read it all the same before you pass it on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflow-server session export my-tour                         writes my-tour-ABC234.html
  workflow-server session export ABC234 --output tour.html
  workflow-server session export ABC234 --json --output - | jq .activities")]
pub(crate) struct Export {
    /// Slug or index of the session, as `session list` shows them, or the path of its folder
    #[arg(value_name = "SLUG|INDEX")]
    session: String,
    /// Form of the report [default: by the ending of --output, else html]
    #[arg(long, value_name = "FORM")]
    format: Option<Form>,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// File to write, replaced if it is there; - for stdout [default: SLUG-INDEX.html here]
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Keep the user's request and long values whole
    #[arg(long)]
    full: bool,
    /// Hide nothing; for your own eyes only
    #[arg(long)]
    show_secrets: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One page, no scripts, nothing loaded.
    Html,
    /// The same as data, described in docs/session-report.md.
    Json,
}

impl Form {
    fn ending(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Json => "json",
        }
    }
}

impl Export {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let server = super::server(config)?;
        let redaction = Redaction::new(self.full, self.show_secrets);
        let report = report::collect(&server, &self.session, SystemClock.now(), &redaction)?;
        let form = self.form();
        let text = match form {
            Form::Html => report::html::render(&report),
            Form::Json => report::json::render(&report),
        };
        let path = match &self.output {
            Some(path) if path == Path::new("-") => return Ok(printer::data(&text)?),
            Some(path) => path.clone(),
            None => {
                let name = format!("{}-{}.{}", report.head.slug, report.head.session_index, form.ending());
                PathBuf::from(name)
            }
        };
        write(&path, &text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        for note in &report.notes {
            printer::warn(note);
        }
        let redacted = &report.redacted;
        let told = match (redacted.secrets, redacted.hidden) {
            (true, _) => "secrets are shown".to_owned(),
            (false, hidden) => format!("{} hidden", report::counted(hidden, "value")),
        };
        printer::print_line(&format!(
            "wrote {}, {}, {told}",
            styled(STRONG, &path.display().to_string()),
            report::counted(report.lines.len(), "event")
        ))?;
        Ok(())
    }

    fn form(&self) -> Form {
        let is_json = |path: &PathBuf| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        match self.format {
            _ if self.json => Form::Json,
            Some(form) => form,
            None if self.output.as_ref().is_some_and(is_json) => Form::Json,
            None => Form::Html,
        }
    }
}

/// Whole or not at all: beside the target, then renamed.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Devices and pipes are written as they are.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, text);
    }
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
