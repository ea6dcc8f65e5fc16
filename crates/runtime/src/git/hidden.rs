//! Files hidden from git by assume-unchanged or skip-worktree.
//!
//! The content of such a file is checked but not committed, so an attempt may neither hide a file nor change a hidden one. The
//! flags are read from the index itself, because that needs no process. Git is asked only if the index has an unusual format.

use std::collections::BTreeSet;

use super::Git;
use super::error::GitError;
use super::index::IndexFile;
use super::index_entries::entries;
use super::path::RepoPath;

impl Git {
    pub(super) fn hidden(&self) -> Result<BTreeSet<RepoPath>, GitError> {
        let Some(index) = IndexFile::read(&self.index_path())? else { return Ok(BTreeSet::new()) };
        match entries(&index.bytes) {
            Some(entries) => {
                Ok(entries.iter().filter(|entry| entry.is_hidden()).map(|entry| RepoPath::new(entry.path)).collect())
            }
            None => self.hidden_as_git_lists_them(),
        }
    }

    fn hidden_as_git_lists_them(&self) -> Result<BTreeSet<RepoPath>, GitError> {
        let listed = self.plumbing("ls-files").args(["-v", "-z"]).run()?;
        let is_hidden = |record: &&[u8]| record.first().is_some_and(|tag| *tag == b'S' || tag.is_ascii_lowercase());
        let hidden = listed.split(|byte| *byte == 0).filter(is_hidden);
        Ok(hidden.filter_map(|record| record.get(2..)).map(RepoPath::new).collect())
    }
}
