//! Compares a plan with what the loop knows: a box ticked by an agent is a claim, and a story that is gone is not done.

use std::collections::BTreeMap;

use verdone_plan::{Plan, Status, Story};

use super::Frozen;
use crate::base::id::StoryId;
use crate::engine::run::State;

/// Differences between a plan and what the loop knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanDrift {
    /// Ticked since the loop began, but not by Verdone.
    pub claimed: Vec<StoryId>,
    /// In the plan when the loop began, but no longer.
    pub gone: Vec<StoryId>,
}

/// Compares a plan with the loop's stories. Stories that are only claimed are set to open in `plan`, which is the caller's copy.
pub fn find_plan_drift(plan: &mut Plan, stories: &BTreeMap<StoryId, Frozen>, state: &State) -> PlanDrift {
    let mut found = PlanDrift::default();
    let is_taken = |id: &StoryId| state.results.get(id).is_some_and(|result| result.is_taken());
    for id in stories.keys().filter(|id| !is_taken(id)) {
        match plan.place(id) {
            None => found.gone.push(id.clone()),
            Some(index) if plan.stories[index].status == Status::Done => {
                plan.stories[index].status = Status::Open;
                found.claimed.push(id.clone());
            }
            Some(_) => {}
        }
    }
    found
}

/// Open stories except this one, in file order.
pub fn remaining<'a>(plan: &'a Plan, but: Option<&'a StoryId>) -> impl Iterator<Item = &'a Story> {
    plan.open().filter(move |story| Some(&story.id) != but)
}
