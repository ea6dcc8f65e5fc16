//! Waiting for the agent's service: for a usage limit until it resets, after an error for a while. Neither uses up a turn or an attempt.
//! After errors, the run keeps trying for as long as it may last: an outage can take hours.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::attempt::{called_off, reject, spent};
use super::{out_of_time, over_budget, stopped_by, then};
use crate::agent::AllowanceUse;
use crate::engine::run::{Attempt, Decision, Effect, Rules, State};
use crate::journal::event::{Event, Place, Rejection, WaitCause};

/// The first wait after an error. Each further one is twice as long.
const FIRST: Duration = Duration::from_secs(2);
/// With jitter, no wait takes more than 4 minutes.
const LONGEST: Duration = Duration::from_secs(190);
/// If a limit returns right after its reset this often in a row, waiting does not help.
const MOST_USAGE_WAITS: u32 = 30;
/// How long to wait if a usage limit does not say when it resets.
const UNKNOWN_RESET: SignedDuration = SignedDuration::from_mins(15);
/// How long to wait if the stated reset time has passed, so that the service is not asked continuously.
const PAST_RESET: SignedDuration = SignedDuration::from_secs(10);
/// Allowance for the difference between the service's clock and ours.
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

/// The use of the allowance, if it is too high for another turn.
pub(super) fn near_limit(state: &State, rules: &Rules, events: &[Event]) -> Option<AllowanceUse> {
    let told = events.iter().rev().find_map(|event| match event {
        Event::TurnEnded { allowance, .. } => allowance.as_ref(),
        _ => None,
    });
    let known = told.or(state.allowance.as_ref());
    known.filter(|allowance| rules.pause_at > 0 && allowance.percent >= rules.pause_at).cloned()
}

/// A limit is near: wait as if it had been reached.
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
        let reason = format!("{reason}; it resets at {resets_at:.0}");
        return reject(events, &attempt.place, Rejection::UsageLimit, reason);
    }
    if let Some(reason) = over_budget(state, rules, spent(state, &events)) {
        return reject(events, &attempt.place, Rejection::Stopped, reason);
    }
    let until = later(*resets_at, AFTER_RESET);
    events.push(Event::WaitStarted { place, why: WaitCause::UsageLimit, reason, until, ahead: true });
    then(events, Effect::Wait)
}

/// The service failed at `at`.
pub(super) fn service_error(
    state: &State,
    rules: &Rules,
    attempt: &Attempt,
    events: Vec<Event>,
    at: Timestamp,
    reason: String,
) -> Decision {
    if rules.limits.api_errors > 0 && state.service_errors >= rules.limits.api_errors {
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

/// Doubles each time, with jitter: runs that failed together should not retry together.
fn backoff(state: &State) -> SignedDuration {
    let doubled = FIRST.saturating_mul(1 << state.service_errors.min(16)).min(LONGEST);
    let seed = crate::base::id::digest(format!("{:?} {}", state.run, state.active.ms()).as_bytes());
    let part = u32::from_str_radix(&seed[..4], 16).unwrap_or(0);
    let whole = doubled.mul_f64(0.75 + 0.5 * f64::from(part) / 65_536.0);
    SignedDuration::try_from(whole).unwrap_or(SignedDuration::from_secs(60))
}

/// Some time of a wait passed. The turn starts when the wait is over.
pub(super) fn waited(state: &State, rules: &Rules, now: Duration, (attempt, turn): (&Attempt, &Place), over: bool) -> Decision {
    let ended = || vec![Event::WaitEnded { place: turn.clone() }];
    let give_up = |reason: String| reject(ended(), &attempt.place, Rejection::Stopped, reason);
    if let Some(reason) = called_off(state, attempt) {
        return give_up(reason);
    }
    if out_of_time(rules, now) {
        return give_up(format!("the time limit of {} was reached", rules.limits.total_time));
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
