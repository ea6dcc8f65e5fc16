//! Decisions inside an attempt: from its beginning until it is committed or kept.

use std::time::Duration;

use jiff::Timestamp;

use super::script::{beginning, end_iteration};
use super::wait::{near_limit, pause, service_error, usage_limit, waited};
use super::{out_of_time, over_budget, stopped_by, then, unexpected};
use crate::agent::TurnOutcome;
use crate::check::{CheckOrigin, CheckRun};
use crate::event::{Event, Place, Recorded, Rejection, VerifyOutcome};
use crate::id::{Oid, StoryId};
use crate::machine::{Attempt, Decision, Effect, Feedback, Input, Phase, Rules, State, TurnReport, Verification, apply};
use crate::proof::{AgentTest, AsBefore, OwnCheck};
use crate::tamper::Response;
use crate::verdict::{Red, RedPolicy, StoryVerdict};

/// The phases that have an attempt.
pub(super) fn in_attempt(
    state: &State,
    rules: &Rules,
    now: Duration,
    attempt: &Attempt,
    phase: &Phase,
    input: &Input,
) -> Decision {
    match (phase, input) {
        (Phase::Beginning, Input::ScriptRan(run)) => beginning(state, rules, attempt, run.as_ref()),
        (Phase::Beginning, Input::Ready { base }) => {
            let event = Event::AttemptStarted { place: attempt.place.clone(), base: Some(base.clone()) };
            then(vec![event], Effect::RedCheck)
        }
        (Phase::RedChecking, Input::RedChecked { red, runs }) => red_checked(state, rules, attempt, *red, runs),
        (Phase::Turn, Input::TurnEnded(report)) => turn_ended(state, rules, now, attempt, report),
        (Phase::Waiting { turn, .. }, Input::Waited { over }) => waited(state, rules, now, (attempt, turn), *over),
        (Phase::Verifying, Input::Verified(verification)) => verified(state, rules, now, attempt, verification),
        (Phase::Committing { verdict, .. }, Input::Committed { commit, tree: committed, files, evidence, noted }) => {
            let event = Event::Committed {
                place: attempt.place.clone(),
                commit: commit.clone(),
                tree: committed.clone(),
                verdict: *verdict,
                base: attempt.base.clone(),
                files: *files,
                evidence: evidence.clone(),
                criteria: attempt.criteria.clone(),
                noted: *noted,
            };
            if rules.land_each {
                return then(vec![event, Event::LandingStarted { to: commit.clone() }], Effect::Land);
            }
            end_iteration(state, rules, vec![event])
        }
        (Phase::Committing { tree, .. }, Input::CommitRefused { message }) => {
            commit_refused(state, rules, now, attempt, tree, message)
        }
        (Phase::Keeping { rejection }, Input::Kept { kept, files }) => {
            let event = Event::AttemptKept { place: attempt.place.clone(), kept: kept.clone(), files: *files };
            was_kept(state, rules, attempt, rejection, event)
        }
        _ => unexpected(phase, input),
    }
}

fn red_checked(state: &State, rules: &Rules, attempt: &Attempt, red: Red, runs: &[CheckRun]) -> Decision {
    let events = vec![Event::RedChecked { place: attempt.place.clone(), red, runs: runs.to_vec() }];
    if let Some(signal) = state.stop {
        return reject(events, &attempt.place, Rejection::Stopped, stopped_by(signal));
    }
    match (red, rules.red_check) {
        (Red::Green, RedPolicy::Accept) => then(events, Effect::Verify),
        (Red::Green, RedPolicy::Refuse) => {
            reject(events, &attempt.place, Rejection::AlreadyGreen, "its checks are green before any work, so they prove nothing")
        }
        (Red::Green, RedPolicy::Flag) | (Red::Red | Red::Unknown | Red::Absent, _) => next_turn(state, rules, attempt, events),
    }
}

/// The next turn, or a pause before it.
fn next_turn(state: &State, rules: &Rules, attempt: &Attempt, mut events: Vec<Event>) -> Decision {
    let place = Place { turn: attempt.place.turn + 1, ..attempt.place.clone() };
    if let Some(allowance) = near_limit(state, rules, &events) {
        return pause(state, rules, attempt, events, place, &allowance);
    }
    events.push(Event::TurnStarted { place });
    then(events, Effect::Turn)
}

fn turn_ended(state: &State, rules: &Rules, now: Duration, attempt: &Attempt, report: &TurnReport) -> Decision {
    let events = vec![Event::TurnEnded {
        place: attempt.place.clone(),
        outcome: report.outcome.clone(),
        duration_ms: report.duration_ms,
        usage: report.usage,
        prompt: report.prompt.clone(),
        output: report.output.clone(),
        leftovers: report.leftovers,
        tests: report.tests.clone(),
        session: report.session.clone(),
        allowance: report.allowance.clone(),
        claim: report.claim.clone(),
    }];
    let words = format!("the turn {}", report.outcome.words());
    if let Some(reason) = &report.tests.ended_turn
        && judges_the_story(&report.outcome)
    {
        return tests_failed(state, attempt, events, reason);
    }
    match &report.outcome {
        // Out of calls or money, the work may still be done: it is looked at before anything else.
        TurnOutcome::Ended | TurnOutcome::MaxTurns { .. } | TurnOutcome::Budget { .. } => then(events, Effect::Verify),
        TurnOutcome::Interrupted => reject(events, &attempt.place, Rejection::Stopped, words),
        // Another turn would end the same way, and the story has no part in it.
        TurnOutcome::NotRunnable { .. } | TurnOutcome::Auth { .. } | TurnOutcome::GuardDead { .. } => {
            reject(events, &attempt.place, Rejection::Crashed, words)
        }
        TurnOutcome::UsageLimit { resets_at, .. } => usage_limit(state, rules, attempt, events, (report.at, *resets_at), words),
        TurnOutcome::ApiError { retryable: true, .. } => service_error(state, rules, attempt, events, report.at, words),
        TurnOutcome::ApiError { retryable: false, .. } if at_crash_limit(state, rules) => {
            reject(events, &attempt.place, Rejection::ServiceError, words)
        }
        TurnOutcome::Crashed { .. } if at_crash_limit(state, rules) => {
            reject(events, &attempt.place, Rejection::TurnFailed, words)
        }
        TurnOutcome::Crashed { .. }
        | TurnOutcome::ApiError { retryable: false, .. }
        | TurnOutcome::TimedOut { .. }
        | TurnOutcome::Idle { .. }
        | TurnOutcome::Refused { .. } => again_or(state, rules, now, attempt, events, Rejection::TurnFailed, words),
    }
}

/// What the run has cost, with events that are not in the state yet.
pub(super) fn spent(state: &State, events: &[Event]) -> f64 {
    state.cost_usd + events.iter().map(cost_of).sum::<f64>()
}

fn cost_of(event: &Event) -> f64 {
    match event {
        Event::TurnEnded { usage, .. } => usage.cost_usd.unwrap_or(0.0),
        Event::Verified { judge: Some(judge), .. } => judge.usage.cost_usd.filter(|cost| cost.is_finite()).unwrap_or(0.0),
        Event::Verified { judge: None, .. }
        | Event::RunStarted { .. }
        | Event::BaselineChecked { .. }
        | Event::StorySelected { .. }
        | Event::AttemptStarted { .. }
        | Event::RedChecked { .. }
        | Event::TurnStarted { .. }
        | Event::WaitStarted { .. }
        | Event::WaitEnded { .. }
        | Event::CommitStarted { .. }
        | Event::Committed { .. }
        | Event::CommitRefused { .. }
        | Event::AttemptRejected { .. }
        | Event::AttemptKept { .. }
        | Event::AttemptDropped { .. }
        | Event::LandingStarted { .. }
        | Event::Landed { .. }
        | Event::LandingRefused { .. }
        | Event::Reapplied { .. }
        | Event::StoryFailed { .. }
        | Event::ScriptRan { .. }
        | Event::GuardFailed { .. }
        | Event::RegressionStarted { .. }
        | Event::RegressionChecked { .. }
        | Event::Regressed { .. }
        | Event::Reopened { .. }
        | Event::IterationSkipped { .. }
        | Event::StopRequested { .. }
        | Event::Asked { .. }
        | Event::RunStopping { .. }
        | Event::RunStopped { .. }
        | Event::Undone { .. }
        | Event::Retired => 0.0,
    }
}

fn at_crash_limit(state: &State, rules: &Rules) -> bool {
    rules.limits.crashes > 0 && state.crashes + 1 >= rules.limits.crashes
}

/// Whether a turn that ended so can be held against the story.
fn judges_the_story(outcome: &TurnOutcome) -> bool {
    match outcome {
        TurnOutcome::Interrupted
        | TurnOutcome::NotRunnable { .. }
        | TurnOutcome::Auth { .. }
        | TurnOutcome::GuardDead { .. }
        | TurnOutcome::UsageLimit { .. }
        | TurnOutcome::ApiError { .. } => false,
        TurnOutcome::Ended
        | TurnOutcome::Crashed { .. }
        | TurnOutcome::TimedOut { .. }
        | TurnOutcome::Idle { .. }
        | TurnOutcome::MaxTurns { .. }
        | TurnOutcome::Budget { .. }
        | TurnOutcome::Refused { .. } => true,
    }
}

/// The hooks ended the turn, as the settings want it: no verification of a tree whose own tests fail.
fn tests_failed(state: &State, attempt: &Attempt, events: Vec<Event>, reason: &str) -> Decision {
    if let Some(signal) = state.stop {
        return reject(events, &attempt.place, Rejection::Stopped, stopped_by(signal));
    }
    if state.progress.failed.contains_key(&attempt.place.story) {
        return reject(events, &attempt.place, Rejection::Stopped, "skipped by the user");
    }
    reject(events, &attempt.place, Rejection::TestsFailed, reason)
}

/// Another turn with feedback where one is left; else the attempt is over.
fn again_or(
    state: &State,
    rules: &Rules,
    now: Duration,
    attempt: &Attempt,
    events: Vec<Event>,
    rejection: Rejection,
    reason: String,
) -> Decision {
    if let Some(reason) = called_off(state, rules, now, attempt, &events) {
        return reject(events, &attempt.place, Rejection::Stopped, reason);
    }
    if rules.limits.turns > 0 && attempt.place.turn >= rules.limits.turns {
        return reject(events, &attempt.place, rejection, reason);
    }
    next_turn(state, rules, attempt, events)
}

/// Why the run does not go on with this attempt, whatever came of it.
fn called_off(state: &State, rules: &Rules, now: Duration, attempt: &Attempt, events: &[Event]) -> Option<String> {
    if let Some(signal) = state.stop {
        return Some(stopped_by(signal));
    }
    if state.progress.failed.contains_key(&attempt.place.story) {
        return Some("skipped by the user".to_owned());
    }
    if out_of_time(rules, now) {
        return Some(format!("the run may take {}", rules.limits.total_time));
    }
    over_budget(state, rules, spent(state, events))
}

pub(super) fn reject(mut events: Vec<Event>, place: &Place, rejection: Rejection, reason: impl Into<String>) -> Decision {
    events.push(Event::AttemptRejected { place: place.clone(), rejection, reason: reason.into() });
    then(events, Effect::Keep)
}

fn verified(state: &State, rules: &Rules, now: Duration, attempt: &Attempt, verification: &Verification) -> Decision {
    let outcome = honest_outcome(rules, attempt, verification);
    let mut events = vec![Event::Verified {
        place: attempt.place.clone(),
        outcome: outcome.clone(),
        tree: verification.tree.clone(),
        changed: verification.changed,
        runs: verification.runs.clone(),
        reason: why(rules, verification, &outcome),
        restored: verification.restored.clone(),
        alarms: verification.alarms.clone(),
        agent_test: verification.agent_test.clone().map(Box::new),
        as_before: verification.as_before.clone().map(Box::new),
        judge: verification.judge.clone(),
    }];
    let told = why(rules, verification, &outcome);
    let reason = || told.clone().unwrap_or_else(|| Feedback::from_runs(&verification.runs).reason);
    match (outcome, &verification.tree) {
        (VerifyOutcome::Passed, Some(tree)) => {
            let verdict = verdict(rules, attempt, verification);
            events.push(Event::CommitStarted {
                place: attempt.place.clone(),
                tree: tree.clone(),
                verdict,
                gates: state.gates.clone(),
                previous: state.evidence.clone(),
                criteria: verification.criteria.clone(),
            });
            then(events, Effect::Commit)
        }
        (VerifyOutcome::Interrupted, _) => {
            let reason = state.stop.map_or_else(|| "interrupted".to_owned(), stopped_by);
            reject(events, &attempt.place, Rejection::Stopped, reason)
        }
        (VerifyOutcome::Refused, _) if rules.tamper.gravest(&verification.alarms).0 == Response::Ask => {
            reject(events, &attempt.place, Rejection::NeedsHuman, reason())
        }
        // The work is not at fault, and another turn would not make the judge answer.
        (VerifyOutcome::Refused, _) if verification.judge.as_ref().is_some_and(|judge| judge.proved_nothing()) => {
            match called_off(state, rules, now, attempt, &events) {
                Some(stopped) => reject(events, &attempt.place, Rejection::Stopped, stopped),
                None => reject(events, &attempt.place, Rejection::NeedsHuman, reason()),
            }
        }
        (failure, _) => {
            let (rejection, reason) = match failure {
                VerifyOutcome::NothingChanged => (Rejection::NothingChanged, "no file was changed".to_owned()),
                VerifyOutcome::Passed | VerifyOutcome::Failed | VerifyOutcome::Refused | VerifyOutcome::Interrupted => {
                    (Rejection::ChecksFailed, reason())
                }
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

/// What the runs do not say.
fn why(rules: &Rules, verification: &Verification, outcome: &VerifyOutcome) -> Option<String> {
    let tampering = || rules.tamper.refusal(&verification.alarms).filter(|_| *outcome == VerifyOutcome::Refused);
    let no_proof = || (*outcome != verification.outcome).then(|| unproven(verification));
    verification.reason.clone().or_else(tampering).or_else(no_proof)
}

fn unproven(verification: &Verification) -> String {
    let tests = verification.agent_test.as_ref().and_then(|tests| tests.unproven.clone());
    tests.unwrap_or_else(|| "no check ran, so nothing was proven".to_owned())
}

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
    let proven =
        verification.runs.iter().any(|run| !run.advisory) || rules.unverified || tests_prove(rules, attempt, verification);
    let green = !verification.runs.iter().any(CheckRun::blocks);
    if !(proven && green && verification.tree.is_some()) {
        return VerifyOutcome::Failed;
    }
    match rules.tamper.gravest(&verification.alarms).0 {
        Response::Report => VerifyOutcome::Passed,
        Response::Ask | Response::Refuse => VerifyOutcome::Refused,
    }
}

/// Whether tests of the attempt's own count, and prove it.
fn tests_prove(rules: &Rules, attempt: &Attempt, verification: &Verification) -> bool {
    let asked = rules.own_check == OwnCheck::AgentTest && attempt.red == Some(Red::Absent);
    asked && verification.agent_test.as_ref().is_some_and(AgentTest::proves)
}

fn verdict(rules: &Rules, attempt: &Attempt, verification: &Verification) -> StoryVerdict {
    let runs = &verification.runs;
    // A check that passes only since the attempt changed it is not the one that was red.
    let same = verification.as_before.as_ref().is_none_or(AsBefore::holds);
    let own = same && runs.iter().any(|run| run.origin == CheckOrigin::Story);
    let nothing_counts = runs.iter().all(|run| run.advisory);
    let tested = tests_prove(rules, attempt, verification);
    if tested {
        return StoryVerdict::Verified;
    }
    match (nothing_counts && !tested, own, attempt.red) {
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
        let recorded = Recorded { v: 0, seq: 0, at: Timestamp::UNIX_EPOCH, active_ms: None, event: event.clone() };
        apply(&mut scratch, &recorded);
    }
    scratch.attempt.is_some_and(|attempt| attempt.same_failure.1 >= rules.limits.no_progress)
}

fn commit_refused(state: &State, rules: &Rules, now: Duration, attempt: &Attempt, tree: &Oid, message: &str) -> Decision {
    let events = vec![Event::CommitRefused { place: attempt.place.clone(), tree: tree.clone(), message: message.to_owned() }];
    let reason = format!("the commit was refused: {}", message.lines().next().unwrap_or_default());
    if attempt.refused.as_ref() == Some(tree) {
        return reject(events, &attempt.place, Rejection::CommitRefused, reason);
    }
    again_or(state, rules, now, attempt, events, Rejection::CommitRefused, reason)
}

fn was_kept(state: &State, rules: &Rules, attempt: &Attempt, rejection: &Rejection, event: Event) -> Decision {
    let story = &attempt.place.story;
    let mut events = vec![event];
    match rejection {
        Rejection::Stopped | Rejection::Crashed | Rejection::UsageLimit | Rejection::ServiceError | Rejection::CommitRefused => {}
        Rejection::AlreadyGreen => events.push(story_failed(story, "its checks prove nothing: they were green before any work")),
        // Another attempt would meet the same question.
        Rejection::NeedsHuman => {
            let told = attempt.feedback.as_ref().map_or("a human has to look at it", |told| told.reason.as_str());
            events.push(story_failed(story, told));
        }
        Rejection::ChecksFailed
        | Rejection::NothingChanged
        | Rejection::NoProgress
        | Rejection::TurnFailed
        | Rejection::TestsFailed => {
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
