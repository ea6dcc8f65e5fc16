//! What to do about an input. Never panics: an input that fits no phase ends the run with an error that names both.

use std::time::Duration;

use jiff::Timestamp;

use super::{Attempt, Choice, Decision, Effect, Input, Phase, Rules, ScriptRun, State, TurnReport, Verification};
use crate::agent::TurnOutcome;
use crate::check::{CheckOrigin, CheckRun};
use crate::control::Request;
use crate::event::{Event, Place, Rejection, VerifyOutcome};
use crate::finish::{Finish, StopSignal};
use crate::id::{Oid, StoryId};
use crate::lifecycle::{Meaning, Script, meaning};
use crate::verdict::{Red, RedPolicy, StoryVerdict};

/// A script that skips for ever would spin: this often in a row, and a human has to look.
const MOST_SKIPS: u32 = 20;

pub fn decide(state: &State, rules: &Rules, now: Timestamp, input: &Input) -> Decision {
    match (&state.phase, input) {
        (_, Input::Signal(signal)) => stop_requested(*signal),
        (_, Input::Failed { message }) => failed(state, message),
        (_, Input::Asked(request)) => asked(request),
        (Phase::New, Input::Start(event)) => then(vec![(**event).clone()], Effect::Script(Script::Started)),
        (Phase::Preparing, Input::ScriptRan(run)) => started(state, rules, run.as_ref()),
        (Phase::Preparing, Input::Prepared { baseline }) => prepared(state, rules, baseline),
        (Phase::Selecting, Input::ScriptRan(run)) => iteration_ended(state, rules, run.as_ref()),
        (Phase::Selecting, Input::Selected(choice)) => selected(state, rules, now, choice),
        (Phase::Stopping { finish }, Input::Finished { script }) => finished(state, rules, now, *finish, script.as_ref()),
        (phase, input) => match &state.attempt {
            Some(attempt) => in_attempt(state, rules, now, attempt, phase, input),
            None => unexpected(phase, input),
        },
    }
}

/// The phases that have an attempt.
fn in_attempt(state: &State, rules: &Rules, now: Timestamp, attempt: &Attempt, phase: &Phase, input: &Input) -> Decision {
    match (phase, input) {
        (Phase::Beginning, Input::ScriptRan(run)) => beginning(state, rules, attempt, run.as_ref()),
        (Phase::Beginning, Input::Checkpointed(checkpoint)) => {
            let event = Event::Checkpointed { place: attempt.place.clone(), checkpoint: checkpoint.clone() };
            then(vec![event], Effect::RedCheck)
        }
        (Phase::RedChecking, Input::RedChecked { red, runs }) => red_checked(state, rules, attempt, *red, runs),
        (Phase::Turn, Input::TurnEnded(report)) => turn_ended(state, rules, now, attempt, report),
        (Phase::Verifying, Input::Verified(verification)) => verified(state, rules, now, attempt, verification),
        (Phase::Committing { verdict, .. }, Input::Committed { commit, tree: committed, files, noted }) => {
            let event = Event::Committed {
                place: attempt.place.clone(),
                commit: commit.clone(),
                tree: committed.clone(),
                verdict: *verdict,
                base: attempt.checkpoint.as_ref().and_then(|checkpoint| checkpoint.head.clone()),
                files: *files,
                noted: *noted,
            };
            end_iteration(state, rules, vec![event])
        }
        (Phase::Committing { tree, .. }, Input::CommitRefused { message }) => {
            commit_refused(state, rules, now, attempt, tree, message)
        }
        (Phase::RollingBack { rejection }, Input::RolledBack { kept, before, files }) => {
            let event =
                Event::RolledBack { place: attempt.place.clone(), kept: kept.clone(), before: before.clone(), files: *files };
            rolled_back(state, rules, attempt, rejection, event)
        }
        _ => unexpected(phase, input),
    }
}

fn then(events: Vec<Event>, effect: Effect) -> Decision {
    Decision { events, effect: Some(effect) }
}

fn stop(mut events: Vec<Event>, finish: Finish, reason: impl Into<String>) -> Decision {
    events.push(Event::RunStopping { finish, reason: reason.into() });
    then(events, Effect::Finish)
}

fn unexpected(phase: &Phase, input: &Input) -> Decision {
    let name = format!("{input:?}");
    let name = name.split([' ', '(', '{']).next().unwrap_or_default();
    stop(Vec::new(), Finish::Error, format!("internal error: {name} does not fit phase {phase:?}; please report this"))
}

fn stop_requested(signal: StopSignal) -> Decision {
    Decision { events: vec![Event::StopRequested { signal }], effect: None }
}

/// Our own trouble: give the attempt up without counting it; if even that fails, leave everything as it is and say so.
fn failed(state: &State, message: &str) -> Decision {
    match (&state.phase, state.open_attempt()) {
        (Phase::Stopping { finish }, _) => Decision {
            events: vec![Event::RunStopped { finish: *finish, exit_code: Finish::Error.exit_code(), duration_ms: 0 }],
            effect: None,
        },
        (Phase::Stopped { .. }, _) => Decision::default(),
        (Phase::RollingBack { .. }, _) | (_, None) => stop(Vec::new(), Finish::Error, message),
        (_, Some(attempt)) => reject(Vec::new(), &attempt.place, Rejection::Crashed, message),
    }
}

fn prepared(state: &State, rules: &Rules, baseline: &[CheckRun]) -> Decision {
    let green = baseline.iter().all(|run| run.outcome.passed());
    let events = vec![Event::BaselineChecked { green, runs: baseline.to_vec() }];
    if let Some(signal) = state.stop {
        return stop(events, Finish::Manual, stopped_by(signal));
    }
    if !green && !rules.red_baseline {
        let reason = super::Feedback::from_runs(baseline).reason;
        return stop(
            events,
            Finish::Blocked,
            format!("red before any work: {reason} (mend it first, or go on with --red-baseline)"),
        );
    }
    then(events, Effect::Select)
}

fn selected(state: &State, rules: &Rules, now: Timestamp, choice: &Choice) -> Decision {
    let (story, title, number, of, open) = match choice {
        Choice::AllDone => match &state.baseline {
            // Nothing was worked on, so nothing mended what was red at the start.
            Some(red) if state.iteration == 0 => {
                return stop(Vec::new(), Finish::Blocked, format!("no open story is left, but {}", red.reason));
            }
            Some(_) | None => return stop(Vec::new(), Finish::Complete, "nothing is left to do"),
        },
        Choice::NothingRunnable { reason } => return stop(Vec::new(), Finish::Blocked, reason.clone()),
        Choice::Story { story, title, number, of, open } => (story, title, *number, *of, *open),
    };
    if let Some((finish, reason)) = limit_reached(state, rules, now) {
        return stop(Vec::new(), finish, reason);
    }
    let attempt = state.progress.attempts.get(story).copied().unwrap_or(0) + 1;
    let place = Place { story: story.clone(), attempt, turn: 0 };
    let event = Event::StorySelected { iteration: state.iteration + 1, place, title: title.clone(), number, of, open };
    then(vec![event], Effect::Script(Script::NextIteration))
}

/// The limits that are looked at between iterations.
fn limit_reached(state: &State, rules: &Rules, now: Timestamp) -> Option<(Finish, String)> {
    let limits = &rules.limits;
    let reached = |count: u32, limit: u32| limit > 0 && count >= limit;
    if let Some(signal) = state.stop {
        return Some((Finish::Manual, stopped_by(signal)));
    }
    if state.stop_after_story {
        return Some((Finish::Manual, "stopped after the story, as asked".to_owned()));
    }
    if out_of_time(state, rules, now) {
        return Some((Finish::Timeout, format!("the run may take {}", limits.total_time)));
    }
    if reached(state.iteration, limits.max_iterations) {
        return Some((Finish::MaxIterations, format!("{} iterations were made", state.iteration)));
    }
    if reached(state.unchanged_iterations, limits.no_changes) {
        return Some((Finish::NoChanges, format!("{} iterations in a row changed no file", state.unchanged_iterations)));
    }
    if reached(state.consecutive_failures, limits.consecutive_failures) {
        return Some((Finish::Stalled, format!("{} attempts in a row failed", state.consecutive_failures)));
    }
    None
}

fn out_of_time(state: &State, rules: &Rules, now: Timestamp) -> bool {
    let Some(limit) = rules.limits.total_time.limit() else { return false };
    let worked = |start| now.duration_since(start).unsigned_abs().saturating_sub(Duration::from_millis(state.paused_ms));
    state.started_at.is_some_and(|start| worked(start) >= limit)
}

fn stopped_by(signal: StopSignal) -> String {
    let name = match signal {
        StopSignal::Sigint => "SIGINT",
        StopSignal::Sigterm => "SIGTERM",
        StopSignal::Sighup => "SIGHUP",
    };
    format!("stopped by {name}")
}

fn red_checked(state: &State, rules: &Rules, attempt: &Attempt, red: Red, runs: &[CheckRun]) -> Decision {
    let mut events = vec![Event::RedChecked { place: attempt.place.clone(), red, runs: runs.to_vec() }];
    if let Some(signal) = state.stop {
        return reject(events, &attempt.place, Rejection::Stopped, stopped_by(signal));
    }
    match (red, rules.red_check) {
        (Red::Green, RedPolicy::Accept) => then(events, Effect::Verify),
        (Red::Green, RedPolicy::Refuse) => {
            reject(events, &attempt.place, Rejection::AlreadyGreen, "its checks are green before any work, so they prove nothing")
        }
        (Red::Green, RedPolicy::Flag) | (Red::Red | Red::Unknown | Red::Absent, _) => {
            events.push(Event::TurnStarted { place: next_turn(&attempt.place) });
            then(events, Effect::Turn)
        }
    }
}

fn next_turn(place: &Place) -> Place {
    Place { turn: place.turn + 1, ..place.clone() }
}

fn turn_ended(state: &State, rules: &Rules, now: Timestamp, attempt: &Attempt, report: &TurnReport) -> Decision {
    let events = vec![Event::TurnEnded {
        place: attempt.place.clone(),
        outcome: report.outcome.clone(),
        duration_ms: report.duration_ms,
        usage: report.usage,
        prompt: report.prompt.clone(),
        output: report.output.clone(),
        leftovers: report.leftovers,
    }];
    let words = format!("the turn {}", report.outcome.words());
    match &report.outcome {
        TurnOutcome::Ended => then(events, Effect::Verify),
        TurnOutcome::Interrupted => reject(events, &attempt.place, Rejection::Stopped, words),
        TurnOutcome::NotRunnable { .. } => reject(events, &attempt.place, Rejection::Crashed, words),
        TurnOutcome::Crashed { .. } if rules.limits.crashes > 0 && state.crashes + 1 >= rules.limits.crashes => {
            reject(events, &attempt.place, Rejection::TurnFailed, words)
        }
        TurnOutcome::Crashed { .. } | TurnOutcome::TimedOut { .. } | TurnOutcome::Idle { .. } => {
            again_or(state, rules, now, attempt, events, Rejection::TurnFailed, words)
        }
    }
}

/// Another turn with feedback where one is left; else the attempt is over.
fn again_or(
    state: &State,
    rules: &Rules,
    now: Timestamp,
    attempt: &Attempt,
    mut events: Vec<Event>,
    rejection: Rejection,
    reason: String,
) -> Decision {
    if let Some(signal) = state.stop {
        return reject(events, &attempt.place, Rejection::Stopped, stopped_by(signal));
    }
    if state.progress.failed.contains_key(&attempt.place.story) {
        return reject(events, &attempt.place, Rejection::Stopped, "skipped by the user");
    }
    if out_of_time(state, rules, now) {
        return reject(events, &attempt.place, Rejection::Stopped, format!("the run may take {}", rules.limits.total_time));
    }
    if rules.limits.turns > 0 && attempt.place.turn >= rules.limits.turns {
        return reject(events, &attempt.place, rejection, reason);
    }
    events.push(Event::TurnStarted { place: next_turn(&attempt.place) });
    then(events, Effect::Turn)
}

fn reject(mut events: Vec<Event>, place: &Place, rejection: Rejection, reason: impl Into<String>) -> Decision {
    events.push(Event::AttemptRejected { place: place.clone(), rejection, reason: reason.into() });
    then(events, Effect::RollBack)
}

fn verified(state: &State, rules: &Rules, now: Timestamp, attempt: &Attempt, verification: &Verification) -> Decision {
    let outcome = honest_outcome(rules, attempt, verification);
    let mut events = vec![Event::Verified {
        place: attempt.place.clone(),
        outcome: outcome.clone(),
        tree: verification.tree.clone(),
        changed: verification.changed,
        runs: verification.runs.clone(),
        reason: verification.reason.clone().or_else(|| (outcome != verification.outcome).then(|| NO_PROOF.to_owned())),
        restored: verification.restored.clone(),
        debris: verification.debris.clone(),
        left_out: verification.left_out.clone(),
    }];
    let reason = || verification.reason.clone().unwrap_or_else(|| super::Feedback::from_runs(&verification.runs).reason);
    match (outcome, &verification.tree) {
        (VerifyOutcome::Passed, Some(tree)) => {
            let verdict = verdict(attempt, verification);
            events.push(Event::CommitStarted { place: attempt.place.clone(), tree: tree.clone(), verdict });
            then(events, Effect::Commit)
        }
        (VerifyOutcome::Interrupted, _) => {
            let reason = state.stop.map_or_else(|| "interrupted".to_owned(), stopped_by);
            reject(events, &attempt.place, Rejection::Stopped, reason)
        }
        (VerifyOutcome::HistoryMoved, _) => reject(events, &attempt.place, Rejection::HistoryMoved, reason()),
        (failure, _) => {
            let (rejection, reason) = match failure {
                VerifyOutcome::NothingChanged => (Rejection::NothingChanged, "no file was changed".to_owned()),
                VerifyOutcome::Passed
                | VerifyOutcome::Failed
                | VerifyOutcome::Unsettled
                | VerifyOutcome::HistoryMoved
                | VerifyOutcome::Refused
                | VerifyOutcome::Interrupted => (Rejection::ChecksFailed, reason()),
            };
            if repeats(rules, attempt, verification, &events) {
                let reason = format!("no progress: {reason}");
                let rejection =
                    if rejection == Rejection::NothingChanged { Rejection::NothingChanged } else { Rejection::NoProgress };
                return reject(events, &attempt.place, rejection, reason);
            }
            again_or(state, rules, now, attempt, events, rejection, reason)
        }
    }
}

const NO_PROOF: &str = "no check ran, so nothing was proven";

/// The runtime reports what it saw; whether that is a pass is decided here, from the runs themselves.
fn honest_outcome(rules: &Rules, attempt: &Attempt, verification: &Verification) -> VerifyOutcome {
    let claimed = &verification.outcome;
    if *claimed != VerifyOutcome::Passed {
        return claimed.clone();
    }
    let accepted_as_true = attempt.place.turn == 0;
    if verification.changed == 0 && !accepted_as_true {
        return VerifyOutcome::NothingChanged;
    }
    let proven = !verification.runs.is_empty() || rules.unverified;
    let green = verification.runs.iter().all(|run| run.outcome.passed());
    if proven && green && verification.tree.is_some() { VerifyOutcome::Passed } else { VerifyOutcome::Failed }
}

fn verdict(attempt: &Attempt, verification: &Verification) -> StoryVerdict {
    let runs = &verification.runs;
    // What the checks saw and the commit does not have may be what made them green.
    let complete = verification.left_out.is_empty();
    let own = complete && runs.iter().any(|run| run.origin == CheckOrigin::Story);
    match (runs.is_empty(), own, attempt.red) {
        (true, _, _) => StoryVerdict::Unverified,
        (false, true, Some(Red::Red)) => StoryVerdict::Verified,
        (false, _, _) => StoryVerdict::Unproven,
    }
}

/// Whether this failure is the same as the ones before it, once too often. Asks the fold itself, so that both agree.
fn repeats(rules: &Rules, attempt: &Attempt, verification: &Verification, events: &[Event]) -> bool {
    if rules.limits.no_progress == 0 || verification.tree.is_none() {
        return false;
    }
    let mut scratch = State { attempt: Some(attempt.clone()), ..State::default() };
    for event in events {
        let recorded = crate::event::Recorded { v: 0, seq: 0, at: Timestamp::UNIX_EPOCH, event: event.clone() };
        super::apply(&mut scratch, &recorded);
    }
    scratch.attempt.is_some_and(|attempt| attempt.same_failure.1 >= rules.limits.no_progress)
}

fn commit_refused(state: &State, rules: &Rules, now: Timestamp, attempt: &Attempt, tree: &Oid, message: &str) -> Decision {
    let events = vec![Event::CommitRefused { place: attempt.place.clone(), tree: tree.clone(), message: message.to_owned() }];
    let reason = format!("the commit was refused: {}", message.lines().next().unwrap_or_default());
    if attempt.refused.as_ref() == Some(tree) {
        return reject(events, &attempt.place, Rejection::CommitRefused, reason);
    }
    again_or(state, rules, now, attempt, events, Rejection::CommitRefused, reason)
}

fn rolled_back(state: &State, rules: &Rules, attempt: &Attempt, rejection: &Rejection, event: Event) -> Decision {
    let story = &attempt.place.story;
    let mut events = vec![event];
    match rejection {
        Rejection::Stopped | Rejection::Crashed | Rejection::CommitRefused => {}
        Rejection::AlreadyGreen => events.push(story_failed(story, "its checks prove nothing: they were green before any work")),
        Rejection::ChecksFailed
        | Rejection::NothingChanged
        | Rejection::NoProgress
        | Rejection::TurnFailed
        | Rejection::HistoryMoved => {
            let attempts = state.progress.attempts.get(story).copied().unwrap_or(0) + 1;
            if rules.limits.attempts > 0 && attempts >= rules.limits.attempts {
                events.push(story_failed(story, &format!("{attempts} of {} attempts failed", rules.limits.attempts)));
            }
        }
    }
    end_iteration(state, rules, events)
}

fn story_failed(story: &StoryId, reason: &str) -> Event {
    Event::StoryFailed { story: story.clone(), reason: reason.to_owned() }
}

/// The script `post_iteration` comes before what follows; after a signal nothing new is started.
fn end_iteration(state: &State, rules: &Rules, events: Vec<Event>) -> Decision {
    if state.stop.is_some() {
        return next_story(state, rules, events);
    }
    then(events, Effect::Script(Script::PostIteration))
}

fn next_story(state: &State, rules: &Rules, events: Vec<Event>) -> Decision {
    if let Some(fatal) = &state.fatal {
        return stop(events, fatal.finish, fatal.reason.clone());
    }
    if rules.limits.crashes > 0 && state.crashes >= rules.limits.crashes {
        return stop(events, Finish::Error, format!("the agent crashed {} times in a row", state.crashes));
    }
    match state.stop {
        Some(signal) => stop(events, Finish::Manual, stopped_by(signal)),
        None => then(events, Effect::Select),
    }
}

/// What a script's end means, and the event that says so; nothing where no script ran.
fn script_ran(rules: &Rules, run: Option<&ScriptRun>) -> (Vec<Event>, Meaning) {
    let Some(run) = run else { return (Vec::new(), Meaning::GoOn) };
    let meaning = meaning(run.script, &run.exit, rules.fail_behavior);
    let event = Event::ScriptRan {
        script: run.script,
        exit: run.exit.clone(),
        meaning,
        duration_ms: run.duration_ms,
        output: run.output.clone(),
    };
    (vec![event], meaning)
}

fn aborted_by(script: Script) -> String {
    format!("the script {} asked for the end", script.name())
}

fn started(state: &State, rules: &Rules, run: Option<&ScriptRun>) -> Decision {
    let (events, meaning) = script_ran(rules, run);
    match (meaning, state.stop) {
        (_, Some(signal)) => stop(events, Finish::Manual, stopped_by(signal)),
        (Meaning::Abort, None) => stop(events, Finish::HookAbort, aborted_by(Script::Started)),
        (Meaning::GoOn | Meaning::Warning | Meaning::Error | Meaning::Skip, None) => then(events, Effect::Prepare),
    }
}

fn beginning(state: &State, rules: &Rules, attempt: &Attempt, run: Option<&ScriptRun>) -> Decision {
    let (mut events, meaning) = script_ran(rules, run);
    if let Some(signal) = state.stop {
        return stop(events, Finish::Manual, stopped_by(signal));
    }
    match meaning {
        Meaning::GoOn | Meaning::Warning | Meaning::Error => then(events, Effect::Checkpoint),
        Meaning::Abort => stop(events, Finish::HookAbort, aborted_by(Script::NextIteration)),
        Meaning::Skip => {
            events.push(Event::IterationSkipped { place: attempt.place.clone() });
            if state.skips + 1 >= MOST_SKIPS {
                return stop(events, Finish::Stalled, format!("{MOST_SKIPS} iterations in a row were skipped"));
            }
            then(events, Effect::Select)
        }
    }
}

fn iteration_ended(state: &State, rules: &Rules, run: Option<&ScriptRun>) -> Decision {
    let (events, meaning) = script_ran(rules, run);
    match meaning {
        // A run that cannot go on ends for its own reason.
        Meaning::Abort if state.fatal.is_none() => stop(events, Finish::HookAbort, aborted_by(Script::PostIteration)),
        Meaning::GoOn | Meaning::Warning | Meaning::Error | Meaning::Skip | Meaning::Abort => next_story(state, rules, events),
    }
}

fn asked(request: &Request) -> Decision {
    Decision { events: vec![Event::Asked { request: request.clone() }], effect: None }
}

fn finished(state: &State, rules: &Rules, now: Timestamp, finish: Finish, script: Option<&ScriptRun>) -> Decision {
    let (mut events, _) = script_ran(rules, script);
    let exit_code = match (&state.fatal, state.stop, finish) {
        (Some(fatal), _, _) => fatal.exit_code,
        (None, Some(signal), Finish::Manual) => signal.exit_code(),
        (None, _, finish) => finish.exit_code(),
    };
    let duration = state.started_at.map_or(0, |start| now.duration_since(start).unsigned_abs().as_millis() as u64);
    events.push(Event::RunStopped { finish, exit_code, duration_ms: duration });
    Decision { events, effect: None }
}
