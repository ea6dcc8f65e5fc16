//! Where HEAD is, and undoing a commit.

use std::path::Path;

use verdone_core::base::id::Oid;

use super::error::GitError;
use super::{Git, RepoPath, is_object_id};
use crate::base::fault::{self, Point};
use crate::process::RUN_VARIABLE;

/// Marks reflog entries made by a run or its agents, to tell them from those of the user and of other runs.
pub fn reflog_mark(run: &str) -> String {
    format!("verdone {run}")
}

impl Git {
    /// A path below the top level in git's form; `None` for a path outside.
    pub fn repo_path(&self, path: &Path) -> Option<RepoPath> {
        path.strip_prefix(self.top()).ok().map(|path| RepoPath::new(path.as_os_str().as_encoded_bytes()))
    }

    /// Undoes a commit that we just made: the branch points to its parent again. Files and index stay.
    pub fn uncommit(&self, commit: &Oid, parent: Option<&Oid>) -> Result<(), GitError> {
        fault::point(Point::Uncommit).map_err(GitError::io(Path::new("HEAD")))?;
        let call = self.plumbing("update-ref").args(["-m", &format!("{}: undo the commit", self.own_reflog_mark())]);
        match parent {
            Some(parent) => call.args(["HEAD", parent.as_str(), commit.as_str()]).line().map(|_| ()),
            None => call.args(["-d", "HEAD", commit.as_str()]).line().map(|_| ()),
        }
    }

    /// The last commit of HEAD's history before `at`, by commit date; `None` if all commits are younger.
    pub fn last_commit_before(&self, at: jiff::Timestamp) -> Result<Option<Oid>, GitError> {
        if self.head_commit()?.is_none() {
            return Ok(None);
        }
        let before = format!("--min-age={}", at.as_second());
        let line = self.plumbing("rev-list").args(["--max-count=1", &before, "HEAD", "--"]).line()?;
        Ok((!line.is_empty()).then_some(Oid(line)))
    }

    /// Whether one commit is an ancestor of the other, or the same.
    pub fn is_part_of(&self, commit: &Oid, tip: &Oid) -> Result<bool, GitError> {
        let answer = self.plumbing("merge-base").args(["--is-ancestor", commit.as_str(), tip.as_str()]).answer()?;
        match answer.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(answer.failure("merge-base")),
        }
    }

    /// The merge base of two commits; `None` if they have no commit in common.
    pub fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, GitError> {
        let answer = self.plumbing("merge-base").args([one.as_str(), other.as_str()]).answer()?;
        match answer.status.code() {
            Some(0) => Ok(Some(Oid(String::from_utf8_lossy(&answer.stdout).trim().to_owned())).filter(is_object_id)),
            Some(1) => Ok(None),
            _ => Err(answer.failure("merge-base")),
        }
    }

    /// The reflog mark of the current run; a plain one outside of runs.
    pub(super) fn own_reflog_mark(&self) -> String {
        let run = self.environment.iter().rfind(|(name, _)| name == RUN_VARIABLE).map(|(_, run)| run.to_string_lossy());
        run.map_or_else(|| "verdone".to_owned(), |run| reflog_mark(&run))
    }

    /// The first line of a commit's message.
    pub fn subject(&self, commit: &Oid) -> Result<String, GitError> {
        self.plumbing("log").args(["-1", "--format=%s", "--end-of-options", commit.as_str()]).line()
    }
}
