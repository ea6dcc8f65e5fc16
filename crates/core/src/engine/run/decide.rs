//! Decides how to react to an input. Never panics: an input that does not fit the phase ends the run with an error that names both.

mod attempt;
mod regression;
mod script;
mod wait;

use std::time::Duration;

use self::attempt::{in_attempt, reject};
use self::regression::{all_done, is_due, look_again, looked, reopened};
use self::script::{end_iteration, finished, iteration_ended, started};
use super::{Choice, Decision, Effect, GuardFailures, Input, Phase, Rules, State};
use crate::base::finish::{Finish, StopSignal};
use crate::check::CheckRun;
use crate::config::OnReview;
use crate::journal::control::Request;
use crate::journal::event::{Event, Place, Rejection};
use crate::lifecycle::Script;

/// `now` is the active time of the run.
pub fn decide(state: &State, rules: &Rules, now: Duration, input: &Input) -> Decision {
    match (&state.phase, input) {
        (_, Input::Signal(signal)) => stop_requested(*signal),
        // The commit is safe on the run's branch and can land later.
        (Phase::Landing, Input::Failed { message }) => landing_failed(state, rules, message),
        (_, Input::Failed { message }) => failed(state, now, message),
        (_, Input::Asked(request)) => asked(request),
        (_, Input::GuardFailed(found)) => guard_failed(state, found),
        (Phase::New, Input::Start(event)) => then(vec![(**event).clone()], Effect::Script(Script::Started)),
        (Phase::Preparing, Input::ScriptRan(run)) => started(state, rules, run.as_ref()),
        (Phase::Preparing, Input::Prepared { baseline }) => prepared(state, rules, baseline),
        (Phase::Selecting, Input::ScriptRan(run)) => iteration_ended(state, rules, run.as_ref()),
        (Phase::Selecting, Input::Selected(choice)) => selected(state, rules, now, choice),
        (Phase::Regressing { at_end }, Input::Regressed(report)) => looked(state, *at_end, report),
        (Phase::Reopening { stories }, Input::Reopened { commit }) => reopened(state, rules, stories, commit.as_ref()),
        (Phase::Stopping { finish }, Input::Finished { landed, script }) => {
            finished(state, rules, now, *finish, landed.as_deref(), script.as_ref())
        }
        (Phase::Landing, Input::Landed(event)) => end_iteration(state, rules, vec![(**event).clone()]),
        (phase, input) => match &state.attempt {
            Some(attempt) => in_attempt(state, rules, now, attempt, phase, input),
            None => unexpected(phase, input),
        },
    }
}

fn then(events: Vec<Event>, effect: Effect) -> Decision {
    Decision { events, effect: Some(effect) }
}

fn stop(mut events: Vec<Event>, finish: Finish, reason: impl Into<String>) -> Decision {
    events.push(Event::RunStopping { finish, reason: reason.into() });
    then(events, Effect::Finish)
}

fn stopped(now: Duration, mut events: Vec<Event>, finish: Finish, exit_code: u8) -> Decision {
    events.push(Event::RunStopped { finish, exit_code, duration_ms: now.as_millis() as u64 });
    Decision { events, effect: None }
}

fn unexpected(phase: &Phase, input: &Input) -> Decision {
    let name = format!("{input:?}");
    let name = name.split([' ', '(', '{']).next().unwrap_or_default();
    stop(Vec::new(), Finish::Error, format!("internal error: {name} does not fit phase {phase:?}; please report this"))
}

fn stop_requested(signal: StopSignal) -> Decision {
    Decision { events: vec![Event::StopRequested { signal }], effect: None }
}

/// Only recorded: what could not be judged has already been denied, and the turn continues.
fn guard_failed(state: &State, found: &GuardFailures) -> Decision {
    let GuardFailures { failures, denied, cause, file } = found.clone();
    let place = state.open_attempt().map(|attempt| attempt.place.clone());
    Decision { events: vec![Event::GuardFailed { place, failures, denied, cause, file }], effect: None }
}

/// Verdone's own failure: reject the attempt without counting it. If that fails too, leave everything unchanged and report it.
fn failed(state: &State, now: Duration, message: &str) -> Decision {
    match (&state.phase, state.open_attempt()) {
        (Phase::Stopping { finish }, _) => stopped(now, Vec::new(), *finish, Finish::Error.exit_code()),
        (Phase::Stopped { .. }, _) => Decision::default(),
        (Phase::Keeping { .. }, _) | (_, None) => stop(Vec::new(), Finish::Error, message),
        (_, Some(attempt)) => reject(Vec::new(), &attempt.place, Rejection::Crashed, message),
    }
}

fn landing_failed(state: &State, rules: &Rules, message: &str) -> Decision {
    end_iteration(state, rules, vec![Event::LandingRefused { reason: message.to_owned() }])
}

fn prepared(state: &State, rules: &Rules, baseline: &[CheckRun]) -> Decision {
    let green = !baseline.iter().any(CheckRun::blocks);
    let events = vec![Event::BaselineChecked { green, runs: baseline.to_vec() }];
    if let Some(signal) = state.stop {
        return stop(events, Finish::Manual, stopped_by(signal));
    }
    if !green && !rules.red_baseline {
        let reason = super::failing_sentence(baseline);
        return stop(
            events,
            Finish::Blocked,
            format!(
                "checks fail before any work: {reason} (fix it first, or continue with --red-baseline; if it passes in your checkout, \
                 `verdone workspace shell --checks` shows what it cannot see)"
            ),
        );
    }
    then(events, Effect::Select)
}

fn selected(state: &State, rules: &Rules, now: Duration, choice: &Choice) -> Decision {
    let (story, title, number, of, open) = match choice {
        Choice::AllDone => match &state.baseline {
            // There was no iteration, so checks that failed at the start still fail.
            Some(red) if state.iteration == 0 => {
                return stop(Vec::new(), Finish::Blocked, format!("no open story is left, but {}", red.reason));
            }
            Some(_) | None => return all_done(state, rules),
        },
        Choice::NothingRunnable { reason } => return stop(Vec::new(), Finish::Blocked, reason.clone()),
        Choice::Story { story, title, number, of, open } => (story, title, *number, *of, *open),
    };
    if let Some((finish, reason)) = limit_reached(state, rules, now) {
        return stop(Vec::new(), finish, reason);
    }
    if is_due(state, rules) {
        return look_again(false);
    }
    let attempt = state.progress.attempts.get(story).copied().unwrap_or(0) + 1;
    let place = Place { story: story.clone(), attempt, turn: 0 };
    let event = Event::StorySelected { iteration: state.iteration + 1, place, title: title.clone(), number, of, open };
    then(vec![event], Effect::Script(Script::NextIteration))
}

/// The limits that are checked between iterations.
fn limit_reached(state: &State, rules: &Rules, now: Duration) -> Option<(Finish, String)> {
    let limits = &rules.limits;
    let reached = |count: u32, limit: u32| limit > 0 && count >= limit;
    if let Some(signal) = state.stop {
        return Some((Finish::Manual, stopped_by(signal)));
    }
    if state.stop_after_story {
        return Some((Finish::Manual, "stopped after the story, as requested".to_owned()));
    }
    if out_of_time(rules, now) {
        return Some((Finish::Timeout, format!("the time limit of {} was reached", limits.total_time)));
    }
    if let Some(reason) = over_budget(state, rules, state.cost_usd) {
        return Some((Finish::Budget, reason));
    }
    if reached(state.iteration, limits.max_iterations) {
        return Some((Finish::MaxIterations, format!("the iteration limit of {} was reached", limits.max_iterations)));
    }
    if reached(state.unchanged_iterations, limits.no_changes) {
        return Some((Finish::NoChanges, format!("{} iterations in a row changed no file", state.unchanged_iterations)));
    }
    if reached(state.consecutive_failures, limits.consecutive_failures) {
        return Some((Finish::Stalled, format!("{} attempts in a row failed", state.consecutive_failures)));
    }
    None
}

fn out_of_time(rules: &Rules, now: Duration) -> bool {
    rules.limits.total_time.limit().is_some_and(|limit| now >= limit)
}

fn over_budget(state: &State, rules: &Rules, spent: f64) -> Option<String> {
    let limit = rules.limits.cost_usd.limit();
    let reached = state.out_of_budget || limit.is_some_and(|limit| spent >= limit);
    let limit = limit.map_or_else(String::new, |limit| format!(", and the limit is {limit:.2} (limits.cost_usd)"));
    reached.then(|| format!("{spent:.2} USD were spent{limit}"))
}

fn stopped_by(signal: StopSignal) -> String {
    format!("stopped by {}", signal.name())
}

fn next_story(state: &State, rules: &Rules, events: Vec<Event>) -> Decision {
    if let Some(fatal) = &state.fatal {
        return stop(events, fatal.finish, fatal.reason.clone());
    }
    if rules.limits.crashes > 0 && state.crashes >= rules.limits.crashes {
        return stop(events, Finish::Error, format!("the agent crashed {} times in a row", state.crashes));
    }
    match (state.stop, state.progress.review.keys().next()) {
        (Some(signal), _) => stop(events, Finish::Manual, stopped_by(signal)),
        (None, Some(story)) if rules.on_review == OnReview::Stop => {
            stop(events, Finish::Blocked, format!("{story} needs a review"))
        }
        (None, _) => then(events, Effect::Select),
    }
}

fn asked(request: &Request) -> Decision {
    Decision { events: vec![Event::Asked { request: request.clone() }], effect: None }
}
