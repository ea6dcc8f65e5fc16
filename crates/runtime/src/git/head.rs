//! Where HEAD is, and taking back a commit that was not to stay.

use std::path::Path;

use verdone_core::base::id::Oid;

use super::error::GitError;
use super::{Git, RepoPath, is_object_id};
use crate::base::fault::{self, Point};
use crate::process::RUN_VARIABLE;

/// How the reflog tells moves of HEAD by a run, and by the agents that it starts, from the user's own and from those of other runs.
pub fn reflog_mark(run: &str) -> String {
    format!("verdone {run}")
}

impl Git {
    /// A path below the top level as git names it; none for one outside.
    pub fn repo_path(&self, path: &Path) -> Option<RepoPath> {
        path.strip_prefix(self.top()).ok().map(|path| RepoPath::new(path.as_os_str().as_encoded_bytes()))
    }

    /// Takes back a commit that we made a moment ago: the branch points to its parent again, files and index stay.
    pub fn uncommit(&self, commit: &Oid, parent: Option<&Oid>) -> Result<(), GitError> {
        fault::point(Point::Uncommit).map_err(GitError::io(Path::new("HEAD")))?;
        let call = self.plumbing("update-ref").args(["-m", &format!("{}: take the commit back", self.own_reflog_mark())]);
        match parent {
            Some(parent) => call.args(["HEAD", parent.as_str(), commit.as_str()]).line().map(|_| ()),
            None => call.args(["-d", "HEAD", commit.as_str()]).line().map(|_| ()),
        }
    }

    /// Where HEAD stood before a moment, as the dates of commits tell; none where everything is younger.
    pub fn commit_before(&self, at: jiff::Timestamp) -> Result<Option<Oid>, GitError> {
        if self.head_commit()?.is_none() {
            return Ok(None);
        }
        let before = format!("--min-age={}", at.as_second());
        let line = self.plumbing("rev-list").args(["--max-count=1", &before, "HEAD", "--"]).line()?;
        Ok((!line.is_empty()).then_some(Oid(line)))
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

    /// Where two commits branched off from each other; nothing where they have no commit in common.
    pub fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, GitError> {
        let answer = self.plumbing("merge-base").args([one.as_str(), other.as_str()]).answer()?;
        match answer.status.code() {
            Some(0) => Ok(Some(Oid(String::from_utf8_lossy(&answer.stdout).trim().to_owned())).filter(is_object_id)),
            Some(1) => Ok(None),
            _ => Err(answer.failure("merge-base")),
        }
    }

    /// The mark of the run that this is part of; a plain one outside of runs.
    pub(super) fn own_reflog_mark(&self) -> String {
        let run = self.environment.iter().rfind(|(name, _)| name == RUN_VARIABLE).map(|(_, run)| run.to_string_lossy());
        run.map_or_else(|| "verdone".to_owned(), |run| reflog_mark(&run))
    }

    /// The first line of a commit's message.
    pub fn subject(&self, commit: &Oid) -> Result<String, GitError> {
        self.plumbing("log").args(["-1", "--format=%s", "--end-of-options", commit.as_str()]).line()
    }
}
