//! What a story is worth, and how many stories are worth the same.

use super::super::RunView;
use crate::check::CheckRun;
use crate::event::Place;
use crate::id::{Oid, StoryId};
use crate::machine::Feedback;
use crate::verify::{Outcome, Proof, StoryResult};

impl RunView {
    /// It counts as not done again, whichever run had done it.
    pub(super) fn regress(&mut self, id: &StoryId, runs: &[CheckRun]) {
        let story = self.story_at(id);
        story.regressions += 1;
        story.reason = Some(format!("later work broke it: {}", Feedback::from_runs(runs).reason));
        self.decide(id, None);
        self.open += 1;
    }

    /// A person has to look at it.
    pub(super) fn review(&mut self, place: &Place, proof: Proof, reasons: &[String]) {
        let story = self.story_at(&place.story);
        story.reason = Some(reasons.join("; "));
        self.decide(&place.story, Some(StoryResult { outcome: Outcome::NeedsReview, proof: Some(proof) }));
    }

    /// A person took it: the story is done.
    pub(super) fn accept(&mut self, id: &StoryId, commit: &Oid, proof: Proof) {
        let story = self.story_at(id);
        story.reason = None;
        if let Some(attempt) = story.attempts.last_mut() {
            attempt.commit = Some(commit.clone());
        }
        self.decide(id, Some(StoryResult { outcome: Outcome::Accepted, proof: Some(proof) }));
    }

    pub(super) fn decide(&mut self, id: &StoryId, result: Option<StoryResult>) {
        let old = std::mem::replace(&mut self.story_at(id).result, result);
        if let Some(old) = old {
            let count = self.count(old);
            *count = count.saturating_sub(1);
        }
        if let Some(new) = result {
            *self.count(new) += 1;
        }
    }

    fn count(&mut self, result: StoryResult) -> &mut usize {
        let counts = &mut self.counts;
        match (result.outcome, result.proof) {
            (Outcome::Failed, _) => &mut counts.failed,
            (Outcome::NeedsReview, _) => &mut counts.needs_review,
            (Outcome::Accepted, _) => &mut counts.accepted,
            (Outcome::Done, Some(Proof::Verified)) => &mut counts.verified,
            (Outcome::Done, Some(Proof::AgentTested)) => &mut counts.agent_tested,
            (Outcome::Done, Some(Proof::Untested)) => &mut counts.untested,
            (Outcome::Done, Some(Proof::Unchecked) | None) => &mut counts.unchecked,
        }
    }
}
