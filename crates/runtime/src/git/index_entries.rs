//! The entries of the index, read from the file itself because that needs no process. Only an index of an unusual format is left
//! to git.

/// Flag of a file that the user told git not to check.
pub(super) const ASSUME_UNCHANGED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const GITLINK: u32 = 0o160_000;
/// One of the extended flags.
pub(super) const SKIP_WORKTREE: u16 = 0x4000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct IndexEntry<'i> {
    pub(super) path: &'i [u8],
    pub(super) mode: u32,
    pub(super) id: &'i [u8],
    /// Stage and assume-unchanged flag.
    pub(super) marks: u16,
    pub(super) extended: u16,
    /// Where its record begins, with the stat data.
    pub(super) at: usize,
    pub(super) end: usize,
}

impl IndexEntry<'_> {
    pub(super) fn is_hidden(&self) -> bool {
        self.marks & ASSUME_UNCHANGED != 0 || self.extended & SKIP_WORKTREE != 0
    }

    pub(super) fn is_submodule(&self) -> bool {
        self.mode == GITLINK
    }
}

/// Parses an index of version 2 or 3 up to its very end. Returns `None` for any other format, and for a split or sparse index.
pub(super) fn entries(bytes: &[u8]) -> Option<Vec<IndexEntry<'_>>> {
    // The length of an object id: SHA-1 or SHA-256.
    entries_with(bytes, 20).or_else(|| entries_with(bytes, 32))
}

fn entries_with(bytes: &[u8], id: usize) -> Option<Vec<IndexEntry<'_>>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let marks = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    if !bytes.starts_with(b"DIRC") || !(2..=3).contains(&number(4)?) {
        return None;
    }
    let mut all = Vec::new();
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
        let path = &rest[..rest.iter().position(|byte| *byte == 0)?];
        if path.is_empty() || path.len().min(0xfff) != usize::from(flags & 0xfff) {
            return None;
        }
        let (mode, id) = (number(at + 24)?, bytes.get(at + 40..at + 40 + id)?);
        // Entries are padded with 1 to 8 zeros to a multiple of eight.
        let end = at + ((name_at - at + path.len() + 8) & !7);
        all.push(IndexEntry { path, mode, id, marks: flags & (ASSUME_UNCHANGED | STAGE), extended, at, end });
        at = end;
    }
    let end = bytes.len().checked_sub(id)?;
    while at < end {
        if matches!(bytes.get(at..at + 4)?, b"link" | b"sdir") {
            return None;
        }
        at = at.checked_add(8)?.checked_add(number(at + 4)? as usize)?;
    }
    (at == end).then_some(all)
}
