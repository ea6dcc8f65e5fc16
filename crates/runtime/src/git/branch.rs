//! Branches: valid names, their tips, and how far two of them have diverged.

use verdone_core::base::id::Oid;

use super::Git;
use super::error::GitError;

/// The longest file name in bytes that a ref can have, less room for `.lock`.
const LONGEST_PART: usize = 240;

impl Git {
    /// Whether git accepts this branch name. Shorthands for another name (`@{-1}`) do not count.
    pub fn is_branch_name(&self, name: &str) -> Result<bool, GitError> {
        // An argument cannot contain NUL, `@` means HEAD to all other commands, and a full ref would become a branch below
        // `refs/heads/refs/`.
        if name == "@"
            || name.starts_with("refs/")
            || name.contains('\0')
            || name.split('/').any(|part| part.len() > LONGEST_PART)
        {
            return Ok(false);
        }
        let answer = self.plumbing("check-ref-format").args(["--branch", name]).answer()?;
        Ok(answer.status.success() && answer.stdout.strip_suffix(b"\n") == Some(name.as_bytes()))
    }

    /// The commit of a branch, if the branch exists.
    pub fn branch_tip(&self, name: &str) -> Result<Option<Oid>, GitError> {
        self.resolve(&format!("refs/heads/{name}"))
    }

    /// How many commits each of the two has that the other lacks.
    pub fn ahead_behind(&self, ours: &Oid, theirs: &Oid) -> Result<(u32, u32), GitError> {
        let range = format!("{ours}...{theirs}");
        let line = self.plumbing("rev-list").args(["--left-right", "--count", "--end-of-options", &range, "--"]).line()?;
        let unexpected = || GitError::Unexpected { what: "rev-list", detail: line.clone() };
        let (left, right) = line.split_once('\t').ok_or_else(unexpected)?;
        Ok((left.parse().map_err(|_| unexpected())?, right.parse().map_err(|_| unexpected())?))
    }
}
