//! Requests and stop signals, which can arrive at any time. During a step they are in the journal within a moment, so every surface shows
//! them, and take effect when the step has ended. Only `skip --now` ends the step itself.

use std::time::Duration;

use verdone_core::base::finish::StopSignal;
use verdone_core::engine::run::{Effect, Input, Rules, State, decide};
use verdone_core::journal::control::Request;
use verdone_core::journal::event::Recorded;
use verdone_core::journal::update::{Reporter, Update};

use crate::process::signal::Signals;
use crate::store::inbox::Inbox;
use crate::store::{Journal, JournalError, When};

/// What the watch must know about the run. Requests do not change it before the step has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched<'a> {
    pub(super) state: &'a State,
    pub(super) rules: &'a Rules,
    /// The step that runs; `None` between two steps.
    pub(super) effect: Option<&'a Effect>,
}

impl Watched<'_> {
    /// Whether the request ends the current step.
    fn is_interrupted_by(&self, request: &Request) -> bool {
        let Request::Skip { story, now: true } = request else { return false };
        let attempt = self.state.attempt.as_ref().filter(|_| self.effect.is_some_and(can_be_interrupted));
        attempt.is_some_and(|attempt| attempt.place.story == *story)
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

/// Forwards what a step reports, and reads requests at every tick.
pub(super) struct RequestWatch<'a> {
    reporter: &'a mut dyn Reporter,
    journal: &'a mut Journal,
    inbox: &'a mut Inbox,
    signals: Signals,
    watched: Watched<'a>,
    is_stopping: bool,
    recorded: Vec<Recorded>,
    failed: Option<JournalError>,
}

impl<'a> RequestWatch<'a> {
    pub(super) fn new(
        reporter: &'a mut dyn Reporter,
        journal: &'a mut Journal,
        inbox: &'a mut Inbox,
        signals: Signals,
        watched: Watched<'a>,
    ) -> Self {
        let is_stopping = watched.state.stop.is_some();
        Self { reporter, journal, inbox, signals, watched, is_stopping, recorded: Vec::new(), failed: None }
    }

    /// What was recorded, in order. It is reported, but not applied to the state yet.
    pub(super) fn finish(self) -> Result<Vec<Recorded>, JournalError> {
        self.failed.map_or(Ok(self.recorded), Err)
    }

    /// Records the requests and the signal that have arrived.
    pub(super) fn record_arrived(&mut self, when: When) {
        if self.failed.is_none()
            && let Err(error) = self.read_requests(when).and_then(|()| self.read_signal(when))
        {
            // A run that cannot record anything ends; nothing is gained by waiting for the turn.
            self.failed = Some(error);
            self.signals.interrupt();
        }
    }

    fn read_requests(&mut self, when: When) -> Result<(), JournalError> {
        for posted in self.inbox.posted() {
            match posted.request.clone() {
                Some(Request::Stop) => self.signals.raise_first(StopSignal::Sigint),
                Some(request) => self.ask(request, when)?,
                None => {}
            }
            self.inbox.remove(posted);
        }
        Ok(())
    }

    fn ask(&mut self, request: Request, when: When) -> Result<(), JournalError> {
        let is_interrupted = self.watched.is_interrupted_by(&request);
        self.record(&Input::Asked(request), when)?;
        if is_interrupted {
            self.signals.interrupt();
        }
        Ok(())
    }

    fn read_signal(&mut self, when: When) -> Result<(), JournalError> {
        match self.signals.stops_run() {
            Some(signal) if !self.is_stopping => {
                self.is_stopping = true;
                self.record(&Input::Signal(signal), when)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn record(&mut self, input: &Input, when: When) -> Result<(), JournalError> {
        let active = Duration::from_millis(when.active_ms.unwrap_or(0));
        let decision = decide(self.watched.state, self.watched.rules, active, input);
        for recorded in self.journal.append(decision.events, when)? {
            self.reporter.report(Update::Event(&recorded));
            self.recorded.push(recorded);
        }
        Ok(())
    }
}

impl Reporter for RequestWatch<'_> {
    fn report(&mut self, update: Update<'_>) {
        self.reporter.report(update);
        if let Update::Tick { now, active_ms } = update {
            self.record_arrived(When { at: now, active_ms });
        }
    }
}
