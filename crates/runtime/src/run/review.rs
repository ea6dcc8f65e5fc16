//! Stories whose checks pass but that need review: lists, accepts and rejects them.

mod accept;
mod reject;

use std::collections::BTreeMap;

use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::{Oid, RunId, StoryId};
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::config::Config;
use verdone_core::journal::event::{Event, Place};
use verdone_core::verify::{Outcome, Proof};
use verdone_plan::ReviewState;
use verdone_text::shell_word::shell_argument;

use super::RunPlanError;
use super::land::LandError;
use crate::git::{CommitError, GitError};
use crate::project::Project;
use crate::project::plan_file::PlanFileError;
use crate::run::recover::RecoverError;
use crate::store::{JournalError, JournalReader, LockError, Store};
use crate::verify::VerifyError;
use crate::workspace::WorkspaceError;

pub use accept::{AcceptedStory, accept};
pub use reject::{RejectedStory, reject};

/// A story that needs review.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    pub run: RunId,
    /// The plan's name in the run.
    pub plan: String,
    /// The run's branch, and the user's.
    pub branch: Option<String>,
    pub target: Option<String>,
    pub place: Place,
    pub title: String,
    pub waiting: ReviewState,
    /// The commit with the work, and the commit it started from.
    pub work: Oid,
    pub base: Option<Oid>,
    pub proof: Proof,
    /// The reasons, one sentence each.
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct ReviewRequest<'a> {
    pub project: &'a Project,
    pub config: &'a Config,
    pub story: &'a StoryId,
}

#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    #[error("no story needs a review")]
    Nothing,
    #[error("{story} does not need a review")]
    NotWaiting { story: StoryId, waiting: Vec<String> },
    #[error("the work of {story} conflicts with later commits in {}", paths.join(", "))]
    Conflict { story: StoryId, work: Oid, paths: Vec<String> },
    #[error("{story} does not pass its checks on top of later commits: {reason}")]
    Red { story: StoryId, work: Oid, reason: String },
    #[error("stopped by {} before {story} was verified: it was not accepted", signal.name())]
    Interrupted { story: StoryId, signal: StopSignal },
    #[error("{story} is no longer in {plan}, which defines its checks")]
    NotInPlan { story: StoryId, plan: String },
    #[error("a git hook refused the commit: {said}")]
    Hook { said: String },
    #[error("{story} cannot be removed from the run's branch: {why}")]
    Needed { story: StoryId, why: String },
    #[error("the repository has no commit yet")]
    Unborn,
    #[error(transparent)]
    Land(#[from] LandError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error(transparent)]
    RunPlan(#[from] RunPlanError),
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// A story's id in a command.
fn argument(story: &StoryId) -> String {
    shell_argument(&sanitise_line(story.as_str()))
}

impl ReviewError {
    /// What to type next.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Nothing => vec!["verdone status shows what the last run did".to_owned()],
            Self::NotWaiting { waiting, .. } if waiting.is_empty() => vec!["verdone status shows its result".to_owned()],
            Self::NotWaiting { waiting, .. } => vec![format!("these do: {}", waiting.join(", "))],
            Self::Conflict { work, story, .. } => {
                vec![
                    format!("merge it by hand: git cherry-pick {}", work.short()),
                    format!("or drop it: verdone reject {}", argument(story)),
                ]
            }
            Self::Red { story, work, .. } => {
                vec![format!("look at it: git show {}", work.short()), format!("or drop it: verdone reject {}", argument(story))]
            }
            Self::NotInPlan { story, .. } => {
                vec!["restore the story in the plan".to_owned(), format!("or drop its work: verdone reject {}", argument(story))]
            }
            Self::Needed { story, .. } => {
                vec![
                    "undo the later story first: verdone undo, or verdone reject if it needs a review".to_owned(),
                    format!("or accept this one: verdone accept {}", argument(story)),
                ]
            }
            Self::Land(error) => error.hints(),
            Self::Interrupted { .. }
            | Self::Hook { .. }
            | Self::Unborn
            | Self::Commit(_)
            | Self::Git(_)
            | Self::Workspace(_)
            | Self::Verify(_)
            | Self::Plan(_)
            | Self::RunPlan(_)
            | Self::Recover(_)
            | Self::Journal(_)
            | Self::Lock(_)
            | Self::Io(_) => Vec::new(),
        }
    }
}

/// All stories that need review, oldest first, without those that a later run settled.
pub fn pending(store: &Store) -> Result<Vec<Review>, JournalError> {
    let mut waiting = Pending::default();
    for id in store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })? {
        waiting.begin(id.clone());
        for recorded in JournalReader::open(&store.run(id).journal())? {
            match recorded {
                Ok(recorded) => waiting.take_in(recorded.event),
                // A broken line in an old run's journal must not block a new run.
                Err(JournalError::Broken { .. }) => {}
                Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => return Err(error),
            }
        }
    }
    let mut found: Vec<(u64, Review)> = waiting.found.into_values().collect();
    found.sort_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, review)| review).collect())
}

#[derive(Debug, Default)]
struct Pending {
    run: Option<RunId>,
    plan: String,
    branch: Option<String>,
    target: Option<String>,
    title: String,
    stacked: Vec<Oid>,
    number: u64,
    found: BTreeMap<(String, StoryId), (u64, Review)>,
}

impl Pending {
    fn begin(&mut self, run: RunId) {
        let (number, found) = (self.number, std::mem::take(&mut self.found));
        *self = Self { run: Some(run), number, found, ..Self::default() };
    }

    fn take_in(&mut self, event: Event) {
        match event {
            Event::RunStarted { plan, branch, target, .. } => (self.plan, self.branch, self.target) = (plan, branch, target),
            Event::StorySelected { title, .. } => self.title = title,
            Event::Committed { place, commit, outcome: Outcome::NeedsReview, .. } => {
                self.stacked.push(commit);
                self.forget(place.story);
            }
            Event::Committed { place: Place { story, .. }, .. }
            | Event::Accepted { story, .. }
            | Event::Refused { story, .. }
            | Event::Undone { story: Some(story), .. } => self.forget(story),
            Event::ReviewNeeded { place, work, base, proof, reasons } => self.add(place, work, base, proof, reasons),
            Event::Reapplied { story, was, commit, base, .. } => self.moved(&story, &was, &commit, base),
            _ => {}
        }
    }

    fn add(&mut self, place: Place, work: Oid, base: Option<Oid>, proof: Proof, reasons: Vec<String>) {
        let Some(run) = self.run.clone() else { return };
        let waiting = if self.stacked.contains(&work) { ReviewState::Stacked } else { ReviewState::Aside };
        self.number += 1;
        let review = Review {
            run,
            plan: self.plan.clone(),
            branch: self.branch.clone(),
            target: self.target.clone(),
            title: self.title.clone(),
            waiting,
            work,
            base,
            proof,
            reasons,
            place,
        };
        self.found.insert((review.plan.clone(), review.place.story.clone()), (self.number, review));
    }

    /// Records that a stacked story's commit was re-applied elsewhere.
    fn moved(&mut self, story: &StoryId, was: &Oid, commit: &Oid, base: Option<Oid>) {
        let key = (self.plan.clone(), story.clone());
        if let Some((_, review)) = self.found.get_mut(&key).filter(|(_, review)| review.work == *was) {
            (review.work, review.base) = (commit.clone(), base);
        }
    }

    fn forget(&mut self, story: StoryId) {
        self.found.remove(&(self.plan.clone(), story));
    }
}

/// The review of a story. If several have the same id, the newest.
fn find(runs: &Store, story: &StoryId) -> Result<Review, ReviewError> {
    let all = pending(runs)?;
    if all.is_empty() {
        return Err(ReviewError::Nothing);
    }
    let waiting = || all.iter().map(|review| review.place.story.to_string()).collect();
    let meant = story.meant_among(all.iter().map(|review| &review.place.story));
    let found = all.iter().rev().find(|review| Some(&review.place.story) == meant);
    found.cloned().ok_or_else(|| ReviewError::NotWaiting { story: story.clone(), waiting: waiting() })
}
