//! The index file as a whole: copied, and put in place through git's own lock.
//!
//! The modification time travels with the bytes. Git compares it with the entries' times to find files that were changed in
//! the same instant; a copy with a younger time would hide such a change.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

use super::Git;
use super::error::GitError;

/// Begins the names of our own files in the git directory.
const OURS: &str = "verdone-index";
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
        let dir = tempfile::Builder::new()
            .prefix(&format!("{OURS}-"))
            .tempdir_in(&self.git_dir)
            .map_err(GitError::io(&self.git_dir))?;
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
        // Written under a name of our own and linked to the lock: who dies in between leaves a lock that tells whose it was.
        let ours = self.git_dir.join(format!("{OURS}.{}", std::process::id()));
        let write = || -> io::Result<()> {
            let mut file = File::create(&ours)?;
            index.map_or(Ok(()), |index| index.write(&mut file))
        };
        write().map_err(GitError::io(&ours))?;
        let taken = self.take_lock(&lock, &ours);
        if taken.is_err() {
            let _ = fs::remove_file(&ours);
        }
        taken?;
        let install = || -> io::Result<()> {
            if index.is_some() {
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
        let _ = fs::remove_file(&ours);
        done.map_err(GitError::io(&path))
    }

    /// Removes what a run that died left in the git directory. To be called by whoever holds the work tree alone.
    pub fn sweep(&self) -> Result<(), GitError> {
        for entry in fs::read_dir(&self.git_dir).map_err(GitError::io(&self.git_dir))? {
            let path = entry.map_err(GitError::io(&self.git_dir))?.path();
            let is_ours = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(OURS.as_bytes()));
            if is_ours && path.is_dir() {
                let _ = fs::remove_dir_all(&path);
            } else if is_ours && is_of_a_dead_process(&path) {
                if is_same_file(&path, &self.git_dir.join("index.lock")) {
                    let _ = fs::remove_file(self.git_dir.join("index.lock"));
                }
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    fn take_lock(&self, lock: &Path, ours: &Path) -> Result<(), GitError> {
        let until = Instant::now() + LOCK_PATIENCE;
        loop {
            let linked = match fs::hard_link(ours, lock) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => copy_to_new(ours, lock),
                done => done,
            };
            match linked {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(GitError::Io { path: lock.to_owned(), source: error });
                }
                Err(_) if Instant::now() >= until => return Err(GitError::Locked { lock: lock.to_owned() }),
                Err(_) => {
                    self.sweep_lock(lock)?;
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    /// Removes the lock if it is one that a dead process of ours left.
    fn sweep_lock(&self, lock: &Path) -> Result<(), GitError> {
        for entry in fs::read_dir(&self.git_dir).map_err(GitError::io(&self.git_dir))?.flatten() {
            let path = entry.path();
            if is_of_a_dead_process(&path) && is_same_file(&path, lock) {
                let _ = fs::remove_file(lock);
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }
}

/// Where the file system knows no links. Such a lock does not tell whose it is.
fn copy_to_new(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(to)?;
    file.write_all(&fs::read(from)?)?;
    file.set_times(FileTimes::new().set_modified(fs::metadata(from)?.modified()?))
}

/// Whether the name is one of ours with the id of a process that is not there any more.
fn is_of_a_dead_process(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let id = name.strip_prefix(OURS).and_then(|rest| rest.strip_prefix('.')).and_then(|id| id.parse().ok());
    let pid = id.and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    identity(one).is_some_and(|id| identity(other) == Some(id))
}
