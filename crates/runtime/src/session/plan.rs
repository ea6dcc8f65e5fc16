//! The plan of a loop: the user's file, which the agent can write. A mark set by someone else
//! is a claim and is reverted. A story added later is accepted, but its commands run only after
//! the user approves the plan that contains it. Without a plan, the task is the only story.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use verdone_core::base::id::StoryId;
use verdone_core::done::Approval;
use verdone_core::engine::run::State;
use verdone_core::engine::session::{Frozen, HeldLoop, PlanDrift, find_plan_drift};
use verdone_core::plan::minimum_proof;
use verdone_plan::{Format, Plan, Status, Story, ThinVec};

use crate::process::program_exists;
use crate::project::approval::Approvals;
use crate::project::plan_file::{PlanFile, PlanFileError, PlanLocation, resolve_checks};
use crate::project::shown;

use super::StopError;

/// The story of a loop without a plan.
pub(super) const TASK: &str = "task";

#[derive(Debug)]
pub(super) struct LoopPlan {
    file: Option<PlanFile>,
    /// The plan, with merely claimed stories shown as open.
    pub(super) view: Plan,
    pub(super) found: PlanDrift,
}

impl LoopPlan {
    pub(super) fn open(held: &HeldLoop) -> Result<Self, StopError> {
        let file = held.plan.as_ref().map(|plan| PlanFile::open(PlanLocation::new(PathBuf::from(plan)))).transpose()?;
        Ok(Self::new(file, &held.task))
    }

    pub(super) fn new(file: Option<PlanFile>, task: &str) -> Self {
        let view = file.as_ref().map_or_else(|| only(task), |file| file.plan().clone());
        Self { file, view, found: PlanDrift::default() }
    }

    pub(super) fn file(&self) -> Option<&PlanFile> {
        self.file.as_ref()
    }

    /// Compares the plan with the journal.
    pub(super) fn survey(&mut self, stories: &BTreeMap<StoryId, Frozen>, state: &State) {
        if let Some(file) = &self.file {
            self.view = file.plan().clone();
        } else if let Some(task) = self.view.stories.first_mut() {
            let is_done = state.results.get(&task.id).is_some_and(|result| result.is_taken());
            task.status = if is_done { Status::Done } else { Status::Open };
        }
        self.found = find_plan_drift(&mut self.view, stories, state);
    }

    /// Files that Verdone itself writes.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.file.as_ref().map(PlanFile::protected_paths).unwrap_or_default()
    }

    pub(super) fn mark(&mut self, story: &StoryId) -> Result<(), PlanFileError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if file.plan().story(story).is_some_and(|found| found.status == Status::Done) {
            // A worker may have been killed between writing the two files.
            return file.mark_companion(story, Status::Done);
        }
        file.mark(story, Status::Done)
    }

    pub(super) fn take_back(&mut self, story: &StoryId, before: &[String]) -> Result<(), PlanFileError> {
        match &mut self.file {
            Some(file) if file.plan().place(story).is_some() => file.take_back(story, before),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn refresh(&mut self) -> Result<(), PlanFileError> {
        self.file.as_mut().map_or(Ok(false), PlanFile::refresh).map(drop)
    }

    /// Takes in stories that were not open when the loop started, and returns notes about
    /// them. Whoever wrote them, only the user may allow their commands as checks.
    pub(super) fn admit(
        &self,
        held: &HeldLoop,
        state: &State,
        later: &mut BTreeMap<StoryId, Frozen>,
        root: &Path,
    ) -> Vec<StoryId> {
        let Some(file) = &self.file else { return Vec::new() };
        let is_taken = |id: &StoryId| state.results.get(id).is_some_and(|result| result.is_taken());
        let is_new = |story: &Story| match later.get(&story.id) {
            Some(frozen) => frozen.unaccepted && !is_taken(&story.id),
            None if held.stories.contains_key(&story.id) => false,
            None => story.status != Status::Done || !held.done_before.contains(&story.id),
        };
        let stories = &file.plan().stories;
        let new: Vec<usize> = (0..stories.len()).filter(|index| is_new(&stories[*index])).collect();
        if new.is_empty() {
            return Vec::new();
        }
        let accepted = is_accepted(file, root);
        let mut unaccepted = Vec::new();
        for (id, frozen) in frozen(file, &new, root) {
            match later.entry(id) {
                Entry::Vacant(new) if accepted => drop(new.insert(frozen)),
                Entry::Occupied(mut known) if accepted => drop(known.insert(frozen)),
                Entry::Occupied(_) => {}
                Entry::Vacant(new) => {
                    if !frozen.checks.is_empty() {
                        unaccepted.push(new.key().clone());
                    }
                    let Frozen { title, marks, .. } = frozen;
                    new.insert(Frozen { title, marks, unaccepted: true, ..Frozen::default() });
                }
            }
        }
        unaccepted
    }
}

/// Whether the user approved the plan in its current form. Errors count as no.
fn is_accepted(file: &PlanFile, root: &Path) -> bool {
    let name = shown(file.path(), root);
    let state = |approvals: Approvals| approvals.state(&name, || file.document().fingerprint());
    Approvals::read(root).is_ok_and(|approvals| state(approvals.made_here()) == Approval::Approved)
}

/// Freezes these stories in their current form.
pub(super) fn frozen(plan: &PlanFile, stories: &[usize], root: &Path) -> Vec<(StoryId, Frozen)> {
    let path = std::env::var_os("PATH");
    let exists = |program: &str| program_exists(program, path.as_deref(), root);
    let one = |index: &usize| {
        let story: &Story = &plan.plan().stories[*index];
        let frozen = Frozen {
            title: story.title.clone(),
            checks: resolve_checks(story, exists),
            scope: story.scope.to_vec(),
            criteria: story.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
            complexity: story.complexity,
            proof: minimum_proof(story),
            marks: if story.status == Status::Done { Vec::new() } else { plan.document().marks_of(*index) },
            unaccepted: false,
        };
        (story.id.clone(), frozen)
    };
    stories.iter().map(one).collect()
}

fn only(task: &str) -> Plan {
    let story = Story {
        id: StoryId::from(TASK),
        title: task.to_owned(),
        body: String::new(),
        status: Status::Open,
        criteria: ThinVec::EMPTY,
        depends_on: ThinVec::EMPTY,
        priority: None,
        checks: ThinVec::EMPTY,
        maybe_checks: ThinVec::EMPTY,
        scope: ThinVec::EMPTY,
        complexity: None,
        proof: None,
        kind: None,
        line: 1,
        explicit_id: true,
    };
    let (title, branch, context, warnings, by_id) = (None, None, String::new(), Vec::new(), Vec::new());
    Plan { format: Format::Checklist, title, branch, context, stories: vec![story], warnings, by_id }
}
