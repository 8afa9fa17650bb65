//! The arguments of a call: as sent, and as read.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use workflow_corpus::Warning;

use crate::Refusal;

/// Arguments of one tool call.
///
/// Whoever decodes the protocol reads what was sent leniently (spec 03 §4.2) against the tool's schema; the engine sees
/// both forms: `read` to work with, `sent` to recognise a retry.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Exactly what the caller sent.
    pub sent: Map<String, Value>,
    /// What is worked with: valid against the tool's input schema, aliases applied, blanks removed.
    pub read: Map<String, Value>,
    /// What the reading had to say (`W_ARGUMENT_READ`, `W_HANDLE_WAS_INDEX` …).
    pub warnings: Vec<Warning>,
}

impl Arguments {
    /// Arguments that need no lenient reading (tests, in-process callers).
    pub fn exact(read: Map<String, Value>) -> Self {
        Self { sent: read.clone(), read, warnings: Vec::new() }
    }

    /// Decodes the read form into a tool's parameter struct.
    ///
    /// # Errors
    /// `INVALID_PARAMS` when the schema was not enforced before.
    pub fn decode<T: DeserializeOwned>(&self, tool: &str) -> Result<T, Refusal> {
        serde_json::from_value(Value::Object(self.read.clone()))
            .map_err(|error| Refusal::invalid_params(tool, &error.to_string()))
    }
}
