//! What the user had changed before a checkpoint and never committed, as it is now: it is not the work of who came after.

use verdone_core::event::Checkpoint;

use super::Git;
use super::error::GitError;
use super::files::{self, Found, Stat};
use super::index::IndexFile;
use super::path::{PathSet, RepoPath};
use super::snapshot::{Kept, Snapshot, State, time_of};
use super::status::Entry;

/// Changes that were in no commit when a checkpoint was taken, and are in none now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// Staged then.
    pub staged: Vec<RepoPath>,
    /// Tracked files that are as they were then.
    pub same: Vec<RepoPath>,
    /// Tracked files that were changed again since: nobody can tell whose is what.
    pub mixed: Vec<RepoPath>,
}

impl Git {
    /// The user's own changes from before a checkpoint, but those of these paths.
    pub fn earlier_changes(&self, since: &Checkpoint, but: &PathSet) -> Result<Earlier, GitError> {
        let snapshot = self.snapshot(&since.id)?;
        let mut earlier = Earlier { staged: self.staged_at(&snapshot, but)?, ..Earlier::default() };
        let now = self.status()?;
        let open = |path: &RepoPath| now.entries.iter().any(|Entry { path: other, .. }| other == path);
        let kept = snapshot.entries.values().filter(|kept| !kept.untracked && !but.contains(&kept.path) && open(&kept.path));
        let mut asked = Vec::new();
        for kept in kept {
            let meta =
                files::stat(&self.top, &kept.path).map_err(GitError::io(kept.path.as_path()))?.filter(|meta| !meta.is_dir());
            match (&kept.state, meta) {
                (State::Absent, None) => earlier.same.push(kept.path.clone()),
                (State::Absent, Some(_)) | (_, None) => earlier.mixed.push(kept.path.clone()),
                (State::File { stat, .. }, Some(meta)) if snapshot.untouched(stat, &Stat::of(&meta)) => {
                    earlier.same.push(kept.path.clone());
                }
                (State::File { file, stat }, Some(_)) => asked.push((kept, *file, stat.size)),
                (State::Symlink { file }, Some(_)) => asked.push((kept, *file, 0)),
            }
        }
        self.each_kept(&since.id, asked, |kept, bytes| {
            let found = files::read(&self.top, &kept.path).map_err(GitError::io(kept.path.as_path()))?;
            let list = if is_same(kept, &bytes, &found) { &mut earlier.same } else { &mut earlier.mixed };
            list.push(kept.path.clone());
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
