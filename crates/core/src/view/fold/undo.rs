//! What `verdone undo` took back.

use super::super::{AttemptView, RunView, StoryView};
use crate::event::Checkpoint;
use crate::id::Oid;

impl RunView {
    /// `undo` of a story commit goes back to where the branch stood before it, whatever recorded progress on top; `undo` of that
    /// comes from there.
    pub(super) fn undo(&mut self, what: &str, before: &Checkpoint, restored: &Checkpoint) {
        self.undone.push(what.to_owned());
        if before.head == restored.head {
            return;
        }
        if let Some(at) = self.committed_between(before.head.as_ref(), restored.head.as_ref(), true) {
            let story = &mut self.touched[at];
            story.undone = false;
            let (id, verdict) = (story.id.clone(), story.committed().and_then(|attempt| attempt.verdict));
            self.decide(&id, verdict);
            self.open = self.open.saturating_sub(1);
        } else if let Some(at) = self.committed_between(restored.head.as_ref(), before.head.as_ref(), false) {
            let story = &mut self.touched[at];
            story.undone = true;
            let id = story.id.clone();
            self.decide(&id, None);
            self.open += 1;
        }
    }

    /// The story whose commit was made on `base`; of several, the one that is `tip`, else the last.
    fn committed_between(&self, base: Option<&Oid>, tip: Option<&Oid>, undone: bool) -> Option<usize> {
        let made_on = |attempt: &AttemptView| attempt.base.as_ref() == base;
        let is_it = |story: &StoryView| story.undone == undone && story.committed().is_some_and(made_on);
        let is_tip = |story: &StoryView| story.committed().is_some_and(|attempt| attempt.commit.as_ref() == tip);
        let exact = self.touched.iter().rposition(|story| is_it(story) && is_tip(story));
        exact.or_else(|| self.touched.iter().rposition(is_it))
    }
}
