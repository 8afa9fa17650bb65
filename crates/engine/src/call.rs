//! One tool call from arguments to reply.

use crate::{Arguments, Environment, Refusal, Reply, Tool, Workset};

/// What a tool works on.
pub struct Call<'a> {
    /// The world.
    pub env: &'a Environment<'a>,
    /// The arguments.
    pub arguments: &'a Arguments,
    /// The sessions.
    pub workset: &'a mut Workset,
}

/// Runs a tool: retry recognition, checkpoint gate, version drift, the tool itself, `lastCall` (spec 03 §4.2, §4.3).
///
/// # Errors
/// The refusals of spec 03 §11; the workset must then be thrown away.
pub fn apply(
    tool: &'static Tool,
    env: &Environment<'_>,
    arguments: &Arguments,
    workset: &mut Workset,
) -> Result<Reply, Refusal> {
    (tool.run)(&mut Call { env, arguments, workset })
}
