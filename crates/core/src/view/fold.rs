//! How each event changes the view.

use jiff::Timestamp;

use super::{
    AsideState, AsideView, AttemptView, Baseline, Current, GuardView, Phase, RunView, StoryView, TurnView, VerificationView,
    WaitView,
};
use crate::agent::{TurnOutcome, Usage};
use crate::check::CheckRun;
use crate::control::Request;
use crate::event::{Checkpoint, Event, Place, Recorded, VerifyOutcome};
use crate::id::{Oid, StoryId};
use crate::machine::{Feedback, stash_command};
use crate::verdict::StoryVerdict;

impl RunView {
    pub fn apply(&mut self, recorded: &Recorded) {
        let at = recorded.at;
        self.active.advance(recorded, self.standing());
        self.seq = recorded.seq;
        self.last = Some(at);
        match &recorded.event {
            Event::RunStarted { .. } => self.begin(at, &recorded.event),
            Event::ChangesSetAside { stash, files, .. } => {
                let (command, files, state) = (stash_command(stash), files.clone(), AsideState::SetAside);
                self.aside = Some(AsideView { files, command, state, reason: None, overlap: Vec::new() });
            }
            Event::ChangesPutBack { .. } => {
                if let Some(aside) = &mut self.aside {
                    aside.state = AsideState::PutBack;
                }
            }
            Event::ChangesKept { reason, overlap, .. } => {
                if let Some(aside) = &mut self.aside {
                    aside.state = AsideState::Kept;
                    aside.reason = Some(reason.clone());
                    aside.overlap.clone_from(overlap);
                }
            }
            Event::BaselineChecked { green, runs } => {
                self.baseline = Some(Baseline { green: *green, runs: runs.clone() });
                self.note_flaky(runs);
                self.enter(Phase::Selecting, at);
            }
            Event::StorySelected { .. } => self.select(at, &recorded.event),
            Event::Checkpointed { place, checkpoint } => {
                self.attempt(place, at).checkpoint = Some(checkpoint.clone());
                self.enter(Phase::RedChecking, at);
            }
            Event::RedChecked { place, red, runs } => {
                let attempt = self.attempt(place, at);
                attempt.red = Some(*red);
                attempt.red_runs.clone_from(runs);
                self.enter(Phase::Prompting, at);
            }
            Event::TurnStarted { place } => {
                self.turn(place, at);
                self.enter(Phase::Working, at);
            }
            Event::TurnEnded { .. } => self.end_turn(at, &recorded.event),
            Event::WaitStarted { why, reason, until, .. } => {
                self.waiting = Some(WaitView { why: *why, reason: reason.clone(), until: *until });
                self.enter(Phase::Waiting, at);
            }
            Event::WaitEnded { .. } => self.waiting = None,
            Event::Verified { .. } => self.verify(at, &recorded.event),
            Event::CommitStarted { place, gates, previous, .. } => {
                let attempt = self.attempt(place, at);
                attempt.gates.clone_from(gates);
                attempt.previous.clone_from(previous);
                self.enter(Phase::Committing, at);
            }
            Event::Committed { .. } => self.commit(at, &recorded.event),
            Event::CommitRefused { place, message, .. } => {
                self.attempt(place, at).refused = Some(message.clone());
                self.enter(Phase::Prompting, at);
            }
            Event::AttemptRejected { place, rejection, reason } => {
                let attempt = self.attempt(place, at);
                attempt.rejection = Some(rejection.clone());
                attempt.reason = Some(reason.clone());
                self.enter(Phase::RollingBack, at);
            }
            Event::AttemptLeft { place, kept, .. } => self.leave(at, place, kept),
            Event::RolledBack { place, kept, before, files } => self.roll_back(at, place, (kept, before), *files),
            Event::StoryFailed { story, reason } => {
                let active_ms = self.active.ms();
                let failed = self.story_at(story);
                failed.reason = Some(reason.clone());
                failed.attempts.iter_mut().for_each(|attempt| attempt.end(at, active_ms));
                self.current = self.current.take().filter(|current| current.story != *story);
                self.decide(story, Some(StoryVerdict::Failed));
            }
            Event::RegressionStarted { .. } => self.enter(Phase::Regressing, at),
            Event::RegressionChecked { not_checked, .. } => {
                self.not_checked_again.clone_from(not_checked);
                self.enter(Phase::Selecting, at);
            }
            Event::Regressed { story, runs, .. } => self.regress(story, runs),
            Event::Reopened { .. } => self.enter(Phase::Selecting, at),
            Event::StopRequested { signal } => self.stop_signal = Some(*signal),
            Event::Asked { request } => match request {
                Request::Pause => self.paused = true,
                Request::Resume | Request::StopAfterStory => self.paused = false,
                Request::Skip { .. } | Request::Retry { .. } | Request::Note { .. } => {}
            },
            Event::GuardFailed { .. } => self.guard_failed(at, &recorded.event),
            Event::ScriptRan { .. }
            | Event::IterationSkipped { .. }
            | Event::PutBackStarted { .. }
            // Of an undo only its end counts.
            | Event::UndoStarted { .. }
            | Event::UndoTakenBack { .. } => {}
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
                self.enter(Phase::Stopped, at);
            }
            Event::Undone { what, before, restored } => self.undo(what, before, restored),
        }
    }

    fn enter(&mut self, phase: Phase, at: Timestamp) {
        self.phase = phase;
        self.since = Some(at);
        self.since_ms = self.active.ms();
    }

    /// A resumed run goes on in the same journal: what its end said is over.
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
            max_iterations,
            unverified,
            frozen: _,
            gates: _,
            evidence: _,
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
        self.stories = *stories;
        self.open = *open;
        self.branch.clone_from(branch);
        self.head = self.head.take().or_else(|| head.clone());
        self.max_iterations = *max_iterations;
        self.unverified = *unverified;
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
        self.enter(Phase::Checkpointing, at);
    }

    fn end_turn(&mut self, at: Timestamp, event: &Event) {
        let Event::TurnEnded {
            place,
            outcome,
            duration_ms,
            usage,
            prompt,
            output,
            leftovers,
            tests: _,
            session,
            allowance: _,
            claim,
        } = event
        else {
            return;
        };
        let turn = self.turn(place, at);
        turn.outcome = Some(outcome.clone());
        // A turn that is made again after a wait has cost both times.
        turn.duration_ms = turn.duration_ms.saturating_add(*duration_ms);
        add_usage(&mut turn.usage.cost_usd, &mut turn.usage.tokens, *usage);
        turn.prompt.clone_from(prompt);
        turn.output.clone_from(output);
        turn.leftovers = *leftovers;
        turn.session.clone_from(session);
        turn.claim.clone_from(claim);
        self.leftovers = self.leftovers.saturating_add(*leftovers);
        add_usage(&mut self.cost_usd, &mut self.tokens, *usage);
        let story = self.story_at(&place.story);
        add_usage(&mut story.cost_usd, &mut story.tokens, *usage);
        self.enter(Phase::Verifying, at);
    }

    fn note_flaky(&mut self, runs: &[CheckRun]) {
        self.flaky.extend(runs.iter().filter(|run| run.flaky).map(|run| run.name.clone()));
    }

    fn verify(&mut self, at: Timestamp, event: &Event) {
        let Event::Verified {
            place,
            outcome,
            tree,
            changed,
            runs,
            reason,
            restored,
            debris,
            left_out,
            refs_moved,
            alarms,
            agent_test,
            judge,
        } = event
        else {
            return;
        };
        if let Some(judge) = judge {
            add_usage(&mut self.cost_usd, &mut self.tokens, judge.usage);
            let story = self.story_at(&place.story);
            add_usage(&mut story.cost_usd, &mut story.tokens, judge.usage);
        }
        self.restored.extend(restored.iter().cloned());
        self.debris.extend(debris.iter().cloned());
        self.refs_moved.extend(refs_moved.iter().cloned());
        self.alarms.extend(alarms.iter().cloned());
        self.note_flaky(runs);
        let attempt = self.attempt(place, at);
        let claimed = attempt
            .turns
            .iter()
            .any(|turn| turn.turn == place.turn && turn.outcome.as_ref().is_some_and(|end| *end == TurnOutcome::Ended));
        let refuted = match outcome {
            VerifyOutcome::NothingChanged | VerifyOutcome::Failed => true,
            VerifyOutcome::Passed
            | VerifyOutcome::Unsettled
            | VerifyOutcome::HistoryMoved
            | VerifyOutcome::Refused
            | VerifyOutcome::Interrupted => false,
        };
        let false_claim = claimed && refuted;
        attempt.verifications.push(VerificationView {
            turn: place.turn,
            at,
            outcome: outcome.clone(),
            tree: tree.clone(),
            changed: *changed,
            runs: runs.clone(),
            reason: reason.clone(),
            restored: restored.clone(),
            debris: debris.clone(),
            left_out: left_out.clone(),
            refs_moved: refs_moved.clone(),
            alarms: alarms.clone(),
            agent_test: agent_test.clone(),
            judge: judge.clone(),
            false_claim,
        });
        if false_claim {
            let count = if *outcome == VerifyOutcome::NothingChanged {
                &mut self.false_claims.nothing_changed
            } else {
                &mut self.false_claims.checks_failed
            };
            *count += 1;
        }
        self.enter(if *outcome == VerifyOutcome::Passed { Phase::Committing } else { Phase::Prompting }, at);
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

    fn commit(&mut self, at: Timestamp, event: &Event) {
        let Event::Committed { place, commit, verdict, base, files, evidence, criteria, noted, tree: _ } = event else { return };
        let active_ms = self.active.ms();
        let attempt = self.attempt(place, at);
        attempt.commit = Some(commit.clone());
        attempt.verdict = Some(*verdict);
        attempt.base.clone_from(base);
        attempt.files = *files;
        attempt.evidence.clone_from(evidence);
        attempt.noted = *noted;
        attempt.criteria.clone_from(criteria);
        attempt.end(at, active_ms);
        self.commits += 1;
        self.open = self.open.saturating_sub(1);
        self.story_at(&place.story).reason = None;
        self.decide(&place.story, Some(*verdict));
        self.current = None;
        self.enter(Phase::Selecting, at);
    }

    /// It counts as not done again, whichever run had done it.
    fn regress(&mut self, id: &StoryId, runs: &[CheckRun]) {
        let story = self.story_at(id);
        story.regressions += 1;
        story.reason = Some(format!("later work broke it: {}", Feedback::from_runs(runs).reason));
        self.decide(id, None);
        self.open += 1;
    }

    fn leave(&mut self, at: Timestamp, place: &Place, kept: &Oid) {
        let active_ms = self.active.ms();
        let attempt = self.attempt(place, at);
        attempt.kept = Some(kept.clone());
        attempt.end(at, active_ms);
        self.current = None;
        self.enter(Phase::Selecting, at);
    }

    fn roll_back(&mut self, at: Timestamp, place: &Place, (kept, before): (&Oid, &Checkpoint), files: u32) {
        let active_ms = self.active.ms();
        let attempt = self.attempt(place, at);
        attempt.kept = Some(kept.clone());
        attempt.before_rollback = Some(before.clone());
        attempt.base = attempt.base.take().or_else(|| attempt.checkpoint.as_ref().and_then(|point| point.head.clone()));
        attempt.files = files;
        attempt.end(at, active_ms);
        self.counts.rolled_back += 1;
        self.current = None;
        self.enter(Phase::Selecting, at);
    }

    /// `undo` of a story commit moves HEAD away from it; `undo` of that brings HEAD back.
    fn undo(&mut self, what: &str, before: &Checkpoint, restored: &Checkpoint) {
        self.undone.push(what.to_owned());
        let is_commit = |head: &Option<Oid>, story: &StoryView| {
            head.is_some() && story.committed().is_some_and(|attempt| attempt.commit == *head)
        };
        if let Some(story) = self.touched.iter_mut().rfind(|story| story.undone && is_commit(&restored.head, story)) {
            story.undone = false;
            let (id, verdict) = (story.id.clone(), story.committed().and_then(|attempt| attempt.verdict));
            self.decide(&id, verdict);
            self.open = self.open.saturating_sub(1);
        }
        if before.head == restored.head {
            return;
        }
        let left = self.touched.iter().rposition(|story| !story.undone && is_commit(&before.head, story));
        if let Some(at) = left.filter(|at| !self.follows(*at, restored.head.as_ref())) {
            let story = &mut self.touched[at];
            story.undone = true;
            let id = story.id.clone();
            self.decide(&id, None);
            self.open += 1;
        }
    }

    /// Whether `head` is a commit made on top of this story's commit.
    fn follows(&self, at: usize, head: Option<&Oid>) -> bool {
        let commit = self.touched.get(at).and_then(StoryView::committed).and_then(|attempt| attempt.commit.as_ref());
        let made_on_it = |other: &AttemptView| other.commit.as_ref() == head && other.base.as_ref() == commit;
        head.is_some() && commit.is_some() && self.touched.iter().filter_map(StoryView::committed).any(made_on_it)
    }

    fn decide(&mut self, id: &StoryId, verdict: Option<StoryVerdict>) {
        let old = std::mem::replace(&mut self.story_at(id).verdict, verdict);
        if let Some(old) = old {
            let count = self.count(old);
            *count = count.saturating_sub(1);
        }
        if let Some(new) = verdict {
            *self.count(new) += 1;
        }
    }

    fn count(&mut self, verdict: StoryVerdict) -> &mut usize {
        match verdict {
            StoryVerdict::Verified => &mut self.counts.verified,
            StoryVerdict::Unproven => &mut self.counts.unproven,
            StoryVerdict::Unverified => &mut self.counts.unverified,
            StoryVerdict::Failed => &mut self.counts.failed,
        }
    }

    fn story_at(&mut self, id: &StoryId) -> &mut StoryView {
        let known = self.index.get(id).copied();
        let at = known.unwrap_or(self.touched.len());
        if known.is_none() {
            self.index.insert(id.clone(), at);
            self.touched.push(StoryView {
                id: id.clone(),
                title: String::new(),
                number: 0,
                verdict: None,
                attempts: Vec::new(),
                reason: None,
                undone: false,
                regressions: 0,
                cost_usd: None,
                tokens: None,
            });
        }
        &mut self.touched[at]
    }

    fn attempt(&mut self, place: &Place, at: Timestamp) -> &mut AttemptView {
        let started_ms = self.active.ms();
        let attempts = &mut self.story_at(&place.story).attempts;
        let found = attempts.iter().rposition(|attempt| attempt.attempt == place.attempt && attempt.ended.is_none());
        let index = found.unwrap_or_else(|| {
            attempts.push(AttemptView {
                attempt: place.attempt,
                iteration: 0,
                started: at,
                ended: None,
                started_ms,
                ended_ms: None,
                checkpoint: None,
                red: None,
                red_runs: Vec::new(),
                turns: Vec::new(),
                verifications: Vec::new(),
                refused: None,
                rejection: None,
                reason: None,
                kept: None,
                before_rollback: None,
                commit: None,
                verdict: None,
                base: None,
                files: 0,
                evidence: None,
                previous: None,
                gates: None,
                noted: false,
                criteria: Vec::new(),
                guard: None,
            });
            attempts.len() - 1
        });
        &mut attempts[index]
    }

    fn turn(&mut self, place: &Place, at: Timestamp) -> &mut TurnView {
        if let Some(current) = self.current.as_mut().filter(|current| current.story == place.story) {
            current.turn = place.turn;
        }
        let turns = &mut self.attempt(place, at).turns;
        let found = turns.iter().rposition(|turn| turn.turn == place.turn);
        let index = found.unwrap_or_else(|| {
            turns.push(TurnView {
                turn: place.turn,
                started: at,
                outcome: None,
                duration_ms: 0,
                usage: Usage::default(),
                prompt: None,
                output: None,
                leftovers: 0,
                session: None,
                claim: None,
            });
            turns.len() - 1
        });
        &mut turns[index]
    }
}

fn add_usage(cost_usd: &mut Option<f64>, tokens: &mut Option<u64>, usage: Usage) {
    if let Some(cost) = usage.cost_usd.filter(|cost| cost.is_finite()) {
        *cost_usd = Some(cost_usd.unwrap_or(0.0) + cost);
    }
    if let Some(used) = usage.tokens {
        *tokens = Some(tokens.unwrap_or(0).saturating_add(used));
    }
}
