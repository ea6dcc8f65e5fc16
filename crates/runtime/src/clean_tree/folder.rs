//! Where clean trees are: a folder of the user's cache, one entry a tree, each held by a lock of the kernel's. An entry that nobody
//! holds belongs to a dead process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use super::CleanError;
use crate::git::Git;
use crate::regular::open_regular;

/// Begins the names of trees that are kept for their setup.
const KEPT: &str = "kept-";
const LOCK: &str = ".lock";
/// Kept trees that stay, the last used ones.
const MOST_KEPT: usize = 6;
/// Kept trees of the same setup at the same time.
const MOST_LANES: u32 = 64;

/// An entry that is ours while this lives.
#[derive(Debug)]
pub(super) struct Taken {
    dir: PathBuf,
    lock: PathBuf,
    file: File,
    once: bool,
}

impl Taken {
    /// A new one, gone when it is dropped.
    pub(super) fn once(folder: &Path) -> Result<Self, CleanError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
            let name = format!("{}-{}-{nanos}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            if let Some(taken) = Self::take(folder, &name, true)? {
                return Ok(taken);
            }
        }
    }

    /// The first of this name that nobody uses.
    pub(super) fn kept(folder: &Path, key: &str) -> Result<Self, CleanError> {
        for lane in 0..MOST_LANES {
            if let Some(taken) = Self::take(folder, &format!("{KEPT}{key}-{lane}"), false)? {
                // So that the sweep knows when it was used last.
                let _ = taken.file.set_modified(SystemTime::now());
                return Ok(taken);
            }
        }
        let source = io::Error::new(io::ErrorKind::ResourceBusy, "too many clean trees are in use");
        Err(CleanError::Io { path: folder.to_owned(), source })
    }

    fn take(folder: &Path, name: &str, once: bool) -> Result<Option<Self>, CleanError> {
        let (dir, lock) = (folder.join(name), folder.join(format!("{name}{LOCK}")));
        let Some(file) = hold(&lock).map_err(CleanError::io(&lock))? else { return Ok(None) };
        let taken = Self { dir, lock, file, once };
        DirBuilder::new().recursive(true).mode(0o700).create(&taken.dir).map_err(CleanError::io(&taken.dir))?;
        Ok(Some(taken))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The files.
    pub(super) fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// What git keeps about them.
    pub(super) fn own(&self) -> PathBuf {
        self.dir.join("git")
    }

    /// Removes everything in it.
    pub(super) fn empty(&self) -> io::Result<()> {
        remove_all(&self.dir)?;
        fs::create_dir(&self.dir)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // What cannot be removed is swept by the next one.
        if self.once && remove_all(&self.dir).is_ok() {
            let _ = fs::remove_file(&self.lock);
        }
    }
}

/// The folder for clean trees, made where it is missing. Never inside the checkout, and nobody else's.
pub(super) fn find(git: &Git) -> Result<PathBuf, CleanError> {
    let folder = place(git)?;
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(CleanError::io(&folder))?;
    let folder = fs::canonicalize(&folder).map_err(CleanError::io(&folder))?;
    let meta = fs::metadata(&folder).map_err(CleanError::io(&folder))?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        let source = io::Error::new(io::ErrorKind::PermissionDenied, "belongs to somebody else");
        return Err(CleanError::Io { path: folder, source });
    }
    // Links may have led into it.
    let top = fs::canonicalize(git.top()).unwrap_or_else(|_| git.top().to_owned());
    if folder.starts_with(&top) { Err(CleanError::NoPlace { folder }) } else { Ok(folder) }
}

pub(super) fn find_existing(git: &Git) -> Result<PathBuf, CleanError> {
    let folder = place(git)?;
    fs::canonicalize(&folder).map_err(CleanError::io(&folder))
}

/// The cache; the folder for temporary files where there is none, or where the checkout is around it.
fn place(git: &Git) -> Result<PathBuf, CleanError> {
    let absolute = |name: &str| git.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let uid = rustix::process::geteuid().as_raw();
    let temp = absolute("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp")).join(format!("verdone-{uid}"));
    let all = [cache.map(|cache| cache.join("verdone")), Some(temp)];
    let apart = all.into_iter().flatten().find(|folder| !folder.starts_with(git.top()));
    apart.map(|folder| folder.join("clean")).ok_or_else(|| CleanError::NoPlace { folder: git.top().to_owned() })
}

/// Removes entries that nobody holds, except the last used ones of those that are kept.
pub(super) fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(name) = name.strip_suffix(LOCK) else { continue };
        if name.starts_with(KEPT) {
            let used = fs::symlink_metadata(&path).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            kept.push((used, path));
        } else {
            remove_unheld(&path);
        }
    }
    kept.sort_by(|a, b| b.cmp(a));
    for (_, lock) in kept.iter().skip(MOST_KEPT) {
        remove_unheld(lock);
    }
}

/// Whether the entry is gone now.
fn remove_unheld(lock: &Path) -> bool {
    let Ok(Some(_held)) = hold(lock) else { return false };
    // The lock goes last: what is left without one would never be found.
    remove_all(&lock.with_extension("")).is_ok() && fs::remove_file(lock).is_ok()
}

/// The locks of entries that dead processes left, and those of entries that are kept for their setup.
pub(super) fn entries(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut left, mut kept) = (Vec::new(), Vec::new());
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(LOCK)) else {
            continue;
        };
        if name.starts_with(KEPT) {
            kept.push(path);
        } else if matches!(hold(&path), Ok(Some(_))) {
            left.push(path);
        }
    }
    (left, kept)
}

/// Removes entries that dead processes left; says how many are gone.
pub(super) fn remove_left(locks: &[PathBuf]) -> usize {
    locks.iter().filter(|lock| remove_unheld(lock)).count()
}

/// Holds the lock file, made where it is missing; none where somebody else does.
fn hold(lock: &Path) -> io::Result<Option<File>> {
    let file = open_regular(lock, OpenOptions::new().create(true).truncate(false).read(true).write(true))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(error)) => return Err(error),
    }
    // A sweep may have removed the name before we had the file.
    let named = match fs::symlink_metadata(lock) {
        Ok(named) => named,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return hold(lock),
        Err(error) => return Err(error),
    };
    let held = file.metadata()?;
    if (named.dev(), named.ino()) == (held.dev(), held.ino()) { Ok(Some(file)) } else { Ok(None) }
}

/// Removes a folder with everything in it, folders that may not be written included. Links are removed, not followed.
pub(super) fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        done => done,
    }
}

/// Some tools take the right to write from the folders of their caches.
fn open_up(dir: &Path) -> io::Result<()> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
