//! What Verdone does: the only crate that spawns, signals, locks and writes state. What to do is decided in the core.

pub mod agent;
pub mod approval;
pub mod atomic;
pub mod check_runner;
pub mod config_file;
pub mod git;
pub mod init;
pub mod output;
pub mod process;
pub mod project;
pub mod protected;
pub mod signal;
pub mod store;
