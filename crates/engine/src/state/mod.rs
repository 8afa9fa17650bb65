//! The persisted session (spec 03 §3.1–§3.3): typed view, canonical text, validation.

mod session;

pub use session::*;
