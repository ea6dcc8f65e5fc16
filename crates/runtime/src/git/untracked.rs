//! Files that git does not know belong to the user: where an attempt that is committed deleted one, it comes back.

use std::fs;

use verdone_core::event::Checkpoint;

use super::Git;
use super::error::GitError;
use super::files;
use super::path::{PathSet, RepoPath};
use super::snapshot::State;

impl Git {
    /// Writes files that were untracked at the checkpoint and are gone now, but not those in `but`; says which.
    pub fn put_back_deleted(&self, since: &Checkpoint, but: &PathSet) -> Result<Vec<RepoPath>, GitError> {
        let snapshot = self.snapshot(&since.id)?;
        let mut gone = Vec::new();
        for kept in snapshot.entries.values().filter(|kept| kept.untracked && !but.contains(&kept.path)) {
            let (file, size) = match &kept.state {
                State::File { file, stat } => (*file, stat.size),
                State::Symlink { file } => (*file, 0),
                State::Absent => continue,
            };
            let is_gone = fs::symlink_metadata(self.top.join(kept.path.as_path())).is_err();
            // Something else may stand where a folder was; then the checkpoint has it, and nothing is overwritten.
            let has_way = kept
                .path
                .parents()
                .all(|parent| fs::symlink_metadata(self.top.join(parent.as_path())).map_or(true, |meta| meta.is_dir()));
            if is_gone && has_way {
                gone.push((kept, file, size));
            }
        }
        let mut restored = Vec::new();
        self.each_kept(&since.id, gone, |kept, bytes| {
            let place = self.top.join(kept.path.as_path());
            let parent = place.parent().unwrap_or(&self.top);
            fs::create_dir_all(parent).map_err(GitError::io(parent))?;
            match &kept.state {
                State::File { stat, .. } => files::write_file(&place, &bytes, stat.mode),
                State::Symlink { .. } => files::write_symlink(&place, &bytes),
                State::Absent => Ok(()),
            }
            .map_err(GitError::io(&place))?;
            restored.push(kept.path.clone());
            Ok(())
        })?;
        Ok(restored)
    }
}
