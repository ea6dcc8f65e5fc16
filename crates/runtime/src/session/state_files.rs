//! Keeps the state files of other loops for a session with a loop, if the settings and the home allow it: the gate writes `loop.json` at
//! each Stop, and the worker the others after a verification. A failure is reported and changes nothing else.

use std::io;

use jiff::Timestamp;
use verdone_core::done::{DoneState, judge};
use verdone_core::engine::session::{HeldLoop, StopFacts, Work};
use verdone_core::verify::Tree;

use crate::project::ralph_state::{self, LoopFile, Projection};

use super::Gate;
use super::done::{Checked, ConditionRequest, facts};
use super::drive::Driver;

/// Writes the loop's progress after a decision. Returns a note if that fails.
pub(super) fn record_loop(gate: &Gate<'_>, held: &HeldLoop, facts: &StopFacts) -> Option<String> {
    let home = ralph_state::home()?;
    let standing = match &facts.work {
        Work::Complete { .. } => DoneState::Done,
        Work::Open(_) | Work::Blocked { .. } => DoneState::Open,
        Work::Unknown | Work::Nothing { .. } | Work::Verifying { .. } => DoneState::Unknown,
    };
    let (iteration, max_iterations) = (held.gate.blocks, held.max_blocks);
    let progress = LoopFile { iteration, max_iterations, standing, last_error: facts.work.in_short() };
    let about = Projection { session: gate.session, task: &held.task, now: Timestamp::now() };
    ralph_state::write_loop(&home, gate.config.done.ralph_state, &about, &progress).err().map(|error| failed(&error))
}

/// Writes the conditions of the current work after a verification. Returns a note if that fails.
pub(super) fn record_report(driver: &Driver) -> Option<String> {
    let (home, setting) = (ralph_state::home()?, driver.config.done.ralph_state);
    if !ralph_state::is_written(&home, setting) {
        return None;
    }
    let report = driver.report.as_ref();
    let checked = report.map(|report| {
        let passed = !report.reasons.iter().any(|reason| reason.failing_check().is_some());
        Checked { runs: report.runs_on(Tree::Attempt), passed, gates_only: false }
    });
    let request = ConditionRequest {
        root: &driver.project.root,
        session: &driver.session,
        config: &driver.config,
        checked,
        about: None,
        story: None,
        state_home: Some(home.clone()),
    };
    let about = Projection { session: &driver.session, task: &driver.held.task, now: Timestamp::now() };
    let written = facts(&request).map_err(io::Error::other).and_then(|facts| {
        let judged = judge(&driver.config.done, &facts);
        ralph_state::write_report(&home, setting, &about, &judged, driver.held.gate.blocks)
    });
    written.err().map(|error| failed(&error))
}

fn failed(error: &io::Error) -> String {
    format!("the state of this loop could not be written to ~/.ralph/state: {error}")
}
