//! `config init`: a file in which every setting stands as a comment.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write as _};

use clap::Args;

use crate::config::{Config, FILE_NAME, Kind, SETTINGS, Setting, Stage};
use crate::exit::Failure;
use crate::printer;

/// Writes workflow-server.toml into the workspace, every setting a comment
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Overwrite the file that is there
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let workspace = config.store().map_err(Failure::Usage)?.workspace;
        let path = workspace.join(FILE_NAME);
        let opened = if self.force { File::create(&path) } else { File::create_new(&path) };
        let written = opened.and_then(|mut file| file.write_all(text().as_bytes()));
        match written {
            Ok(()) => {
                printer::print_line(&format!("wrote {}", path.display()))?;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(Failure::failed(format!("{} is there already; --force overwrites it", path.display())))
            }
            Err(error) => Err(Failure::failed(format!("{} cannot be written: {error}", path.display()))),
        }
    }
}

/// The text of the file.
fn text() -> String {
    let mut text = "\
# Settings of workflow-server. Take the # away in front of a line to make it hold.
#
# A flag goes over the environment, the environment over this file. Relative paths are relative to this file.
# `workflow-server config show` prints every value and where it came from.
"
    .to_owned();
    for setting in SETTINGS.iter().filter(|setting| setting.stage == Stage::Now) {
        let mut others: Vec<String> = setting.flag.iter().map(|flag| format!("--{flag}")).collect();
        others.extend(setting.env.iter().map(|name| (*name).to_owned()));
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "\n# {}\n# default: {}; elsewhere: {}\n#{} = {}\n",
            setting.about,
            setting.default,
            others.join(", "),
            setting.key,
            example(setting)
        );
    }
    text
}

/// A value to begin with: the default where it can be written down.
fn example(setting: &Setting) -> String {
    match setting.kind {
        Kind::Switch | Kind::Number | Kind::Whole => setting.default.to_owned(),
        Kind::Path => "\"path/to/directory\"".to_owned(),
        Kind::Paths => "[\"path/to/workflows\"]".to_owned(),
        Kind::Text if setting.default.contains(' ') => "\"text\"".to_owned(),
        Kind::Text => format!("\"{}\"", setting.default),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::cli::Flags;
    use crate::config::{Origin, Surroundings};

    #[test]
    fn every_line_of_the_file_may_be_made_to_hold() {
        let text = text();
        let live: String = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') && !rest.is_empty() => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let read = |_: &Path| Ok(live.clone());
        let env = |name: &str| (name == "HOME").then(|| "/home/ann".to_owned());
        let surroundings = Surroundings { env: &env, cwd: PathBuf::from("/w"), read: Some(&read) };
        let config = Config::read(&Flags::default(), &surroundings).unwrap();
        for effective in config.effective.iter().filter(|effective| effective.setting.stage == Stage::Now) {
            assert!(matches!(effective.origin, Origin::File { .. }), "{}", effective.setting.key);
        }
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    }

    #[test]
    fn as_written_the_file_changes_nothing() {
        let read = |_: &Path| Ok(text());
        let surroundings = Surroundings { env: &|_| None, cwd: PathBuf::from("/w"), read: Some(&read) };
        let flags = Flags { config: Some("/w/x.toml".into()), ..Flags::default() };
        let config = Config::read(&flags, &surroundings).unwrap();
        assert!(config.effective.iter().all(|effective| effective.origin == Origin::Default));
    }
}
