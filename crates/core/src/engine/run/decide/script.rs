//! Decisions about when lifecycle scripts run and what follows them.

use std::time::Duration;

use super::{next_story, stop, stopped, stopped_by, then};
use crate::base::finish::Finish;
use crate::engine::run::{Attempt, Decision, Effect, Rules, ScriptRun, State};
use crate::journal::event::Event;
use crate::lifecycle::{Script, ScriptEffect, meaning};

/// A script that always skips would loop forever. After this many skips in a row the run ends.
const MOST_SKIPS: u32 = 20;

/// Runs the script `post_iteration` first. After a signal nothing new is started.
pub(super) fn end_iteration(state: &State, rules: &Rules, events: Vec<Event>) -> Decision {
    if state.stop.is_some() {
        return next_story(state, rules, events);
    }
    then(events, Effect::Script(Script::PostIteration))
}

/// The meaning of a script's exit, and the event that records it. No event if no script ran.
fn script_ran(rules: &Rules, run: Option<&ScriptRun>) -> (Vec<Event>, ScriptEffect) {
    let Some(run) = run else { return (Vec::new(), ScriptEffect::GoOn) };
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
    format!("the script {} ended the run", script.name())
}

pub(super) fn started(state: &State, rules: &Rules, run: Option<&ScriptRun>) -> Decision {
    let (events, meaning) = script_ran(rules, run);
    match (meaning, state.stop) {
        (_, Some(signal)) => stop(events, Finish::Manual, stopped_by(signal)),
        (ScriptEffect::Abort, None) => stop(events, Finish::HookAbort, aborted_by(Script::Started)),
        (ScriptEffect::GoOn | ScriptEffect::Warning | ScriptEffect::Error | ScriptEffect::Skip, None) => {
            then(events, Effect::Prepare)
        }
    }
}

pub(super) fn beginning(state: &State, rules: &Rules, attempt: &Attempt, run: Option<&ScriptRun>) -> Decision {
    let (mut events, meaning) = script_ran(rules, run);
    if let Some(signal) = state.stop {
        return stop(events, Finish::Manual, stopped_by(signal));
    }
    match meaning {
        ScriptEffect::GoOn | ScriptEffect::Warning | ScriptEffect::Error => then(events, Effect::Reset),
        ScriptEffect::Abort => stop(events, Finish::HookAbort, aborted_by(Script::NextIteration)),
        ScriptEffect::Skip => {
            events.push(Event::IterationSkipped { place: attempt.place.clone() });
            if state.skips + 1 >= MOST_SKIPS {
                return stop(events, Finish::Stalled, format!("{MOST_SKIPS} iterations in a row were skipped"));
            }
            then(events, Effect::Select)
        }
    }
}

pub(super) fn iteration_ended(state: &State, rules: &Rules, run: Option<&ScriptRun>) -> Decision {
    let (events, meaning) = script_ran(rules, run);
    match meaning {
        // If the run cannot continue anyway, that reason takes precedence.
        ScriptEffect::Abort if state.fatal.is_none() => stop(events, Finish::HookAbort, aborted_by(Script::PostIteration)),
        ScriptEffect::GoOn | ScriptEffect::Warning | ScriptEffect::Error | ScriptEffect::Skip | ScriptEffect::Abort => {
            next_story(state, rules, events)
        }
    }
}

pub(super) fn finished(
    state: &State,
    rules: &Rules,
    now: Duration,
    finish: Finish,
    landed: Option<&Event>,
    script: Option<&ScriptRun>,
) -> Decision {
    let mut events: Vec<Event> = landed.cloned().into_iter().collect();
    events.extend(script_ran(rules, script).0);
    let exit_code = match (&state.fatal, state.stop, finish) {
        (Some(fatal), _, _) => fatal.exit_code,
        (None, Some(signal), Finish::Manual) => signal.exit_code(),
        (None, _, finish) => finish.exit_code(),
    };
    stopped(now, events, finish, exit_code)
}
