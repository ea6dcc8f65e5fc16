//! The commit of a story: made outside of any work tree, with the user as author, and signed if the user signs commits.

use std::path::Path;
use std::time::{Duration, SystemTime};

use verdone_core::base::id::Oid;

use super::command::{Call, Outcome, tail_of};
use super::durability::DURABLE;
use super::error::{CommitError, GitError};
use super::landing::Landing;
use super::{Git, is_object_id};
use crate::base::fault::{self, Point};

/// The most output of gpg to quote in a message.
const MOST_OUTPUT: u64 = 8 * 1024;

/// How long making a commit may take if no setting limits it. Signing may have to wait for gpg-agent.
pub(crate) const COMMIT_TIME: Duration = Duration::from_mins(2);

impl Git {
    /// Makes a commit without moving a branch. It is on disk when this returns. If a signing program does not answer before the
    /// deadline, that counts as a refusal.
    pub fn commit_tree(&self, tree: &Oid, parent: Option<&Oid>, message: &str, deadline: Duration) -> Result<Oid, CommitError> {
        self.commit_tree_by(&[], tree, parent, message, deadline)
    }

    /// Like [`Self::commit_tree`], with variables for author and date.
    pub(super) fn commit_tree_by(
        &self,
        author: &[(&str, String)],
        tree: &Oid,
        parent: Option<&Oid>,
        message: &str,
        deadline: Duration,
    ) -> Result<Oid, CommitError> {
        if let Some(id) = [Some(tree), parent].into_iter().flatten().find(|id| !is_object_id(id)) {
            return Err(GitError::Unexpected { what: "commit-tree", detail: format!("{id} is not an object id") }.into());
        }
        let since = SystemTime::now();
        let io = |source| GitError::Io { path: Path::new("git commit-tree").to_owned(), source };
        fault::point(Point::CommitBegin).map_err(io)?;
        // `commit-tree` does not read this setting by itself.
        let signs = self.plumbing("config").args(["--type=bool", "commit.gpgSign"]).answer()?.stdout == b"true\n";
        let mut args: Vec<&str> = if signs { vec!["-S"] } else { Vec::new() };
        args.extend(parent.iter().flat_map(|parent| ["-p", parent.as_str()]));
        let settings = [&DURABLE[..], &["-c", "i18n.commitEncoding=UTF-8"]].concat();
        // Through a file, because a signing program may leave an agent behind that keeps a pipe open.
        let mut output = tempfile::tempfile().map_err(io)?;
        let call = Call::of_the_user_with(&self.top, &settings, "commit-tree", deadline).envs(&self.environment);
        let outcome = author
            .iter()
            .fold(call, |call, (name, value)| call.env(name, value))
            .args(args)
            .args(["-F", "-", tree.as_str()])
            .stdin(message.as_bytes().to_vec())
            .answer_through(&output, &|| false)?;
        fault::pass(Point::CommitDone);
        let said = tail_of(&mut output, MOST_OUTPUT).map_err(io)?;
        match outcome {
            Outcome::Ended(status) if status.success() => {
                let id = said.lines().rev().map(Oid::from).find(is_object_id);
                let id = id.ok_or(GitError::Unexpected { what: "commit-tree", detail: said })?;
                self.sync_object_folders(since)?;
                self.known_trees().insert(id.clone(), tree.clone());
                Ok(id)
            }
            // Not a refusal: the process was killed.
            Outcome::Ended(status) if status.code().is_none() => {
                Err(GitError::Unexpected { what: "commit-tree", detail: status.to_string() }.into())
            }
            Outcome::Ended(status) => {
                let message = if said.is_empty() { format!("git commit-tree ended with {status}") } else { said };
                Err(CommitError::Refused { message, timed_out: false })
            }
            Outcome::TimedOut | Outcome::CalledOff => {
                let message = format!("no answer within {} s\n{said}", deadline.as_secs()).trim().to_owned();
                Err(CommitError::Refused { message, timed_out: true })
            }
        }
    }

    /// Moves or creates a branch, if it points to `expected` (`None` means that it does not exist) and is not checked out. It is
    /// on disk when this returns.
    pub fn set_branch(&self, name: &str, new: &Oid, expected: Option<&Oid>) -> Result<(), GitError> {
        if let Some(at) = self.checked_out_at(name)? {
            return Err(GitError::CheckedOut { name: name.to_owned(), at, why: None });
        }
        self.set_ref(&format!("refs/heads/{name}"), new, expected)
    }

    /// Moves a branch forward. If this checkout is on it, its files move too, as in a landing.
    pub fn advance_branch(&self, name: &str, new: &Oid, expected: &Oid) -> Result<(), GitError> {
        let Some(at) = self.checked_out_at(name)? else {
            return self.set_ref(&format!("refs/heads/{name}"), new, Some(expected));
        };
        if at != self.top {
            return Err(GitError::CheckedOut { name: name.to_owned(), at, why: None });
        }
        match self.land_files(Some(name), new)? {
            Landing::Landed { .. } => Ok(()),
            Landing::Refused(refusal) => Err(GitError::CheckedOut { name: name.to_owned(), at, why: Some(refusal.to_string()) }),
        }
    }

    pub(super) fn set_ref(&self, name: &str, new: &Oid, expected: Option<&Oid>) -> Result<(), GitError> {
        if let Some(id) = [Some(new), expected].into_iter().flatten().find(|id| !is_object_id(id)) {
            return Err(GitError::Unexpected { what: "update-ref", detail: format!("{id} is not an object id") });
        }
        let old = expected.map_or_else(|| "0".repeat(new.as_str().len()), |old| old.as_str().to_owned());
        let reason = self.own_reflog_mark();
        fault::point(Point::RefSet).map_err(GitError::io(Path::new(name)))?;
        let update = self.durable("update-ref").args(["--no-deref", "-m", &reason, name, new.as_str(), &old]).run();
        fault::pass(Point::RefWasSet);
        let Err(error) = update else { return self.sync_ref_folders(name) };
        let found = self.resolve(name)?;
        if found.as_ref() == Some(new) {
            // The process was killed after its work was done.
            return self.sync_ref_folders(name);
        }
        if found.as_ref() == expected {
            return Err(error);
        }
        let name = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
        Err(GitError::BranchMoved { name, expected: expected.cloned(), found })
    }
}
