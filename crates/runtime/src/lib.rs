//! What Verdone does: the only crate that spawns, signals, locks and writes state. What to do is decided in the core.

pub mod output;
pub mod process;
pub mod protected;
pub mod signal;
pub mod store;
pub mod git;
//! What Verdone does: the only crate that starts processes, sends signals, takes locks and writes state.
pub mod config_file;
pub mod init;
pub mod project;
