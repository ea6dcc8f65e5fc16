//! Decisions about stories that were proven earlier. They are checked again before a run counts as complete, and in between if the
//! settings say so. A broken story gets one more round of work.

use super::{next_story, stop, stopped_by, then};
use crate::base::finish::Finish;
use crate::base::id::{Oid, StoryId};
use crate::check::CheckOutcome;
use crate::engine::run::{Decision, Effect, RegressionReport, Rules, State};
use crate::journal::event::Event;

/// No story is open. Commits since the last regression check may have broken earlier stories.
pub(super) fn all_done(state: &State, rules: &Rules) -> Decision {
    if !rules.regression.at_end || state.since_regression == 0 {
        return complete(state, Vec::new());
    }
    match state.stop {
        Some(signal) => stop(Vec::new(), Finish::Manual, stopped_by(signal)),
        None => look_again(true),
    }
}

/// Whether a regression check is due between two stories.
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

/// If a story broke for the second time, the state already says so, and the run ends.
pub(super) fn reopened(state: &State, rules: &Rules, stories: &[StoryId], commit: Option<&Oid>) -> Decision {
    next_story(state, rules, vec![Event::Reopened { stories: stories.to_vec(), commit: commit.cloned() }])
}

/// Work that waits for a review is not done, even if every box is ticked on the run's branch.
fn complete(state: &State, events: Vec<Event>) -> Decision {
    match state.progress.review.len() {
        0 => stop(events, Finish::Complete, "nothing is left to do"),
        1 => stop(events, Finish::Blocked, "1 story is left for you to review"),
        waiting => stop(events, Finish::Blocked, format!("{waiting} stories are left for you to review")),
    }
}
