//! The stat data of a file in an index: 32 bits for each number, as git stores them.
//!
//! Git compares whole seconds unless it is built otherwise. This module compares nanoseconds.

use std::fs::{self, FileTimes, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::error::GitError;
use super::index::IndexFile;
use crate::base::plain_file::open_regular;

/// Offsets in an index entry. It begins with the times; device, mode and owners lie between the other fields.
const CTIME: usize = 0;
const MTIME: usize = 8;
const INODE: usize = 20;
const SIZE: usize = 36;

/// Shows whether a file was written since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexStat {
    pub(super) changed: (u32, u32),
    pub(super) modified: (u32, u32),
    pub(super) inode: u32,
    pub(super) size: u32,
}

impl IndexStat {
    #[expect(clippy::cast_sign_loss, reason = "git stores the low 32 bits")]
    pub(super) fn from_metadata(meta: &Metadata) -> Self {
        Self {
            changed: (meta.ctime() as u32, meta.ctime_nsec() as u32),
            modified: (meta.mtime() as u32, meta.mtime_nsec() as u32),
            inode: meta.ino() as u32,
            size: meta.size() as u32,
        }
    }

    /// Reads the entry at offset `at` of an index that was parsed before.
    pub(super) fn read(index: &[u8], at: usize) -> Self {
        let number = |offset: usize| {
            let bytes = index.get(at + offset..at + offset + 4).and_then(|bytes| bytes.try_into().ok());
            u32::from_be_bytes(bytes.unwrap_or_default())
        };
        Self {
            changed: (number(CTIME), number(CTIME + 4)),
            modified: (number(MTIME), number(MTIME + 4)),
            inode: number(INODE),
            size: number(SIZE),
        }
    }

    /// Writes both times into the entry at offset `at`.
    pub(super) fn write_times(&self, index: &mut [u8], at: usize) {
        let numbers = [self.changed.0, self.changed.1, self.modified.0, self.modified.1];
        for (number, place) in numbers.iter().zip(index[at + CTIME..at + CTIME + 16].chunks_exact_mut(4)) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }
}

/// Replaces an index whose entries were changed in place. The checksum at its end becomes zero, as with git's `index.skipHash`.
/// Git since 2.13 does not compare it when reading, and the next git that writes the index sets it again.
pub(super) fn replace_index(path: &Path, bytes: &mut [u8], id_bytes: usize) -> Result<(), GitError> {
    let end = bytes.len().saturating_sub(id_bytes);
    bytes[end..].fill(0);
    let draft = path.with_extension("draft");
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&draft)?;
        file.write_all(bytes)?;
        fs::rename(&draft, path)
    };
    write().map_err(GitError::io(path))
}

/// Makes the index look newer than all files. When git writes an index, it reads again every file that is as new as the index. We
/// have already compared the files more thoroughly, so that would be a waste.
pub(super) fn look_newer_than_files(path: &Path) -> Result<(), GitError> {
    let touched = open_regular(path, OpenOptions::new().write(true))
        .and_then(|file| file.set_modified(SystemTime::now() + Duration::from_mins(1)));
    match touched {
        // A branch without a commit has no index.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        touched => touched.map_err(GitError::io(path)),
    }
}

/// Copies an index with its modification time, which git compares with the times of files.
pub(crate) fn copy_index_file(from: &Path, to: &Path) -> Result<(), GitError> {
    let Some(index) = IndexFile::read(from)? else { return Ok(()) };
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(to)?;
        file.write_all(&index.bytes)?;
        file.set_times(FileTimes::new().set_modified(index.modified))
    };
    write().map_err(GitError::io(to))
}
