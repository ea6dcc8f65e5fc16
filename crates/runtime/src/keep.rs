//! How a run keeps and restores a work tree: `.verdone/` is left out, and what cannot stay goes into the run's directory.

use std::path::{Path, PathBuf};

use verdone_core::event::Checkpoint;
use verdone_core::id::RunId;

use crate::git::{CandidateRules, CheckpointRequest, Git, GitError, PathSet, RepoPath, RestoreRules, Restored, SnapshotLimits};

#[derive(Debug, Clone, Copy)]
pub struct Keep<'a> {
    pub git: &'a Git,
    /// Where `.verdone/` is.
    pub root: &'a Path,
    pub run: &'a RunId,
    pub run_dir: &'a Path,
    pub limits: SnapshotLimits,
}

impl Keep<'_> {
    /// Snapshots the work tree and the `extra` files, wherever those lie.
    pub fn checkpoint(&self, label: &str, extra: &[PathBuf]) -> Result<Checkpoint, GitError> {
        let skip = self.home();
        self.git.checkpoint(&CheckpointRequest { chain: self.run, label, extra, skip: &skip, limits: self.limits })
    }

    /// As [`Self::checkpoint`], before a restore: files that are too large to copy came with the attempt and are moved aside.
    pub fn checkpoint_before_restore(&self, label: &str, extra: &[PathBuf]) -> Result<Checkpoint, GitError> {
        loop {
            match self.checkpoint(label, extra) {
                Err(GitError::TooLarge { files }) => {
                    let paths: Vec<RepoPath> = files.iter().map(|(path, _)| path.clone()).collect();
                    // Nothing moved means that trying again would change nothing.
                    if self.git.set_aside(&paths, &self.aside())?.is_empty() {
                        return Err(GitError::TooLarge { files });
                    }
                }
                done => return done,
            }
        }
    }

    pub fn restore(&self, to: &Checkpoint) -> Result<Restored, GitError> {
        self.git.restore(to, &RestoreRules { skip: self.home(), aside: self.aside() })
    }

    /// What never enters a commit.
    pub fn candidate_rules(&self) -> CandidateRules {
        CandidateRules { excluded: self.home(), largest_file: self.limits.file }
    }

    fn aside(&self) -> PathBuf {
        self.run_dir.join("aside")
    }

    /// `.verdone/`, as git names it.
    fn home(&self) -> PathSet {
        self.git.repo_path(&self.root.join(".verdone")).into_iter().collect()
    }
}
