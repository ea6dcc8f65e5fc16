//! Waiting for the agent's service: a usage limit until its reset, an error for a while. Neither spends a turn or an attempt.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::attempt::{reject, spent};
use super::{out_of_time, over_budget, stopped_by, then};
use crate::agent::AllowanceUse;
use crate::engine::run::{Attempt, Decision, Effect, Rules, State};
use crate::journal::event::{Event, Place, Rejection, WaitCause};

/// The first wait after an error; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_mins(5);
/// A limit that comes back right after its reset, this often in a row, does not end by waiting.
const MOST_USAGE_WAITS: u32 = 30;
/// Where a usage limit does not say when it ends.
const UNKNOWN_RESET: SignedDuration = SignedDuration::from_mins(15);
/// Where it says a time that has passed: it is asked again, but not all the time.
const PAST_RESET: SignedDuration = SignedDuration::from_secs(10);
/// The service counts by another clock than ours.
const AFTER_RESET: SignedDuration = SignedDuration::from_secs(1);

/// A usage limit was reached at `at`, until `resets`.
pub(super) fn usage_limit(
    state: &State,
    rules: &Rules,
    attempt: &Attempt,
    events: Vec<Event>,
    (at, resets): (Timestamp, Option<Timestamp>),
    reason: String,
) -> Decision {
    if !rules.limits.wait_for_usage || state.usage_waits >= MOST_USAGE_WAITS {
        return reject(events, &attempt.place, Rejection::UsageLimit, reason);
    }
    let until = match resets {
        Some(resets) if resets > at => later(resets, AFTER_RESET),
        Some(_) => later(at, PAST_RESET),
        None => later(at, UNKNOWN_RESET),
    };
    wait(state, rules, attempt, events, (WaitCause::UsageLimit, until), reason)
}

/// What is used up of the allowance, where that is too much for another turn.
pub(super) fn near_limit(state: &State, rules: &Rules, events: &[Event]) -> Option<AllowanceUse> {
    let told = events.iter().rev().find_map(|event| match event {
        Event::TurnEnded { allowance, .. } => allowance.as_ref(),
        _ => None,
    });
    let known = told.or(state.allowance.as_ref());
    known.filter(|allowance| rules.pause_at > 0 && allowance.percent >= rules.pause_at).cloned()
}

/// A limit is near: what comes next is waited for as if it were reached.
pub(super) fn pause(
    state: &State,
    rules: &Rules,
    attempt: &Attempt,
    mut events: Vec<Event>,
    place: Place,
    allowance: &AllowanceUse,
) -> Decision {
    let AllowanceUse { window, percent, resets_at } = allowance;
    let window = window.replace('_', "-");
    let reason = format!("{percent}% of the {window} allowance is used (agent.claude.pause_at = {})", rules.pause_at);
    if !rules.limits.wait_for_usage {
        let reason = format!("{reason}; it is reset at {resets_at:.0}");
        return reject(events, &attempt.place, Rejection::UsageLimit, reason);
    }
    if let Some(reason) = over_budget(state, rules, spent(state, &events)) {
        return reject(events, &attempt.place, Rejection::Stopped, reason);
    }
    let until = later(*resets_at, AFTER_RESET);
    events.push(Event::WaitStarted { place, why: WaitCause::UsageLimit, reason, until, ahead: true });
    then(events, Effect::Wait)
}

/// The service could not do its work at `at`.
pub(super) fn service_error(
    state: &State,
    rules: &Rules,
    attempt: &Attempt,
    events: Vec<Event>,
    at: Timestamp,
    reason: String,
) -> Decision {
    if state.service_errors >= rules.limits.api_errors {
        return reject(events, &attempt.place, Rejection::ServiceError, reason);
    }
    let until = at.saturating_add(backoff(state)).unwrap_or(at);
    wait(state, rules, attempt, events, (WaitCause::ServiceError, until), reason)
}

fn wait(
    state: &State,
    rules: &Rules,
    attempt: &Attempt,
    mut events: Vec<Event>,
    (why, until): (WaitCause, Timestamp),
    reason: String,
) -> Decision {
    if let Some(signal) = state.stop {
        return reject(events, &attempt.place, Rejection::Stopped, stopped_by(signal));
    }
    if let Some(reason) = over_budget(state, rules, spent(state, &events)) {
        return reject(events, &attempt.place, Rejection::Stopped, reason);
    }
    events.push(Event::WaitStarted { place: attempt.place.clone(), why, reason, until, ahead: false });
    then(events, Effect::Wait)
}

fn later(from: Timestamp, by: SignedDuration) -> Timestamp {
    from.saturating_add(by).unwrap_or(from)
}

/// Twice as long each time, and not the same for everybody: runs that failed together should not come back together.
fn backoff(state: &State) -> SignedDuration {
    let doubled = FIRST.saturating_mul(1 << state.service_errors.min(16)).min(LONGEST);
    let seed = crate::base::id::digest(format!("{:?} {}", state.run, state.active.ms()).as_bytes());
    let part = u32::from_str_radix(&seed[..4], 16).unwrap_or(0);
    let whole = doubled.mul_f64(0.75 + 0.5 * f64::from(part) / 65_536.0);
    SignedDuration::try_from(whole).unwrap_or(SignedDuration::from_secs(60))
}

/// A moment of a wait went by: the turn is made when it is over.
pub(super) fn waited(state: &State, rules: &Rules, now: Duration, (attempt, turn): (&Attempt, &Place), over: bool) -> Decision {
    let ended = || vec![Event::WaitEnded { place: turn.clone() }];
    let give_up = |reason: String| reject(ended(), &attempt.place, Rejection::Stopped, reason);
    if let Some(signal) = state.stop {
        return give_up(stopped_by(signal));
    }
    if state.progress.failed.contains_key(&attempt.place.story) {
        return give_up("skipped by the user".to_owned());
    }
    if out_of_time(rules, now) {
        return give_up(format!("the run may take {}", rules.limits.total_time));
    }
    if !over {
        return then(Vec::new(), Effect::Wait);
    }
    if let Some(reason) = over_budget(state, rules, state.cost_usd) {
        return give_up(reason);
    }
    let mut events = ended();
    events.push(Event::TurnStarted { place: turn.clone() });
    then(events, Effect::Turn)
}
