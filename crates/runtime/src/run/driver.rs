//! The loop: input, decision, journal, state, effect, repeat. Every effect is one line in `perform`.

use std::time::Duration;

use jiff::Timestamp;
use verdone_core::engine::run::{Effect, Input, Phase, Rules, State, apply, decide};
use verdone_core::journal::event::{Event, Recorded};
use verdone_core::journal::update::{Reporter, Update};

use crate::base::fault::{self, Point};
use crate::run::context::RunContext;
use crate::run::requests::{RequestWatch, Watched};
use crate::run::step::{self, StepError};
use crate::store::inbox::Inbox;
use crate::store::sessions::FaultWatch;
use crate::store::{Journal, JournalError, When};

/// How often a paused run checks whether it may continue.
const PAUSED_LOOK: Duration = Duration::from_millis(100);

/// One run from its first event to its last.
pub struct Driver<'a> {
    context: RunContext,
    rules: Rules,
    journal: Journal,
    state: State,
    inbox: Inbox,
    faults: FaultWatch,
    reporter: &'a mut dyn Reporter,
}

impl std::fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("phase", &self.state.phase).finish_non_exhaustive()
    }
}

impl<'a> Driver<'a> {
    pub fn new(context: RunContext, rules: Rules, journal: Journal, reporter: &'a mut dyn Reporter) -> Self {
        let (inbox, faults) = (Inbox::new(&context.setup.run_dir), FaultWatch::new(&context.setup.run_dir));
        Self { context, rules, journal, state: State::default(), inbox, faults, reporter }
    }

    /// Runs until the run has stopped. Returns the exit code.
    pub fn run(mut self, start: Event) -> Result<u8, JournalError> {
        let mut input = Input::Start(Box::new(start));
        while let Some(effect) = self.advance(&input)? {
            self.hold(&effect)?;
            input = if self.state.calls_off(&effect) { Input::CalledOff } else { self.perform(&effect)? };
            self.process_requests()?;
        }
        match self.state.phase {
            Phase::Stopped { exit_code, .. } => Ok(exit_code),
            _ => Ok(1),
        }
    }

    /// Handles signals, requests and hook failures as separate inputs, before the result of the effect during which they arrived.
    fn process_requests(&mut self) -> Result<(), JournalError> {
        let when = self.when();
        let signals = self.context.setup.signals.clone();
        let watched = Watched { state: &self.state, rules: &self.rules, effect: None };
        let mut watch = RequestWatch::new(&mut *self.reporter, &mut self.journal, &mut self.inbox, signals, watched);
        watch.record_arrived(when);
        let recorded = watch.finish()?;
        self.apply_all(&recorded);
        if let Some(found) = self.faults.new_failures(&self.context.setup.redactor) {
            self.advance(&Input::GuardFailed(found))?;
        }
        Ok(())
    }

    /// Waits while the run is paused.
    fn hold(&mut self, effect: &Effect) -> Result<(), JournalError> {
        while self.state.paused && self.state.stop.is_none() && !effect.goes_on_in_a_pause() {
            self.context.setup.clock.pause();
            std::thread::sleep(PAUSED_LOOK);
            self.reporter.report(self.context.setup.clock.tick());
            self.process_requests()?;
        }
        self.context.setup.clock.go_on();
        Ok(())
    }

    /// Decides on one input. The events are on disk before anything else happens.
    fn advance(&mut self, input: &Input) -> Result<Option<Effect>, JournalError> {
        let active = self.context.setup.clock.elapsed();
        let (when, decision) = (self.when(), decide(&self.state, &self.rules, active, input));
        for recorded in self.journal.append(decision.events, when)? {
            step::learn(&self.context, &self.state, &recorded.event, self.reporter);
            apply(&mut self.state, &recorded);
            self.reporter.report(Update::Event(&recorded));
        }
        Ok(decision.effect)
    }

    fn when(&self) -> When {
        When { at: Timestamp::now(), active_ms: Some(self.context.setup.clock.elapsed().as_millis() as u64) }
    }

    /// Performs an effect. Requests and signals that arrive meanwhile are recorded at once and applied afterwards.
    fn perform(&mut self, effect: &Effect) -> Result<Input, JournalError> {
        let signals = self.context.setup.signals.clone();
        let watched = Watched { state: &self.state, rules: &self.rules, effect: Some(effect) };
        let mut watch = RequestWatch::new(&mut *self.reporter, &mut self.journal, &mut self.inbox, signals.clone(), watched);
        let done = perform(&mut self.context, &self.state, effect, &mut watch);
        let recorded = watch.finish();
        signals.end_interruption();
        self.apply_all(&recorded?);
        Ok(done)
    }

    fn apply_all(&mut self, recorded: &[Recorded]) {
        for recorded in recorded {
            apply(&mut self.state, recorded);
        }
    }
}

fn perform(context: &mut RunContext, state: &State, effect: &Effect, reporter: &mut dyn Reporter) -> Input {
    fault::trace(effect);
    fault::pass(Point::StepBegin);
    let done: Result<Input, StepError> = match effect {
        Effect::Script(script) => step::script(context, state, *script, reporter),
        Effect::Prepare => step::prepare(context, reporter),
        Effect::Select => step::select(context, state, reporter),
        Effect::Reset => step::reset(context, state, reporter),
        Effect::RedCheck => step::red_check(context, state, reporter),
        Effect::Turn => step::turn(context, state, reporter),
        Effect::Wait => Ok(step::wait(context, state, reporter)),
        Effect::Verify => step::verify(context, state, reporter),
        Effect::Commit => step::commit(context, state, reporter),
        Effect::Keep => step::keep(context, state),
        Effect::Land => step::land(context, state),
        Effect::Regression => step::regression(context, state, reporter),
        Effect::Reopen => step::reopen(context, state),
        Effect::Finish => step::finish(context, state, reporter),
    };
    fault::pass(Point::StepDone);
    step::clear_locks(context, reporter);
    step::show_notes(context, reporter);
    done.unwrap_or_else(|error| Input::Failed { message: error.to_string() })
}
