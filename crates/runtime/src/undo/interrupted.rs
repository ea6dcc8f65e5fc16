//! An undo that was killed in its middle: the work tree goes back to how it was before, the user's changes included. What is
//! found there is kept first.

use std::path::Path;

use jiff::Timestamp;
use verdone_core::event::{Checkpoint, Event};
use verdone_core::machine::State;

use crate::git::{Git, GitError};
use crate::keep::Keep;
use crate::store::{Journal, JournalError, StoredRun};

/// What became of an interrupted undo.
#[derive(Debug)]
pub enum TakenBack {
    /// There was none.
    Nothing,
    Done {
        /// What was in the work tree.
        found: Checkpoint,
    },
    /// Nothing was touched: what is there is not only the undo's.
    Left { before: Checkpoint, reason: String },
}

/// Takes back what the undo did, where the journal says that it began and not that it ended. Killed halfway, it is done again.
pub fn take_back<E>(git: &Git, root: &Path, stored: &StoredRun, state: &State) -> Result<TakenBack, E>
where
    E: From<GitError> + From<JournalError>,
{
    let Some(undoing) = &state.undoing else { return Ok(TakenBack::Nothing) };
    let before = undoing.before.clone();
    git.remove_stale_locks(undoing.at.into(), &stored.id, before.branch.as_deref())?;
    let status = git.status()?;
    let stands_at = |point: &Checkpoint| (&point.head, &point.branch) == (&status.head, &status.branch);
    let reason = if stored.was_mended() {
        Some("its journal is damaged".to_owned())
    } else if let Some(operation) = git.operation_in_progress() {
        Some(format!("a {operation} is in progress"))
    } else {
        (!stands_at(&undoing.before) && !stands_at(&undoing.to)).then(|| "the branch has moved since".to_owned())
    };
    if let Some(reason) = reason {
        return Ok(TakenBack::Left { before, reason });
    }
    let keep = Keep { git, root, run: &stored.id, run_dir: &stored.dir, limits: git.limits_of(&before)? };
    let found = keep.checkpoint("as an interrupted undo left it", &git.extra_paths(&before)?)?;
    keep.restore(&before)?;
    Journal::reopen(&stored.dir)?.append(vec![Event::UndoTakenBack { before }], Timestamp::now())?;
    Ok(TakenBack::Done { found })
}
