//! An attempt: its turns, what Verdone saw after each, and how it ended.

use jiff::Timestamp;

use super::super::{Phase, RunView, VerificationView};
use crate::agent::{TurnOutcome, Usage};
use crate::event::{Event, Place, VerifyOutcome};
use crate::id::Oid;

impl RunView {
    pub(super) fn end_turn(&mut self, at: Timestamp, event: &Event) {
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

    pub(super) fn verify(&mut self, at: Timestamp, event: &Event) {
        let Event::Verified { place, outcome, tree, changed, runs, reason, restored, alarms, agent_test, as_before, judge } =
            event
        else {
            return;
        };
        if let Some(judge) = judge {
            add_usage(&mut self.cost_usd, &mut self.tokens, judge.usage);
            let story = self.story_at(&place.story);
            add_usage(&mut story.cost_usd, &mut story.tokens, judge.usage);
        }
        self.restored.extend(restored.iter().cloned());
        self.alarms.extend(alarms.iter().cloned());
        self.note_flaky(runs);
        let attempt = self.attempt(place, at);
        let claimed = attempt
            .turns
            .iter()
            .any(|turn| turn.turn == place.turn && turn.outcome.as_ref().is_some_and(|end| *end == TurnOutcome::Ended));
        let refuted = match outcome {
            VerifyOutcome::NothingChanged | VerifyOutcome::Failed => true,
            VerifyOutcome::Passed | VerifyOutcome::Refused | VerifyOutcome::Interrupted => false,
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
            alarms: alarms.clone(),
            agent_test: agent_test.clone(),
            as_before: as_before.clone(),
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

    pub(super) fn commit(&mut self, at: Timestamp, event: &Event) {
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
        self.unlanded += 1;
        self.tip = Some(commit.clone());
        self.open = self.open.saturating_sub(1);
        self.story_at(&place.story).reason = None;
        self.decide(&place.story, Some(*verdict));
        self.current = None;
        self.enter(Phase::Selecting, at);
    }

    pub(super) fn end_attempt(&mut self, at: Timestamp, place: &Place, kept: Option<&Oid>, files: u32) {
        let active_ms = self.active.ms();
        let attempt = self.attempt(place, at);
        attempt.kept = kept.cloned();
        attempt.files = files;
        attempt.end(at, active_ms);
        self.current = None;
        self.enter(Phase::Selecting, at);
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
