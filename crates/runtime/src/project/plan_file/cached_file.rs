//! A file held in memory: cheap to compare with the disk, and replaced atomically.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{LARGEST_PLAN, PlanFileError};
use crate::base::atomic::draft_in;
use crate::base::fault::{self, Point};

#[derive(Debug)]
pub(super) struct Held {
    /// The path as given.
    pub(super) path: PathBuf,
    /// The target of a link, to which we write.
    target: PathBuf,
    /// The file's metadata when we last read or wrote it. `None` while it does not exist.
    stamp: Option<Stamp>,
    mode: Option<u32>,
}

/// Metadata that changes whenever the bytes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// Whether the file was old enough: an edit right after a write may leave the same times.
    settled: bool,
}

#[derive(Debug)]
pub(super) enum ReadError {
    Missing,
    NotAFile,
    TooLarge(u64),
    Io(io::Error),
}

/// Two edits closer than this may have the same time.
const TICK: Duration = Duration::from_millis(50);

impl Held {
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<u8>), ReadError> {
        let target = fs::canonicalize(path)?;
        let mut held = Self { path: path.to_owned(), target, stamp: None, mode: None };
        let (stamp, bytes) = held.read_again()?;
        held.mode = Some(fs::metadata(&held.target)?.mode());
        held.stamp = Some(stamp);
        Ok((held, bytes))
    }

    pub(super) fn absent(path: &Path) -> Self {
        Self { path: path.to_owned(), target: path.to_owned(), stamp: None, mode: None }
    }

    /// Reads the current content without changing `Held`.
    pub(super) fn read_again(&self) -> Result<(Stamp, Vec<u8>), ReadError> {
        read(&self.target)
    }

    /// Whether the disk has these bytes. `None` means that the file should not exist.
    pub(super) fn is_unchanged(&self, bytes: Option<&[u8]>) -> Result<bool, ReadError> {
        let now = match fs::symlink_metadata(&self.target) {
            Ok(now) => now,
            Err(error) if is_missing(&error) => return Ok(bytes.is_none()),
            Err(error) => return Err(error.into()),
        };
        let (Some(bytes), true) = (bytes, now.is_file()) else { return Ok(false) };
        if self.stamp.is_some_and(|stamp| stamp.settled && stamp.is_same(&Stamp::from_metadata(&now))) {
            return Ok(true);
        }
        if now.len() != bytes.len() as u64 {
            return Ok(false);
        }
        match read(&self.target) {
            Ok((_, on_disk)) => Ok(on_disk == bytes),
            Err(ReadError::Missing | ReadError::NotAFile | ReadError::TooLarge(_)) => Ok(false),
            Err(error @ ReadError::Io(_)) => Err(error),
        }
    }

    /// Like `is_unchanged`, but stores the metadata so that the next comparison is cheap.
    pub(super) fn confirm(&mut self, bytes: Option<&[u8]>) -> Result<bool, PlanFileError> {
        // Taken before the bytes are compared, so that a later edit cannot go unnoticed.
        let before = fs::symlink_metadata(&self.target).ok().map(|now| Stamp::from_metadata(&now));
        let unchanged = self.is_unchanged(bytes).map_err(|error| self.error(error))?;
        if unchanged {
            self.stamp = before;
        }
        Ok(unchanged)
    }

    /// Replaces the file atomically and keeps its mode.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), PlanFileError> {
        self.replace(bytes).map_err(|source| PlanFileError::Write { path: self.path.clone(), source })
    }

    pub(super) fn error(&self, error: ReadError) -> PlanFileError {
        named(&self.path, error)
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = self.target.parent().unwrap_or(Path::new("."));
        fault::point(Point::PlanWrite)?;
        fs::create_dir_all(folder)?;
        let mut file = draft_in(folder)?;
        file.write_all(bytes)?;
        let mode = self.mode.unwrap_or(0o644);
        file.as_file().set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
        file.as_file().sync_all()?;
        fault::point(Point::PlanRename)?;
        let file = file.persist(&self.target).map_err(|error| error.error)?;
        self.stamp = Some(Stamp::from_metadata(&file.metadata()?));
        self.mode = Some(mode);
        fault::point(Point::PlanRenamed)?;
        File::open(folder)?.sync_all()
    }
}

impl Stamp {
    fn from_metadata(metadata: &Metadata) -> Self {
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let changed = Duration::new(metadata.ctime().try_into().unwrap_or(0), metadata.ctime_nsec().try_into().unwrap_or(0));
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            settled: age.saturating_sub(changed) > TICK,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        Self { settled: other.settled, ..*self } == *other
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        if is_missing(&error) { Self::Missing } else { Self::Io(error) }
    }
}

pub(super) fn named(path: &Path, error: ReadError) -> PlanFileError {
    let path = path.to_owned();
    match error {
        ReadError::Missing => PlanFileError::Read { path, source: io::ErrorKind::NotFound.into() },
        ReadError::NotAFile => PlanFileError::NotAFile { path },
        ReadError::TooLarge(bytes) => PlanFileError::TooLarge { path, bytes },
        ReadError::Io(source) => PlanFileError::Read { path, source },
    }
}

/// Checks the type first: opening a pipe would block until somebody writes to it.
fn read(path: &Path) -> Result<(Stamp, Vec<u8>), ReadError> {
    let before = fs::symlink_metadata(path)?;
    if !before.is_file() {
        return Err(ReadError::NotAFile);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() > LARGEST_PLAN {
        return Err(ReadError::TooLarge(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(LARGEST_PLAN + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_PLAN {
        return Err(ReadError::TooLarge(bytes.len() as u64));
    }
    Ok((Stamp::from_metadata(&metadata), bytes))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
