//! Workflow definitions: decode, diagnose, index, resolve and compose them; an immutable snapshot.
//!
//! This crate must not know sessions, MCP or the clock. It reads definition files (and nothing else) from layered
//! roots, keeps every problem as a [`Diagnostic`] with file, line and column, and answers what an engine needs to
//! deliver: workflows, activities, composed techniques, bundles, resources.

mod condition;
mod diagnostic;
mod listing;
mod model;
mod route;
mod scan;
mod snapshot;
mod source;
mod step;
mod value;
pub mod when;
mod workflow;

pub use condition::claims_match;
pub use diagnostic::{Diagnostic, Severity, Warning};
pub use listing::{ListError, ListedWorkflow, Listing, Status};
pub use model::*;
pub use route::TransitionEntry;
pub use snapshot::{Corpus, Has, Library, WorkflowError};
pub use source::{Root, SourceFile};
pub use step::FlatStep;
