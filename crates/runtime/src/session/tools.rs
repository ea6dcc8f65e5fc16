//! The tools of `verdone mcp`. In a run, each call goes to the run, which answers; anywhere else, the project in the current folder is
//! read and nothing is changed.

pub(crate) mod knowledge;
mod outside;
mod run_client;

use std::path::PathBuf;

use verdone_core::journal::agent_tools::{Answer, Need, Query};

use crate::process::signal::Signals;

/// Who answers the calls.
#[derive(Debug)]
pub enum Tools {
    /// The run that listens on this socket.
    Run { socket: PathBuf },
    /// The project around this folder, read-only.
    Project { start: PathBuf },
}

impl Tools {
    pub fn are_in_run(&self) -> bool {
        matches!(self, Self::Run { .. })
    }

    /// Whether a tool with this need can be called here.
    pub fn has(&self, need: Need) -> bool {
        need == Need::Nothing || self.are_in_run()
    }

    /// Answers one query. Blocks until it is answered, or until the signals ask to stop.
    pub fn answer(&self, query: &Query, signals: &Signals) -> Answer {
        match self {
            Self::Run { socket } => run_client::ask(socket, query, signals),
            Self::Project { start } => outside::answer(start, query, signals),
        }
    }
}
