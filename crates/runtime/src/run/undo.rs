//! Undoes a story commit: removes it from the run's branch if it has not landed, else reverts it with a new commit.

use std::path::Path;

use jiff::Timestamp;
use verdone_core::base::id::{Oid, RunId, StoryId};
use verdone_core::journal::event::{Event, Recorded};
use verdone_plan::Status;

use crate::git::{COMMIT_TIME, CommitError, Git, GitError, Merged, RepoPath};
use crate::project::plan_file::{PlanFile, PlanFileError, PlanLocation};
use crate::run::RunPlan;
use crate::run::land::{LandError, Target, cut_off_before_branch_moved, land_tip};
use crate::run::step;
use crate::store::{Journal, JournalError, JournalReader, LockError, RunLock, Store};

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("there is nothing to undo: no story was committed, or all were already undone")]
    Nothing,
    #[error("no commit of {story} can be undone: no run here committed it, or it was undone")]
    NoCommit { story: StoryId },
    #[error("{story} has not landed, and other stories of the run were committed after it: {}", later.join(", "))]
    NotLast { story: StoryId, later: Vec<String> },
    #[error("run {run} did not end properly; the next `verdone run` cleans up")]
    Unfinished { run: RunId },
    #[error("branch {branch} has moved on since the run committed {story}")]
    MovedOn { branch: String, story: StoryId },
    #[error("{story} cannot be reverted on top of later commits: {} would conflict", paths.join(", "))]
    Conflict { story: StoryId, paths: Vec<String> },
    #[error("cannot undo {story}: {reason}")]
    Refused { story: StoryId, reason: String, hint: Option<String> },
    #[error(transparent)]
    Land(#[from] LandError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// What was undone.
#[derive(Debug, PartialEq, Eq)]
pub struct Undone {
    pub what: String,
    pub story: StoryId,
    /// The undone commit. It stays reachable by this id until git collects it.
    pub commit: Oid,
    /// The commit that reverts it, and its branch.
    pub reverted_by: Option<(Oid, String)>,
}

/// A story commit that has not been undone.
#[derive(Debug)]
pub struct StoryCommit {
    pub run: RunId,
    pub story: StoryId,
    pub commit: Oid,
    base: Option<Oid>,
    /// The run's branch.
    pub branch: Option<String>,
    /// The branch that the run started on.
    target: Option<String>,
    plan: String,
}

/// The story commits that can be undone, newest first.
pub fn undoable(root: &Path) -> Result<Vec<StoryCommit>, UndoError> {
    let mut all = Vec::new();
    for stored in Store::new(root).runs()? {
        let events = JournalReader::open(&stored.journal())?.collect::<Result<Vec<Recorded>, _>>()?;
        all.extend(remaining(&stored.id, &events, &events).into_iter().rev());
    }
    Ok(all)
}

/// Undoes the commit of this story, or the last story commit.
pub fn undo(git: &Git, root: &Path, story: Option<&StoryId>) -> Result<Undone, UndoError> {
    let _lock = RunLock::acquire(git.git_dir())?;
    let (last, later, mut journal) = find(git, &Store::new(root), story)?;
    let target = Target::find(git, last.target.as_deref())?.ok_or(UndoError::Nothing)?;
    let reverted_by = if git.is_part_of(&last.commit, &target.tip)? {
        let commit = revert(git, root, &last, &target)?;
        Some((commit, target.name.unwrap_or_else(|| "HEAD".to_owned())))
    } else if later.is_empty() {
        take_off_branch(git, root, &last)?;
        None
    } else {
        return Err(UndoError::NotLast { story: last.story, later });
    };
    open_in_users_plan(git, root, &last)?;
    let what = format!("commit {} of {}", last.commit.short(), last.story);
    let tip = reverted_by.as_ref().map(|(commit, _)| commit.clone()).or(last.base);
    let event = Event::Undone { what: what.clone(), story: Some(last.story.clone()), tip };
    journal.append(vec![event], Timestamp::now())?;
    Ok(Undone { what, story: last.story, commit: last.commit, reverted_by })
}

/// Finds the commit, and the stories that the same run committed after it. Skips runs that committed nothing or whose stories are all
/// undone.
fn find(git: &Git, runs: &Store, story: Option<&StoryId>) -> Result<(StoryCommit, Vec<String>, Journal), UndoError> {
    for stored in runs.runs()? {
        if stored.last_state()?.open_attempt().is_some() {
            return Err(UndoError::Unfinished { run: stored.id });
        }
        let beginning = stored.beginning()?;
        let mut journal = Journal::reopen(&stored.dir)?;
        if let Some(tip) = stored.branches()?.map(|(branch, _)| git.branch_tip(&branch)).transpose()?.flatten() {
            journal.append(cut_off_before_branch_moved(git, &stored, &tip)?, Timestamp::now())?;
        }
        if let Some((found, later)) = stored.find_from_end(|events| pick(remaining(&stored.id, &beginning, events), story))? {
            return Ok((found, later, journal));
        }
    }
    Err(story.map_or(UndoError::Nothing, |story| UndoError::NoCommit { story: story.clone() }))
}

/// The commit of the asked story, or the last one, and the stories committed after it.
fn pick(mut commits: Vec<StoryCommit>, story: Option<&StoryId>) -> Option<(StoryCommit, Vec<String>)> {
    let at = match story {
        None => commits.len().checked_sub(1)?,
        Some(story) => {
            let meant = story.meant_among(commits.iter().map(|found| &found.story))?.clone();
            commits.iter().rposition(|found| found.story == meant)?
        }
    };
    let later = commits.drain(at + 1..).map(|found| found.story.to_string()).collect();
    Some((commits.pop()?, later))
}

/// The run's story commits that have not been undone, oldest first.
fn remaining(run: &RunId, beginning: &[Recorded], events: &[Recorded]) -> Vec<StoryCommit> {
    let (mut branch, mut target, mut plan) = (None, None, String::new());
    for recorded in beginning {
        if let Event::RunStarted { branch: of, target: into, plan: named, .. } = &recorded.event {
            (branch, target, plan) = (of.clone(), into.clone(), named.clone());
        }
    }
    let mut commits: Vec<(StoryId, Oid, Option<Oid>)> = Vec::new();
    for recorded in events {
        match &recorded.event {
            Event::Committed { place, commit, base, .. } => commits.push((place.story.clone(), commit.clone(), base.clone())),
            Event::Reapplied { was, commit: now, base: onto, .. } => {
                for (_, commit, base) in commits.iter_mut().filter(|(_, commit, _)| commit == was) {
                    (*commit, *base) = (now.clone(), onto.clone());
                }
            }
            Event::Undone { story: Some(undone), .. } => {
                if let Some(at) = commits.iter().rposition(|(story, ..)| story == undone) {
                    commits.remove(at);
                }
            }
            _ => {}
        }
    }
    let commit = |(story, commit, base)| {
        let (run, branch, target, plan) = (run.clone(), branch.clone(), target.clone(), plan.clone());
        StoryCommit { run, story, commit, base, branch, target, plan }
    };
    commits.into_iter().map(commit).collect()
}

fn take_off_branch(git: &Git, root: &Path, last: &StoryCommit) -> Result<(), UndoError> {
    let branch = last.branch.clone().unwrap_or_default();
    let moved_on = || UndoError::MovedOn { branch: branch.clone(), story: last.story.clone() };
    let (Some(tip), Some(base)) = (git.branch_tip(&branch)?, &last.base) else { return Err(moved_on()) };
    if tip != last.commit && !only_updates_plan(git, root, last, &tip)? {
        return Err(moved_on());
    }
    Ok(git.set_branch(&branch, base, Some(&tip))?)
}

/// Whether this is the run's own progress commit after the story's commit; it is undone with the story.
fn only_updates_plan(git: &Git, root: &Path, last: &StoryCommit, tip: &Oid) -> Result<bool, UndoError> {
    if git.first_parent(tip)?.as_ref() != Some(&last.commit) || !step::is_plan_message(&git.message(tip)?, &last.run) {
        return Ok(false);
    }
    let files = PlanLocation::new(root.join(&last.plan)).files();
    let paths: Vec<RepoPath> = files.iter().filter_map(|file| git.repo_path(file)).collect();
    Ok(git.changed_paths(Some(&last.commit), tip)?.iter().all(|change| paths.contains(&change.path)))
}

/// Commits the reversal of the story's changes on the user's branch.
fn revert(git: &Git, root: &Path, last: &StoryCommit, target: &Target) -> Result<Oid, UndoError> {
    let plan = PlanFile::open(PlanLocation::new(root.join(&last.plan)));
    let progress = plan.map_or_else(|_| Vec::new(), |plan| plan.progress_paths());
    let progress: Vec<RepoPath> = progress.iter().filter_map(|path| git.repo_path(path)).collect();
    let tree = match git.revert_except(&progress, &last.commit, &target.tip)? {
        Merged::Clean { tree } => tree,
        Merged::Conflict { paths } => {
            let paths = paths.iter().map(ToString::to_string).collect();
            return Err(UndoError::Conflict { story: last.story.clone(), paths });
        }
    };
    let message = format!("revert: {}\n\nThis reverts commit {}.\n", last.story, last.commit);
    let commit = git.commit_tree(&tree, Some(&target.tip), &message, COMMIT_TIME)?;
    match land_tip(git, target.name.as_deref(), &commit) {
        Ok(_) => Ok(commit),
        Err(LandError::Refused { reason, hint }) => Err(UndoError::Refused { story: last.story.clone(), reason, hint }),
        Err(error) => Err(error.into()),
    }
}

/// Reopens the story in the user's plan. A plan that is marked in story commits is reverted with them; then the file in the checkout stays
/// unchanged, whatever branch is checked out.
fn open_in_users_plan(git: &Git, root: &Path, last: &StoryCommit) -> Result<(), UndoError> {
    if let (Some(path), Some(base)) = (git.repo_path(&root.join(&last.plan)), &last.base)
        && git.changed_paths(Some(base), &last.commit)?.iter().any(|change| change.path == path)
    {
        return Ok(());
    }
    let Ok(file) = PlanFile::open(PlanLocation::new(root.join(&last.plan))) else { return Ok(()) };
    if file.plan().story(&last.story).is_some_and(|story| story.status == Status::Done) {
        RunPlan::of_user(git, file).mark_users_file(&last.story, Status::Open)?;
    }
    Ok(())
}
