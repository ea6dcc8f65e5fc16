//! Other tools' state files of a session. They can keep the gate closed but never open it.

use verdone_core::done::{RalphState, StateFile};

use crate::project::ralph_state::{self, OtherToolState};

use super::Gate;

const NAMED: usize = 3;

/// Why another tool considers the session not done. Unreadable files are skipped.
pub(super) fn holds(gate: &Gate<'_>) -> Vec<String> {
    match gate.config.done.ralph_state {
        RalphState::Never => Vec::new(),
        RalphState::Auto | RalphState::Always => {
            ralph_state::home().map(|home| describe(&ralph_state::read(&home, gate.session))).unwrap_or_default()
        }
    }
}

/// Whether an orchestrator keeps a state file for the session, whatever the file says.
pub(super) fn has_orchestrator(gate: &Gate<'_>) -> bool {
    match gate.config.done.ralph_state {
        RalphState::Never => false,
        RalphState::Auto | RalphState::Always => {
            ralph_state::home().is_some_and(|home| ralph_state::has_orchestrator(&home, gate.session))
        }
    }
}

fn describe(found: &OtherToolState) -> Vec<String> {
    let closed = found.files.iter().filter_map(|file| match file {
        StateFile::Closed { file, why } => Some(format!("{file} says that there is work left: {why}")),
        StateFile::Unreadable { .. } => None,
    });
    let named = found.tasks.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    let tasks = match found.tasks.len() {
        0 => None,
        count => Some(format!("{count} of its tasks are pending or in progress: {named}")),
    };
    closed.chain(tasks).collect()
}
