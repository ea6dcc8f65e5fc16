//! What Verdone does: the only crate that starts processes, handles signals and writes files.

pub mod agent;
pub mod check_runner;
pub mod output;
pub mod process;
pub mod signal;
