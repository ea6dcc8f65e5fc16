//! `verdone reject`: a person rejects the work. Stories built on it are re-applied and verified without it.

use jiff::Timestamp;
use verdone_core::base::id::{Oid, StoryId};
use verdone_core::journal::event::Event;
use verdone_core::journal::update::Reporter;
use verdone_plan::ReviewState;

use super::{Review, ReviewError, ReviewRequest, find};
use crate::git::Git;
use crate::process::signal::Signals;
use crate::run::land::{LandError, LandRequest, ReappliedCommit, Reapplying};
use crate::run::recover::recover;
use crate::store::{Journal, RunLock, Store};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedStory {
    pub story: StoryId,
    /// The commit in which the work is kept.
    pub work: Oid,
    /// Later stories that were verified again without it.
    pub reapplied: usize,
}

pub fn reject(request: &ReviewRequest<'_>, signals: &Signals, reporter: &mut dyn Reporter) -> Result<RejectedStory, ReviewError> {
    let ReviewRequest { project, story, .. } = *request;
    let git = Git::open(&project.root)?;
    let _lock = RunLock::acquire(git.git_dir())?;
    recover(project, signals, reporter)?;
    let runs = Store::new(&project.root);
    let review = find(&runs, story)?;
    let mut journal = Journal::reopen(&runs.run(review.run.clone()).dir)?;
    let story = review.place.story.clone();
    let refused = Event::Refused { story: story.clone(), by: git.identity()? };
    let reapplied = match review.waiting {
        ReviewState::Aside => {
            journal.append(vec![refused], Timestamp::now())?;
            0
        }
        ReviewState::Stacked => take_out(request, &git, &review, refused, &mut journal, signals, reporter)?,
    };
    Ok(RejectedStory { story, work: review.work, reapplied })
}

/// Removes the story's commit from the run's branch.
fn take_out(
    request: &ReviewRequest<'_>,
    git: &Git,
    review: &Review,
    refused: Event,
    journal: &mut Journal,
    signals: &Signals,
    reporter: &mut dyn Reporter,
) -> Result<usize, ReviewError> {
    let (Some(branch), Some(base)) = (&review.branch, &review.base) else { return Err(ReviewError::Unborn) };
    let tip = git.branch_tip(branch)?.ok_or(ReviewError::Unborn)?;
    let later = git.commits_to_land(&tip, &review.work)?;
    // Keep it reachable, like other attempts.
    git.keep_story_commit(&review.run, &review.work)?;
    let land = LandRequest { project: request.project, config: request.config, branch: None, proof: None };
    let reapplying = Reapplying { request: &land, git, run: review.run.as_str(), signals };
    let (made, moved) = reapplying.all(&later, base, reporter).map_err(|error| match error {
        LandError::Conflict { .. } | LandError::Red { .. } => {
            ReviewError::Needed { story: review.place.story.clone(), why: error.to_string() }
        }
        error => error.into(),
    })?;
    let mut events: Vec<Event> = moved.iter().map(ReappliedCommit::event).collect();
    events.push(refused);
    git.set_branch(branch, made.last().unwrap_or(base), Some(&tip))?;
    journal.append(events, Timestamp::now())?;
    Ok(later.len())
}
