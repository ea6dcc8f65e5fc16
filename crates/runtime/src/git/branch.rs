//! Branches: which names git takes, where one stands, and how far two are apart.

use verdone_core::base::id::Oid;

use super::Git;
use super::error::GitError;

/// A ref is a file with this many bytes at most, less `.lock`.
const LONGEST_PART: usize = 240;

impl Git {
    /// By git's own rule. Names that stand for another one (`@{-1}`) are none.
    pub fn is_branch_name(&self, name: &str) -> Result<bool, GitError> {
        // A NUL cannot be an argument, `@` means HEAD to all other commands, and a whole ref would be a branch below `refs/heads/refs/`.
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

    /// The commit of a branch, if there is such a branch.
    pub fn branch_tip(&self, name: &str) -> Result<Option<Oid>, GitError> {
        self.resolve(&format!("refs/heads/{name}"))
    }

    /// How many commits each of two has that the other has not.
    pub fn apart(&self, ours: &Oid, theirs: &Oid) -> Result<(u32, u32), GitError> {
        let range = format!("{ours}...{theirs}");
        let line = self.plumbing("rev-list").args(["--left-right", "--count", "--end-of-options", &range, "--"]).line()?;
        let unexpected = || GitError::Unexpected { what: "rev-list", detail: line.clone() };
        let (left, right) = line.split_once('\t').ok_or_else(unexpected)?;
        Ok((left.parse().map_err(|_| unexpected())?, right.parse().map_err(|_| unexpected())?))
    }
}
