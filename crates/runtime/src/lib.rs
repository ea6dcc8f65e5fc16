//! What Verdone does: the only crate that starts processes, sends signals, takes locks and writes state.

pub mod config_file;
pub mod init;
pub mod project;
