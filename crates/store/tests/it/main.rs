//! The store on a real disk, and on one that fails.

mod crash;
mod faults;
mod hazards;
mod key;
mod lookup;
mod operator;
mod promotion;
mod race;
mod recorded;
mod support;
mod traps;
