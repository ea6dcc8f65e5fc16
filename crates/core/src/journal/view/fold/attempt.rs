//! An attempt: its turns, the verification after each, and how it ended.

use jiff::Timestamp;

use super::super::{Phase, RunView, TurnView, VerificationView};
use crate::agent::{TokenKinds, TurnOutcome, Usage};
use crate::base::claim::claims_done;
use crate::base::id::Oid;
use crate::journal::event::{Event, Place, Verified};
use crate::verify::{Failure, Outcome, Reason, StoryResult};

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
            exit_code: _,
        } = event
        else {
            return;
        };
        let turn = self.turn(place, at);
        turn.outcome = Some(outcome.clone());
        // A turn that was repeated after a wait cost something both times.
        turn.duration_ms = turn.duration_ms.saturating_add(*duration_ms);
        turn.usage = turn.usage.and(usage.finite());
        turn.prompt.clone_from(prompt);
        turn.output.clone_from(output);
        turn.leftovers = *leftovers;
        turn.session.clone_from(session);
        turn.claim.clone_from(claim);
        self.leftovers = self.leftovers.saturating_add(*leftovers);
        add_usage((&mut self.cost_usd, &mut self.tokens, &mut self.tokens_by_kind), *usage);
        let story = self.story_at(&place.story);
        add_usage((&mut story.cost_usd, &mut story.tokens, &mut story.tokens_by_kind), *usage);
        self.enter(Phase::Verifying, at);
    }

    pub(super) fn verify(&mut self, at: Timestamp, verified: &Verified) {
        let Verified { place, changed, restored, report, judge } = verified.clone();
        if let Some(judge) = &judge {
            add_usage((&mut self.cost_usd, &mut self.tokens, &mut self.tokens_by_kind), judge.usage);
            let story = self.story_at(&place.story);
            add_usage((&mut story.cost_usd, &mut story.tokens, &mut story.tokens_by_kind), judge.usage);
        }
        self.restored.extend(restored.iter().cloned());
        self.protected.extend(report.protected.iter().map(|change| change.path.clone()));
        self.note_flaky(report.all_runs().map(|(_, run)| run));
        let is_failure = |wanted: fn(&Failure) -> bool| {
            report.reasons.iter().any(|reason| matches!(reason, Reason::Failure(failure) if wanted(failure)))
        };
        let nothing_changed = is_failure(|failure| *failure == Failure::NothingChanged);
        let check_failed = is_failure(|failure| matches!(failure, Failure::CheckFailed { .. } | Failure::CheckUnknown { .. }));
        let is_failed = report.outcome == Outcome::Failed;
        let attempt = self.attempt(&place, at);
        // Commands that were cut may have been about to do what the agent counted on.
        let was_cut = |turn: &TurnView| turn.session.as_ref().is_some_and(|session| session.cut_commands > 0);
        let says_so = |turn: &TurnView| turn.claim.as_deref().is_some_and(claims_done) && !was_cut(turn);
        let claimed =
            attempt.turns.iter().any(|turn| turn.turn == place.turn && turn.outcome == Some(TurnOutcome::Ended) && says_so(turn));
        let false_claim = claimed && (nothing_changed || check_failed);
        let turn = place.turn;
        attempt.verifications.push(VerificationView { turn, at, changed, restored, report, judge, false_claim });
        if false_claim {
            let claims = &mut self.false_claims;
            *(if nothing_changed { &mut claims.nothing_changed } else { &mut claims.checks_failed }) += 1;
        }
        self.enter(if is_failed { Phase::Prompting } else { Phase::Committing }, at);
    }

    pub(super) fn commit(&mut self, at: Timestamp, event: &Event) {
        let Event::Committed { place, commit, proof, outcome, base, files, evidence, criteria, noted, tree: _ } = event else {
            return;
        };
        let result = StoryResult { outcome: *outcome, proof: Some(*proof) };
        let active_ms = self.active.ms();
        let attempt = self.attempt(place, at);
        attempt.commit = Some(commit.clone());
        attempt.result = Some(result);
        attempt.base.clone_from(base);
        attempt.files = *files;
        attempt.evidence.clone_from(evidence);
        attempt.noted = *noted;
        attempt.criteria.clone_from(criteria);
        attempt.end(at, active_ms);
        self.commits += 1;
        self.questions.retain(|question| question.story != place.story);
        // A session loop commits on the user's branch.
        self.unlanded += u32::from(self.session.is_none());
        self.tip = Some(commit.clone());
        self.open = self.open.saturating_sub(1);
        let story = self.story_at(&place.story);
        (story.reason, story.review) = (None, None);
        self.decide(&place.story, Some(result));
        self.current = None;
        self.enter(Phase::Selecting, at);
    }

    pub(super) fn mark(&mut self, at: Timestamp, event: &Event) {
        let Event::Marked { place, proof, files, criteria, reason, tree: _ } = event else { return };
        let result = StoryResult::done(*proof);
        let active_ms = self.active.ms();
        let attempt = self.attempt(place, at);
        attempt.result = Some(result);
        attempt.files = *files;
        attempt.criteria.clone_from(criteria);
        attempt.reason.clone_from(reason);
        attempt.end(at, active_ms);
        self.open = self.open.saturating_sub(1);
        self.questions.retain(|question| question.story != place.story);
        self.story_at(&place.story).reason = None;
        self.decide(&place.story, Some(result));
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

/// The totals of a run or a story.
type Totals<'a> = (&'a mut Option<f64>, &'a mut Option<u64>, &'a mut Option<TokenKinds>);

fn add_usage((cost_usd, tokens, tokens_by_kind): Totals<'_>, usage: Usage) {
    let sum = Usage { cost_usd: *cost_usd, tokens: *tokens, by_kind: *tokens_by_kind }.and(usage.finite());
    (*cost_usd, *tokens, *tokens_by_kind) = (sum.cost_usd, sum.tokens, sum.by_kind);
}
