//! Results of stories, and the number of stories with each result.

use super::super::{ReviewView, RunView, StoryView};
use crate::base::id::{Oid, StoryId};
use crate::check::CheckRun;
use crate::check::failing_sentence;
use crate::journal::event::{Event, Place};
use crate::verify::{Outcome, Proof, StoryResult};

impl RunView {
    /// The story counts as not done again, whichever run had completed it.
    pub(super) fn regress(&mut self, id: &StoryId, runs: &[CheckRun]) {
        let story = self.story_at(id);
        story.regressions += 1;
        story.review = None;
        story.reason = Some(format!("later work broke it: {}", failing_sentence(runs)));
        self.decide(id, None);
        self.open += 1;
    }

    /// A person has to review it.
    pub(super) fn review(&mut self, place: &Place, work: &Oid, proof: Proof, reasons: &[String]) {
        let stacked = self.tip.as_ref() == Some(work);
        let story = self.story_at(&place.story);
        story.reason = Some(reasons.join("; "));
        story.review = Some(ReviewView { work: work.clone(), stacked, reasons: reasons.to_vec(), settled_by: None });
        self.decide(&place.story, Some(StoryResult { outcome: Outcome::NeedsReview, proof: Some(proof) }));
    }

    /// A person accepted it: the story is done.
    pub(super) fn accept_story(&mut self, event: &Event) {
        let Event::Accepted { story: id, commit, proof, by, reasons, evidence, base, tree: _ } = event else { return };
        let was_on_branch = self.story(id).is_some_and(StoryView::is_on_branch);
        let story = self.story_at(id);
        story.reason = None;
        let review = story.review.get_or_insert_with(|| ReviewView {
            work: commit.clone(),
            stacked: false,
            reasons: reasons.clone(),
            settled_by: None,
        });
        review.settled_by = Some(by.clone());
        let result = StoryResult { outcome: Outcome::Accepted, proof: Some(*proof) };
        if let Some(attempt) = story.attempts.last_mut() {
            (attempt.commit, attempt.result) = (Some(commit.clone()), Some(result));
            attempt.base.clone_from(base);
            attempt.evidence = Some(evidence.clone());
        }
        self.decide(id, Some(result));
        if !was_on_branch {
            self.commits += 1;
            self.unlanded += 1;
            self.open = self.open.saturating_sub(1);
            self.tip = Some(commit.clone());
        }
    }

    /// A person rejected it: the story failed.
    pub(super) fn reject_story(&mut self, id: &StoryId, by: &str) {
        let was_on_branch = self.story(id).is_some_and(StoryView::is_on_branch);
        let story = self.story_at(id);
        story.reason = Some(format!("rejected by {by}"));
        if let Some(review) = &mut story.review {
            (review.stacked, review.settled_by) = (false, Some(by.to_owned()));
        }
        self.decide(id, Some(StoryResult::FAILED));
        if was_on_branch {
            self.open += 1;
            self.unlanded = self.unlanded.saturating_sub(1);
        }
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
