//! Reads YAML text into a tree whose every key and value has a span, and writes values as YAML text.
//!
//! This crate is the only place that knows YAML. It must know nothing of workflows: no field names, no file layout,
//! no product limits besides the resource limits in [`Limits`]. It does no input or output and never panics on input.
//!
//! - [`parse`] reads the dialect of spec 01 §2 (YAML 1.2 core schema, one document, no merge keys). It returns a tree
//!   *and* problems, so that a caller can report everything that is wrong with a file at once.
//! - [`to_string`] writes the block style of spec 02 §4.1; what it writes, [`parse`] reads back as an equal value.
//! - [`number_to_string`] prints numbers as ECMAScript does (spec 03 §3.3).
//!
//! ```
//! let document = workflow_yaml::parse("id: demo\nsteps: [one, two]\n");
//! assert!(!document.has_errors());
//! let id = document.root.get("id").expect("the key was written");
//! assert_eq!(id.as_str(), Some("demo"));
//! assert_eq!(workflow_yaml::to_string(&document.root.to_value()), "id: demo\nsteps:\n  - one\n  - two\n");
//! ```

mod build;
mod emit;
mod number;
mod parse;
mod position;
mod quote;
mod scalar;
mod tree;

pub use build::Limits;
pub use emit::to_string;
pub use number::number_to_string;
pub use parse::{parse, parse_with};
pub use position::{LineIndex, Position, Span};
pub use quote::scalar;
pub use tree::{Document, Entry, Kind, Node, Problem, Severity, Style};
