//! Walks the folders of an attempt before git reads them, because git silently skips folders that it cannot enter.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, chmod, open, openat2};

use super::attempt_tree::{ReadBack, TreeObstacle};
use super::index_entries::IndexEntry;
use super::path::RepoPath;

/// The permissions that git needs to list and enter a folder.
const READABLE: u32 = 0o500;

/// What the walk found.
#[derive(Debug, Default)]
pub(super) struct Folders {
    pub(super) obstacles: Vec<TreeObstacle>,
    pub(super) pipes: Vec<RepoPath>,
    /// Folders that look like repositories.
    pub(super) repositories: Vec<RepoPath>,
}

/// Makes every folder readable and collects obstacles for git. Folder permissions are not part of a tree.
pub(super) fn prepare_folders(job: &ReadBack<'_>) -> Folders {
    let mut found = Folders::default();
    let mut left = vec![Vec::new()];
    while let Some(below) = left.pop() {
        let entries = match make_readable(job.folder, &below).and_then(|()| fs::read_dir(place(job.folder, &below))) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
            Err(_) if job.ignored.covers(&below) => continue,
            Err(_) => {
                found.obstacles.push(TreeObstacle::Unreadable(RepoPath::new(if below.is_empty() { b"." } else { &below })));
                continue;
            }
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if name == ".git" {
                if below.is_empty() {
                    // The agent's private repository, which our git never reads.
                    continue;
                }
                found.repositories.push(RepoPath::new(&below));
            }
            if !kind.is_dir() && !kind.is_fifo() {
                continue;
            }
            let mut path = below.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            if job.excluded.covers(&path) {
                continue;
            }
            if kind.is_dir() {
                left.push(path);
            } else {
                found.pipes.push(RepoPath::new(&path));
            }
        }
    }
    found
}

/// Removes pipes, which have no content. Git would block forever on a pipe in place of a file that it reads itself: an ignore
/// file, or the `HEAD` of a planted repository. Other pipes in place of known files stay, to be reported as obstacles.
pub(super) fn remove_pipes(job: &ReadBack<'_>, pipes: &[RepoPath], known: &[IndexEntry<'_>], obstacles: &mut Vec<TreeObstacle>) {
    let known: HashSet<&[u8]> = if pipes.is_empty() { HashSet::new() } else { known.iter().map(|entry| entry.path).collect() };
    for path in pipes {
        let is_gits_own = path.as_bytes().rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b".git"));
        let is_known = known.contains(path.as_bytes());
        if is_known && !is_gits_own {
            continue;
        }
        let removed = fs::remove_file(place(job.folder, path.as_bytes()));
        if is_gits_own || removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
            obstacles.push(TreeObstacle::NotAFile(path.clone()));
        }
    }
}

fn place(top: &Path, below: &[u8]) -> PathBuf {
    top.join(OsStr::from_bytes(below))
}

/// Makes a folder of the attempt readable. Checks the mode instead of trying to read, because git may run with fewer privileges
/// than this process.
fn make_readable(top: &Path, below: &[u8]) -> io::Result<()> {
    let mode = fs::symlink_metadata(place(top, below))?.permissions().mode();
    if mode & READABLE == READABLE {
        return Ok(());
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = if below.is_empty() {
        open(top, flags, Mode::empty())?
    } else {
        let top = open(top, flags, Mode::empty())?;
        openat2(&top, below, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)?
    };
    // An `O_PATH` descriptor cannot change the mode, but its path below /proc can, and the agent cannot put a symlink there.
    Ok(chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), Mode::from_raw_mode(mode) | Mode::RWXU)?)
}
