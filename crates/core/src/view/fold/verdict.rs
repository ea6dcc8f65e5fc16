//! What a story is worth, and how many stories are worth the same.

use super::super::RunView;
use crate::check::CheckRun;
use crate::id::StoryId;
use crate::machine::Feedback;
use crate::proof::Doubted;
use crate::verdict::StoryVerdict;

impl RunView {
    /// It counts as not done again, whichever run had done it.
    pub(super) fn regress(&mut self, id: &StoryId, runs: &[CheckRun]) {
        let story = self.story_at(id);
        story.regressions += 1;
        story.reason = Some(format!("later work broke it: {}", Feedback::from_runs(runs).reason));
        self.decide(id, None);
        self.open += 1;
    }

    /// It stays done, and is proven no more. A story of an earlier run keeps the verdict of that run, and gets the reason.
    pub(super) fn doubt(&mut self, doubted: &Doubted) {
        let story = self.story_at(&doubted.story);
        story.reason = Some(doubted.reason());
        if let Some(verdict) = story.verdict {
            self.decide(&doubted.story, Some(verdict.min(StoryVerdict::Unproven)));
        }
    }

    pub(super) fn decide(&mut self, id: &StoryId, verdict: Option<StoryVerdict>) {
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
}
