//! A run's queries about its own branch and the user's.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

use verdone_core::base::id::Oid;

use super::command::Call;
use super::error::{CommitError, GitError};
use super::landing::is_busy_with;
use super::{COMMIT_TIME, Git, is_object_id};

impl Git {
    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        let gone = || GitError::Unexpected { what: "rev-parse", detail: format!("{commit} is not a commit") };
        if !is_object_id(commit) {
            return Err(gone());
        }
        if let Some(tree) = self.known_trees().get(commit) {
            return Ok(tree.clone());
        }
        let tree = self.resolve(&format!("{commit}^{{tree}}"))?.ok_or_else(gone)?;
        self.known_trees().insert(commit.clone(), tree.clone());
        Ok(tree)
    }

    /// Cached for good, because a commit's tree never changes.
    pub(super) fn known_trees(&self) -> MutexGuard<'_, HashMap<Oid, Oid>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first parent of a commit; `None` for a root commit.
    pub fn first_parent(&self, commit: &Oid) -> Result<Option<Oid>, GitError> {
        if is_object_id(commit) { self.resolve(&format!("{commit}^")) } else { Ok(None) }
    }

    /// The work tree in which a branch is checked out, being rebased or being bisected. May be this one.
    pub fn checked_out_at(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        let is_on = |tree: &super::WorkTreeEntry| {
            let git_dir = tree.own_dir.as_deref().unwrap_or(&self.common_dir);
            !tree.missing && (tree.branch.as_deref() == Some(branch) || is_busy_with(git_dir, branch))
        };
        Ok(self.work_trees()?.into_iter().find(is_on).map(|tree| tree.path))
    }

    /// Deletes a branch if its tip is still `expected`. The branch must not be checked out anywhere.
    pub fn delete_branch(&self, name: &str, expected: &Oid) -> Result<(), GitError> {
        let full = format!("refs/heads/{name}");
        self.durable("update-ref").args(["-d", &full, expected.as_str()]).run()?;
        // Also remove its settings, as `git branch -d` does.
        self.plumbing("config").args(["--local", "--remove-section", &format!("branch.{name}")]).answer().map(drop)
    }

    /// Branches with commits that `head` lacks, and their tips.
    pub fn unmerged_branches(&self, head: &Oid) -> Result<BTreeMap<String, Oid>, GitError> {
        let options = ["--format=%(refname:lstrip=2) %(objectname)", &format!("--no-merged={head}"), "refs/heads/"];
        let listed = self.plumbing("for-each-ref").args(options).line()?;
        let branch = |line: &str| line.rsplit_once(' ').map(|(name, tip)| (name.to_owned(), Oid::from(tip)));
        Ok(listed.lines().filter_map(branch).collect())
    }

    /// Folders of a commit's submodules.
    pub fn submodules_of(&self, commit: &Oid) -> Result<Vec<PathBuf>, GitError> {
        let files = self.files_of(commit)?;
        Ok(files.into_iter().filter(|file| file.submodule).map(|file| file.path.as_path().to_owned()).collect())
    }

    /// The commits of a branch that another one lacks, oldest first.
    pub fn commits_to_land(&self, tip: &Oid, onto: &Oid) -> Result<Vec<Oid>, GitError> {
        let listed =
            self.plumbing("rev-list").args(["--reverse", "--topo-order", tip.as_str(), &format!("^{onto}"), "--"]).line()?;
        Ok(listed.lines().map(Oid::from).collect())
    }

    /// The same commit with another tree and parent. Keeps message and author.
    pub fn commit_again(&self, commit: &Oid, tree: &Oid, parent: &Oid) -> Result<Oid, CommitError> {
        let format = "--format=%an%x00%ae%x00@%ad";
        let author =
            self.plumbing("log").args(["-1", "--date=raw", format, "--no-show-signature", commit.as_str(), "--"]).line()?;
        let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];
        let author: Vec<(&str, String)> = names.into_iter().zip(author.split('\0').map(str::to_owned)).collect();
        self.commit_tree_by(&author, tree, Some(parent), &self.message(commit)?, COMMIT_TIME)
    }

    /// The whole message of a commit.
    pub fn message(&self, commit: &Oid) -> Result<String, GitError> {
        let message = self.plumbing("log").args(["-1", "--format=%B", "--no-show-signature", commit.as_str(), "--"]).run()?;
        Ok(String::from_utf8_lossy(&message).trim_end().to_owned() + "\n")
    }

    /// Reads a commit into a workspace's index without looking at the files.
    pub(crate) fn read_into_index(&self, commit: &Oid, index: &Path) -> Result<(), GitError> {
        if !is_object_id(commit) {
            return Err(GitError::Unexpected { what: "read-tree", detail: format!("{commit} is not an object id") });
        }
        // A filter could have replaced it.
        if !std::fs::symlink_metadata(index).is_ok_and(|meta| meta.is_file()) {
            return Err(GitError::Unexpected { what: "read-tree", detail: "the index is no longer a file".to_owned() });
        }
        // Otherwise git would check the user's checkout for files that a sparse checkout leaves out.
        let settings = ["-c", "core.sparseCheckout=false"];
        let call = Call::plumbing_with(&self.top, &settings, "read-tree", self.deadline).envs(&self.environment);
        let call = call.env("GIT_INDEX_FILE", index);
        call.args(["-i", "-m", commit.as_str()]).run().map(drop)
    }
}
