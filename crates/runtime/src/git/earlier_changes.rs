//! Changes that the user made before a checkpoint and never committed. They are not part of the later work.

use std::collections::BTreeSet;

use verdone_core::base::id::digest;
use verdone_core::journal::event::Checkpoint;

use super::Git;
use super::error::GitError;
use super::files::{self, FileState, Stat};
use super::path::{PathSet, RepoPath};
use super::snapshot::{Kept, Snapshot, State};

/// Changes that were uncommitted when a checkpoint was taken, and still are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// Staged at the checkpoint.
    pub staged: Vec<RepoPath>,
    /// Tracked files that are unchanged since the checkpoint.
    pub same: Vec<RepoPath>,
    /// Tracked files that changed again since, so it is unknown who made which change.
    pub mixed: Vec<RepoPath>,
    /// Untracked files that are unchanged since the checkpoint.
    pub untracked: Vec<RepoPath>,
}

impl Earlier {
    fn add(&mut self, kept: &Kept, same: bool) {
        match (kept.untracked, same) {
            (false, true) => self.same.push(kept.path.clone()),
            (false, false) => self.mixed.push(kept.path.clone()),
            (true, true) => self.untracked.push(kept.path.clone()),
            // It would not have been committed anyway.
            (true, false) => {}
        }
    }
}

impl Git {
    /// The user's own changes from before a checkpoint, except in the paths of `but`.
    pub fn earlier_changes(&self, since: &Checkpoint, but: &PathSet) -> Result<Earlier, GitError> {
        let snapshot = self.snapshot(&since.id)?;
        let staged = snapshot.manifest.staged.iter().filter(|path| !but.contains(path)).cloned().collect();
        let mut earlier = Earlier { staged, ..Earlier::default() };
        let now: BTreeSet<RepoPath> = self.status()?.entries.into_iter().map(|entry| entry.path).collect();
        for kept in snapshot.entries.values().filter(|kept| !but.contains(&kept.path) && now.contains(&kept.path)) {
            earlier.add(kept, self.is_as_kept(&snapshot, kept)?);
        }
        Ok(earlier)
    }

    fn is_as_kept(&self, snapshot: &Snapshot, kept: &Kept) -> Result<bool, GitError> {
        let io = || GitError::io(kept.path.as_path());
        let meta = files::stat(&self.top, &kept.path).map_err(io())?.filter(|meta| !meta.is_dir());
        let (state, now) = match (&kept.state, meta) {
            (State::Absent, now) => return Ok(now.is_none()),
            (_, None) => return Ok(false),
            (state, Some(meta)) => (state, Stat::from_metadata(&meta)),
        };
        let read = || files::read(&self.top, &kept.path).map_err(io());
        Ok(match state {
            State::File { digest: Some(_), stat } if snapshot.untouched(stat, &now) => true,
            State::File { digest: Some(before), stat } => match read()? {
                FileState::File { bytes, stat: now } => digest(&bytes) == *before && stat.mode & 0o111 == now.mode & 0o111,
                FileState::Symlink { .. } | FileState::Nothing => false,
            },
            State::File { digest: None, stat } => *stat == now,
            State::Symlink { digest: before } => matches!(read()?, FileState::Symlink { target } if digest(&target) == *before),
            State::Absent => false,
        })
    }
}
