//! Asking before something is changed for good.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::exit::Failure;
use crate::printer;

/// Asks on a terminal; elsewhere only `--yes` will do. `refusal` says what was not done.
pub(crate) fn confirmed(question: &str, refusal: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::failed(format!("{refusal}: say --yes to do it without being asked")));
    }
    printer::say(&format!("{question} [y/N]"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::failed(refusal))
}
