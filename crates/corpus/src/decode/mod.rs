//! From the spanned tree of a file to the model: shapes first, then values.
//!
//! What a definition may look like is written once, in [`tables`]. [`check`] compares a tree with it and collects all
//! problems; the modules of the single definitions then read a tree that is known to fit. The published schemas are
//! made from the same tables, so loader and schemas cannot drift apart.

pub(crate) mod activity;
pub(crate) mod check;
pub(crate) mod condition;
pub(crate) mod manifest;
pub(crate) mod shape;
pub(crate) mod sink;
pub(crate) mod steps;
pub(crate) mod tables;
