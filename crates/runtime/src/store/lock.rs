//! Allows one run per work tree. The kernel holds the lock, so a killed run never leaves a stale one. The text in the file only identifies
//! the holder. A child that a killed run was about to start also holds the lock until its exec. Therefore, if the named holder is not
//! alive, the lock is waited for briefly.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use verdone_core::base::id::RunId;

use crate::base::fault::{self, Point};
use crate::base::plain_file::{open_regular, read_regular};
use crate::process::is_alive;

/// The holder fits into one line.
const LARGEST: u64 = 64 * 1024;

/// How long to wait for a lock without a live holder: the time from fork to exec on a busy machine.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another run is active in this work tree: {holder}")]
    Held { holder: Holder },
    #[error("cannot lock {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The holder of the lock.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub run: Option<RunId>,
    pub since: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.run {
            Some(run) => write!(f, "process {}, run {run}, since {}", self.pid, self.since),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// Held until it is dropped or the process ends.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Takes the lock of the work tree with this git directory.
    pub fn acquire(git_dir: &Path) -> Result<Self, LockError> {
        let path = git_dir.join("verdone.lock");
        let failed = |source| LockError::Io { path: path.clone(), source };
        fault::point(Point::LockTake).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let mut file = open_regular(&path, &mut options).map_err(failed)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) if Self::holder(git_dir).is_some() || begun.elapsed() > PATIENCE => {
                    let mut text = String::new();
                    (&mut file).take(LARGEST).read_to_string(&mut text).map_err(failed)?;
                    return Err(LockError::Held { holder: serde_json::from_str(&text).unwrap_or_default() });
                }
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// The holder, determined without taking the lock: a query must not make a starting run fail.
    pub fn holder(git_dir: &Path) -> Option<Holder> {
        let holder: Holder = serde_json::from_slice(&read_regular(&git_dir.join("verdone.lock"), LARGEST).ok()?).ok()?;
        is_alive(holder.pid).then_some(holder)
    }

    /// Records the holder for other processes.
    pub fn record_holder(&mut self, holder: &Holder) -> io::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        fault::point(Point::LockTell)?;
        self.file.write_all(&serde_json::to_vec(holder)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pid above every limit of the kernel.
    const NOBODY: u32 = 2_000_000_000;

    #[test]
    fn the_second_is_refused_and_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = RunLock::acquire(dir.path()).unwrap();
        first.record_holder(&Holder { pid: NOBODY, run: Some(RunId::from("r1")), since: "noon".to_owned() }).unwrap();
        let refused = RunLock::acquire(dir.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {NOBODY}, run r1, since noon")), "{refused}");
        assert!(RunLock::holder(dir.path()).is_none(), "no such process");
        first.record_holder(&Holder { pid: std::process::id(), ..Holder::default() }).unwrap();
        assert!(RunLock::holder(dir.path()).is_some());
        drop(first);
        RunLock::acquire(dir.path()).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_has_ended_holds_nothing_even_if_it_was_not_collected() {
        let dir = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let mut lock = RunLock::acquire(dir.path()).unwrap();
        lock.record_holder(&Holder { pid: ended.id(), ..Holder::default() }).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while RunLock::holder(dir.path()).is_some() {
            assert!(Instant::now() < until, "an ended process holds the lock");
            thread::sleep(Duration::from_millis(5));
        }
        ended.wait().unwrap();
    }

    #[test]
    fn the_lock_of_nobody_alive_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = RunLock::acquire(dir.path()).unwrap();
        first.record_holder(&Holder { pid: NOBODY, ..Holder::default() }).unwrap();
        let child = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(first);
        });
        RunLock::acquire(dir.path()).unwrap();
        child.join().unwrap();
    }

    #[test]
    fn a_holder_counts_while_its_process_lives() {
        let dir = tempfile::tempdir().unwrap();
        assert!(RunLock::holder(dir.path()).is_none());
        let mut lock = RunLock::acquire(dir.path()).unwrap();
        lock.record_holder(&Holder { pid: std::process::id(), ..Holder::default() }).unwrap();
        assert!(RunLock::holder(dir.path()).is_some());
        // Above the largest pid that the kernel gives out.
        lock.record_holder(&Holder { pid: i32::MAX.unsigned_abs(), ..Holder::default() }).unwrap();
        assert!(RunLock::holder(dir.path()).is_none());
    }
}
