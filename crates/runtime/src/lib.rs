//! What Verdone does: the only crate that spawns, signals, locks and writes state. What to do is decided in the core.

pub mod agent;
pub mod approval;
pub mod atomic;
pub mod check_runner;
pub mod config_file;
pub mod driver;
pub mod git;
pub mod init;
pub mod lifecycle;
pub mod output;
pub mod plan_file;
pub mod planning;
pub mod preflight;
pub mod process;
pub mod project;
pub mod protected;
pub mod recover;
pub mod run;
pub mod signal;
pub mod site;
pub mod step;
pub mod store;
pub mod undo;
