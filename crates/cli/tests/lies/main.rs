//! Agents that lie, and honest agents that do what looks like it. Every row of every table is a real run of the real binary.
//!
//! A lie is caught, or it is told with the evidence; what neither of the two holds for is in `limits.rs` and in docs/security.md.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]

mod gates;
mod git;
mod honest;
mod judge;
mod limits;
mod own_check;
mod row;
mod story;
mod tests;
#[path = "../run_loop/world.rs"]
#[expect(dead_code, reason = "the tables need a part of it")]
mod world;
