//! Where HEAD is, and taking back a commit that was not to stay.

use std::path::{Path, PathBuf};

use verdone_core::event::Checkpoint;
use verdone_core::id::{Oid, RunId};

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

    /// Whether one commit is part of another's history, or the same.
    pub fn is_part_of(&self, commit: &Oid, tip: &Oid) -> Result<bool, GitError> {
        let answer = self.plumbing("merge-base").args(["--is-ancestor", commit.as_str(), tip.as_str()]).answer()?;
        match answer.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(answer.failure("merge-base")),
        }
    }

    /// The commit at HEAD, if it is new since the checkpoint and has exactly this tree.
    pub fn commit_made_since(&self, checkpoint: &Checkpoint, tree: &Oid) -> Result<Option<Oid>, GitError> {
        Ok(self.head_commit()?.filter(|(id, of)| Some(id) != checkpoint.head.as_ref() && of == tree).map(|(id, _)| id))
    }

    /// Whether a commit is the one that a run made after its last story, to record progress.
    pub fn only_records_progress(&self, commit: &Oid, parent: &Oid, run: &RunId) -> Result<bool, GitError> {
        let format = "--format=%P%n%(trailers:key=Verdone-Run,valueonly,separator=%x20)%n%(trailers:key=Verdone-Story,valueonly)";
        let said = self.plumbing("log").args(["-1", format, "--end-of-options", commit.as_str()]).run()?;
        let said = String::from_utf8_lossy(&said);
        let mut lines = said.lines();
        let (parents, runs, stories) = (lines.next(), lines.next(), lines.next());
        Ok(parents == Some(parent.as_str()) && runs == Some(run.as_str()) && stories.is_none_or(str::is_empty))
    }

    /// The files that a checkpoint keeps beyond the work tree's own: the plan and what belongs to it.
    pub fn extra_paths(&self, checkpoint: &Checkpoint) -> Result<Vec<PathBuf>, GitError> {
        let snapshot = self.snapshot(&checkpoint.id)?;
        Ok(snapshot.manifest.extra.iter().map(|kept| self.top().join(kept.path.as_path())).collect())
    }
}
