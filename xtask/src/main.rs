//! Repository chores. `cargo xtask` lists them.

#[cfg(test)]
mod security;
mod sizes;
mod traps;

use std::{env, process::ExitCode};

const HELP: &str = "\
cargo xtask CHORE

  sizes   print how many characters the workflows of WORKFLOW_TEST_CORPORA deliver; --write renews docs/sizes.md
  traps   print each trap of the specification with the tests that hold it; fails when one has none
";

fn main() -> ExitCode {
    let chore = env::args().nth(1);
    let done = match chore.as_deref() {
        Some("sizes") => sizes::run(env::args().skip(2).any(|argument| argument == "--write")),
        Some("traps") => traps::run(),
        Some("help" | "--help" | "-h") | None => print(HELP),
        Some(other) => Err(anyhow::anyhow!("no chore is called {other:?}\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(print_error(&format!("{error:#}\n")));
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output; a closed pipe is no failure of a chore.
fn print(text: &str) -> anyhow::Result<()> {
    write_to(&mut std::io::stdout(), text)
}

fn print_error(text: &str) -> anyhow::Result<()> {
    write_to(&mut std::io::stderr(), text)
}

fn write_to(stream: &mut dyn std::io::Write, text: &str) -> anyhow::Result<()> {
    match stream.write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
