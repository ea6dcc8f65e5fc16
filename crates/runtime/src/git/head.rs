//! Where HEAD is, and taking back a commit that was not to stay.

use std::path::{Path, PathBuf};

use verdone_core::event::Checkpoint;
use verdone_core::id::Oid;

use super::error::GitError;
use super::{Git, RepoPath};

impl Git {
    /// A path below the top level as git names it; none for one outside.
    pub fn repo_path(&self, path: &Path) -> Option<RepoPath> {
        path.strip_prefix(self.top()).ok().map(|path| RepoPath::new(path.as_os_str().as_encoded_bytes()))
    }

    /// Takes back a commit that we made a moment ago: the branch points to its parent again, files and index stay.
    pub fn uncommit(&self, commit: &Oid, parent: Option<&Oid>) -> Result<(), GitError> {
        let call = self.plumbing("update-ref").args(["-m", "verdone: take the commit back"]);
        match parent {
            Some(parent) => call.args(["HEAD", parent.as_str(), commit.as_str()]).line().map(|_| ()),
            None => call.args(["-d", "HEAD", commit.as_str()]).line().map(|_| ()),
        }
    }

    /// The commit at HEAD, if it is new since the checkpoint and has exactly this tree.
    pub fn commit_made_since(&self, checkpoint: &Checkpoint, tree: &Oid) -> Result<Option<Oid>, GitError> {
        Ok(self.head_commit()?.filter(|(id, of)| Some(id) != checkpoint.head.as_ref() && of == tree).map(|(id, _)| id))
    }

    /// The files that a checkpoint keeps beyond the work tree's own: the plan and what belongs to it.
    pub fn extra_paths(&self, checkpoint: &Checkpoint) -> Result<Vec<PathBuf>, GitError> {
        let snapshot = self.snapshot(&checkpoint.id)?;
        Ok(snapshot.manifest.extra.iter().map(|kept| self.top().join(kept.path.as_path())).collect())
    }
}
