//! The index file as a whole: copied, and installed under git's own lock.
//!
//! The modification time is copied with the bytes. Git compares it with the entries' times to find files that changed in the same
//! instant; a copy with a younger time would hide such a change.
//!
//! The lock is a hard link to our draft. If we are killed, the next process can see that the lock is ours and remove it.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

use super::Git;
use super::error::GitError;
use crate::base::fault::{self, Point};
use crate::base::plain_file::open_regular;

/// An editor's `git status` holds the lock only briefly.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// The index about to be installed.
const DRAFT: &str = "verdone-index";
/// Name prefix of the directories with copies of the index.
const COPY: &str = "verdone-copy-";

/// The bytes of an index file and its modification time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexFile {
    pub(super) bytes: Vec<u8>,
    pub(super) modified: SystemTime,
}

/// Our own index beside the user's. Removed on drop.
#[derive(Debug)]
pub(super) struct TempIndex {
    dir: TempDir,
}

impl TempIndex {
    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("index")
    }
}

impl IndexFile {
    /// Returns `None` if there is no index yet.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, GitError> {
        // Open it only once, so that bytes and time match even if git replaces the file by renaming.
        let mut file = match open_regular(path, OpenOptions::new().read(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(GitError::Io { path: path.to_owned(), source }),
        };
        let mut read = || -> io::Result<Self> {
            let modified = file.metadata()?.modified()?;
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes)?;
            Ok(Self { bytes, modified })
        };
        read().map(Some).map_err(GitError::io(path))
    }

    fn write(&self, file: &mut File) -> io::Result<()> {
        file.write_all(&self.bytes)?;
        file.set_times(FileTimes::new().set_modified(self.modified))
    }
}

impl Git {
    pub(super) fn index_path(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// A copy of the user's index to work on.
    pub(super) fn copy_index(&self) -> Result<TempIndex, GitError> {
        self.temp_index(IndexFile::read(&self.index_path())?.as_ref())
    }

    /// A temporary index with the content of this one, or without content.
    pub(super) fn temp_index(&self, index: Option<&IndexFile>) -> Result<TempIndex, GitError> {
        fault::point(Point::IndexCopy).map_err(GitError::io(&self.git_dir))?;
        let dir = tempfile::Builder::new().prefix(COPY).tempdir_in(&self.git_dir).map_err(GitError::io(&self.git_dir))?;
        let copy = TempIndex { dir };
        if let Some(index) = index {
            let path = copy.path();
            let mut file = File::create(&path).map_err(GitError::io(&path))?;
            index.write(&mut file).map_err(GitError::io(&path))?;
        }
        Ok(copy)
    }

    /// Installs an index as the user's, or removes the user's index.
    pub(super) fn install_index(&self, index: Option<&IndexFile>) -> Result<(), GitError> {
        let (path, lock, draft) = (self.index_path(), self.lock_path(), self.git_dir.join(DRAFT));
        let write = || -> io::Result<()> {
            // Never truncate it: a killed run may have left it as a second link to the index itself.
            remove(&draft)?;
            fault::point(Point::IndexWrite)?;
            let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
            index.map_or(Ok(()), |index| index.write(&mut file))
        };
        let done = write().map_err(GitError::io(&draft)).and_then(|()| take_lock(&draft, &lock)).and_then(|()| {
            let done = fault::point(Point::IndexLocked).and_then(|()| match index {
                Some(_) => fs::rename(&lock, &path),
                None => remove(&path).and_then(|()| fs::remove_file(&lock)),
            });
            if done.is_err() {
                let _ = fs::remove_file(&lock);
            }
            done.map_err(GitError::io(&path))
        });
        let _ = fs::remove_file(&draft);
        fault::pass(Point::IndexInstalled);
        done
    }

    /// Removes what a killed Verdone process left in the git directory: its lock on the index and copies of the index. The caller
    /// must hold the run lock.
    pub fn remove_leftovers(&self) -> Result<(), GitError> {
        let (lock, draft) = (self.lock_path(), self.git_dir.join(DRAFT));
        let same = |a: &Path, b: &Path| -> io::Result<bool> {
            let (a, b) = (fs::symlink_metadata(a)?, fs::symlink_metadata(b)?);
            Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
        };
        if same(&lock, &draft).unwrap_or(false) {
            remove(&lock).map_err(GitError::io(&lock))?;
        }
        remove(&draft).map_err(GitError::io(&draft))?;
        let entries = fs::read_dir(&self.git_dir).map_err(GitError::io(&self.git_dir))?;
        for entry in entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(COPY.as_bytes())) {
            fs::remove_dir_all(entry.path()).map_err(GitError::io(&entry.path()))?;
        }
        Ok(())
    }

    fn lock_path(&self) -> PathBuf {
        self.git_dir.join("index.lock")
    }
}

/// Links the draft as the lock.
fn take_lock(draft: &Path, lock: &Path) -> Result<(), GitError> {
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match fs::hard_link(draft, lock) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // No hard links on this file system, so our lock looks like any other.
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                use rustix::fs::{CWD, RenameFlags, renameat_with};
                match renameat_with(CWD, draft, CWD, lock, RenameFlags::NOREPLACE) {
                    Ok(()) => return Ok(()),
                    Err(rustix::io::Errno::EXIST) => {}
                    Err(_) => return Err(GitError::Io { path: lock.to_owned(), source: error }),
                }
            }
            Err(source) => return Err(GitError::Io { path: lock.to_owned(), source }),
        }
        if Instant::now() >= until {
            return Err(GitError::Locked { lock: lock.to_owned() });
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
