//! `key rotate`: a new key in place of the current one, which goes on to verify.

use clap::Args;

use crate::command::session;
use crate::config::Config;
use crate::confirmation::confirmed;
use crate::exit::Failure;
use crate::printer::{self, STRONG, Text, styled};

/// Makes a new key; the old one is kept and goes on to verify
///
/// The old key becomes secret.prev.<key id>. Sessions open as before and are sealed with the new key when they are next
/// written; running servers take it with their next call. Nothing is lost when this is interrupted: the key is the old
/// one or the new one. Asks; without a terminal it needs --yes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  workflow-server key rotate\n  workflow-server key rotate --yes && workflow-server key show"
)]
pub(crate) struct Rotate {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Rotate {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let store = session::store(config)?;
        let report = store.key_report();
        let id = match &report.current {
            Some(file) => file.id.clone().unwrap_or_else(|| "unusable".to_owned()),
            // Refused by the store, with what to do.
            None => return Err(store.rotate_key().err().map_or(Failure::Told, Failure::from)),
        };
        let key = format!("key {} at {}", styled(STRONG, &id), report.path.display());
        let mut text = Text::of(&key);
        text.lines("", &format!(
            "- A new key takes its place; this one stays beside it as secret.prev.{id} and goes on to verify.\n\
             - Every session opens as before. Its next write seals it with the new key; until then its calls warn.\n\
             - Handles of open checkpoints get new values (get_workflow_status tells them), and trace tokens handed out so \
             far are not accepted any more (short trace references are).\n\
             - Other machines that share these sessions need the new key too, and the old one for as long as `workflow-server \
             key show` counts sessions that need it."
        ));
        printer::print(&text)?;
        if !self.yes {
            confirmed("Rotate it?", "not rotated")?;
        }
        let done = store.rotate_key()?;
        printer::print_line(&format!(
            "rotated: the key is now {}; {} is kept as {}",
            styled(STRONG, &done.new),
            done.old,
            done.kept.display()
        ))?;
        Ok(())
    }
}
