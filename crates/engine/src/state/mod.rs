//! The persisted session (spec 03 §3.1–§3.3): typed view, canonical text, validation.

mod canonical;
mod codec;
mod event;
mod fault;
mod fresh;
mod session;
mod text;
mod validate;

pub(crate) use canonical::quoted;
pub use canonical::{canonical_json, compact_canonical};
pub use fresh::FreshSession;
pub use session::*;
pub use text::{NotJson, parse_text};
pub use validate::is_session_index;
