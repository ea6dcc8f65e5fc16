//! Which story is next. Among stories whose dependencies are done: in progress, then priority, then file order; stories that
//! failed an attempt come after those that did not.

use std::collections::{BTreeMap, HashMap};

use super::{Plan, Status};
use crate::id::StoryId;

/// What a run knows about the stories that it has touched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Attempts that count, by story.
    pub attempts: BTreeMap<StoryId, u32>,
    /// Stories that get no further attempt in this run.
    pub failed: BTreeMap<StoryId, String>,
}

/// The outcome of a selection.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// Work on the story at this index.
    Story { index: usize },
    /// No story is open.
    AllDone,
    /// Stories are open, but each failed or waits for one that did.
    NothingRunnable { reason: String },
}

/// Chooses the next story, `only` that one where given.
pub fn select(plan: &Plan, progress: &Progress, only: Option<&StoryId>) -> Selection {
    let wanted = |index: &usize| only.is_none_or(|id| plan.stories[*index].id == *id);
    let open: Vec<usize> = ordered_open(plan).filter(wanted).collect();
    if open.is_empty() {
        return Selection::AllDone;
    }
    let places: HashMap<&StoryId, usize> = if open.iter().any(|i| !plan.stories[*i].depends_on.is_empty()) {
        plan.stories.iter().enumerate().map(|(i, story)| (&story.id, i)).collect()
    } else {
        HashMap::new()
    };
    let runnable = |index: &&usize| {
        let story = &plan.stories[**index];
        !progress.failed.contains_key(&story.id)
            && story.depends_on.iter().all(|id| places.get(id).is_some_and(|at| plan.stories[*at].status == Status::Done))
    };
    let attempts = |index: usize| progress.attempts.get(&plan.stories[index].id).copied().unwrap_or(0);
    let untouched = open.iter().filter(runnable).find(|index| attempts(**index) == 0);
    let next = untouched.or_else(|| open.iter().filter(runnable).min_by_key(|index| attempts(**index)));
    match next {
        Some(index) => Selection::Story { index: *index },
        None => Selection::NothingRunnable { reason: why_nothing(plan, progress, &open) },
    }
}

/// Open stories in the order of work.
fn ordered_open(plan: &Plan) -> impl Iterator<Item = usize> {
    let mut open: Vec<usize> = (0..plan.stories.len()).filter(|i| plan.stories[*i].status != Status::Done).collect();
    open.sort_by_key(|i| {
        let story = &plan.stories[*i];
        (story.status != Status::InProgress, story.priority.unwrap_or(u32::MAX))
    });
    open.into_iter()
}

fn why_nothing(plan: &Plan, progress: &Progress, open: &[usize]) -> String {
    let failed = open.iter().filter(|i| progress.failed.contains_key(&plan.stories[**i].id)).count();
    match open.len() - failed {
        0 => format!("{failed} failed"),
        waiting => format!("{failed} failed, {waiting} waiting for a story that is not done"),
    }
}
