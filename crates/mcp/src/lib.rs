//! The MCP surface: lenient arguments, result shaping, resources, prompts, every protocol revision.
//!
//! This crate must not know HTTP routes or the command line. Only [`sdk`](serve) names the protocol SDK; a [`Server`]
//! answers calls without any protocol, so commands and tests can use it directly.

mod arguments;
mod audit;
pub mod definition;
pub mod line;
mod prompt;
mod resource;
mod sdk;
mod server;

pub use arguments::read as read_arguments;
pub use sdk::serve;
pub use server::{Clock, Outcome, Server, SystemClock};
