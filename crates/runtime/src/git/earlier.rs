//! What the user had changed before a checkpoint and never committed, as it is now: it is not the work of who came after.

use std::collections::BTreeSet;

use verdone_core::event::Checkpoint;

use super::Git;
use super::error::GitError;
use super::files::{self, Found, Stat};
use super::index::IndexFile;
use super::path::{PathSet, RepoPath};
use super::snapshot::{Kept, Snapshot, State, time_of};

/// Changes that were in no commit when a checkpoint was taken, and are in none now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// Staged then.
    pub staged: Vec<RepoPath>,
    /// Tracked files that are as they were then.
    pub same: Vec<RepoPath>,
    /// Tracked files that were changed again since: nobody can tell whose is what.
    pub mixed: Vec<RepoPath>,
    /// Untracked files that are as they were then.
    pub untracked: Vec<RepoPath>,
}

impl Earlier {
    fn add(&mut self, kept: &Kept, same: bool) {
        match (kept.untracked, same) {
            (false, true) => self.same.push(kept.path.clone()),
            (false, false) => self.mixed.push(kept.path.clone()),
            (true, true) => self.untracked.push(kept.path.clone()),
            // It was never going to be committed.
            (true, false) => {}
        }
    }
}

impl Git {
    /// The user's own changes from before a checkpoint, but those of these paths.
    pub fn earlier_changes(&self, since: &Checkpoint, but: &PathSet) -> Result<Earlier, GitError> {
        let snapshot = self.snapshot(&since.id)?;
        let mut earlier = Earlier { staged: self.staged_at(&snapshot, but)?, ..Earlier::default() };
        let now: BTreeSet<RepoPath> = self.status()?.entries.into_iter().map(|entry| entry.path).collect();
        let kept = snapshot.entries.values().filter(|kept| !but.contains(&kept.path) && now.contains(&kept.path));
        let mut asked = Vec::new();
        for kept in kept {
            let meta =
                files::stat(&self.top, &kept.path).map_err(GitError::io(kept.path.as_path()))?.filter(|meta| !meta.is_dir());
            match (&kept.state, meta) {
                (State::Absent, None) => earlier.add(kept, true),
                (State::Absent, Some(_)) | (_, None) => earlier.add(kept, false),
                (State::File { stat, .. }, Some(meta)) if snapshot.untouched(stat, &Stat::of(&meta)) => earlier.add(kept, true),
                (State::File { file, stat }, Some(_)) => asked.push((kept, *file, stat.size)),
                (State::Symlink { file }, Some(_)) => asked.push((kept, *file, 0)),
            }
        }
        self.each_kept(&since.id, asked, |kept, bytes| {
            let found = files::read(&self.top, &kept.path).map_err(GitError::io(kept.path.as_path()))?;
            earlier.add(kept, is_same(kept, &bytes, &found));
            Ok(())
        })?;
        Ok(earlier)
    }

    /// What the index of a checkpoint had and its HEAD had not.
    fn staged_at(&self, snapshot: &Snapshot, but: &PathSet) -> Result<Vec<RepoPath>, GitError> {
        let Some(bytes) = self.blobs(&snapshot.checkpoint.id, &["index".to_owned()])?.into_iter().next().flatten() else {
            return Ok(Vec::new());
        };
        let modified = time_of(snapshot.manifest.index_ns.unwrap_or_default());
        let index = self.temp_index(Some(&IndexFile { bytes, modified }))?;
        let listed = match &snapshot.checkpoint.head {
            Some(head) => {
                self.plumbing("diff-index").args(["--cached", "--no-renames", "--name-only", "-z", head.as_str(), "--"])
            }
            None => self.plumbing("ls-files").args(["-z", "--cached"]),
        };
        let listed = listed.env("GIT_INDEX_FILE", index.path()).run()?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(RepoPath::new);
        Ok(paths.filter(|path| !but.contains(path)).collect())
    }
}

fn is_same(kept: &Kept, bytes: &[u8], now: &Found) -> bool {
    match (&kept.state, now) {
        (State::File { stat, .. }, Found::File { bytes: now, stat: meta }) => {
            bytes == now && stat.mode & 0o111 == meta.mode & 0o111
        }
        (State::Symlink { .. }, Found::Symlink { target }) => bytes == target,
        (State::File { .. } | State::Symlink { .. } | State::Absent, _) => false,
    }
}
