//! Nothing acknowledged is lost: the tools on a machine whose operations fail and whose power goes off.

#![expect(clippy::unwrap_used, reason = "functions that tests call may do what tests may")]

mod faults;
mod machine;
mod power;
mod promise;
mod scenario;
