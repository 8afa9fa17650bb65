//! The tools, one file each; this table registers them (spec 03 §5).

mod discover;
mod dispatch_child;
mod get_activity;
mod get_resource;
mod get_technique;
mod get_trace;
mod get_workflow;
mod get_workflow_status;
mod health_check;
mod inspect_session;
mod list_workflows;
mod next_activity;
mod present_checkpoint;
mod record_usage;
mod respond_checkpoint;
mod resume_checkpoint;
mod start_session;
mod yield_checkpoint;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{Arguments, Call, Environment, Refusal, Reply, Target};

/// MCP annotations (spec 04 §7.1); no tool is destructive or reaches an open world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: bool,
    /// A repetition has no further effect.
    pub idempotent: bool,
}

/// One tool of the surface.
pub struct Tool {
    /// Wire name.
    pub name: &'static str,
    /// Short display name.
    pub title: &'static str,
    /// What the model reads; at most 1,500 characters, the key sentence first.
    pub description: &'static str,
    /// Hints for clients.
    pub annotations: Annotations,
    /// Refused before anything else while a checkpoint of the addressed session is active (spec 03 §4.3). Tools that have
    /// something to look at first, or another code, look at the gate themselves.
    pub gated: bool,
    /// A repetition with equal arguments answers the same (spec 03 §4.2).
    pub retryable: bool,
    /// Leaves an event in the trace (spec 03 §8.1).
    pub traced: bool,
    /// Input schema of the parameters: `type: object`, no unions with null, no integer formats.
    pub schema: fn() -> Value,
    /// Which folders the call needs.
    pub target: fn(&Environment<'_>, &Arguments) -> Result<Target, Refusal>,
    /// The tool itself.
    pub run: fn(&mut Call<'_>) -> Result<Reply, Refusal>,
}

/// What a tool without parameters takes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoParams {}

/// All tools, in the order in which they are listed.
pub static TOOLS: &[&Tool] = &[
    &discover::TOOL,
    &list_workflows::TOOL,
    &health_check::TOOL,
    &start_session::TOOL,
    &dispatch_child::TOOL,
    &get_workflow::TOOL,
    &next_activity::TOOL,
    &get_activity::TOOL,
    &yield_checkpoint::TOOL,
    &present_checkpoint::TOOL,
    &respond_checkpoint::TOOL,
    &resume_checkpoint::TOOL,
    &get_technique::TOOL,
    &get_resource::TOOL,
    &record_usage::TOOL,
    &get_trace::TOOL,
    &get_workflow_status::TOOL,
    &inspect_session::TOOL,
];

/// Finds a tool by its wire name.
pub fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().copied().find(|tool| tool.name == name)
}
