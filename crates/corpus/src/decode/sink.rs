//! Where problems of one file are collected, and how a place in a document is named.

use std::fmt;

use workflow_yaml::{LineIndex, Span};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::SourceFile;

/// A place inside a document, as a list of keys and positions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The document.
    Root,
    /// A member.
    Key(&'a Self, &'a str),
    /// An item.
    Item(&'a Self, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    pub(crate) fn item(&'a self, position: usize) -> Self {
        Self::Item(self, position)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = |parent: &Path<'_>| if matches!(parent, Path::Root) { "" } else { "." };
        match self {
            Self::Root => Ok(()),
            Self::Key(parent, key) => write!(f, "{parent}{}{key}", dot(parent)),
            Self::Item(parent, position) => write!(f, "{parent}{}{position}", dot(parent)),
        }
    }
}

/// What to do about a mistake that the YAML reader has no better word for.
const SYNTAX: &str = "look at this line and those above it: indentation, quotes and brackets, `: ` inside of a text";

/// Collects the problems of one file.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    workflow: &'a str,
    file: &'a SourceFile,
    index: &'a LineIndex,
    pub(crate) found: Vec<Diagnostic>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(workflow: &'a str, file: &'a SourceFile) -> Self {
        Self { workflow, file, index: file.line_index(), found: Vec::new() }
    }

    /// Adds a problem and gives access to it, for advice.
    pub(crate) fn add(
        &mut self,
        code: &'static str,
        severity: Severity,
        offset: usize,
        path: &Path<'_>,
        message: String,
    ) -> &mut Diagnostic {
        let place = self.index.position(&self.file.text, offset);
        let path = path.to_string();
        self.found.push(Diagnostic {
            code,
            severity,
            workflow: self.workflow.to_owned(),
            file: self.file.id.path.clone(),
            line: Some(place.line),
            column: Some(place.column),
            path: (!path.is_empty()).then_some(path),
            message,
            help: None,
        });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        span: Span,
        path: &Path<'_>,
        message: String,
    ) -> &mut Diagnostic {
        self.add(code, Severity::Error, span.start, path, message)
    }

    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        span: Span,
        path: &Path<'_>,
        message: String,
    ) -> &mut Diagnostic {
        self.add(code, Severity::Warning, span.start, path, message)
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> &str {
        &self.file.text
    }

    /// Puts what was found into the order of the text.
    pub(crate) fn sort(&mut self) {
        self.found.sort_by_key(|found| (found.line, found.column));
    }

    /// Has anything of severity error been found?
    pub(crate) fn has_errors(&self) -> bool {
        self.found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Takes over what the YAML reader found, or why there is no text; false when the document cannot be used.
    pub(crate) fn take_parse_problems(&mut self, code: &'static str) -> bool {
        if let Some(problem) = &self.file.problem {
            let (line, column) = problem.position();
            let mut diagnostic =
                Diagnostic::of_file(code, Severity::Error, self.workflow, &self.file.id.path, problem.message())
                    .with_help(problem.help());
            (diagnostic.line, diagnostic.column) = (Some(line), Some(column));
            self.found.push(diagnostic);
            return false;
        }
        let document = self.file.yaml();
        for problem in &document.problems {
            let severity = match problem.severity {
                workflow_yaml::Severity::Error => Severity::Error,
                workflow_yaml::Severity::Warning => Severity::Warning,
            };
            let message = problem.message.clone();
            let advice = || (severity == Severity::Error).then(|| SYNTAX.to_owned());
            let help = problem.help.clone().or_else(advice);
            self.add(code, severity, problem.span.start, &Path::Root, message).help = help;
        }
        !document.has_errors()
    }
}
