//! Attempts on the server by somebody who may call tools and put files beside it. Each test is one attempt; its
//! sentence says what the attacker hopes for. None may succeed.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "functions that tests call may do what tests may")]

mod field;
mod forgery;
mod gates;
mod hanging;
mod laundering;
mod outside;
