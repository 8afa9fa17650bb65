//! Problems of definitions, as records with a place (spec 01 §10.5).

use std::fmt;

/// How bad a [`Diagnostic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Something is left out or does not load.
    Error,
    /// It loads, but probably not as meant.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// `error`, `warning` or `info`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One problem of the definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code, `area.defect` (spec 01 §10.5).
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Id of the workflow it belongs to; empty for a problem of a root.
    pub workflow: String,
    /// File below its root, segments joined with `/`.
    pub file: String,
    /// Line from 1; absent only when there is no file.
    pub line: Option<usize>,
    /// Column from 1, in characters.
    pub column: Option<usize>,
    /// Dotted path of the value inside the document, list positions in decimal.
    pub path: Option<String>,
    /// What is wrong, one line.
    pub message: String,
    /// What to do about it; may be a short excerpt of several lines.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A problem of a whole file: line 1, column 1, no path.
    pub(crate) fn of_file(code: &'static str, severity: Severity, workflow: &str, file: &str, message: String) -> Self {
        Self {
            code,
            severity,
            workflow: workflow.to_owned(),
            file: file.to_owned(),
            line: Some(1),
            column: Some(1),
            path: None,
            message,
            help: None,
        }
    }

    /// The same with advice.
    #[must_use]
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// `path: message`, as issues are joined in load errors (spec 01 §10.3).
    pub fn issue(&self) -> String {
        match &self.path {
            Some(path) if !path.is_empty() => format!("{path}: {}", self.message),
            _ => self.message.clone(),
        }
    }

    /// `file:line:column`, or the file alone.
    pub fn place(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", self.file),
            _ => self.file.clone(),
        }
    }
}

impl fmt::Display for Diagnostic {
    /// `file:line:column: severity[code]: path: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}[{}]: {}", self.place(), self.severity, self.code, self.issue())
    }
}

/// A remark that travels with an answer to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable code.
    pub code: &'static str,
    /// One line.
    pub message: String,
}

#[cfg(test)]
mod tests;
