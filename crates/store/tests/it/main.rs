//! The store on a real disk, and on one that fails.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "functions that tests call may do what tests may")]

mod collect;
mod containment;
mod crash;
mod faults;
mod format;
mod hazards;
mod key;
mod lookup;
mod operator;
mod promotion;
mod race;
mod recorded;
mod rotation;
mod support;
mod traps;
