//! Agents that lie, and honest agents whose work looks similar. Every case is a real run of the real binary.
//!
//! The cases with real test runners are text files in `cases/`; [`suite`] runs them. Lies told to git and to Verdone itself are in separate
//! tables.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]

mod case;
mod git;
mod judge;
mod outcome;
mod project;
mod row;
mod story;
mod suite;
#[path = "../run_loop/world.rs"]
#[expect(dead_code, reason = "the tables need a part of it")]
mod world;
