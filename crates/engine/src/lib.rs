//! Sessions: state, events, transitions, checkpoints, ledger, batches, validation, trace, and the 18 tool calls.
//!
//! This crate must not know the disk, async or MCP. A call is a pure function of the corpus, the sessions it was given,
//! its arguments and the time: [`apply`] changes the [`Workset`] in memory and answers a [`Reply`], or refuses with a
//! [`Refusal`] and leaves the workset to be thrown away.

mod address;
mod arguments;
mod batch;
mod body;
mod call;
mod checkpoint;
mod completion;
mod delivery;
mod dispatch;
mod environment;
mod handle;
pub mod index;
mod ledger;
mod limits;
mod lineage;
mod refusal;
mod release;
mod reply;
mod repo;
mod retry;
#[cfg(test)]
mod scenarios;
mod schema;
mod settings;
pub mod slug;
pub mod state;
mod target;
mod time;
pub mod tools;
pub mod trace;
mod usage;
mod validation;
mod variable;
mod visit;
mod workset;
#[cfg(test)]
mod workspace;

pub use arguments::Arguments;
pub use call::{Call, apply};
pub use checkpoint::{BY_DEFAULT, DISMISSED};
pub use environment::{Environment, Purpose, Randomness, Registry, Signer, TraceLog, TraceSlice};
pub use limits::check_arguments;
pub use refusal::Refusal;
pub use release::{Released, release_gate};
pub use reply::{Content, Rendered, Reply, TraceEntry};
pub use settings::Settings;
pub use target::Target;
pub use time::Timestamp;
pub use tools::{Annotations, TOOLS, Tool, tool};
pub use workflow_corpus::Warning;
pub use workset::{Family, Folder, StatePath, Workset};
