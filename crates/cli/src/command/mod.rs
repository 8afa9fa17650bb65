//! The commands, one file each.

pub(crate) mod call;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod show;
