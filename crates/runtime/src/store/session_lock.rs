//! Allows one process per agent session: the client itself would let two processes continue the same session. The kernel holds the lock, in
//! the git directory shared by all work trees, which an agent may not write.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use verdone_core::base::id::encode_component;

use crate::base::plain_file::open_regular;

const FOLDER: &str = "verdone-sessions";
/// A child that a killed run was about to start also holds the lock, from its fork to its exec.
const PATIENCE: Duration = Duration::from_millis(500);

/// Held until it is dropped or the process ends.
#[derive(Debug)]
pub struct SessionLock {
    /// Keeps the lock.
    _file: File,
    path: PathBuf,
    session: String,
}

impl SessionLock {
    /// `None` if another process has the session.
    pub fn acquire(common_dir: &Path, session: &str) -> io::Result<Option<Self>> {
        let folder = common_dir.join(FOLDER);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let path = folder.join(encode_component(session));
        let until = Instant::now() + PATIENCE;
        loop {
            let mut options = OpenOptions::new();
            let file = open_regular(&path, options.create(true).truncate(false).read(true).write(true))?;
            match file.try_lock() {
                // The previous holder may have deleted the file that we locked.
                Ok(()) if is_at(&file, &path)? => return Ok(Some(Self { _file: file, path, session: session.to_owned() })),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    pub fn is_of(&self, session: &str) -> bool {
        self.session == session
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // A leftover file blocks no one.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_never_have_the_same_session_and_its_file_goes_with_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let take = |session: &str| SessionLock::acquire(dir.path(), session).unwrap();
        let first = take("s").unwrap();
        assert!(first.is_of("s") && !first.is_of("t"));
        assert!(take("s").is_none());
        assert!(take("t").is_some(), "another session is nobody's");
        drop(first);
        assert_eq!(fs::read_dir(dir.path().join(FOLDER)).unwrap().count(), 0);
        assert!(take("s").is_some());
    }

    #[test]
    fn a_hostile_id_stays_in_the_folder_and_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        for id in ["../../x", "", "a/b", "a\0b", &"y".repeat(10_000)] {
            let lock = SessionLock::acquire(dir.path(), id).unwrap().unwrap();
            assert_eq!(fs::read_dir(dir.path().join(FOLDER)).unwrap().count(), 1, "{id:?}");
            drop(lock);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        std::os::unix::fs::symlink(dir.path().join("away"), dir.path().join(FOLDER).join("s")).unwrap();
        assert!(SessionLock::acquire(dir.path(), "s").is_err());
        assert!(!dir.path().join("away").exists());
    }

    #[test]
    fn many_who_want_it_at_once_get_it_one_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let inside = std::sync::atomic::AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut had = 0;
                    while had < 50 {
                        let Some(lock) = SessionLock::acquire(dir.path(), "s").unwrap() else { continue };
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(lock);
                        had += 1;
                    }
                });
            }
        });
    }
}
