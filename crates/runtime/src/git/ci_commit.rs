//! The commit that CI checks before a story has its own commit. It is on no branch, so a ref protects it from garbage collection.

use std::time::Duration;

use verdone_core::base::id::{Oid, RunId, encode_component};

use super::Git;
use super::error::{CommitError, GitError};

const CI: &str = "refs/verdone/ci";

impl Git {
    /// Commits a tree and keeps the commit under a ref until [`Self::drop_ci_commit`]. No branch moves.
    pub fn make_ci_commit(
        &self,
        run: &RunId,
        tree: &Oid,
        parent: &Oid,
        message: &str,
        deadline: Duration,
    ) -> Result<Oid, CommitError> {
        let commit = self.commit_tree(tree, Some(parent), message, deadline)?;
        let name = ci_ref(run);
        self.set_ref(&name, &commit, self.resolve(&name)?.as_ref())?;
        Ok(commit)
    }

    /// Deletes the ref, if it exists. Git collects the commit later.
    pub fn drop_ci_commit(&self, run: &RunId) -> Result<(), GitError> {
        let name = ci_ref(run);
        match self.resolve(&name)? {
            Some(commit) => self.durable("update-ref").args(["--no-deref", "-d", &name, commit.as_str()]).run().map(drop),
            None => Ok(()),
        }
    }
}

pub(super) fn ci_ref(run: &RunId) -> String {
    format!("{CI}/{}", encode_component(run.as_str()))
}
