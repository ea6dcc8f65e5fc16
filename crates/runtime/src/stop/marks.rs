//! Stories and marks that somebody else put into the plan since the loop began: a story is taken in with its checks as they are when it
//! is first seen, a mark is a claim and is taken back.

use verdone_core::id::StoryId;
use verdone_core::plan::{Status, Story};
use verdone_core::stop::Survey;

use crate::plan_file::PlanFile;

use super::look::Looker;
use super::{StopError, arm};

impl Looker<'_> {
    /// Stories that came into the plan since: their checks count as they are now.
    pub(super) fn admit(&mut self, plan: &PlanFile) {
        let Some(before) = &self.state.done_before else { return };
        let stories = &plan.plan().stories;
        let is_new = |story: &Story| {
            !self.state.open.contains_key(&story.id) && (story.status != Status::Done || !before.contains(&story.id))
        };
        let new: Vec<usize> = (0..stories.len()).filter(|index| is_new(&stories[*index])).collect();
        for (id, frozen) in arm::frozen(plan, &new, self.gate.root) {
            self.state.open.insert(id, frozen);
        }
    }

    /// Marks that somebody else set on stories that wait.
    pub(super) fn take_back(&mut self, plan: &mut PlanFile, found: &Survey, but: Option<&StoryId>) -> Result<(), StopError> {
        let others: Vec<&StoryId> = found.claimed.iter().filter(|story| Some(*story) != but).collect();
        for story in &others {
            self.open_again(plan, story)?;
        }
        let names = others.iter().map(|story| story.as_str()).collect::<Vec<_>>().join(", ");
        match others.len() {
            0 => {}
            1 => self.notes.push(format!("story {names} was marked as done without a verification; Verdone took the mark back.")),
            _ => self.notes.push(format!(
                "these stories were marked as done without a verification, and Verdone took the marks back: {names}."
            )),
        }
        Ok(())
    }

    pub(super) fn open_again(&self, plan: &mut PlanFile, story: &StoryId) -> Result<(), StopError> {
        let before = self.state.open.get(story).map(|frozen| frozen.marks.clone()).unwrap_or_default();
        Ok(plan.take_back(story, &before)?)
    }
}
