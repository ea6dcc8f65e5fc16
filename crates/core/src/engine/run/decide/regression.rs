//! Decisions about what was proven earlier: it is looked at once more before a run is called complete, and in between where the
//! settings want that. A story that is broken is worked on again, once.

use super::{next_story, stop, stopped_by, then};
use crate::base::finish::Finish;
use crate::base::id::{Oid, StoryId};
use crate::check::CheckOutcome;
use crate::engine::run::{Decision, Effect, RegressionReport, Rules, State};
use crate::journal::event::Event;

/// No story is open. What was committed since the last look may have broken what was done before.
pub(super) fn all_done(state: &State, rules: &Rules) -> Decision {
    if !rules.regression.at_end || state.since_regression == 0 {
        return complete(state, Vec::new());
    }
    match state.stop {
        Some(signal) => stop(Vec::new(), Finish::Manual, stopped_by(signal)),
        None => look_again(true),
    }
}

/// Whether it is time for a look between two stories.
pub(super) fn is_due(state: &State, rules: &Rules) -> bool {
    rules.regression.every > 0 && state.since_regression >= rules.regression.every
}

pub(super) fn look_again(at_end: bool) -> Decision {
    then(vec![Event::RegressionStarted { at_end }], Effect::Regression)
}

pub(super) fn looked(state: &State, at_end: bool, report: &RegressionReport) -> Decision {
    let RegressionReport { held, runs, broken, not_checked } = report.clone();
    let interrupted = runs.iter().any(|run| run.outcome == CheckOutcome::Interrupted);
    let mut events = vec![Event::RegressionChecked { at_end, held, runs, not_checked }];
    if let Some(signal) = state.stop {
        return stop(events, Finish::Manual, stopped_by(signal));
    }
    if interrupted {
        return stop(events, Finish::Manual, "interrupted");
    }
    if broken.is_empty() {
        return if at_end { complete(state, events) } else { then(events, Effect::Select) };
    }
    for (story, runs) in broken {
        let again = state.reopened.contains(&story);
        events.push(Event::Regressed { story, runs, again });
    }
    then(events, Effect::Reopen)
}

/// One that is broken for the second time has left its mark in the state: the run ends there.
pub(super) fn reopened(state: &State, rules: &Rules, stories: &[StoryId], commit: Option<&Oid>) -> Decision {
    next_story(state, rules, vec![Event::Reopened { stories: stories.to_vec(), commit: commit.cloned() }])
}

/// Work that waits for a person is not done, even if every box is ticked on the run's branch.
fn complete(state: &State, events: Vec<Event>) -> Decision {
    match state.progress.review.len() {
        0 => stop(events, Finish::Complete, "nothing is left to do"),
        1 => stop(events, Finish::Blocked, "1 story is left for you to review"),
        waiting => stop(events, Finish::Blocked, format!("{waiting} stories are left for you to review")),
    }
}
