//! File times that a workspace shares with the user's checkout. Build tools use them to decide what to rebuild.

use std::fs::{self, Metadata};
use std::io;
use std::iter::Peekable;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use std::vec::IntoIter;

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
/// Larger files are not compared byte by byte.
const LARGEST_COMPARED: u64 = 1024 * 1024;

impl Git {
    /// Gives files of a workspace the modification time of the same file in the user's checkout, if the contents are equal.
    /// Records the new times in the workspace's index and returns their number.
    pub fn copy_times(&self, folder: &Path, index: &Path) -> Result<usize, GitError> {
        self.copy_times_since(folder, index, UNIX_EPOCH)
    }

    /// Like [`Self::copy_times`], but only for files written since then.
    pub(super) fn copy_times_since(&self, folder: &Path, index: &Path, since: SystemTime) -> Result<usize, GitError> {
        let since = seconds_and_nanoseconds(since);
        let (Some(mut ours), Some(theirs)) = (IndexFile::read(index)?, self.readable_index()?) else { return Ok(0) };
        let Some(mut users) = CheckoutTimes::read(&self.top, &theirs) else { return Ok(0) };
        let mut dating = Dating::new(folder, index, &ours.bytes)?;
        for entry in dating.files() {
            let known = IndexStat::read(&ours.bytes, entry.at);
            if known.changed < since {
                continue;
            }
            if let Some(time) = users.time_of(&entry, &known, folder) {
                dating.set(&entry, time)?;
            }
        }
        dating.finish().write(index, &mut ours.bytes)
    }

    /// The user's index in a format that we can read. Git converts unusual ones: version 4, split, sparse.
    pub(super) fn readable_index(&self) -> Result<Option<IndexFile>, GitError> {
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

/// The times of files in the user's checkout.
pub(super) struct CheckoutTimes<'i> {
    top: &'i Path,
    index: &'i IndexFile,
    entries: Peekable<IntoIter<IndexEntry<'i>>>,
}

impl<'i> CheckoutTimes<'i> {
    /// Returns `None` if the user's index has an unknown format.
    pub(super) fn read(top: &'i Path, index: &'i IndexFile) -> Option<Self> {
        let entries = index_entries::entries(&index.bytes)?.into_iter().peekable();
        Some(Self { top, index, entries })
    }

    /// The time of the user's file, if it has the same content as this entry. `known` is the state of the entry's file in
    /// `folder`. Call this with entries in path order.
    pub(super) fn time_of(&mut self, entry: &IndexEntry<'_>, known: &IndexStat, folder: &Path) -> Option<Modified> {
        while self.entries.next_if(|user| user.path < entry.path).is_some() {}
        let user = self.entries.next_if(|user| is_same_content(entry, user))?;
        let name = path_of(entry);
        let of_user = self.top.join(name);
        let meta = fs::symlink_metadata(&of_user).ok()?;
        let stat = IndexStat::from_metadata(&meta);
        if stat != IndexStat::read(&self.index.bytes, user.at) || stat.size != known.size {
            return None;
        }
        // Written in the same instant as the index, so a later change could go unnoticed.
        if is_at_or_after(&meta, self.index.modified) && !have_same_bytes(&of_user, &folder.join(name), meta.len()) {
            return None;
        }
        Some(Modified { seconds: meta.mtime(), nanoseconds: meta.mtime_nsec() })
    }
}

pub(super) fn path_of<'i>(entry: &IndexEntry<'i>) -> &'i Path {
    Path::new(std::ffi::OsStr::from_bytes(entry.path))
}

/// A modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Modified {
    pub(super) seconds: i64,
    pub(super) nanoseconds: i64,
}

impl Modified {
    #[expect(clippy::cast_possible_wrap, reason = "no file system has such times")]
    pub(super) fn at(moment: SystemTime) -> Self {
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos().into() }
    }

    /// Whether an index stores this time as `stored`.
    #[expect(clippy::cast_sign_loss, reason = "git stores the low 32 bits")]
    pub(super) fn is(self, stored: (u32, u32)) -> bool {
        (self.seconds as u32, self.nanoseconds as u32) == stored
    }
}

/// A time in the form that an index stores.
pub(super) fn seconds_and_nanoseconds(moment: SystemTime) -> (u32, u32) {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() as u32, since.subsec_nanos())
}

/// Sets the times of a workspace's files and collects the changes for its index.
pub(super) struct Dating<'f, 'i> {
    folder: &'f Path,
    entries: Vec<IndexEntry<'i>>,
    patches: Patches,
}

/// Changes to an index for files whose times were set.
pub(super) struct Patches {
    id_bytes: usize,
    all: Vec<(usize, IndexStat)>,
}

impl<'f, 'i> Dating<'f, 'i> {
    pub(super) fn new(folder: &'f Path, index: &Path, bytes: &'i [u8]) -> Result<Self, GitError> {
        let unreadable = || GitError::Unexpected { what: "read-tree", detail: format!("{} cannot be parsed", index.display()) };
        let entries = index_entries::entries(bytes).ok_or_else(unreadable)?;
        let id_bytes = entries.first().map_or(0, |entry| entry.id.len());
        Ok(Self { folder, entries, patches: Patches { id_bytes, all: Vec::new() } })
    }

    /// Regular files of the workspace, in path order.
    pub(super) fn files(&mut self) -> Vec<IndexEntry<'i>> {
        regular_files(std::mem::take(&mut self.entries))
    }

    pub(super) fn set(&mut self, entry: &IndexEntry<'_>, time: Modified) -> Result<(), GitError> {
        let place = self.folder.join(path_of(entry));
        let stat = set_modified(&place, time).map_err(GitError::io(&place))?;
        self.patches.all.push((entry.at, stat));
        Ok(())
    }

    pub(super) fn finish(self) -> Patches {
        self.patches
    }
}

impl Patches {
    /// Writes the changes into the index and returns their number.
    pub(super) fn write(self, index: &Path, bytes: &mut [u8]) -> Result<usize, GitError> {
        let count = self.all.len();
        if count > 0 {
            for (at, stat) in self.all {
                stat.write_times(bytes, at);
            }
            replace_index(index, bytes, self.id_bytes)?;
        }
        Ok(count)
    }
}

/// Keeps regular, visible files: only their times matter.
pub(super) fn regular_files(mut entries: Vec<IndexEntry<'_>>) -> Vec<IndexEntry<'_>> {
    entries.retain(|entry| entry.mode & 0o170_000 == REGULAR && !entry.is_hidden());
    entries
}

/// Whether an entry of another index has the same path and content.
pub(super) fn is_same_content(entry: &IndexEntry<'_>, user: &IndexEntry<'_>) -> bool {
    user.path == entry.path && user.id == entry.id && user.mode == entry.mode && user.marks == 0 && !user.is_hidden()
}

fn is_at_or_after(meta: &Metadata, index: SystemTime) -> bool {
    meta.modified().is_ok_and(|modified| modified.max(UNIX_EPOCH) >= index)
}

fn have_same_bytes(one: &Path, other: &Path, size: u64) -> bool {
    let bytes = |path: &Path| crate::base::plain_file::read_regular(path, LARGEST_COMPARED).ok();
    size <= LARGEST_COMPARED && bytes(one).is_some_and(|found| Some(found) == bytes(other))
}

/// Sets only the modification time. Returns the stat data for the index.
fn set_modified(place: &Path, time: Modified) -> io::Result<IndexStat> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds },
    };
    utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(IndexStat::from_metadata(&fs::symlink_metadata(place)?))
}
