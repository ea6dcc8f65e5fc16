//! Raw access to files of the work tree: applies no filters and follows no symbolic links.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::path::RepoPath;
use crate::base::plain_file::open_regular;

/// Identifies an untouched file. The ctime cannot be set back, so equal values mean the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stat {
    pub(super) dev: u64,
    pub(super) ino: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) mtime_ns: i64,
    pub(super) ctime_ns: i64,
}

impl Stat {
    pub(super) fn from_metadata(meta: &Metadata) -> Self {
        Self {
            dev: meta.dev(),
            ino: meta.ino(),
            size: meta.size(),
            mode: meta.mode(),
            mtime_ns: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
            ctime_ns: meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec()),
        }
    }
}

/// What exists at a path.
#[derive(Debug)]
pub(super) enum FileState {
    /// Nothing, or a directory, or a parent that is not a real directory.
    Nothing,
    File {
        bytes: Vec<u8>,
        stat: Stat,
    },
    Symlink {
        target: Vec<u8>,
    },
}

/// The metadata of the path itself. `None` if a parent is missing, a link or a file.
pub(super) fn stat(top: &Path, path: &RepoPath) -> io::Result<Option<Metadata>> {
    if !path.is_safe() {
        return Ok(None);
    }
    for parent in path.parents() {
        match lstat(&top.join(parent.as_path()))? {
            Some(meta) if meta.is_dir() => {}
            Some(_) | None => return Ok(None),
        }
    }
    lstat(&top.join(path.as_path()))
}

pub(super) fn read(top: &Path, path: &RepoPath) -> io::Result<FileState> {
    let Some(meta) = stat(top, path)? else { return Ok(FileState::Nothing) };
    read_at(&top.join(path.as_path()), &meta)
}

fn read_at(place: &Path, meta: &Metadata) -> io::Result<FileState> {
    if meta.is_symlink() {
        return Ok(FileState::Symlink { target: fs::read_link(place)?.into_os_string().into_vec() });
    }
    if !meta.is_file() {
        return Ok(FileState::Nothing);
    }
    // The file may have become a pipe or a link since the check.
    let mut file = match open_regular(place, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileState::Nothing),
        Err(error) => return Err(error),
    };
    let stat = Stat::from_metadata(&file.metadata()?);
    let mut bytes = Vec::with_capacity(usize::try_from(stat.size).unwrap_or_default());
    file.read_to_end(&mut bytes)?;
    Ok(FileState::File { bytes, stat })
}

/// Something that blocks a file at `path`, unless `goes` says that it will be removed.
pub(super) fn in_the_way(top: &Path, path: &RepoPath, goes: &dyn Fn(&RepoPath) -> bool) -> io::Result<Option<RepoPath>> {
    for parent in path.parents() {
        match lstat(&top.join(parent.as_path()))? {
            Some(meta) if meta.is_dir() => {}
            Some(_) if !goes(&parent) => return Ok(Some(parent)),
            Some(_) | None => return Ok(None),
        }
    }
    let mut open = vec![path.clone()];
    while let Some(dir) = open.pop() {
        let place = top.join(dir.as_path());
        if !lstat(&place)?.is_some_and(|meta| meta.is_dir()) {
            continue;
        }
        for entry in fs::read_dir(&place)? {
            let entry = entry?;
            let below = RepoPath::new(&[dir.as_bytes(), b"/", entry.file_name().as_bytes()].concat());
            if entry.file_type()?.is_dir() {
                open.push(below);
            } else if !goes(&below) {
                return Ok(Some(below));
            }
        }
    }
    Ok(None)
}

fn lstat(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}
