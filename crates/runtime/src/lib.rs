//! What Verdone does: the only crate that spawns, signals, locks and writes state. What to do is decided in the core.

pub mod run;
pub mod driver;
pub mod step;
pub mod site;
pub mod preflight;
pub mod recover;
pub mod undo;
pub mod planning;
pub mod agent;
pub mod check_runner;
pub mod process;
pub mod output;
pub mod signal;
pub mod git;
pub mod plan_file;
pub mod approval;
pub mod protected;
pub mod store;
pub mod project;
pub mod config_file;
pub mod init;
pub mod atomic;
