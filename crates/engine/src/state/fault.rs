//! What is wrong with a state, and where.

use crate::Refusal;

/// A place in a state and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Innermost segment first.
    path: Vec<String>,
    problem: String,
}

/// What a decoding or checking step yields.
pub(super) type Checked<T = ()> = Result<T, Fault>;

/// One segment of a path: a member or a list position.
pub(super) struct Segment(String);

impl From<&str> for Segment {
    fn from(member: &str) -> Self {
        Self(member.to_owned())
    }
}

impl From<&String> for Segment {
    fn from(member: &String) -> Self {
        Self(member.clone())
    }
}

impl From<usize> for Segment {
    fn from(position: usize) -> Self {
        Self(position.to_string())
    }
}

impl Fault {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self { path: Vec::new(), problem: problem.into() }
    }

    pub(super) fn at(segment: &str, problem: impl Into<String>) -> Self {
        Self::new(problem).under(segment)
    }

    /// The same, seen from one level further out.
    pub(super) fn under(mut self, segment: impl Into<Segment>) -> Self {
        self.path.push(segment.into().0);
        self
    }

    /// Dotted path, list positions in decimal.
    pub(super) fn path(&self) -> String {
        self.path.iter().rev().map(String::as_str).collect::<Vec<_>>().join(".")
    }

    /// Sealed, but not understood (spec 03 §3.1).
    pub(super) fn unsupported(&self) -> Refusal {
        let path = self.path();
        let place = if path.is_empty() { "the top of the state" } else { &path };
        Refusal::new(
            "SESSION_SCHEMA_UNSUPPORTED",
            format!(
                "the session state is intact but not understood: at {place}, {}. It was written by another server \
                 version; this is not tampering. Open it with the server that wrote it, or restore an older \
                 session.json and .session-token together.",
                self.problem
            ),
        )
        .with("path", path)
        .with("problem", self.problem.clone())
    }

    /// The call would have written a state that nobody can open again.
    pub(super) fn internal(&self) -> Refusal {
        let path = self.path();
        Refusal::new(
            "INTERNAL_INVALID_STATE",
            format!(
                "this call would have left an invalid session state: at {path}, {}. Nothing was changed. This is a \
                 defect of the server or an argument that it should have refused; report it with the arguments of \
                 the call.",
                self.problem
            ),
        )
        .with("path", path)
        .with("problem", self.problem.clone())
    }
}
