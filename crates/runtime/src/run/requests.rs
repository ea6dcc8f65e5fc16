//! Requests and stop signals that arrive while a step runs: they are in the journal within a moment, so every surface shows them, and
//! take effect when the step has ended. Only `skip --now` ends the step itself.

use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::StoryId;
use verdone_core::engine::run::{Effect, State};
use verdone_core::journal::control::Request;
use verdone_core::journal::event::{Event, Recorded};
use verdone_core::journal::update::{Reporter, Update};

use crate::process::signal::Signals;
use crate::store::inbox::Inbox;
use crate::store::{Journal, JournalError, When};

/// What the step at hand means for requests.
#[derive(Debug)]
pub(super) struct Watched {
    /// The story whose attempt `skip --now` would end.
    interruptible: Option<StoryId>,
    /// The run is already stopping.
    is_stopping: bool,
}

impl Watched {
    pub(super) fn of(state: &State, effect: &Effect) -> Self {
        let attempt = state.attempt.as_ref().filter(|_| can_be_interrupted(effect));
        Self { interruptible: attempt.map(|attempt| attempt.place.story.clone()), is_stopping: state.stop.is_some() }
    }
}

/// Whether the attempt can end in the middle of it.
fn can_be_interrupted(effect: &Effect) -> bool {
    match effect {
        Effect::RedCheck | Effect::Turn | Effect::Verify => true,
        Effect::Script(_)
        | Effect::Prepare
        | Effect::Select
        | Effect::Reset
        | Effect::Wait
        | Effect::Commit
        | Effect::Land
        | Effect::Keep
        | Effect::Regression
        | Effect::Reopen
        | Effect::Finish => false,
    }
}

/// Forwards what a step reports, and looks for requests at every tick.
pub(super) struct RequestWatch<'a> {
    reporter: &'a mut dyn Reporter,
    journal: &'a mut Journal,
    inbox: &'a mut Inbox,
    signals: Signals,
    watched: Watched,
    recorded: Vec<Recorded>,
    failed: Option<JournalError>,
}

impl<'a> RequestWatch<'a> {
    pub(super) fn new(
        reporter: &'a mut dyn Reporter,
        journal: &'a mut Journal,
        inbox: &'a mut Inbox,
        signals: Signals,
        watched: Watched,
    ) -> Self {
        Self { reporter, journal, inbox, signals, watched, recorded: Vec::new(), failed: None }
    }

    /// What was recorded during the step, in order.
    pub(super) fn finish(self) -> Result<Vec<Recorded>, JournalError> {
        self.failed.map_or(Ok(self.recorded), Err)
    }

    fn look(&mut self, when: When) -> Result<(), JournalError> {
        for posted in self.inbox.posted() {
            match posted.request.clone() {
                Some(Request::Stop) => self.signals.raise_first(StopSignal::Sigint),
                Some(request) => {
                    self.record(Event::Asked { request: request.clone() }, when)?;
                    self.interrupt(&request);
                }
                None => {}
            }
            self.inbox.remove(posted);
        }
        match self.signals.stops_run() {
            Some(signal) if !self.watched.is_stopping => {
                self.watched.is_stopping = true;
                self.record(Event::StopRequested { signal }, when)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn record(&mut self, event: Event, when: When) -> Result<(), JournalError> {
        for recorded in self.journal.append(vec![event], when)? {
            self.reporter.report(Update::Event(&recorded));
            self.recorded.push(recorded);
        }
        Ok(())
    }

    fn interrupt(&self, request: &Request) {
        if let Request::Skip { story, now: true } = request
            && self.watched.interruptible.as_ref() == Some(story)
        {
            self.signals.interrupt();
        }
    }
}

impl Reporter for RequestWatch<'_> {
    fn report(&mut self, update: Update<'_>) {
        self.reporter.report(update);
        if let Update::Tick { now, active_ms } = update
            && self.failed.is_none()
            && let Err(error) = self.look(When { at: now, active_ms })
        {
            // A run that cannot record anything ends; nothing is gained by waiting for the turn.
            self.failed = Some(error);
            self.signals.interrupt();
        }
    }
}
