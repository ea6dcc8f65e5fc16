//! One walk over the folders of an attempt before git reads them. Whatever git could not enter, it would leave out without a word.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, chmod, open, openat2};

use super::attempt_tree::{ReadBack, TreeObstacle};
use super::error::GitError;
use super::path::RepoPath;

/// What git needs of a folder: its list of names, and the way to what is in it.
const READABLE: u32 = 0o500;

/// Makes every folder readable, and removes pipes that are named like one of git's own files (`.gitignore`, `.gitattributes`): git
/// would wait for ever for them, and they hold nothing. Rights of folders are in no tree.
pub(super) fn prepare_folders(job: &ReadBack<'_>) -> Result<Vec<TreeObstacle>, GitError> {
    let mut obstacles = Vec::new();
    let mut left = vec![Vec::new()];
    while let Some(below) = left.pop() {
        let entries = match make_readable(job.folder, &below).and_then(|()| fs::read_dir(place(job.folder, &below))) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
            Err(_) if job.ignored.covers(&below) => continue,
            Err(_) => {
                obstacles.push(TreeObstacle::Unreadable(RepoPath::new(if below.is_empty() { b"." } else { &below })));
                continue;
            }
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            let is_gits_pipe = kind.is_fifo() && name.as_bytes().starts_with(b".git");
            if !kind.is_dir() && !is_gits_pipe {
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
            if is_gits_pipe {
                fs::remove_file(entry.path()).map_err(GitError::io(&entry.path()))?;
                obstacles.push(TreeObstacle::NotAFile(RepoPath::new(&path)));
            } else if name == ".git" {
                // Never entered, but git has to see that it is there.
                let _ = make_readable(job.folder, &path);
                if !below.is_empty() {
                    remove_pipes(&entry.path()).map_err(GitError::io(&entry.path()))?;
                }
            } else {
                left.push(path);
            }
        }
    }
    Ok(obstacles)
}

/// A repository that was planted: git opens its `HEAD` and a few other files of it to find out whether it is one.
fn remove_pipes(git_folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(git_folder)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_fifo()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn place(top: &Path, below: &[u8]) -> PathBuf {
    top.join(OsStr::from_bytes(below))
}

/// Gives a folder of the attempt the rights that reading it takes. The rights are looked at rather than tried: git may run with fewer
/// privileges than this process.
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
    // A descriptor that only names a place cannot change it; its name below /proc can, and is no link of an agent's.
    Ok(chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), Mode::from_raw_mode(mode) | Mode::RWXU)?)
}
