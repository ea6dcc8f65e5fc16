//! Evidence notes under `refs/notes/verdone`.

use std::fs::{self, OpenOptions, TryLockError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use verdone_core::base::id::Oid;

use super::chain::{IDENTITY_MAIL, IDENTITY_NAME};
use super::error::GitError;
use super::stale_lock::TICK;
use super::{Git, is_object_id};
use crate::base::fault::{self, Point};
use crate::base::plain_file::open_regular;

const NOTES: &str = "refs/notes/verdone";
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const TRIES: u32 = 5;

impl Git {
    /// Attaches evidence to a commit and replaces an earlier note. Runs in linked work trees share the ref and take turns. The
    /// note is on disk when this returns.
    pub fn note(&self, commit: &Oid, text: &str) -> Result<(), GitError> {
        if !is_object_id(commit) {
            return Err(GitError::Unexpected { what: "notes", detail: format!("{commit} is not an object id") });
        }
        let path = self.common_dir.join("verdone-notes.lock");
        fault::point(Point::NoteWrite).map_err(GitError::io(&path))?;
        let lock = open_regular(&path, OpenOptions::new().create(true).append(true)).map_err(GitError::io(&path))?;
        let until = Instant::now() + LOCK_PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::WouldBlock) => return Err(GitError::Locked { lock: path }),
                Err(TryLockError::Error(source)) => return Err(GitError::Io { path, source }),
            }
        }
        // Our lock only excludes other Verdone processes: another git process may hold the ref's lock for a moment, and ours may be killed.
        for _ in 1..TRIES {
            let since = SystemTime::now();
            match self.write_note(commit, text) {
                Err(GitError::Failed { code, .. }) => {
                    if code.is_none() {
                        self.remove_lock_of_killed_git(since)?;
                    }
                    thread::sleep(Duration::from_millis(20));
                }
                done => return done,
            }
        }
        self.write_note(commit, text)
    }

    /// The note of a commit, if it has one.
    pub fn read_note(&self, commit: &Oid) -> Result<Option<String>, GitError> {
        let answer = self.plumbing("notes").args(["--ref=verdone", "show", commit.as_str()]).answer()?;
        if answer.status.code() == Some(1) {
            return Ok(None);
        }
        let text = answer.success("notes")?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }

    /// A git process that a signal ended leaves the lock of the ref behind. Only Verdone writes this ref, one process at a time.
    fn remove_lock_of_killed_git(&self, since: SystemTime) -> Result<(), GitError> {
        let path = self.common_dir.join(format!("{NOTES}.lock"));
        let Ok(made) = fs::symlink_metadata(&path).and_then(|meta| meta.modified()) else { return Ok(()) };
        if made < since.checked_sub(TICK).unwrap_or(since) {
            return Ok(());
        }
        fs::remove_file(&path).map_err(GitError::io(&path))
    }

    fn write_note(&self, commit: &Oid, text: &str) -> Result<(), GitError> {
        let since = SystemTime::now();
        self.durable("notes")
            .args(["--ref=verdone", "add", "-f", "-F", "-", commit.as_str()])
            .env("GIT_AUTHOR_NAME", IDENTITY_NAME)
            .env("GIT_AUTHOR_EMAIL", IDENTITY_MAIL)
            .env("GIT_COMMITTER_NAME", IDENTITY_NAME)
            .env("GIT_COMMITTER_EMAIL", IDENTITY_MAIL)
            .stdin(text.as_bytes().to_vec())
            .run()?;
        fault::pass(Point::NoteWritten);
        self.sync_object_folders(since)?;
        self.sync_ref_folders(NOTES)
    }
}
