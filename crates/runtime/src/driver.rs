//! The loop: input, decision, journal, state, effect, and again. Everything it knows how to do is one line in `perform`.

use jiff::Timestamp;
use verdone_core::event::{Event, Recorded};
use verdone_core::machine::{Effect, Input, Phase, Rules, State, apply, decide};
use verdone_core::update::{Reporter, Update};

use crate::site::Site;
use crate::step::{self, StepError};
use crate::store::{Journal, JournalError};

/// One run from its first event to its last.
pub struct Driver<'a> {
    site: Site,
    rules: Rules,
    journal: Journal,
    state: State,
    reporter: &'a mut dyn Reporter,
}

impl std::fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("phase", &self.state.phase).finish_non_exhaustive()
    }
}

impl<'a> Driver<'a> {
    pub fn new(site: Site, rules: Rules, journal: Journal, reporter: &'a mut dyn Reporter) -> Self {
        Self { site, rules, journal, state: State::default(), reporter }
    }

    /// Runs until the run has stopped; answers with the exit code.
    pub fn run(mut self, start: Event) -> Result<u8, JournalError> {
        let mut input = Input::Start(Box::new(start));
        loop {
            self.hear_signals()?;
            match self.take(&input)? {
                Some(effect) => input = self.perform(&effect),
                None => break,
            }
        }
        match self.state.phase {
            Phase::Stopped { exit_code, .. } => Ok(exit_code),
            _ => Ok(1),
        }
    }

    /// A signal is an input of its own, before the answer of the effect that it cut short.
    fn hear_signals(&mut self) -> Result<(), JournalError> {
        match self.site.signals.requested() {
            Some(signal) if self.state.stop.is_none() => self.take(&Input::Signal(signal)).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Decides about one input. The events are on disk before anything else happens.
    fn take(&mut self, input: &Input) -> Result<Option<Effect>, JournalError> {
        let now = Timestamp::now();
        let decision = decide(&self.state, &self.rules, now, input);
        let before = self.journal.times_put_back();
        for recorded in self.journal.append(decision.events, now)? {
            self.fold(&recorded);
        }
        if self.journal.times_put_back() > before {
            self.reporter
                .report(Update::Notice { text: "somebody wrote into the journal; it was put back, what was found is kept" });
        }
        Ok(decision.effect)
    }

    fn fold(&mut self, recorded: &Recorded) {
        apply(&mut self.state, recorded);
        self.reporter.report(Update::Event(recorded));
    }

    fn perform(&mut self, effect: &Effect) -> Input {
        let (site, state) = (&mut self.site, &self.state);
        let reporter = &mut *self.reporter;
        let done: Result<Input, StepError> = match effect {
            Effect::Prepare => step::prepare(site, reporter),
            Effect::Select => step::select(site, state, reporter),
            Effect::Checkpoint => step::checkpoint(site, state),
            Effect::RedCheck => step::red_check(site, state, reporter),
            Effect::Turn => step::turn(site, state, reporter),
            Effect::Verify => step::verify(site, state, reporter),
            Effect::Commit => step::commit(site, state, reporter),
            Effect::RollBack => step::roll_back(site, state, reporter),
            Effect::Finish => step::finish(site, state),
        };
        done.unwrap_or_else(|error| Input::Failed { message: error.to_string() })
    }
}
