//! Workflow definitions: decode, diagnose, index, resolve and compose them; an immutable snapshot.
//!
//! This crate must not know sessions, MCP or the clock. It reads definition files (and nothing else) from layered
//! roots, keeps every problem as a [`Diagnostic`] with file, line and column, and answers what an engine needs to
//! deliver: workflows, activities, composed techniques, bundles, resources.

mod artifact;
mod body;
mod bundle;
mod compose;
mod condition;
mod decode;
mod derived;
mod diagnostic;
#[cfg(test)]
mod fixture;
mod fragment;
mod frontmatter;
mod inspection;
mod link;
mod listing;
mod markdown;
mod model;
mod near;
mod provenance;
mod reference;
mod resolve;
mod resource;
mod route;
mod scan;
pub mod schema;
mod snapshot;
mod source;
mod step;
mod technique;
mod value;
pub mod when;
mod workflow;

pub use artifact::Artifact;
pub use bundle::Bundle;
pub use compose::Composed;
pub use condition::claims_match;
pub use diagnostic::{Diagnostic, Severity, Warning};
pub use listing::{ListError, ListedWorkflow, Listing, Status};
pub use model::*;
pub use resolve::{Resolved, Scope, Unresolved};
pub use resource::{Resource, ResourceError};
pub use route::TransitionEntry;
pub use snapshot::{Corpus, Has, Library, WorkflowError};
pub use source::{Root, SourceFile};
pub use step::{FlatStep, checkpoint_base};
