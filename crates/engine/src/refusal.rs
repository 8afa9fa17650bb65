//! Why a call was refused (spec 03 §4.2, §11).

use serde_json::{Map, Value};

/// A refused call: nothing was changed.
///
/// The text that a client sees is `<code>: <message>`; `_meta.error` repeats code, `retryable` and `details`.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Stable code of spec 03 §11.
    pub code: &'static str,
    /// What failed, what was received, what is valid, and the next call to make.
    pub message: String,
    /// The same call may succeed later, unchanged.
    pub retryable: bool,
    /// Machine-readable facts.
    pub details: Map<String, Value>,
}

impl Refusal {
    /// A refusal that repeating the call does not lift.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, details: Map::new() }
    }

    /// Marks the refusal as one that may pass when the same call is made again.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Adds a machine-readable fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Arguments that do not fit the tool's schema; `causes` names path and expectation.
    pub fn invalid_params(tool: &str, causes: &str) -> Self {
        Self::new(
            "INVALID_PARAMS",
            format!("MCP error -32602: Input validation error: Invalid arguments for tool {tool}: {causes}"),
        )
    }

    /// The text item of the result.
    pub fn text(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }

    /// The `_meta.error` object.
    pub fn meta(&self) -> Map<String, Value> {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.code.into());
        error.insert("retryable".to_owned(), self.retryable.into());
        error.insert("details".to_owned(), Value::Object(self.details.clone()));
        let mut meta = Map::new();
        meta.insert("error".to_owned(), Value::Object(error));
        meta
    }
}
