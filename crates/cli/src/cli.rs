//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};

use crate::command;

/// What `--help` says below the options.
const EXAMPLES: &str = "\
Examples:
  workflow-server demo                  see in half a minute what this is about
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
    use clap::CommandFactory as _;

    use super::*;
    use crate::config::SETTINGS;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_of_the_table_exists() {
        let command = Cli::command();
        let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        for flag in SETTINGS.iter().filter_map(|setting| setting.flag) {
            assert!(flags.contains(&flag), "--{flag}");
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
