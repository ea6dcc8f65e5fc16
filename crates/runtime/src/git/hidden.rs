//! Files that git was told not to look at: assume-unchanged and skip-worktree.
//!
//! What such a file holds is checked but not committed, so an attempt may neither hide a file nor change a hidden one. The marks
//! are read from the index itself, because that costs no process; git is asked only about an index of an unusual format.

use std::collections::BTreeSet;

use super::Git;
use super::error::GitError;
use super::index::IndexFile;
use super::path::RepoPath;

const ASSUME_UNCHANGED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
/// Among the extended marks.
const SKIP_WORKTREE: u16 = 0x4000;

impl Git {
    pub(super) fn hidden(&self) -> Result<BTreeSet<RepoPath>, GitError> {
        let Some(index) = IndexFile::read(&self.index_path())? else { return Ok(BTreeSet::new()) };
        // The length of an object id: SHA-1 or SHA-256.
        match hidden_in(&index.bytes, 20).or_else(|| hidden_in(&index.bytes, 32)) {
            Some(hidden) => Ok(hidden),
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

/// Reads an index of version 2 or 3 to its very end. Nothing for one that is not exactly so, or that is split or sparse.
fn hidden_in(bytes: &[u8], id: usize) -> Option<BTreeSet<RepoPath>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let marks = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    if !bytes.starts_with(b"DIRC") || !(2..=3).contains(&number(4)?) {
        return None;
    }
    let mut hidden = BTreeSet::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        let mut name_at = at + 40 + id + 2;
        let flags = marks(name_at - 2)?;
        let mut extended = 0;
        if flags & EXTENDED != 0 {
            extended = marks(name_at)?;
            name_at += 2;
        }
        let rest = bytes.get(name_at..)?;
        let name = &rest[..rest.iter().position(|byte| *byte == 0)?];
        if name.is_empty() || name.len().min(0xfff) != usize::from(flags & 0xfff) {
            return None;
        }
        if flags & ASSUME_UNCHANGED != 0 || extended & SKIP_WORKTREE != 0 {
            hidden.insert(RepoPath::new(name));
        }
        // Entries are padded with 1 to 8 zeros to a multiple of eight.
        at += (name_at - at + name.len() + 8) & !7;
    }
    let end = bytes.len().checked_sub(id)?;
    while at < end {
        if matches!(bytes.get(at..at + 4)?, b"link" | b"sdir") {
            return None;
        }
        at = at.checked_add(8)?.checked_add(number(at + 4)? as usize)?;
    }
    (at == end).then_some(hidden)
}
