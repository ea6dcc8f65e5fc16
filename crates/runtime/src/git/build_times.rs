//! File times that match a build cache. Files identical to those that the cache was built from keep their times; all others
//! become newer than everything in the cache. Cargo and make use these times to decide what to rebuild. They would not rebuild a
//! restored file with an older time.

use std::fs;
use std::iter::{Copied, Peekable, Zip};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::slice::Iter;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::vec::IntoIter;

use super::Git;
use super::error::GitError;
use super::file_times::{CheckoutTimes, Dating, Modified, is_same_content, path_of, regular_files, seconds_and_nanoseconds};
use super::index::IndexFile;
use super::index_entries::{self, IndexEntry};
use super::index_stat::IndexStat;

/// What the caches in a workspace were built from.
#[derive(Debug, Clone, Copy)]
pub enum BuiltFrom<'a> {
    /// The user's checkout, which may change at any time.
    Checkout,
    /// An earlier workspace, on top of the caches from the user's checkout.
    Workspace(&'a EarlierBuild<'a>),
}

/// A workspace in which a build ran.
#[derive(Debug, Clone, Copy)]
pub struct EarlierBuild<'a> {
    /// The index of its files, with their times.
    pub index: &'a Path,
    /// The origin of each file's time, in the order of the index.
    pub dated: &'a [DatedBy],
    /// When the build ran.
    pub begun: SystemTime,
    pub ended: SystemTime,
}

/// Who set a file's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatedBy {
    /// The user. The user's own cache covers the file, so the workspace did not have to build it.
    User,
    Workspace,
}

impl Git {
    /// Sets the times of all files in a workspace and records them in its index. Returns whose time each file has. With caches
    /// from the checkout, a time at or after `since` is new enough to keep. `since` comes from the precise clock, which the
    /// kernel may use for file times.
    pub fn date_files(
        &self,
        folder: &Path,
        index: &Path,
        source: BuiltFrom<'_>,
        since: SystemTime,
    ) -> Result<Vec<DatedBy>, GitError> {
        let mut dated = Vec::new();
        let Some(mut ours) = IndexFile::read(index)? else { return Ok(dated) };
        let theirs = match source {
            // Without a readable user index, all files count as new.
            BuiltFrom::Checkout => self.readable_index().unwrap_or_default(),
            BuiltFrom::Workspace(build) => IndexFile::read(build.index)?,
        };
        let mut known_times = match (&theirs, source) {
            (None, _) => None,
            (Some(index), BuiltFrom::Checkout) => CheckoutTimes::read(&self.top, index).map(KnownTimes::Checkout),
            (Some(index), BuiltFrom::Workspace(build)) => BuildTimes::read(&self.top, index, build).map(KnownTimes::Build),
        };
        let newer_than = match source {
            BuiltFrom::Checkout => since,
            BuiltFrom::Workspace(build) => next_second(build.ended),
        };
        let mut fresh = None;
        let mut dating = Dating::new(folder, index, &ours.bytes)?;
        for entry in dating.files() {
            let known = IndexStat::read(&ours.bytes, entry.at);
            let time = known_times.as_mut().and_then(|times| times.time_of(&entry, &known, folder));
            dated.push(time.map_or(DatedBy::Workspace, |(_, by)| by));
            match time {
                Some((time, _)) if time.is(known.modified) => {}
                Some((time, _)) => dating.set(&entry, time)?,
                None if known.modified >= seconds_and_nanoseconds(newer_than) => {}
                None => {
                    let now = *fresh.get_or_insert_with(|| wait_for(newer_than));
                    dating.set(&entry, Modified::at(now))?;
                }
            }
        }
        dating.finish().write(index, &mut ours.bytes)?;
        Ok(dated)
    }
}

enum KnownTimes<'i> {
    Checkout(CheckoutTimes<'i>),
    Build(BuildTimes<'i>),
}

impl KnownTimes<'_> {
    fn time_of(&mut self, entry: &IndexEntry<'_>, known: &IndexStat, folder: &Path) -> Option<(Modified, DatedBy)> {
        match self {
            Self::Checkout(times) => times.time_of(entry, known, folder).map(|time| (time, DatedBy::User)),
            Self::Build(times) => times.time_of(entry, known),
        }
    }
}

/// Times of the files that a build used.
struct BuildTimes<'i> {
    top: &'i Path,
    build: &'i EarlierBuild<'i>,
    bytes: &'i [u8],
    files: Peekable<Zip<IntoIter<IndexEntry<'i>>, Copied<Iter<'i, DatedBy>>>>,
}

impl<'i> BuildTimes<'i> {
    fn read(top: &'i Path, index: &'i IndexFile, build: &'i EarlierBuild<'i>) -> Option<Self> {
        let files = regular_files(index_entries::entries(&index.bytes)?);
        let files = files.into_iter().zip(build.dated.iter().copied()).peekable();
        Some(Self { top, build, bytes: &index.bytes, files })
    }

    fn time_of(&mut self, entry: &IndexEntry<'_>, known: &IndexStat) -> Option<(Modified, DatedBy)> {
        while self.files.next_if(|(file, _)| file.path < entry.path).is_some() {}
        let (file, by) = self.files.next_if(|(file, _)| is_same_content(entry, file))?;
        let then = IndexStat::read(self.bytes, file.at);
        if then.size != known.size || (by == DatedBy::User && self.was_touched(entry)) {
            return None;
        }
        let time = Modified { seconds: then.modified.0.into(), nanoseconds: then.modified.1.into() };
        Some((time, by))
    }

    /// Whether the user touched the file since the build began. Compares ctime, which programs cannot set.
    fn was_touched(&self, entry: &IndexEntry<'_>) -> bool {
        let begun = self.build.begun.duration_since(UNIX_EPOCH).unwrap_or_default();
        let begun = (begun.as_secs().cast_signed(), i64::from(begun.subsec_nanos()));
        let meta = fs::symlink_metadata(self.top.join(path_of(entry)));
        meta.map_or(true, |meta| (meta.ctime(), meta.ctime_nsec()) >= begun)
    }
}

/// Python compares whole seconds to find out whether a compiled file is out of date.
fn next_second(moment: SystemTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() + 1)
}

/// Waits until `moment` and returns the current time, but at least `moment`. A longer wait than a second means that the clock was
/// set back; then it does not wait.
fn wait_for(moment: SystemTime) -> SystemTime {
    let left = moment.duration_since(SystemTime::now()).unwrap_or_default();
    if left <= Duration::from_secs(1) {
        thread::sleep(left);
    }
    SystemTime::now().max(moment)
}
