//! Takes back the last rollback, story commit or undo of the latest run. What is there now is snapshotted first, so an undo can
//! itself be undone, and is taken back where it does not get to its end.

mod interrupted;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::event::{Checkpoint, Event, Recorded};
use verdone_core::id::{Oid, RunId};
use verdone_core::machine::PutBack;

use crate::git::{Entry, Git, GitError, Kind, Status};
use crate::keep::Keep;
use crate::store::{Journal, JournalError, LockError, RunLock, Store};

pub use interrupted::{TakenBack, take_back};

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("there is nothing to undo: no run has rolled back or committed anything here")]
    Nothing,
    #[error("an undo was interrupted, and {reason}: the work tree is left as it is")]
    Interrupted { before: Checkpoint, reason: String },
    #[error("run {run} did not end properly")]
    Unfinished { run: RunId },
    #[error("a {operation} is in progress")]
    Operation { operation: &'static str },
    #[error("the run worked on branch {branch}, and this is {}", here.as_ref().map_or("a detached HEAD", String::as_str))]
    OtherBranch { branch: String, here: Option<String>, commit: Option<Oid> },
    #[error("the branch has moved on: to undo the {what} would take newer commits away")]
    MovedOn { what: String, kept: Option<Oid>, commit: Option<Oid> },
    #[error("the {what} cannot be undone any more: what was there before is not kept")]
    Gone { what: String, commit: Option<Oid> },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// What an undo did.
#[derive(Debug)]
pub enum Outcome {
    Undone(Undone),
    /// Only that: an earlier undo had been interrupted, and the work tree is as it was before it.
    TakenBack {
        found: Checkpoint,
    },
}

/// What was undone.
#[derive(Debug)]
pub struct Undone {
    pub what: String,
    pub files: u32,
    pub before: Checkpoint,
    /// What became of the user's own changes, where the run had set some aside.
    pub changes: Option<PutBack>,
}

/// What an undo would return to.
struct Target {
    what: String,
    /// Where the branch has to stand for this to be the last thing that happened.
    expected_head: Option<Oid>,
    to: Checkpoint,
    kept: Option<Oid>,
    commit: Option<Oid>,
    /// Taken when the user's own changes were in the work tree, so that they come back with it.
    has_changes: bool,
}

pub fn undo(git: &Git, root: &Path) -> Result<Outcome, UndoError> {
    let _lock = RunLock::take(git.git_dir())?;
    git.remove_leftovers()?;
    let store = Store::of(root);
    let stored = store.latest()?.ok_or(UndoError::Nothing)?;
    let state = stored.last_state()?;
    match take_back::<UndoError>(git, root, &stored, &state)? {
        TakenBack::Nothing => {}
        TakenBack::Done { found } => return Ok(Outcome::TakenBack { found }),
        TakenBack::Left { before, reason } => return Err(UndoError::Interrupted { before, reason }),
    }
    if state.open_attempt().is_some() || state.aside.is_some() {
        return Err(UndoError::Unfinished { run: stored.id });
    }
    if let Some(operation) = git.operation_in_progress() {
        return Err(UndoError::Operation { operation });
    }
    let target = stored.find_from_end(last_change)?.ok_or(UndoError::Nothing)?;
    let status = git.status()?;
    // A landed run's commits are on this branch too, but what it would put back is the other one.
    if let Some(branch) = target.to.branch.as_ref().filter(|branch| status.branch.as_ref() != Some(branch)) {
        return Err(UndoError::OtherBranch { branch: branch.clone(), here: status.branch, commit: target.commit });
    }
    if !stands_at(git, status.head.as_ref(), target.expected_head.as_ref(), &stored.id)? {
        return Err(UndoError::MovedOn { what: target.what, kept: target.kept, commit: target.commit });
    }
    let gone = |error| match error {
        GitError::NotACheckpoint { .. } => UndoError::Gone { what: target.what.clone(), commit: target.commit.clone() },
        other => UndoError::Git(other),
    };
    let extra = git.extra_paths(&target.to).map_err(gone)?;
    let keep = Keep { git, root, run: &stored.id, run_dir: &stored.dir, limits: git.limits_of(&target.to)? };
    let label = format!("before undoing: {}", target.what);
    let before = keep.checkpoint(&label, &extra)?;
    let mine = own_changes(git, root, &status, &stored.beginning()?);
    let mine = Some(mine).filter(|files| !files.is_empty() && !target.has_changes);
    let (what, to) = (target.what, target.to);
    let mut journal = Journal::reopen(&stored.dir)?;
    // Before the work tree is touched: from here on an undo that dies owes the user the way back.
    let started = Event::UndoStarted { what: what.clone(), before: before.clone(), to: to.clone() };
    journal.append(vec![started], Timestamp::now())?;
    let done = restore(&keep, (&before, &to), mine.as_deref(), &extra).and_then(|done| {
        let event = Event::Undone { what: what.clone(), before: before.clone(), restored: to };
        journal.append(vec![event], Timestamp::now())?;
        Ok(done)
    });
    match done {
        Ok((files, changes)) => Ok(Outcome::Undone(Undone { what, files, before, changes })),
        Err(error) => {
            // Not halfway. Where even this fails, the journal has the beginning, and the next command does it.
            if keep.restore(&before).is_ok() {
                let _ = journal.append(vec![Event::UndoTakenBack { before }], Timestamp::now());
            }
            Err(error)
        }
    }
}

/// Goes `to` a checkpoint and puts the user's own files back as they were `before`.
fn restore(
    keep: &Keep<'_>,
    (before, to): (&Checkpoint, &Checkpoint),
    mine: Option<&[String]>,
    extra: &[PathBuf],
) -> Result<(u32, Option<PutBack>), UndoError> {
    let restored = keep.restore(to)?;
    let Some(files) = mine else { return Ok((restored.files, None)) };
    let now = keep.checkpoint("before the user's changes come back", extra)?;
    Ok((restored.files, Some(keep.put_back(before, files, &now)?)))
}

/// The files that are the user's own to change: those that the run worked without, and whatever was changed since. An undo of the
/// run's work is none of them.
fn own_changes(git: &Git, root: &Path, status: &Status, beginning: &[Recorded]) -> Vec<String> {
    let (mut files, mut ours) = (BTreeSet::new(), vec![root.join(".verdone")]);
    for recorded in beginning {
        match &recorded.event {
            Event::ChangesSetAside { files: aside, .. } => files.extend(aside.iter().cloned()),
            Event::RunStarted { plan, .. } => ours.push(root.join(plan)),
            _ => {}
        }
    }
    let is_ours = |entry: &&Entry| ours.iter().any(|path| git.top().join(entry.path.as_path()).starts_with(path));
    let changed = status.entries.iter().filter(|entry| matches!(entry.kind, Kind::Tracked { .. } | Kind::Untracked));
    files.extend(changed.filter(|entry| !is_ours(entry)).map(|entry| entry.path.to_string()));
    files.into_iter().collect()
}

/// The commit that only records progress comes after the last story by itself, and goes with it.
fn stands_at(git: &Git, head: Option<&Oid>, expected: Option<&Oid>, run: &RunId) -> Result<bool, GitError> {
    match (head, expected) {
        (Some(head), Some(expected)) if head != expected => git.only_records_progress(head, expected, run),
        (head, expected) => Ok(head == expected),
    }
}

fn last_change(journal: &[Recorded]) -> Option<Target> {
    journal.iter().rev().find_map(|recorded| match &recorded.event {
        Event::RolledBack { place, kept, before, .. } => {
            let checkpoint = checkpoint_of(journal, recorded.seq)?;
            Some(Target {
                what: format!("rollback of {} attempt {}", place.story, place.attempt),
                expected_head: checkpoint.head.clone(),
                to: before.clone(),
                kept: Some(kept.clone()),
                commit: None,
                has_changes: false,
            })
        }
        Event::Committed { place, commit, .. } => Some(Target {
            what: format!("commit {} of {}", commit.short(), place.story),
            expected_head: Some(commit.clone()),
            to: checkpoint_of(journal, recorded.seq)?.clone(),
            kept: None,
            commit: Some(commit.clone()),
            has_changes: false,
        }),
        Event::Undone { what, before, restored } => Some(Target {
            what: what.strip_prefix("undo of ").map_or_else(|| format!("undo of {what}"), str::to_owned),
            expected_head: restored.head.clone(),
            to: before.clone(),
            kept: None,
            commit: None,
            has_changes: true,
        }),
        _ => None,
    })
}

/// The checkpoint of the attempt that ended with the event at `seq`.
fn checkpoint_of(journal: &[Recorded], seq: u64) -> Option<&Checkpoint> {
    journal.iter().rev().filter(|recorded| recorded.seq < seq).find_map(|recorded| match &recorded.event {
        Event::Checkpointed { checkpoint, .. } => Some(checkpoint),
        _ => None,
    })
}
