//! `config show`: every setting with its value and where that came from.

use anstyle::Style;
use clap::Args;
use serde_json::{Value, json};

use crate::config::{Config, Effective, Origin, Stage};
use crate::exit::Failure;
use crate::printer::{self, DIM, POOR, STRONG, Text};

/// Prints every setting with its value and where that came from
///
/// The origin is a flag, an environment variable, a line of the configuration file, or the default. Settings of later
/// versions are shown as unused.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        if self.json {
            let settings: Vec<Value> = config.effective.iter().map(|effective| as_json(config, effective)).collect();
            let file = config.file.as_ref().map(|path| path.display().to_string());
            printer::data(&format!("{:#}", json!({"file": file, "settings": settings})))?;
            return Ok(());
        }
        let file = match &config.file {
            Some(path) => path.display().to_string(),
            None if config.file_places.is_empty() => "none".to_owned(),
            None => {
                let places: Vec<String> = config.file_places.iter().map(|path| path.display().to_string()).collect();
                format!("none; it would be read from {}", places.join(" or "))
            }
        };
        let mut text = Text::of(&format!("{}  {file}", printer::styled(STRONG, "file")));
        text.line("");
        let rows: Vec<_> = config.effective.iter().map(|effective| row(config, effective)).collect();
        text.append(&Text::table(&rows));
        printer::print(&text)?;
        Ok(())
    }
}

fn row(config: &Config, effective: &Effective) -> Vec<(Style, String)> {
    let value = config.value(effective.setting);
    let style = if effective.origin == Origin::Default { DIM } else { POOR };
    vec![
        (STRONG, effective.setting.key.to_owned()),
        (style, origin(effective)),
        (Style::new(), if value.is_empty() { "-".to_owned() } else { value }),
    ]
}

fn origin(effective: &Effective) -> String {
    let origin = match &effective.origin {
        Origin::Flag(name) => format!("flag --{name}"),
        Origin::Environment(name) => format!("env {name}"),
        Origin::File { line, .. } => format!("file line {line}"),
        Origin::Default => "default".to_owned(),
    };
    match effective.setting.stage {
        Stage::Now => origin,
        Stage::Later => format!("{origin}, unused"),
        Stage::Ignored => format!("{origin}, ignored"),
    }
}

fn as_json(config: &Config, effective: &Effective) -> Value {
    let origin = match &effective.origin {
        Origin::Flag(name) => json!({"kind": "flag", "name": format!("--{name}")}),
        Origin::Environment(name) => json!({"kind": "environment", "name": name}),
        Origin::File { path, line } => json!({"kind": "file", "path": path.display().to_string(), "line": line}),
        Origin::Default => json!({"kind": "default"}),
    };
    json!({
        "key": effective.setting.key,
        "value": config.value(effective.setting),
        "origin": origin,
        "used": effective.setting.stage == Stage::Now,
        "about": effective.setting.about,
    })
}
