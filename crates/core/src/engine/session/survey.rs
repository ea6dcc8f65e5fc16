//! What a plan says beside what a loop knows: a box that an agent ticked is a claim, and a story that is gone is not done.

use std::collections::BTreeMap;

use super::Frozen;
use crate::base::id::StoryId;
use crate::engine::run::State;
use crate::plan::{Plan, Status, Story};

/// Where a plan differs from what a loop knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Ticked by somebody else since the loop began.
    pub claimed: Vec<StoryId>,
    /// In the plan when the loop began, and not any more.
    pub gone: Vec<StoryId>,
}

/// Looks at a plan. `plan` is the caller's copy: what is only claimed is open in it afterwards.
pub fn survey(plan: &mut Plan, stories: &BTreeMap<StoryId, Frozen>, state: &State) -> Survey {
    let mut found = Survey::default();
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

/// Open stories but this one, in the order of the file.
pub fn remaining<'a>(plan: &'a Plan, but: Option<&'a StoryId>) -> impl Iterator<Item = &'a Story> {
    plan.open().filter(move |story| Some(&story.id) != but)
}
