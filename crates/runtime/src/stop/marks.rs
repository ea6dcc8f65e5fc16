//! Stories and marks that somebody else put into the plan since the loop began: a story is taken in, its commands only when the user
//! has accepted the plan with it; a mark is a claim and is taken back.

use std::path::Path;

use verdone_core::done::Approval;
use verdone_core::id::StoryId;
use verdone_core::plan::{Plan, Status, Story};
use verdone_core::sanitise::sanitise_line;
use verdone_core::stop::{BlockCause, Frozen, Survey, Work};

use crate::approval::Approvals;
use crate::plan_file::PlanFile;
use crate::site::shown;

use super::look::Looker;
use super::{StopError, arm};

impl Looker<'_> {
    /// Stories that were not open when the loop began. Whoever wrote them, only the user says that their commands judge.
    pub(super) fn admit(&mut self, plan: &PlanFile) {
        let Some(before) = &self.state.done_before else { return };
        let stories = &plan.plan().stories;
        let is_new = |story: &Story| match self.state.open.get(&story.id) {
            Some(frozen) => frozen.unaccepted && !self.state.has_marked(&story.id),
            None => story.status != Status::Done || !before.contains(&story.id),
        };
        let new: Vec<usize> = (0..stories.len()).filter(|index| is_new(&stories[*index])).collect();
        if new.is_empty() {
            return;
        }
        let accepted = self.is_accepted(plan);
        for (id, frozen) in arm::frozen(plan, &new, self.gate.root) {
            if accepted {
                self.state.open.insert(id, frozen);
            } else if !self.state.open.contains_key(&id) {
                self.notes.extend((!frozen.checks.is_empty()).then(|| self.not_run(&id)));
                let Frozen { title, marks, .. } = frozen;
                self.state.open.insert(id, Frozen { title, marks, unaccepted: true, ..Frozen::default() });
            }
        }
    }

    /// Whether the user accepted the plan as it is now. What cannot be read accepts nothing.
    fn is_accepted(&self, plan: &PlanFile) -> bool {
        let name = shown(plan.path(), self.gate.root);
        let state = |approvals: Approvals| approvals.state(&name, || plan.document().fingerprint());
        Approvals::read(self.gate.root).is_ok_and(|approvals| state(approvals.made_here()) == Approval::Approved)
    }

    fn approve(&self) -> String {
        let plan = self.state.plan.as_ref().map(|plan| shown(Path::new(plan), self.gate.root)).unwrap_or_default();
        format!("verdone plan approve {}", sanitise_line(&plan))
    }

    fn not_run(&self, story: &StoryId) -> String {
        format!(
            "story {story} was not open when the loop began, so its own commands are not run before the user accepts them with `{}`. \
             Until then it is unproven at best.",
            self.approve()
        )
    }

    /// A story that no check and no gate verifies. One that an agent may have added lets nobody go.
    pub(super) fn unverifiable(&self, view: &Plan, story: &Story) -> Work {
        let name = sanitise_line(story.id.as_str());
        if !self.state.open.get(&story.id).is_some_and(|frozen| frozen.unaccepted) {
            return Work::Nothing { why: format!("story {name} has no check of its own, and there is no gate") };
        }
        let why = format!(
            "Nothing verifies story {name}: it was not open when the loop began, there is no gate, and its own commands are not run \
             before the user accepts them. Ask the user to read the plan and to run `{}`.",
            self.approve()
        );
        let mut open = self.open();
        open.missing.push((BlockCause::Unaccepted, why));
        self.name_work(&mut open, view, Some(story));
        Work::Open(open)
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
