//! Reads one folder of a work tree: its entries, and whether it contains any file.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
#[cfg(not(target_os = "linux"))]
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
#[cfg(not(target_os = "linux"))]
use rustix::io::Errno;

use crate::base::digest_cache::Stamp;
use crate::git::path::RepoPath;

/// Give up checking whether a folder is empty above this number of folders.
const MOST_FOLDERS: usize = 10_000;

pub(super) fn open_folder(place: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, place, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// The type of an entry in an open folder, its times and its mode.
#[cfg(target_os = "linux")]
pub(super) fn stat_in(open: &fs::File, _: &Path, name: &[u8]) -> rustix::io::Result<(FileType, Stamp, u32)> {
    let stat = rustix::fs::statat(open, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    let time = |seconds: i64, nanoseconds: u64| seconds.saturating_mul(1_000_000_000).saturating_add_unsigned(nanoseconds);
    let stamp = Stamp::new(
        [stat.st_dev, stat.st_ino, stat.st_size.unsigned_abs()],
        [time(stat.st_mtime, stat.st_mtime_nsec), time(stat.st_ctime, stat.st_ctime_nsec)],
    );
    Ok((FileType::from_raw_mode(stat.st_mode), stamp, stat.st_mode))
}

/// The raw fields have other types on other systems, so use std's portable metadata, which needs a whole path.
#[cfg(not(target_os = "linux"))]
pub(super) fn stat_in(_: &fs::File, place: &Path, name: &[u8]) -> rustix::io::Result<(FileType, Stamp, u32)> {
    let meta = fs::symlink_metadata(place.join(std::ffi::OsStr::from_bytes(name)))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let kind = match meta.file_type() {
        kind if kind.is_file() => FileType::RegularFile,
        kind if kind.is_symlink() => FileType::Symlink,
        kind if kind.is_dir() => FileType::Directory,
        _ => FileType::Unknown,
    };
    Ok((kind, Stamp::of(&meta), meta.mode()))
}

pub(super) fn folder_of(path: &RepoPath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &bytes[..at])
}

pub(super) fn below(folder: &RepoPath, name: &[u8]) -> RepoPath {
    if folder.as_bytes().is_empty() { RepoPath::new(name) } else { RepoPath::new(&[folder.as_bytes(), b"/", name].concat()) }
}

/// Not every file system reports the type of an entry.
pub(super) fn is_folder(place: &Path, kind: FileType) -> bool {
    kind == FileType::Directory || fs::symlink_metadata(place).is_ok_and(|meta| meta.is_dir())
}

#[derive(Default)]
pub(super) struct Listed {
    pub(super) folders: Vec<Vec<u8>>,
    files: bool,
}

pub(super) fn folders_in(place: &Path) -> io::Result<Listed> {
    let mut listed = Listed::default();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != ".git" {
            listed.folders.push(entry.file_name().as_bytes().to_vec());
        } else {
            listed.files = true;
        }
    }
    Ok(listed)
}

/// The folder and its subfolders, if they contain nothing else.
pub(super) fn bare(place: &Path, folder: &RepoPath) -> Option<Vec<RepoPath>> {
    let (mut all, mut next) = (Vec::new(), vec![(place.to_owned(), folder.clone())]);
    while let Some((place, folder)) = next.pop() {
        let listed = folders_in(&place).ok().filter(|listed| !listed.files)?;
        for name in &listed.folders {
            next.push((place.join(std::ffi::OsStr::from_bytes(name)), below(&folder, name)));
        }
        all.push(folder);
        if all.len() > MOST_FOLDERS {
            return None;
        }
    }
    Some(all)
}
