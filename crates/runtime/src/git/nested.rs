//! Repositories inside this one that are not submodules. They are opaque: never staged, copied or deleted. Only whether something
//! in them changed can be seen from outside.

use std::collections::BTreeMap;

use verdone_core::base::id::digest;

use super::Git;
use super::command::Call;
use super::error::GitError;
use super::path::RepoPath;
use super::status::{Kind, Status};

impl Git {
    /// The HEAD and uncommitted changes of each nested repository, as a digest. Needs one process each, but usually there are
    /// none.
    pub(super) fn states_of_nested(&self, status: &Status) -> Result<BTreeMap<RepoPath, String>, GitError> {
        nested(status).map(|path| Ok((path.clone(), self.state_of_nested(path)?))).collect()
    }

    pub(super) fn state_of_nested(&self, path: &RepoPath) -> Result<String, GitError> {
        Ok(digest(&self.look_inside(path)?))
    }

    /// Empty if the repository is gone or git cannot read it.
    fn look_inside(&self, path: &RepoPath) -> Result<Vec<u8>, GitError> {
        let place = self.top.join(path.as_path());
        // Without its own git directory, git would search upwards and describe the outer repository.
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
