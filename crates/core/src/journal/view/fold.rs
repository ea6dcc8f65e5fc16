//! How each event changes the view.

mod attempt;
mod lookup;
mod result;

use jiff::Timestamp;

use super::{Baseline, Current, GuardView, LandingView, Phase, RunView, StoryView, WaitView};
use crate::base::id::{Oid, StoryId};
use crate::check::CheckRun;
use crate::journal::control::Request;
use crate::journal::event::{Event, Recorded, WaitCause};
use crate::verify::StoryResult;

impl RunView {
    pub fn apply(&mut self, recorded: &Recorded) {
        let at = recorded.at;
        self.active.advance(recorded, self.standing());
        self.seq = recorded.seq;
        self.last = Some(at);
        match &recorded.event {
            Event::RunStarted { .. } => self.begin(at, &recorded.event),
            Event::BaselineChecked { green, runs } => {
                self.baseline = Some(Baseline { green: *green, runs: runs.clone() });
                self.note_flaky(runs);
                self.enter(Phase::Selecting, at);
            }
            Event::StorySelected { .. } => self.select(at, &recorded.event),
            Event::AttemptStarted { place, base, .. } => {
                self.attempt(place, at).base.clone_from(base);
                self.enter(Phase::RedChecking, at);
            }
            Event::RedChecked { place, red, runs } => {
                let attempt = self.attempt(place, at);
                attempt.red = Some(*red);
                attempt.red_runs.clone_from(runs);
                self.enter(Phase::Prompting, at);
            }
            Event::TurnStarted { place } => {
                self.give_notes(place);
                self.turn(place, at);
                self.enter(Phase::Working, at);
            }
            Event::TurnEnded { outcome, .. } => {
                self.settle_notes(outcome);
                if outcome.shows_working_service() {
                    self.service_errors = 0;
                }
                self.end_turn(at, &recorded.event);
            }
            Event::WaitStarted { why, reason, until, .. } => {
                let errors = self.count_error(*why);
                self.waiting = Some(WaitView { why: *why, reason: reason.clone(), until: *until, errors });
                self.enter(Phase::Waiting, at);
            }
            Event::WaitEnded { .. } => self.waiting = None,
            Event::Verified(verified) => self.verify(at, verified),
            Event::CommitStarted { place, gates, previous, .. } => {
                let attempt = self.attempt(place, at);
                attempt.gates.clone_from(gates);
                attempt.previous.clone_from(previous);
                self.enter(Phase::Committing, at);
            }
            Event::Committed { .. } => self.commit(at, &recorded.event),
            Event::Marked { .. } => self.mark(at, &recorded.event),
            Event::CommitRefused { place, message, .. } => {
                self.attempt(place, at).refused = Some(message.clone());
                self.enter(Phase::Prompting, at);
            }
            Event::AttemptRejected { place, rejection, reason } => {
                self.return_notes();
                let attempt = self.attempt(place, at);
                attempt.rejection = Some(rejection.clone());
                attempt.reason = Some(reason.clone());
                self.enter(Phase::Keeping, at);
            }
            Event::AttemptDropped { place, .. } => self.end_attempt(at, place, None, 0),
            Event::AttemptKept { place, kept, files } => {
                self.counts.kept_attempts += 1;
                self.end_attempt(at, place, Some(kept), *files);
            }
            Event::LandingStarted { .. } if self.ended.is_none() => self.enter(Phase::Landing, at),
            Event::Landed { branch, to, left, .. } => {
                self.landing = Some(LandingView { landed: Some(to.clone()), branch: Some(branch.clone()), refused: None });
                self.unlanded = self.unlanded.min(*left);
                self.end_landing(at);
            }
            Event::LandingRefused { reason } => {
                let landing = self.landing.get_or_insert_default();
                landing.refused = Some(reason.clone());
                self.end_landing(at);
            }
            Event::StoryFailed { story, reason } => {
                let active_ms = self.active.ms();
                let failed = self.story_at(story);
                failed.reason = Some(reason.clone());
                failed.attempts.iter_mut().for_each(|attempt| attempt.end(at, active_ms));
                self.current = self.current.take().filter(|current| current.story != *story);
                self.decide(story, Some(StoryResult::FAILED));
            }
            Event::RegressionStarted { .. } => self.enter(Phase::Regressing, at),
            Event::ReviewNeeded { place, work, proof, reasons, .. } => self.review(place, work, *proof, reasons),
            Event::Accepted { .. } => self.accept_story(&recorded.event),
            Event::Refused { story, by } => self.reject_story(story, by),
            Event::RegressionChecked { not_checked, .. } => {
                self.not_checked_again.clone_from(not_checked);
                self.enter(Phase::Selecting, at);
            }
            Event::Regressed { story, runs, .. } => self.regress(story, runs),
            Event::Reopened { commit, .. } => {
                self.tip = commit.clone().or_else(|| self.tip.take());
                self.enter(Phase::Selecting, at);
            }
            Event::StopRequested { signal } => {
                self.stop_signal = Some(*signal);
                self.ask(&Request::Stop);
            }
            Event::Asked { request } => self.ask(request),
            Event::GuardFailed { .. } => self.guard_failed(at, &recorded.event),
            Event::ScriptRan { .. } | Event::IterationSkipped { .. } | Event::LandingStarted { .. } | Event::Retired => {}
            Event::RunStopping { finish, reason } => {
                self.finish = Some(*finish);
                self.reason = Some(reason.clone());
                self.enter(Phase::Stopping, at);
            }
            Event::RunStopped { finish, exit_code, duration_ms } => {
                self.finish = Some(*finish);
                self.exit_code = Some(*exit_code);
                self.duration_ms = Some(*duration_ms);
                self.ended = Some(at);
                self.waiting = None;
                self.current = None;
                self.keep_unused_notes();
                self.enter(Phase::Stopped, at);
            }
            Event::Reapplied { story, was, commit, evidence, .. } => self.reapply(story, was, commit, evidence),
            Event::Undone { what, story, tip } => self.undo(what, story.as_ref(), tip.as_ref()),
        }
    }

    fn enter(&mut self, phase: Phase, at: Timestamp) {
        self.phase = phase;
        self.settle_requests();
        self.since = Some(at);
        self.since_ms = self.active.ms();
    }

    /// A resumed run continues in the same journal, so the recorded end no longer applies.
    fn reopen(&mut self) {
        self.ended = None;
        self.waiting = None;
        self.finish = None;
        self.reason = None;
        self.exit_code = None;
        self.duration_ms = None;
        self.stop_signal = None;
    }

    fn begin(&mut self, at: Timestamp, event: &Event) {
        let Event::RunStarted {
            run,
            version,
            plan,
            format,
            agent,
            mode,
            stories,
            open,
            branch,
            head,
            target,
            seal,
            max_iterations,
            unchecked,
            frozen: _,
            gates: _,
            reviews: _,
            evidence: _,
            session,
        } = event
        else {
            return;
        };
        self.reopen();
        self.run = Some(run.clone());
        self.version.clone_from(version);
        self.plan.clone_from(plan);
        self.format.clone_from(format);
        self.agent.clone_from(agent);
        self.mode.clone_from(mode);
        self.session.clone_from(session);
        self.stories = *stories;
        self.open = *open;
        self.branch.clone_from(branch);
        self.target.clone_from(target);
        self.seal.clone_from(seal);
        self.head = self.head.take().or_else(|| head.clone());
        self.max_iterations = *max_iterations;
        self.unchecked = *unchecked;
        self.started = self.started.or(Some(at));
        self.enter(Phase::Baseline, at);
    }

    fn select(&mut self, at: Timestamp, event: &Event) {
        let Event::StorySelected { iteration, place, title, number, of, open } = event else { return };
        self.reopen();
        self.iterations = self.iterations.max(*iteration);
        self.stories = *of;
        self.open = *open;
        let story = self.story_at(&place.story);
        story.title.clone_from(title);
        story.number = *number;
        story.undone = false;
        self.attempt(place, at).iteration = *iteration;
        self.current = Some(Current {
            story: place.story.clone(),
            title: title.clone(),
            number: *number,
            of: *of,
            attempt: place.attempt,
            turn: place.turn,
            started: at,
            started_ms: self.active.ms(),
        });
        self.enter(Phase::Resetting, at);
    }

    /// After the run has ended, landing is not one of its phases.
    fn end_landing(&mut self, at: Timestamp) {
        if self.phase == Phase::Landing {
            self.enter(Phase::Selecting, at);
        }
    }

    /// A story whose commit was undone is open again.
    fn undo(&mut self, what: &str, story: Option<&StoryId>, tip: Option<&Oid>) {
        self.undone.push(what.to_owned());
        if let Some(id) = story.filter(|id| self.story(id).is_some_and(StoryView::is_on_branch)) {
            let story = self.story_at(id);
            (story.undone, story.review) = (true, None);
            self.decide(id, None);
            self.open += 1;
            self.unlanded = self.unlanded.saturating_sub(1);
            self.tip = tip.cloned().or_else(|| self.tip.take());
        }
    }

    fn reapply(&mut self, story: &StoryId, was: &Oid, commit: &Oid, evidence: &str) {
        if self.tip.as_ref() == Some(was) {
            self.tip = Some(commit.clone());
        }
        // A branch may contain stories of earlier runs.
        if self.story(story).is_some()
            && let Some(attempt) = self.story_at(story).attempts.iter_mut().find(|attempt| attempt.commit.as_ref() == Some(was))
        {
            attempt.commit = Some(commit.clone());
            attempt.evidence = Some(evidence.to_owned());
        }
    }

    fn note_flaky<'r>(&mut self, runs: impl IntoIterator<Item = &'r CheckRun>) {
        self.flaky.extend(runs.into_iter().filter(|run| run.flaky).map(|run| run.name.clone()));
    }

    /// How often in a row the service has failed, if that is why the run waits.
    fn count_error(&mut self, why: WaitCause) -> u32 {
        match why {
            WaitCause::UsageLimit => 0,
            WaitCause::ServiceError => {
                self.service_errors += 1;
                self.service_errors
            }
        }
    }

    fn guard_failed(&mut self, at: Timestamp, event: &Event) {
        let Event::GuardFailed { place, failures, denied, cause, file } = event else { return };
        let add = |guard: &mut Option<GuardView>| {
            let (before, denied_before) = guard.as_ref().map_or((0, 0), |guard| (guard.failures, guard.denied));
            let (failures, denied) = (before.saturating_add(*failures), denied_before.saturating_add(*denied));
            *guard = Some(GuardView { failures, denied, cause: cause.clone(), last: at, file: file.clone() });
        };
        add(&mut self.guard);
        if let Some(place) = place {
            add(&mut self.attempt(place, at).guard);
        }
    }
}
