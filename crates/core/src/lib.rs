//! Verdone's decisions: plans, checks, verdicts, the state machine of the loop, events and views of them.
//!
//! This crate never reads a file, a clock or the environment, and never starts a process: such things come in as arguments and
//! go out as data. `clippy.toml` next to this crate's manifest enforces that.

pub mod agent;
pub mod base;
pub mod check;
pub mod config;
pub mod done;
pub mod engine;
pub mod evidence;
pub mod hook;
pub mod journal;
pub mod lifecycle;
pub mod plan;
pub mod policy;
pub mod protect;
pub mod verify;
