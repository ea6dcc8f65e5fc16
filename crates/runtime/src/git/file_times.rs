//! File times that a workspace shares with the user's checkout: build tools decide by them what has to be built again.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::Git;
use super::command::Call;
use super::error::GitError;
use super::index::IndexFile;
use super::index_entries::{self, IndexEntry};
use super::index_stat::{IndexStat, replace_index};
use super::workspace_files::PLAIN_INDEX;

/// Type bits of a regular file in an index.
const REGULAR: u32 = 0o100_000;
/// Files that are compared byte by byte are no larger.
const LARGEST_COMPARED: u64 = 1024 * 1024;

impl Git {
    /// Gives files of a workspace the modification time of the same file in the user's checkout, where that file has the same
    /// content. Gives how many. The workspace's index learns the new times.
    pub fn copy_times(&self, folder: &Path, index: &Path) -> Result<usize, GitError> {
        self.copy_times_since(folder, index, UNIX_EPOCH)
    }

    /// The same for files that were written since then.
    pub(super) fn copy_times_since(&self, folder: &Path, index: &Path, since: SystemTime) -> Result<usize, GitError> {
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = (since.as_secs() as u32, since.subsec_nanos());
        let (Some(mut ours), Some(theirs)) = (IndexFile::read(index)?, self.readable_index()?) else { return Ok(0) };
        let unreadable = || GitError::Unexpected { what: "read-tree", detail: format!("{} is not understood", index.display()) };
        let entries = index_entries::entries(&ours.bytes).ok_or_else(unreadable)?;
        let Some(users) = index_entries::entries(&theirs.bytes) else { return Ok(0) };
        let id_bytes = entries.first().map_or(0, |entry| entry.id.len());
        let mut patches = Vec::new();
        // Both lists are sorted by path.
        let mut candidates = users.iter().peekable();
        for entry in entries.iter().filter(|entry| entry.mode & 0o170_000 == REGULAR && !entry.is_hidden()) {
            let known = IndexStat::read(&ours.bytes, entry.at);
            if known.changed < since {
                continue;
            }
            while candidates.next_if(|user| user.path < entry.path).is_some() {}
            let Some(user) = candidates.peek().filter(|user| is_same_content(entry, user)) else { continue };
            let name = Path::new(std::ffi::OsStr::from_bytes(entry.path));
            let (place, of_user) = (folder.join(name), self.top.join(name));
            let Ok(meta) = fs::symlink_metadata(&of_user) else { continue };
            let user_stat = IndexStat::of(&meta);
            if user_stat != IndexStat::read(&theirs.bytes, user.at) || user_stat.size != known.size {
                continue;
            }
            // Written in the same instant as the index: a later change could look the same.
            if is_at_or_after(&meta, theirs.modified) && !have_same_bytes(&of_user, &place, meta.len()) {
                continue;
            }
            let stat = set_modified(&place, &meta).map_err(GitError::io(&place))?;
            patches.push((entry.at, stat));
        }
        let count = patches.len();
        if count > 0 {
            for (at, stat) in patches {
                stat.write_times(&mut ours.bytes, at);
            }
            replace_index(index, &mut ours.bytes, id_bytes)?;
        }
        Ok(count)
    }

    /// The user's index in a format that can be read here. Git converts the unusual ones: version 4, split, sparse.
    fn readable_index(&self) -> Result<Option<IndexFile>, GitError> {
        let Some(index) = IndexFile::read(&self.index_path())? else { return Ok(None) };
        if index_entries::entries(&index.bytes).is_some() {
            return Ok(Some(index));
        }
        let copy = self.temp_index(Some(&index))?;
        let convert = ["--index-version", "2", "--no-split-index", "--force-write-index"];
        Call::plumbing_with(&self.top, &PLAIN_INDEX, "update-index", self.deadline)
            .envs(&self.environment)
            .env("GIT_INDEX_FILE", copy.path())
            .args(convert)
            .run()?;
        Ok(IndexFile::read(&copy.path())?.map(|converted| IndexFile { modified: index.modified, ..converted }))
    }
}

fn is_same_content(entry: &IndexEntry<'_>, user: &IndexEntry<'_>) -> bool {
    user.path == entry.path && user.id == entry.id && user.mode == entry.mode && user.marks == 0 && !user.is_hidden()
}

fn is_at_or_after(meta: &Metadata, index: SystemTime) -> bool {
    meta.modified().is_ok_and(|modified| modified.max(UNIX_EPOCH) >= index)
}

fn have_same_bytes(one: &Path, other: &Path, size: u64) -> bool {
    let bytes = |path: &Path| crate::regular::read_regular(path, LARGEST_COMPARED).ok();
    size <= LARGEST_COMPARED && bytes(one).is_some_and(|found| Some(found) == bytes(other))
}

/// Sets the modification time alone; gives what the index has to remember now.
fn set_modified(place: &Path, like: &Metadata) -> io::Result<IndexStat> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: Timespec { tv_sec: like.mtime(), tv_nsec: like.mtime_nsec() },
    };
    utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(IndexStat::of(&fs::symlink_metadata(place)?))
}
