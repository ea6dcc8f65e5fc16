//! Selects the next story. Among stories whose dependencies are done: in progress first, then by priority, then by file order.
//! Stories with failed attempts come after those without.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::StoryId;
use crate::{Plan, Status, Story};

/// What a run knows about the stories it has worked on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Number of attempts that count, by story.
    pub attempts: BTreeMap<StoryId, u32>,
    /// Stories that get no further attempt in this run, with the reason.
    pub failed: BTreeMap<StoryId, String>,
    /// Stories that wait for the user's answer to a question.
    pub asked: BTreeSet<StoryId>,
    /// Stories that wait for a review. Stacked ones count as done for the stories that build on them.
    pub review: BTreeMap<StoryId, ReviewState>,
}

/// How a story's work is kept while it waits for a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewState {
    /// Kept under a ref, outside the run's branch.
    Aside,
    /// Committed on the run's branch; later stories build on it.
    Stacked,
}

/// The result of a selection.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// Work on the story at this index.
    Story { index: usize },
    /// No story is open.
    AllDone,
    /// Stories are open, but each has failed or waits for one that has.
    NothingRunnable { reason: String },
}

/// Selects the next story. With `only`, considers just that one.
///
/// A single pass without allocations: it runs once per iteration, for plans of up to 100,000 stories.
pub fn select(plan: &Plan, progress: &Progress, only: Option<&StoryId>) -> Selection {
    let candidates = match only {
        None => 0..plan.stories.len(),
        Some(id) => plan.place(id).map_or(0..0, |index| index..index + 1),
    };
    let mut best: Option<(Rank, usize)> = None;
    let mut open = 0;
    for index in candidates.clone() {
        let story = &plan.stories[index];
        if story.status == Status::Done {
            continue;
        }
        open += 1;
        let rank = Rank { attempts: 0, waits: story.status != Status::InProgress, priority: story.priority.unwrap_or(u32::MAX) };
        // Check this first: looking up attempts and dependencies costs more, and most stories do not beat the best one so far.
        if best.as_ref().is_some_and(|(known, _)| *known <= rank) || progress.is_settled(&story.id) {
            continue;
        }
        let rank = Rank { attempts: progress.attempts.get(&story.id).copied().unwrap_or(0), ..rank };
        if best.as_ref().is_none_or(|(known, _)| rank < *known) && dependencies_done(plan, progress, story) {
            best = Some((rank, index));
        }
    }
    match best {
        Some((_, index)) => Selection::Story { index },
        None if open == 0 => Selection::AllDone,
        None => Selection::NothingRunnable { reason: why_nothing(plan, progress, candidates) },
    }
}

/// The order of work. Ties are resolved by file order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    attempts: u32,
    /// `false` for a story in progress, because `false` sorts first.
    waits: bool,
    priority: u32,
}

impl Progress {
    /// Whether the story gets no attempt at the moment.
    pub fn is_settled(&self, story: &StoryId) -> bool {
        self.failed.contains_key(story) || self.asked.contains(story) || self.review.contains_key(story)
    }
}

fn dependencies_done(plan: &Plan, progress: &Progress, story: &Story) -> bool {
    let is_stacked = |id: &StoryId| progress.review.get(id) == Some(&ReviewState::Stacked);
    story.depends_on.iter().all(|id| is_stacked(id) || plan.story(id).is_some_and(|on| on.status == Status::Done))
}

fn why_nothing(plan: &Plan, progress: &Progress, candidates: Range<usize>) -> String {
    let open = || plan.stories[candidates.clone()].iter().filter(|story| story.status != Status::Done);
    let failed = open().filter(|story| progress.failed.contains_key(&story.id)).count();
    let asked = open().filter(|story| progress.asked.contains(&story.id) && !progress.failed.contains_key(&story.id)).count();
    let review = open().filter(|story| progress.review.contains_key(&story.id)).count();
    let waiting = open().count() - failed - asked - review;
    let parts = [
        (failed, format!("{failed} failed")),
        (asked, format!("{asked} waiting for your answer")),
        (review, format!("{review} for you to review")),
        (waiting, format!("{waiting} waiting for a story that is not done")),
    ];
    parts.into_iter().filter(|(number, _)| *number > 0).map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}
