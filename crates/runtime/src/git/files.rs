//! Files of the work tree, read and written raw: no filters, no symbolic link followed on the way.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::path::RepoPath;
use crate::atomic::draft_in;
use crate::fault::{self, Point};
use crate::regular::open_regular;

/// What tells that a file was not touched. The change time cannot be set back, so equal means equal.
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
    pub(super) fn of(meta: &Metadata) -> Self {
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

/// What stands at a path.
#[derive(Debug)]
pub(super) enum Found {
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

impl Found {
    /// Whether there is no byte that could be lost.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::File { bytes, .. } => bytes.is_empty(),
            Self::Symlink { .. } => false,
        }
    }
}

/// The metadata of the path itself. None when a parent is missing, a link or a file.
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

pub(super) fn read(top: &Path, path: &RepoPath) -> io::Result<Found> {
    let Some(meta) = stat(top, path)? else { return Ok(Found::Nothing) };
    read_at(&top.join(path.as_path()), &meta)
}

/// As [`read`], for a path that is not inside the work tree.
pub(super) fn read_outside(path: &Path) -> io::Result<Found> {
    match lstat(path)? {
        Some(meta) => read_at(path, &meta),
        None => Ok(Found::Nothing),
    }
}

fn read_at(place: &Path, meta: &Metadata) -> io::Result<Found> {
    if meta.is_symlink() {
        return Ok(Found::Symlink { target: fs::read_link(place)?.into_os_string().into_vec() });
    }
    if !meta.is_file() {
        return Ok(Found::Nothing);
    }
    // A file may become a pipe or a link between the look and the open.
    let mut file = match open_regular(place, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let stat = Stat::of(&file.metadata()?);
    let mut bytes = Vec::with_capacity(usize::try_from(stat.size).unwrap_or_default());
    file.read_to_end(&mut bytes)?;
    Ok(Found::File { bytes, stat })
}

/// Replaces a file in one step. Its parents must be there.
pub(super) fn write_file(place: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    fault::point(Point::RestoreWrite)?;
    let mut file = draft_in(parent_of(place))?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(mode & 0o7777))?;
    fault::point(Point::RestoreRename)?;
    file.persist(place).map_err(|error| error.error)?;
    Ok(())
}

pub(super) fn write_symlink(place: &Path, target: &[u8]) -> io::Result<()> {
    let target = Path::new(std::ffi::OsStr::from_bytes(target));
    let link = tempfile::Builder::new().prefix(".verdone-").make_in(parent_of(place), |name| symlink(target, name))?;
    link.into_temp_path().persist(place).map_err(|error| error.error)
}

pub(super) fn set_mode(place: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(place, Permissions::from_mode(mode & 0o7777))
}

/// Removes a file or link, then the directories that this left empty.
pub(super) fn remove(top: &Path, path: &RepoPath) -> io::Result<bool> {
    match stat(top, path)? {
        Some(meta) if !meta.is_dir() => {
            fault::point(Point::RestoreRemove)?;
            fs::remove_file(top.join(path.as_path()))?;
        }
        Some(_) | None => return Ok(false),
    }
    prune(top, path);
    Ok(true)
}

/// Removes parents of `path` that are empty, innermost first.
pub(super) fn prune(top: &Path, path: &RepoPath) {
    for parent in path.parents().rev() {
        if fs::remove_dir(top.join(parent.as_path())).is_err() {
            break;
        }
    }
}

/// Something that stands where a file at `path` has to be and that does not go away by itself.
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

/// Makes the way free for a file at `path`: its parents are real directories and no directory stands in its place.
/// What has to go is moved under `aside`, never deleted. Gives where it went.
pub(super) fn clear_way(top: &Path, path: &RepoPath, aside: &Path) -> io::Result<Option<PathBuf>> {
    let mut moved = None;
    for parent in path.parents() {
        let place = top.join(parent.as_path());
        match lstat(&place)? {
            Some(meta) if meta.is_dir() => {}
            Some(_) => {
                moved = Some(set_aside(top, &parent, aside)?);
                fs::create_dir(&place)?;
            }
            None => fs::create_dir(&place)?,
        }
    }
    let place = top.join(path.as_path());
    let directory = lstat(&place)?.is_some_and(|meta| meta.is_dir());
    if directory && fs::remove_dir(&place).is_err() {
        moved = Some(set_aside(top, path, aside)?);
    }
    Ok(moved)
}

/// Moves whatever is at `path` under `aside`, to a name that is free there.
pub(super) fn set_aside(top: &Path, path: &RepoPath, aside: &Path) -> io::Result<PathBuf> {
    fault::point(Point::RestoreAside)?;
    let wanted = aside.join(path.as_path());
    fs::create_dir_all(parent_of(&wanted))?;
    let mut target = wanted.clone();
    for number in 1.. {
        if lstat(&target)?.is_none() {
            break;
        }
        let mut name = wanted.clone().into_os_string();
        name.push(format!(".{number}"));
        target = name.into();
    }
    fs::rename(top.join(path.as_path()), &target)?;
    Ok(target)
}

fn lstat(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

fn parent_of(place: &Path) -> &Path {
    place.parent().unwrap_or(Path::new("/"))
}
