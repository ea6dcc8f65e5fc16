//! Decisions about the user's own changes: set aside before anything else happens, and back as the very last thing, however the
//! run ended.

use std::time::Duration;

use super::{stop, stopped_by, then};
use crate::event::Event;
use crate::finish::Finish;
use crate::lifecycle::Script;
use crate::machine::{Aside, Decision, Effect, PutBack, State};

/// The event comes before the work tree is touched: from here on a run that dies owes the user the changes.
pub(super) fn changes_kept(state: &State, aside: Option<&Aside>) -> Decision {
    let Some(Aside { checkpoint, clean, stash, files }) = aside.filter(|_| state.stop.is_none()) else {
        return start_work(state);
    };
    let (checkpoint, clean) = (checkpoint.clone(), clean.clone());
    let event = Event::ChangesSetAside { checkpoint, clean, stash: stash.clone(), files: files.clone() };
    then(vec![event], Effect::SetAside)
}

/// The work tree is as HEAD has it. What has to happen on a clean tree before the first story belongs here.
pub(super) fn start_work(state: &State) -> Decision {
    match state.stop {
        Some(signal) => stop(Vec::new(), Finish::Manual, stopped_by(signal)),
        None => then(Vec::new(), Effect::Script(Script::Started)),
    }
}

/// The run is in order; the user's changes are what is left.
pub(super) fn end(state: &State, now: Duration, mut events: Vec<Event>, finish: Finish, exit_code: u8) -> Decision {
    if state.aside.is_some() {
        events.push(Event::PutBackStarted { finish, exit_code });
        return then(events, Effect::PutBack);
    }
    stopped(now, events, finish, exit_code)
}

pub(super) fn put_back(state: &State, now: Duration, finish: Finish, exit_code: u8, outcome: &PutBack) -> Decision {
    let event = match (outcome, &state.aside) {
        (PutBack::Done { files }, _) => Some(Event::ChangesPutBack { files: *files }),
        (PutBack::Refused { reason, overlap }, Some(aside)) => {
            Some(Event::ChangesKept { reason: reason.clone(), overlap: overlap.clone(), command: aside.command() })
        }
        (PutBack::Refused { .. }, None) => None,
    };
    stopped(now, event.into_iter().collect(), finish, exit_code)
}

fn stopped(now: Duration, mut events: Vec<Event>, finish: Finish, exit_code: u8) -> Decision {
    events.push(Event::RunStopped { finish, exit_code, duration_ms: now.as_millis() as u64 });
    Decision { events, effect: None }
}
