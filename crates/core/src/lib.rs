//! Verdone's decisions: plans, checks, verdicts, the state machine of the loop, events and views of them.
//!
//! This crate never reads a file, a clock or the environment, and never starts a process: such things come in as arguments and
//! go out as data. `clippy.toml` next to this crate's manifest enforces that.

pub mod active;
pub mod agent;
pub mod audit;
pub mod check;
pub mod config;
pub mod control;
pub mod debris;
pub mod detect;
pub mod done;
pub mod event;
pub mod evidence;
pub mod finish;
pub mod hook;
pub mod id;
mod json;
pub mod lifecycle;
pub mod machine;
pub mod money;
pub mod pattern;
pub mod plan;
pub mod policy;
mod position;
pub mod prompt;
pub mod protect;
pub mod redact;
pub mod sanitise;
pub mod scope;
pub mod sentence;
pub mod shell;
pub mod source;
pub mod span;
pub mod stop;
pub mod test_outcome;
pub mod update;
pub mod verdict;
pub mod verify;
pub mod view;
