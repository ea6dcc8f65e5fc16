//! The commit of a session loop: installs the candidate's index, then runs `git commit` with the user's identity, signing and
//! hooks.

use std::path::Path;
use std::time::Duration;

use verdone_core::base::id::Oid;

use super::Git;
use super::candidate::Candidate;
use super::command::{Outcome, tail_of};
use super::error::{CommitError, GitError};
use super::index::IndexFile;
use crate::base::fault::{self, Point};

/// The most output of a git hook to quote in a message.
const MOST_OUTPUT: u64 = 8 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub id: Oid,
    /// May differ from the candidate's tree, because a git hook may have changed what was committed.
    pub tree: Oid,
    /// The end of the output of git and its hooks.
    pub output: String,
    /// The index before the commit.
    before: Option<IndexFile>,
}

impl Git {
    /// Commits the candidate. If the commit is refused, the index is restored. Once `called_off` returns true, git and its hooks
    /// are stopped and the commit counts as refused.
    pub fn commit_unless(
        &self,
        candidate: &Candidate,
        message: &str,
        deadline: Duration,
        called_off: &dyn Fn() -> bool,
    ) -> Result<Commit, CommitError> {
        let before = IndexFile::read(&self.index_path())?;
        let wanted = IndexFile::read(&candidate.index.path())?;
        self.install_index(wanted.as_ref())?;
        match self.run_commit(candidate, message, deadline, called_off) {
            Ok(made) => Ok(Commit { before, ..made }),
            Err(refused) => {
                self.install_index(before.as_ref())?;
                Err(refused)
            }
        }
    }

    /// Undoes a commit that we just made, and what it staged. Leaves files alone.
    pub fn take_back(&self, made: &Commit, parent: Option<&Oid>) -> Result<(), GitError> {
        self.uncommit(&made.id, parent)?;
        self.install_index(made.before.as_ref())
    }

    fn run_commit(
        &self,
        candidate: &Candidate,
        message: &str,
        deadline: Duration,
        called_off: &dyn Fn() -> bool,
    ) -> Result<Commit, CommitError> {
        let io = |source| GitError::Io { path: Path::new("git commit").to_owned(), source };
        let mut output = tempfile::tempfile().map_err(io)?;
        fault::point(Point::CommitBegin).map_err(io)?;
        let outcome = self
            .of_the_user("commit", deadline)
            .args(["-q", "-F", "-", "--cleanup=verbatim", "--allow-empty"])
            .env("GIT_REFLOG_ACTION", self.own_reflog_mark())
            .stdin(message.as_bytes().to_vec())
            .answer_through(&output, called_off)?;
        fault::pass(Point::CommitDone);
        let said = tail_of(&mut output, MOST_OUTPUT).map_err(io)?;
        // HEAD decides: a commit can exist even if a post-commit hook hangs, and a hook can undo a commit.
        let made = self.head_commit()?.filter(|(id, _)| Some(id) != candidate.head.as_ref());
        match (made, outcome) {
            (Some((id, tree)), Outcome::Ended(_) | Outcome::TimedOut | Outcome::CalledOff) => {
                Ok(Commit { id, tree, output: said, before: None })
            }
            (None, Outcome::CalledOff) => {
                Err(CommitError::Refused { message: "the commit was interrupted".to_owned(), timed_out: false })
            }
            (None, Outcome::TimedOut) => {
                let message = format!("no answer within {} s\n{said}", deadline.as_secs()).trim().to_owned();
                Err(CommitError::Refused { message, timed_out: true })
            }
            (None, Outcome::Ended(status)) => {
                let message = if said.is_empty() { format!("git commit ended with {status}") } else { said };
                Err(CommitError::Refused { message, timed_out: false })
            }
        }
    }

    /// HEAD's commit and tree; `None` before the first commit.
    pub(crate) fn head_commit(&self) -> Result<Option<(Oid, Oid)>, GitError> {
        let answer = self.plumbing("rev-parse").args(["HEAD", "HEAD^{tree}"]).answer()?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let mut lines = text.lines();
        match (answer.status.success(), lines.next(), lines.next()) {
            (true, Some(id), Some(tree)) => Ok(Some((id.into(), tree.into()))),
            _ => Ok(None),
        }
    }
}
