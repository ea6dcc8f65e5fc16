//! Repositories inside this one that are no submodules. They are opaque: never staged, copied or deleted. What can be seen from
//! outside is whether something in them changed.

use std::collections::BTreeMap;

use verdone_core::base::id::digest;

use super::Git;
use super::command::Call;
use super::error::GitError;
use super::path::RepoPath;
use super::status::{Kind, Status};

impl Git {
    /// Where each of them stands and what is changed in it, as one digest. One process each, and mostly there is none.
    pub(super) fn states_of_nested(&self, status: &Status) -> Result<BTreeMap<RepoPath, String>, GitError> {
        nested(status).map(|path| Ok((path.clone(), self.state_of_nested(path)?))).collect()
    }

    pub(super) fn state_of_nested(&self, path: &RepoPath) -> Result<String, GitError> {
        Ok(digest(&self.look_inside(path)?))
    }

    /// Empty for one that is gone or that git cannot read.
    fn look_inside(&self, path: &RepoPath) -> Result<Vec<u8>, GitError> {
        let place = self.top.join(path.as_path());
        // Without a git directory of its own, git would go up and describe the outer repository.
        if !place.join(".git").exists() {
            return Ok(Vec::new());
        }
        let fixed = ["--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames"];
        let answer = Call::plumbing(&place, "status", self.deadline).envs(&self.environment).args(fixed).answer()?;
        Ok(if answer.status.success() { answer.stdout } else { Vec::new() })
    }
}

fn nested(status: &Status) -> impl Iterator<Item = &RepoPath> {
    status.entries.iter().filter(|entry| entry.kind == Kind::Nested).map(|entry| &entry.path)
}
