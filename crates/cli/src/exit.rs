//! Exit codes; part of the interface (README, "Exit codes").

use std::process::ExitCode;

/// Done; also when the reader of the output went away.
pub(crate) const OK: u8 = 0;
/// Something failed or was refused, so that what was asked for did not happen; or what was shown or checked has errors.
pub(crate) const FAILED: u8 = 1;
/// The command line, the environment or the configuration cannot be understood; nothing was tried.
pub(crate) const USAGE: u8 = 2;

/// How a command ended without doing what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Exit code [`USAGE`].
    Usage(String),
    /// Exit code [`FAILED`].
    Failed(String),
    /// Exit code [`FAILED`]; the output says why.
    Told,
    /// Whoever read the output has enough; exit code [`OK`].
    Closed,
}

impl Failure {
    /// A failure with a message.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Failed(error.to_string()) }
    }
}

impl From<workflow_engine::Refusal> for Failure {
    fn from(refusal: workflow_engine::Refusal) -> Self {
        let mut text = refusal.text();
        // Whoever types commands lists sessions; the advice in a refusal is for agents.
        if refusal.code == "SESSION_NOT_FOUND" {
            if let Some(at) = text.find(" Call start_session") {
                text.truncate(at);
            }
            text.push_str(" `workflow-server session list` shows what there is.");
        }
        Self::Failed(text)
    }
}

/// The exit code of a result; what went wrong is said on stderr.
pub(crate) fn code(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::Closed) => ExitCode::from(OK),
        Err(Failure::Told) => ExitCode::from(FAILED),
        Err(Failure::Failed(message)) => {
            crate::printer::complain(&message);
            ExitCode::from(FAILED)
        }
        Err(Failure::Usage(message)) => {
            crate::printer::complain(&message);
            ExitCode::from(USAGE)
        }
    }
}
