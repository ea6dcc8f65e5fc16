//! Everything Verdone does: the only crate that spawns, signals, locks and writes state. The core decides what to do.

pub mod agent;
pub mod audit;
pub mod base;
pub mod git;
pub mod guard;
pub mod hook;
pub mod launcher;
pub mod preflight;
pub mod process;
pub mod project;
pub mod run;
pub mod session;
pub mod store;
pub mod verify;
pub mod workspace;
