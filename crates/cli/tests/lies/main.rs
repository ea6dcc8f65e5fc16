//! Agents that lie, and honest agents that do what looks like it. Every case is a real run of the real binary.
//!
//! `cases/` has them as text, with real test runners: [`suite`] judges them. What is told to git and to Verdone itself is in tables of
//! their own.

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
