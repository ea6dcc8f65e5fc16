//! The commit of a story that the gate verified, where the settings ask for it. Done by the worker, never by a hook: the plan is ticked,
//! and exactly what was verified becomes a commit, without what was untracked when the loop began.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use verdone_core::event::Checkpoint;
use verdone_core::id::{Oid, StoryId};
use verdone_core::plan::Status;
use verdone_core::span::Span;

use crate::git::{CandidateRules, CommitError, Git, History};
use crate::plan_file::{PlanFile, PlanLocation};
use crate::project::HOME;
use crate::signal::Signals;

use super::StopError;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CommitAsk {
    pub(super) story: StoryId,
    pub(super) plan: PathBuf,
    pub(super) root: PathBuf,
    pub(super) checkpoint: Checkpoint,
    pub(super) message: String,
    pub(super) timeout: Span,
    pub(super) largest_file: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Committed {
    Commit(Oid),
    /// The work stays as it is, uncommitted and not marked.
    Refused(String),
}

pub(super) fn commit(ask: &CommitAsk, signals: &Signals) -> Committed {
    try_to(ask, signals).unwrap_or_else(|error| Committed::Refused(error.to_string()))
}

fn try_to(ask: &CommitAsk, signals: &Signals) -> Result<Committed, StopError> {
    let git = Git::open(&ask.root)?;
    let mut plan = PlanFile::open(PlanLocation::of(ask.plan.clone()))?;
    plan.mark(&ask.story, Status::Done)?;
    let made = made(ask, &git, signals);
    if !matches!(made, Ok(Committed::Commit(_))) {
        plan.unmark()?;
    }
    made
}

fn made(ask: &CommitAsk, git: &Git, signals: &Signals) -> Result<Committed, StopError> {
    let excluded = git.repo_path(&ask.root.join(HOME)).into_iter().collect();
    let rules = CandidateRules { excluded, largest_file: ask.largest_file };
    let candidate = git.candidate(&ask.checkpoint, &rules)?;
    if let History::Moved { reason } = &candidate.history {
        return Ok(Committed::Refused(reason.clone()));
    }
    if let Some(obstacle) = candidate.obstacles.first() {
        return Ok(Committed::Refused(obstacle.to_string()));
    }
    let called_off = || signals.requested().is_some();
    match git.commit_unless(&candidate, &ask.message, ask.timeout.duration(), &called_off) {
        Ok(commit) if commit.tree == candidate.tree => Ok(Committed::Commit(commit.id)),
        Ok(commit) => {
            git.uncommit(&commit.id, candidate.head.as_ref())?;
            Ok(Committed::Refused("a git hook changed files, so the commit was not what was verified".to_owned()))
        }
        Err(CommitError::Refused { message, .. }) => Ok(Committed::Refused(message)),
        Err(CommitError::Git(error)) => Err(error.into()),
    }
}
