//! Decisions within an attempt, from its beginning until it is committed or kept.

use std::time::Duration;

use jiff::Timestamp;
use verdone_plan::ReviewState;

use super::script::{beginning, end_iteration};
use super::wait::{near_limit, pause, service_error, usage_limit, waited};
use super::{out_of_time, over_budget, stopped_by, then, unexpected};
use crate::agent::TurnOutcome;
use crate::base::id::{Oid, StoryId};
use crate::base::plural::plural;
use crate::base::verdict::{Red, RedPolicy};
use crate::check::CheckRun;
use crate::config::OnReview;
use crate::engine::run::{Attempt, Decision, Effect, Input, Phase, Rules, State, TurnReport, Verification, apply};
use crate::journal::event::{Event, Place, Recorded, Rejection, Verified};
use crate::verify::{Failure, Outcome, Proof, ProvenCriterion, Reason, VerifyReport};

/// A model that has refused a story this often is not asked again: every answer costs money.
const MOST_REFUSALS: usize = 2;

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
        (Phase::Beginning, Input::Ready { base, tree }) => {
            let event = Event::AttemptStarted { place: attempt.place.clone(), base: base.clone(), tree: tree.clone() };
            then(vec![event], Effect::RedCheck)
        }
        (Phase::RedChecking, Input::RedChecked { red, runs }) => red_checked(state, rules, attempt, *red, runs),
        (Phase::Turn, Input::TurnEnded(report)) => turn_ended(state, rules, now, attempt, report),
        (Phase::Waiting { turn, .. }, Input::Waited { over }) => waited(state, rules, now, (attempt, turn), *over),
        (Phase::Verifying, Input::Verified(verification)) => verified(state, rules, now, attempt, verification),
        (Phase::Committing { proof, outcome, .. }, Input::Committed { commit, tree: committed, files, evidence, noted }) => {
            let event = Event::Committed {
                place: attempt.place.clone(),
                commit: commit.clone(),
                tree: committed.clone(),
                proof: *proof,
                outcome: *outcome,
                base: attempt.base.clone(),
                files: *files,
                evidence: evidence.clone(),
                criteria: criteria_of(attempt),
                noted: *noted,
            };
            committed_story(state, rules, attempt, commit, event)
        }
        (Phase::Committing { tree, proof, .. }, Input::Marked { files, reason }) => {
            let (place, tree, reason) = (attempt.place.clone(), tree.clone(), reason.clone());
            let criteria = criteria_of(attempt);
            end_iteration(state, rules, vec![Event::Marked { place, tree, proof: *proof, files: *files, criteria, reason }])
        }
        (Phase::Committing { tree, .. }, Input::CommitRefused { message }) => {
            commit_refused(state, rules, now, attempt, tree, message)
        }
        (Phase::RedChecking | Phase::Turn | Phase::Verifying | Phase::Committing { .. }, Input::CalledOff) => {
            let reason = called_off(state, attempt).unwrap_or_else(|| "called off".to_owned());
            reject(Vec::new(), &attempt.place, Rejection::Stopped, reason)
        }
        (Phase::Keeping { rejection }, Input::Kept { kept, files }) => was_kept(state, rules, attempt, rejection, kept, *files),
        _ => unexpected(phase, input),
    }
}

fn criteria_of(attempt: &Attempt) -> Vec<ProvenCriterion> {
    attempt.report.as_ref().map(|report| report.criteria.clone()).unwrap_or_default()
}

fn committed_story(state: &State, rules: &Rules, attempt: &Attempt, commit: &Oid, event: Event) -> Decision {
    let is_pending = matches!(event, Event::Committed { outcome: Outcome::NeedsReview, .. });
    if is_pending {
        return end_iteration(state, rules, vec![event, review_needed(attempt, commit)]);
    }
    // Commits on top of a story that waits for review have to wait too.
    let is_held_up = state.progress.review.values().any(|waiting| *waiting == ReviewState::Stacked);
    if rules.land_each && !is_held_up {
        return then(vec![event, Event::LandingStarted { to: commit.clone() }], Effect::Land);
    }
    end_iteration(state, rules, vec![event])
}

fn review_needed(attempt: &Attempt, work: &Oid) -> Event {
    let report = attempt.report.as_deref();
    Event::ReviewNeeded {
        place: attempt.place.clone(),
        work: work.clone(),
        base: attempt.base.clone(),
        proof: report.and_then(|report| report.proof).unwrap_or(Proof::Unchecked),
        reasons: report.map(VerifyReport::problems).unwrap_or_default(),
    }
}

fn red_checked(state: &State, rules: &Rules, attempt: &Attempt, red: Red, runs: &[CheckRun]) -> Decision {
    let events = vec![Event::RedChecked { place: attempt.place.clone(), red, runs: runs.to_vec() }];
    if let Some(reason) = called_off(state, attempt) {
        return reject(events, &attempt.place, Rejection::Stopped, reason);
    }
    match (red, rules.red_check) {
        (Red::Green, RedPolicy::Accept) => then(events, Effect::Verify),
        (Red::Green, RedPolicy::Refuse) => {
            reject(events, &attempt.place, Rejection::AlreadyGreen, "its checks pass before any work, so they prove nothing")
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
        exit_code: report.exit_code,
        prompt: report.prompt.clone(),
        output: report.output.clone(),
        leftovers: report.leftovers,
        tests: report.tests.clone(),
        session: report.session.clone(),
        allowance: report.allowance.clone(),
        claim: report.claim.clone(),
    }];
    let words = format!("the turn {}", report.outcome.describe());
    if let Some(reason) = &report.tests.ended_turn
        && judges_the_story(&report.outcome)
    {
        return tests_failed(state, attempt, events, reason);
    }
    if let Some(question) = state.open_question(&attempt.place.story)
        && judges_the_story(&report.outcome)
    {
        return asks_user(state, attempt, events, &question.question);
    }
    if let (Some(left), TurnOutcome::Ended) = (&attempt.unfinished, &report.outcome) {
        let reason = format!("the agent said that the story is not finished: {left}");
        return retry_or_reject(state, rules, now, attempt, events, Rejection::Unfinished, reason);
    }
    match &report.outcome {
        // Even if the agent ran out of calls or money, the work may be complete, so verify it first.
        TurnOutcome::Ended | TurnOutcome::MaxTurns { .. } | TurnOutcome::Budget { .. } => then(events, Effect::Verify),
        TurnOutcome::Interrupted => {
            let reason = skipped(state, attempt).filter(|_| state.stop.is_none()).unwrap_or(words);
            reject(events, &attempt.place, Rejection::Stopped, reason)
        }
        // Another turn would end the same way, and the story is not to blame.
        TurnOutcome::NotRunnable { .. }
        | TurnOutcome::Auth { .. }
        | TurnOutcome::Billing { .. }
        | TurnOutcome::UnknownModel { .. }
        | TurnOutcome::GuardDead { .. } => reject(events, &attempt.place, Rejection::Crashed, words),
        TurnOutcome::UsageLimit { resets_at, .. } => usage_limit(state, rules, attempt, events, (report.at, *resets_at), words),
        TurnOutcome::ApiError { retryable: true, .. } => service_error(state, rules, attempt, events, report.at, words),
        TurnOutcome::ApiError { retryable: false, .. } if at_crash_limit(state, rules) => {
            reject(events, &attempt.place, Rejection::ServiceError, words)
        }
        TurnOutcome::Refused { .. } if refusals(state, &attempt.place.story).len() + 1 >= MOST_REFUSALS => {
            reject(events, &attempt.place, Rejection::TurnFailed, words)
        }
        TurnOutcome::Crashed { .. } if at_crash_limit(state, rules) => {
            reject(events, &attempt.place, Rejection::TurnFailed, words)
        }
        TurnOutcome::Crashed { .. }
        | TurnOutcome::ApiError { retryable: false, .. }
        | TurnOutcome::TimedOut { .. }
        | TurnOutcome::Idle { .. }
        | TurnOutcome::Looping { .. }
        | TurnOutcome::Refused { .. } => retry_or_reject(state, rules, now, attempt, events, Rejection::TurnFailed, words),
    }
}

/// The cost of the run, including events that have not been applied yet.
pub(super) fn spent(state: &State, events: &[Event]) -> f64 {
    state.cost_usd + events.iter().map(cost_of).sum::<f64>()
}

fn cost_of(event: &Event) -> f64 {
    match event {
        Event::TurnEnded { usage, .. } => usage.cost_usd.unwrap_or(0.0),
        Event::Verified(verified) => verified.cost_usd().unwrap_or(0.0),
        Event::RunStarted { .. }
        | Event::BaselineChecked { .. }
        | Event::StorySelected { .. }
        | Event::AttemptStarted { .. }
        | Event::RedChecked { .. }
        | Event::TurnStarted { .. }
        | Event::WaitStarted { .. }
        | Event::WaitEnded { .. }
        | Event::CommitStarted { .. }
        | Event::Committed { .. }
        | Event::Marked { .. }
        | Event::CommitRefused { .. }
        | Event::AttemptRejected { .. }
        | Event::AttemptKept { .. }
        | Event::AttemptDropped { .. }
        | Event::LandingStarted { .. }
        | Event::Landed { .. }
        | Event::LandingRefused { .. }
        | Event::Reapplied { .. }
        | Event::StoryFailed { .. }
        | Event::ReviewNeeded { .. }
        | Event::Accepted { .. }
        | Event::Refused { .. }
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

/// Whether a turn with this outcome counts against the story.
fn judges_the_story(outcome: &TurnOutcome) -> bool {
    match outcome {
        TurnOutcome::Interrupted
        | TurnOutcome::NotRunnable { .. }
        | TurnOutcome::Auth { .. }
        | TurnOutcome::Billing { .. }
        | TurnOutcome::UnknownModel { .. }
        | TurnOutcome::GuardDead { .. }
        | TurnOutcome::UsageLimit { .. }
        | TurnOutcome::ApiError { .. } => false,
        TurnOutcome::Ended
        | TurnOutcome::Crashed { .. }
        | TurnOutcome::TimedOut { .. }
        | TurnOutcome::Idle { .. }
        | TurnOutcome::Looping { .. }
        | TurnOutcome::MaxTurns { .. }
        | TurnOutcome::Budget { .. }
        | TurnOutcome::Refused { .. } => true,
    }
}

/// The hooks ended the turn because the settings say so: a tree whose own tests fail is not verified.
fn tests_failed(state: &State, attempt: &Attempt, events: Vec<Event>, reason: &str) -> Decision {
    if let Some(reason) = called_off(state, attempt) {
        return reject(events, &attempt.place, Rejection::Stopped, reason);
    }
    reject(events, &attempt.place, Rejection::TestsFailed, reason)
}

/// The story waits for the user. Work without the answer is not verified, even if it would pass.
fn asks_user(state: &State, attempt: &Attempt, events: Vec<Event>, question: &str) -> Decision {
    match state.stop {
        Some(signal) => reject(events, &attempt.place, Rejection::Stopped, stopped_by(signal)),
        None => reject(events, &attempt.place, Rejection::Blocked, format!("asks the user: {question}")),
    }
}

/// Another turn with feedback if one is left; otherwise the attempt is over.
fn retry_or_reject(
    state: &State,
    rules: &Rules,
    now: Duration,
    attempt: &Attempt,
    events: Vec<Event>,
    rejection: Rejection,
    reason: String,
) -> Decision {
    if let Some(reason) = abort_reason(state, rules, now, attempt, &events) {
        return reject(events, &attempt.place, Rejection::Stopped, reason);
    }
    if rules.limits.turns > 0 && attempt.place.turn >= rules.limits.turns {
        return reject(events, &attempt.place, rejection, reason);
    }
    next_turn(state, rules, attempt, events)
}

/// Why the run cannot continue this attempt, regardless of its result.
fn abort_reason(state: &State, rules: &Rules, now: Duration, attempt: &Attempt, events: &[Event]) -> Option<String> {
    if let Some(reason) = called_off(state, attempt) {
        return Some(reason);
    }
    if out_of_time(rules, now) {
        return Some(format!("the time limit of {} was reached", rules.limits.total_time));
    }
    over_budget(state, rules, spent(state, events))
}

/// The user's request to end the run or this attempt.
pub(super) fn called_off(state: &State, attempt: &Attempt) -> Option<String> {
    state.stop.map(stopped_by).or_else(|| skipped(state, attempt))
}

fn skipped(state: &State, attempt: &Attempt) -> Option<String> {
    let story = &attempt.place.story;
    let asked = || state.progress.asked.contains(story).then(|| "it waits for the user's answer".to_owned());
    state.progress.failed.get(story).cloned().or_else(asked)
}

pub(super) fn reject(mut events: Vec<Event>, place: &Place, rejection: Rejection, reason: impl Into<String>) -> Decision {
    events.push(Event::AttemptRejected { place: place.clone(), rejection, reason: reason.into() });
    then(events, Effect::Keep)
}

fn verified(state: &State, rules: &Rules, now: Duration, attempt: &Attempt, verification: &Verification) -> Decision {
    let Verification { changed, restored, report, judge } = verification.clone();
    let place = attempt.place.clone();
    let (outcome, proof, reason) = (report.outcome, report.proof, report.sentence());
    let is_cut = report.was_interrupted();
    let tree = report.trees.attempt.clone();
    let criteria = report.criteria.clone();
    let is_unchanged = report.reasons.contains(&Reason::Failure(Failure::NothingChanged));
    let mut events = vec![Event::Verified(Box::new(Verified { place: place.clone(), changed, restored, report, judge }))];
    if is_cut || state.skipped_now.contains(&place.story) {
        let reason = called_off(state, attempt).unwrap_or_else(|| "interrupted".to_owned());
        return reject(events, &place, Rejection::Stopped, reason);
    }
    let is_stacked = outcome == Outcome::NeedsReview && rules.on_review == OnReview::Stack;
    match (outcome, proof) {
        (Outcome::Done | Outcome::Accepted, Some(proof)) => {
            events.push(commit_started(state, place, tree, proof, Outcome::Done, criteria));
            then(events, Effect::Commit)
        }
        (Outcome::NeedsReview, Some(proof)) if is_stacked => {
            events.push(commit_started(state, place, tree, proof, outcome, criteria));
            then(events, Effect::Commit)
        }
        (Outcome::NeedsReview, _) => reject(events, &place, Rejection::NeedsReview, reason),
        (Outcome::Done | Outcome::Accepted, None) | (Outcome::Failed, _) => {
            let rejection = if is_unchanged { Rejection::NothingChanged } else { Rejection::ChecksFailed };
            if is_repeated_failure(rules, attempt, &events) {
                let rejection = if is_unchanged { rejection } else { Rejection::NoProgress };
                return reject(events, &place, rejection, format!("no progress: {reason}"));
            }
            retry_or_reject(state, rules, now, attempt, events, rejection, reason)
        }
    }
}

fn commit_started(
    state: &State,
    place: Place,
    tree: Oid,
    proof: Proof,
    outcome: Outcome,
    criteria: Vec<ProvenCriterion>,
) -> Event {
    Event::CommitStarted { place, tree, proof, outcome, gates: state.gates.clone(), previous: state.evidence.clone(), criteria }
}

/// Whether the same failure was repeated too often. Uses `apply` itself, so that both agree.
fn is_repeated_failure(rules: &Rules, attempt: &Attempt, events: &[Event]) -> bool {
    if rules.limits.no_progress == 0 {
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
    retry_or_reject(state, rules, now, attempt, events, Rejection::CommitRefused, reason)
}

fn was_kept(state: &State, rules: &Rules, attempt: &Attempt, rejection: &Rejection, kept: &Oid, files: u32) -> Decision {
    let story = &attempt.place.story;
    let mut events = vec![Event::AttemptKept { place: attempt.place.clone(), kept: kept.clone(), files }];
    match rejection {
        Rejection::Stopped
        | Rejection::Crashed
        | Rejection::UsageLimit
        | Rejection::ServiceError
        | Rejection::Blocked
        | Rejection::CommitRefused => {}
        Rejection::TurnFailed if refusals(state, story).len() >= MOST_REFUSALS => {
            let last = refusals(state, story).last().map(String::as_str).unwrap_or_default();
            events.push(story_failed(story, &format!("the model refused to work on it {MOST_REFUSALS} times: {last}")));
        }
        Rejection::AlreadyGreen => events.push(story_failed(story, "its checks prove nothing: they passed before any work")),
        Rejection::NeedsReview => events.push(review_needed(attempt, kept)),
        Rejection::ChecksFailed
        | Rejection::NothingChanged
        | Rejection::NoProgress
        | Rejection::TurnFailed
        | Rejection::Unfinished
        | Rejection::TestsFailed => {
            let attempts = state.progress.attempts.get(story).copied().unwrap_or(0) + 1;
            if rules.limits.attempts > 0 && attempts >= rules.limits.attempts {
                let all = plural(rules.limits.attempts as usize, "attempt", "attempts");
                events.push(story_failed(story, &format!("{attempts} of {all} failed")));
            }
        }
    }
    end_iteration(state, rules, events)
}

fn refusals<'a>(state: &'a State, story: &StoryId) -> &'a [String] {
    state.refusals.get(story).map_or(&[], Vec::as_slice)
}

fn story_failed(story: &StoryId, reason: &str) -> Event {
    Event::StoryFailed { story: story.clone(), reason: reason.to_owned() }
}
