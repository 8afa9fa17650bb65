//! Calls on a server over real files, without any protocol.

#![expect(clippy::unwrap_used, reason = "a test stops at what is not there")]

mod bench;
mod catalogue;
mod hazards;
mod states;
