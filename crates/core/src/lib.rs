//! What Verdone decides: plans, checks, verdicts, the loop's machine, events and views of them.
//!
//! Nothing here reads a file, a clock or the environment, and nothing starts a process: such things arrive as arguments and
//! leave as data. `clippy.toml` beside this crate's manifest holds it to that.

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
pub mod shell;
pub mod test_outcome;
pub mod verify;
