//! Sessions on disk: files beside the work, sealed, locked, written so that no crash loses them.
//!
//! This crate must not know tools or MCP. It loads and commits the sessions of a call behind [`SessionStore`], holds the
//! server key, and keeps the trace; what happens to a session in between is the caller's business. All file access goes
//! through [`FileSystem`], which a test may replace by one that fails.

mod adopt;
mod collect;
mod commit;
mod containment;
mod find;
mod fs;
mod key;
mod layout;
mod list;
mod lock;
mod lookup;
mod migrate;
mod options;
mod pair;
mod plan;
mod refusals;
mod rotation;
mod seal;
mod seen;
mod store;
mod trace;
mod transaction;
mod transient;

pub use adopt::Adoption;
pub use collect::{Collected, Leftover};
pub use fs::{Entry, FileSystem, Kind, Open, OpenFile, OsFileSystem, Sharing, Stat};
pub use list::{SessionFacts, SessionListing};
pub use migrate::{Migrated, ToOriginal};
pub use options::Options;
pub use rotation::{KeyFile, KeyReport, Rotation};
pub use store::{FileStore, SessionStore};
