//! The index file as a whole: copied, and put in place through git's own lock.
//!
//! The modification time travels with the bytes. Git compares it with the entries' times to find files that were changed in
//! the same instant; a copy with a younger time would hide such a change.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

use super::Git;
use super::error::GitError;

/// An editor's `git status` holds the lock for moments.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// The bytes of an index file and its modification time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexFile {
    pub(super) bytes: Vec<u8>,
    pub(super) modified: SystemTime,
}

/// An index of our own, beside the user's. Gone when dropped.
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
    /// None where there is no index yet.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, GitError> {
        // Opened once, so that bytes and time belong together although git replaces the file by renaming.
        let mut file = match File::open(path) {
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

    /// An index of our own that begins as this one, or as none.
    pub(super) fn temp_index(&self, index: Option<&IndexFile>) -> Result<TempIndex, GitError> {
        let dir = tempfile::Builder::new().prefix("verdone-").tempdir_in(&self.git_dir).map_err(GitError::io(&self.git_dir))?;
        let copy = TempIndex { dir };
        if let Some(index) = index {
            let path = copy.path();
            let mut file = File::create(&path).map_err(GitError::io(&path))?;
            index.write(&mut file).map_err(GitError::io(&path))?;
        }
        Ok(copy)
    }

    /// Puts an index in the user's place, or takes it away.
    pub(super) fn install_index(&self, index: Option<&IndexFile>) -> Result<(), GitError> {
        let (path, lock) = (self.index_path(), self.git_dir.join("index.lock"));
        let mut file = take_lock(&lock)?;
        let mut install = || -> io::Result<()> {
            if let Some(index) = index {
                index.write(&mut file)?;
                return fs::rename(&lock, &path);
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            fs::remove_file(&lock)
        };
        let done = install();
        if done.is_err() {
            let _ = fs::remove_file(&lock);
        }
        done.map_err(GitError::io(&path))
    }
}

fn take_lock(lock: &Path) -> Result<File, GitError> {
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match OpenOptions::new().write(true).create_new(true).open(lock) {
            Ok(file) => return Ok(file),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(GitError::Io { path: lock.to_owned(), source: error });
            }
            Err(_) if Instant::now() >= until => return Err(GitError::Locked { lock: lock.to_owned() }),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}
