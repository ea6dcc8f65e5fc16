//! What a plan says beside what a loop knows: a box that an agent ticked is a claim, and a story that is gone is not done.

use super::LoopState;
use crate::id::StoryId;
use crate::plan::{Plan, Progress, Selection, Status, Story, select};

/// Where a plan stands for a loop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The story to verify: an index of the plan.
    pub current: Option<usize>,
    /// Why there is none although stories are open.
    pub stuck: Option<String>,
    /// Ticked by somebody else since the loop began.
    pub claimed: Vec<StoryId>,
    /// In the plan when the loop began, and not any more.
    pub gone: Vec<StoryId>,
}

/// Looks at a plan. `plan` is the caller's copy: what is only claimed is open in it afterwards.
pub fn survey(plan: &mut Plan, state: &LoopState) -> Survey {
    let mut found = Survey::default();
    for id in state.open.keys().filter(|id| !state.has_marked(id)) {
        match plan.place(id) {
            None => found.gone.push(id.clone()),
            Some(index) if plan.stories[index].status == Status::Done => {
                plan.stories[index].status = Status::Open;
                found.claimed.push(id.clone());
            }
            Some(_) => {}
        }
    }
    let current = state.current.as_ref().and_then(|current| plan.place(&current.story));
    match current.filter(|index| plan.stories[*index].status != Status::Done) {
        Some(index) => found.current = Some(index),
        None => match select(plan, &Progress::default(), None) {
            Selection::Story { index } => found.current = Some(index),
            Selection::AllDone => {}
            Selection::NothingRunnable { reason } => found.stuck = Some(reason),
        },
    }
    found
}

/// Open stories but this one, in the order of the file.
pub fn remaining<'a>(plan: &'a Plan, but: Option<&'a StoryId>) -> impl Iterator<Item = &'a Story> {
    plan.open().filter(move |story| Some(&story.id) != but)
}
