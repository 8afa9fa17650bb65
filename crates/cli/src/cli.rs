//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueHint};

use crate::command;
use crate::plain::plain;

/// What `--help` says below the options.
const EXAMPLES: &str = "\
Examples:
  workflow-server demo                  see in a few seconds what this is about
  workflow-server list                  which workflows there are
  workflow-server show quick-tour       what one consists of
  workflow-server call discover         one tool call, as an agent makes it
  workflow-server session list          which sessions this workspace has
  workflow-server session show my-tour  where one stands
  workflow-server session export my-tour
  workflow-server                       serve the git work tree that you are in
  workflow-server --workspace . --workflow-dir ~/workflows

Connect a client: register the command `workflow-server serve --workspace DIR` \
as a stdio server. The agent then calls `discover` and is told the rest.

A flag goes over its environment variable, that over workflow-server.toml; some \
settings have no flag. `workflow-server config show` prints all of them with \
where each value came from.

Exit codes: 0 done; 1 failed, refused, or `show` found errors in the definition;
2 the command line or a setting cannot be understood.";

/// Serves workflows to coding agents over MCP and keeps their sessions.
///
/// Without a command it serves, so a client may start it with nothing but flags.
#[derive(Debug, Parser)]
#[command(name = "workflow-server", version, propagate_version = true, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) flags: Flags,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Settings that may stand before or after the command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Flags {
    /// Directory whose work this server keeps sessions for [default: the enclosing git work tree]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Directory with workflow definitions; may be repeated, nearest first. Replaces the default ones: the workspace's
    /// .workflows, your own, the bundled ones
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, action = ArgAction::Append)]
    pub(crate) workflow_dir: Vec<PathBuf>,
    /// Add the bundled workflows to those of --workflow-dir
    #[arg(long, global = true)]
    pub(crate) with_bundled: bool,
    /// Configuration file [default: workflow-server.toml in the workspace, else in your configuration directory]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Name of the workspace in seals, the same on every machine that shares it [default: its path]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) workspace_id: Option<String>,
    /// error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// json or text
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
    /// Write arguments into the log as they are, not only their sizes
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) audit_full: bool,
    /// Accept a key file that others may read, or that is a link (mounted secrets)
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) allow_open_key: bool,
    /// stdio
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub(crate) transport: Option<String>,
    /// Accepted and unused in this version
    #[arg(long, global = true, value_name = "OWNER/NAME", hide = true)]
    pub(crate) repo: Option<String>,
    /// Accepted and unused in this version
    #[arg(long, global = true, value_name = "DIR", hide = true)]
    pub(crate) install_dir: Option<PathBuf>,
    /// Accepted and unused in this version
    #[arg(long, global = true, value_name = "PORT", hide = true)]
    pub(crate) port: Option<String>,
    /// Accepted and unused in this version
    #[arg(long, global = true, value_name = "ADDRESS", hide = true)]
    pub(crate) host: Option<String>,
}

impl Flags {
    /// What a flag says about the setting `key`.
    pub(crate) fn given(&self, key: &str) -> Vec<String> {
        let path = |path: &Option<PathBuf>| path.iter().map(|path| path.display().to_string()).collect();
        let text = |text: &Option<String>| text.iter().cloned().collect();
        let switch = |on: bool| if on { vec!["true".to_owned()] } else { Vec::new() };
        match key {
            "workspace" => path(&self.workspace),
            "workflow_dir" => self.workflow_dir.iter().map(|path| path.display().to_string()).collect(),
            "with_bundled" => switch(self.with_bundled),
            "workspace_id" => text(&self.workspace_id),
            "log_level" => text(&self.log_level),
            "log_format" => text(&self.log_format),
            "audit_full" => switch(self.audit_full),
            "allow_open_key" => switch(self.allow_open_key),
            "transport" => text(&self.transport),
            "repo" => text(&self.repo),
            "install_dir" => path(&self.install_dir),
            "port" => text(&self.port),
            "host" => text(&self.host),
            _ => Vec::new(),
        }
    }
}

/// The command line. Every command takes the settings; in full they stand in the help of the whole program and of
/// `serve`, elsewhere one line says where.
pub(crate) fn command_line() -> clap::Command {
    let command = Cli::command();
    let settings: Vec<Arg> = command.get_arguments().filter(|argument| argument.is_global_set()).cloned().collect();
    command.mut_subcommands(|one| match one.get_name() {
        "serve" => one,
        "demo" => without_settings(one, &settings, ""),
        _ => without_settings(one, &settings, "Settings: see `workflow-server --help`"),
    })
}

/// Reads a command line.
///
/// # Errors
/// What cannot be understood, or help that was asked for. Errors repeat what was written, so they are made from a form of
/// it that steers no terminal.
pub(crate) fn read(line: &[OsString]) -> Result<Cli, clap::Error> {
    let parse = |line: &[OsString]| Cli::from_arg_matches(&command_line().try_get_matches_from(line)?);
    parse(line).map_err(|error| {
        let shown: Vec<OsString> = line.iter().map(|word| plain(&word.to_string_lossy()).into()).collect();
        match parse(&shown) {
            _ if shown == line => error,
            Err(error) => error,
            // What was wrong is not in what can be shown, so only its kind is told.
            Ok(_) => command_line().error(error.kind(), error.kind()),
        }
    })
}

/// Takes settings out of the help of a command and of those below it; they are accepted as before.
fn without_settings(command: clap::Command, settings: &[Arg], note: &str) -> clap::Command {
    let after = command.get_after_help().map(ToString::to_string);
    let after: Vec<&str> = after.as_deref().into_iter().chain([note]).filter(|part| !part.is_empty()).collect();
    let after = after.join("\n\n");
    // What a command has already is not handed down to it.
    let command = command.args(settings.iter().map(|setting| setting.clone().hide(true)));
    let command = if after.is_empty() { command } else { command.after_help(after) };
    command.mut_subcommands(|one| without_settings(one, settings, note))
}

/// One file each in `command/`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(command::serve::Serve),
    Demo(command::demo::Demo),
    Call(command::call::Call),
    List(command::list::List),
    Show(command::show::Show),
    Session(command::session::Session),
    Key(command::key::Key),
    Config(command::config::Settings),
}

impl Command {
    /// Whether the command takes settings from a configuration file; `config init` works where a broken
    /// one lies, `demo` brings its own.
    pub(crate) fn reads_file(&self) -> bool {
        !matches!(self, Self::Config(settings) if settings.writes()) && !matches!(self, Self::Demo(_))
    }

    /// Whether the command needs the workspace; `config show` tells who named a wrong one, `demo` brings its own.
    pub(crate) fn uses_workspace(&self) -> bool {
        !matches!(self, Self::Config(settings) if !settings.writes()) && !matches!(self, Self::Demo(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;

    #[test]
    fn the_command_line_is_sound() {
        command_line().debug_assert();
    }

    #[test]
    fn every_flag_of_the_table_exists() {
        let command = Cli::command();
        let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        for flag in SETTINGS.iter().filter_map(|setting| setting.flag) {
            assert!(flags.contains(&flag), "--{flag}");
        }
    }

    /// Every command with the words that call it.
    fn commands(command: &clap::Command, words: &[String]) -> Vec<(Vec<String>, clap::Command)> {
        let words = [words, &[command.get_name().to_owned()]].concat();
        let below = command.get_subcommands().filter(|one| one.get_name() != "help");
        let below = below.flat_map(|one| commands(one, &words)).collect();
        [vec![(words, command.clone())], below].concat()
    }

    #[test]
    fn every_command_takes_the_settings_and_two_explain_them() {
        let mut built = command_line();
        built.build();
        let settings: Vec<Arg> = command_line().get_arguments().filter(|one| one.is_global_set()).cloned().collect();
        let all = commands(&built, &[]);
        assert!(settings.len() > 10 && all.len() > 15, "{}, {}", settings.len(), all.len());
        for (words, mut command) in all {
            let name = words[1..].join(" ");
            let (long, short) = (command.render_long_help().to_string(), command.render_help().to_string());
            let is_full = matches!(name.as_str(), "" | "serve");
            for setting in &settings {
                let flag = format!("--{}", setting.get_long().unwrap());
                let listed = |help: &str| help.lines().any(|line| line.trim_start().starts_with(&flag));
                assert_eq!(listed(&long), is_full && !setting.is_hide_set(), "{flag} in the help of {name:?}");
                assert!(is_full || !listed(&short), "{flag} in the short help of {name:?}");
                let value = setting.get_action().takes_values().then(|| "1".to_owned());
                let line = words.iter().cloned().chain([flag]).chain(value);
                let taken = command_line().try_get_matches_from(line).map_err(|error| error.kind());
                assert_ne!(taken.err(), Some(clap::error::ErrorKind::UnknownArgument), "{setting} of {name:?}");
            }
            for help in [long, short] {
                let pointed = help.matches("Settings: see `workflow-server --help`").count();
                assert_eq!(pointed, usize::from(!is_full && name != "demo"), "{name:?}: {help}");
            }
        }
    }

    #[test]
    fn a_setting_holds_wherever_it_stands() {
        let parse = |arguments: &[&str]| {
            let all = std::iter::once(&"workflow-server").chain(arguments);
            Cli::from_arg_matches(&command_line().try_get_matches_from(all).unwrap()).unwrap().flags
        };
        for arguments in [
            &["--workspace", "/w", "--workflow-dir=/a", "session", "list", "--workflow-dir=/b"][..],
            &["session", "--workspace", "/w", "--workflow-dir=/b", "list"],
            &["session", "list", "--workspace", "/w", "--workflow-dir=/b"],
            &["demo", "--workspace", "/w", "--workflow-dir=/b"],
        ] {
            let flags = parse(arguments);
            assert_eq!(flags.workspace, Some("/w".into()), "{arguments:?}");
            assert_eq!(flags.workflow_dir.last(), Some(&"/b".into()), "{arguments:?}");
        }
    }

    #[test]
    fn a_flag_takes_its_value_either_way_and_never_the_next_flag() {
        let parse = |arguments: &[&str]| {
            Cli::try_parse_from(std::iter::once(&"workflow-server").chain(arguments)).map(|cli| cli.flags)
        };
        assert_eq!(parse(&["--workspace=/w"]).unwrap().workspace, Some("/w".into()));
        assert_eq!(parse(&["--workspace", "/w", "serve", "--port", "0"]).unwrap().port.as_deref(), Some("0"));
        assert_eq!(parse(&["serve", "--workspace", "/w"]).unwrap().workspace, Some("/w".into()));
        assert!(parse(&["--workspace", "--transport=http"]).is_err());
        let error = parse(&["--workspaces", "/w"]).unwrap_err().to_string();
        assert!(error.contains("--workspace"), "{error}");
    }
}
