//! Tests of the YAML crate through its public interface.

mod corpus;
mod dialect;
mod emission;
mod properties;
mod spans;
