//! When an outage of the agent's service deserves a notification: once, and only if it lasts.

use jiff::{SignedDuration, Timestamp};

use crate::journal::event::{Event, WaitCause};

/// Services are overloaded for some seconds every day. Nobody has to know that.
const LASTING: SignedDuration = SignedDuration::from_mins(2);

/// The current outage, if any.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// The end of the first wait. Waits are the only events that say a time.
    since: Option<Timestamp>,
    is_told: bool,
}

impl Outage {
    /// Returns whether this event shows for the first time that the outage lasts.
    pub(super) fn observe(&mut self, event: &Event) -> bool {
        match event {
            Event::TurnEnded { outcome, .. } if outcome.shows_working_service() => *self = Self::default(),
            Event::WaitStarted { why: WaitCause::ServiceError, until, .. } => {
                let since = *self.since.get_or_insert(*until);
                if !self.is_told && until.duration_since(since) >= LASTING {
                    self.is_told = true;
                    return true;
                }
            }
            _ => {}
        }
        false
    }
}
