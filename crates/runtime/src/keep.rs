//! How a run keeps and restores a work tree: `.verdone/` is left out, and what cannot stay goes into the run's directory.

use std::path::{Path, PathBuf};

use verdone_core::event::Checkpoint;
use verdone_core::id::RunId;
use verdone_core::machine::{Aside, PutBack};

use crate::git::{
    CandidateRules, CheckpointRequest, Git, GitError, KeptChanges, PathSet, RepoPath, RestoreRules, Restored, Return,
    SnapshotLimits,
};

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

    /// Keeps the user's changes so that they can leave the work tree. `ours` and `.verdone/` are none of them.
    pub fn keep_changes(&self, extra: &[PathBuf], mut ours: PathSet) -> Result<Option<Aside>, GitError> {
        let (skip, limits, label) = (self.home(), self.limits, "the user's changes, set aside");
        ours.extend(self.git.repo_path(&self.root.join(".verdone")));
        let request = CheckpointRequest { chain: self.run, label, extra, skip: &skip, limits };
        let kept = self.git.keep_changes(&request, &ours)?;
        Ok(kept.map(|KeptChanges { checkpoint, clean, stash, paths }| Aside {
            checkpoint,
            clean,
            stash,
            files: paths.iter().map(ToString::to_string).collect(),
        }))
    }

    /// Takes the kept changes out of the work tree and the index.
    pub fn set_aside(&self, aside: &Aside) -> Result<(), GitError> {
        let rules = RestoreRules { skip: self.home(), aside: self.aside() };
        self.git.clear_changes(&aside.checkpoint, &aside.clean, &rules)
    }

    /// Brings the user's changes back, or says why not; then the work tree is as it was before.
    pub fn bring_back(&self, aside: &Aside, extra: &[PathBuf]) -> PutBack {
        let refused = |error: GitError| PutBack::Refused { reason: error.to_string(), overlap: Vec::new() };
        self.try_to_bring_back(aside, extra).unwrap_or_else(refused)
    }

    fn try_to_bring_back(&self, aside: &Aside, extra: &[PathBuf]) -> Result<PutBack, GitError> {
        if let Some(reason) = self.git.moved_since(&aside.checkpoint)? {
            return Ok(PutBack::Refused { reason: format!("the branch was moved meanwhile: {reason}"), overlap: Vec::new() });
        }
        // Files that are too large to copy are somebody's: nothing is moved out of the way for this.
        let now = self.checkpoint("before the user's changes come back", extra)?;
        match self.put_back(&aside.checkpoint, &aside.files, &now) {
            Err(error) => {
                // Not halfway: what was there before, or the error that says that even this is not possible.
                self.restore(&now)?;
                Err(error)
            }
            done => done,
        }
    }

    /// Puts files into the work tree and the index as they are in the checkpoint `from`; `now` is one of the present state.
    pub fn put_back(&self, from: &Checkpoint, files: &[String], now: &Checkpoint) -> Result<PutBack, GitError> {
        let paths: Vec<RepoPath> = files.iter().filter_map(|file| RepoPath::from_shown(file)).collect();
        let rules = RestoreRules { skip: self.home(), aside: self.aside() };
        let (reason, overlap) = match self.git.put_back(self.run, from, &paths, now, &rules)? {
            Return::Done { files } => return Ok(PutBack::Done { files }),
            Return::Overlap(paths) => ("commits changed the same files".to_owned(), paths),
            Return::InTheWay(paths) => ("something else is in their place".to_owned(), paths),
            Return::Operation(operation) => (format!("a {operation} is in progress"), Vec::new()),
        };
        Ok(PutBack::Refused { reason, overlap: overlap.iter().map(ToString::to_string).collect() })
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
