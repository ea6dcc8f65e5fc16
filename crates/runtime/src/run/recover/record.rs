//! Writes what the run would have written after a story's commit: the mark in an uncommitted plan, and progress entries.

use std::io;

use verdone_core::base::id::Oid;
use verdone_core::evidence::Evidence;
use verdone_core::journal::event::Event;
use verdone_plan::Status;

use super::{branch_of, plan_of};
use crate::git::{COMMIT_TIME, CommitError, Git, GitError};
use crate::project::Project;
use crate::project::plan_file::{PlanFile, PlanFileError, PlanLocation};
use crate::run::step;
use crate::run::{RunPlan, RunPlanError};
use crate::store::{JournalError, JournalReader, StoredRun};

#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error(transparent)]
    RunPlan(#[from] RunPlanError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Marks a story in the user's plan, unless its commit did.
pub(super) fn mark_done(
    git: &Git,
    project: &Project,
    stored: &StoredRun,
    evidence: &Evidence,
    commit: &Oid,
) -> Result<(), RecordError> {
    let Some(path) = plan_of(project, stored)? else { return Ok(()) };
    let file = PlanFile::open(PlanLocation::new(path))?;
    if let Some(path) = git.repo_path(file.path())
        && git.changed_paths(evidence.base.as_ref(), commit)?.iter().any(|change| change.path == path)
    {
        return Ok(());
    }
    let mut plan = RunPlan::of_user(git, file);
    plan.mark_users_file(&evidence.story, Status::Done)?;
    if !plan.progress_names(commit) {
        plan.record_story(&step::entry(&stored.dir, &project.root, evidence, commit, &git.subject(commit)?))?;
    }
    Ok(())
}

/// Commits the entries of a tracked progress file. They normally become part of the next commit, but a run that died had none. The journal
/// does not contain `settled` yet.
pub(super) fn commit_progress(git: &Git, project: &Project, stored: &StoredRun, settled: &[Event]) -> Result<(), RecordError> {
    let commits = commits(stored, settled)?;
    let (Some(path), Some(branch)) = (plan_of(project, stored)?, branch_of(stored)?) else { return Ok(()) };
    let location = PlanLocation::new(path);
    let (Some(tip), Some(head)) = (git.branch_tip(&branch)?, git.status()?.head) else { return Ok(()) };
    // If the user's branch has moved on, a commit here would be in the way of the next run.
    if commits.is_empty() || git.ahead_behind(&tip, &head)?.1 > 0 {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let mut plan = RunPlan::open(git, PlanFile::open(location)?, &tip, &head, folder.path())?;
    if !plan.is_committed() {
        return Ok(());
    }
    for commit in commits {
        let note = git.read_note(&commit)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok());
        if let Some(evidence) = note.filter(|_| !plan.progress_names(&commit)) {
            plan.record_story(&step::entry(&stored.dir, &project.root, &evidence, &commit, &git.subject(&commit)?))?;
        }
    }
    let before = git.tree_of(&tip)?;
    let changes: Vec<_> = plan.texts().into_iter().map(|(path, bytes)| (path, Some(("100644", bytes)))).collect();
    let tree = git.replace_in_tree(&before, &changes)?;
    if tree != before {
        let made = git.commit_tree(&tree, Some(&tip), &step::progress_message(&stored.id), COMMIT_TIME)?;
        git.advance_branch(&branch, &made, &tip)?;
    }
    Ok(())
}

fn commits(stored: &StoredRun, settled: &[Event]) -> Result<Vec<Oid>, JournalError> {
    let commit = |event: &Event| match event {
        Event::Committed { commit, .. } => Some(commit.clone()),
        _ => None,
    };
    let mut found = Vec::new();
    for line in JournalReader::open(&stored.journal())? {
        found.extend(commit(&line?.event));
    }
    found.extend(settled.iter().filter_map(commit));
    Ok(found)
}
