//! Stored runs: `.verdone/runs/<run-id>/`, one directory per run, whose journal is the only truth.

pub mod inbox;
mod journal;
pub mod live_output;
mod local_runs;
mod lock;
mod proven;
mod reader;
mod run_id_allocator;
mod session_lock;
pub mod sessions;
mod stored_run;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::base::id::RunId;

use crate::base::atomic::write_atomically;
use crate::base::fault::{self, Point};
use crate::base::plain_file::read_regular;

use run_id_allocator::{RunIdAllocator, is_id};

pub use journal::{Journal, JournalError, When};
pub use local_runs::are_local;
pub use lock::{Holder, LockError, RunLock};
pub use proven::proven;
pub use reader::{JournalReader, read_journal, readable_lines};
pub use session_lock::SessionLock;
pub use stored_run::StoredRun;

/// All runs of a project.
#[derive(Debug, Clone)]
pub struct Store {
    runs: PathBuf,
}

impl Store {
    /// The store of the project whose `.verdone/` is in `root`.
    pub fn new(root: &Path) -> Self {
        Self { runs: root.join(".verdone").join("runs") }
    }

    /// The directory of all runs.
    pub fn path(&self) -> &Path {
        &self.runs
    }

    pub fn dir(&self, run: &RunId) -> PathBuf {
        self.runs.join(run.as_str())
    }

    /// Adds a `.gitignore` that hides the runs directory from the user's git status.
    pub fn hide(&self) -> io::Result<()> {
        let ignore = self.runs.join(".gitignore");
        if read_regular(&ignore, 2).is_ok_and(|bytes| bytes == b"*\n") {
            return Ok(());
        }
        fs::create_dir_all(&self.runs)?;
        // Git does not follow links, and the target may be any of the user's folders.
        if self.runs.ancestors().take(2).any(Path::is_symlink) {
            return Ok(());
        }
        write_atomically(&ignore, b"*\n")?;
        // Sync the folders that may be new, so that a power cut does not lose a run's journal with them.
        self.runs.ancestors().skip(1).take(2).try_for_each(|folder| File::open(folder)?.sync_all())
    }

    /// Creates the directory of a new run. Its id is unique in the whole repository, because linked work trees share refs.
    pub fn create(&self, common_dir: &Path, now: Timestamp) -> io::Result<(RunId, PathBuf)> {
        self.hide()?;
        let mut given = RunIdAllocator::allocate(common_dir)?;
        let (id, dir) = self.make_dir(now, given.last(now).max(self.ids()?.pop()).as_ref())?;
        given.remember(&id)?;
        Ok((id, dir))
    }

    fn make_dir(&self, now: Timestamp, last: Option<&RunId>) -> io::Result<(RunId, PathBuf)> {
        loop {
            let id = new_id(now, last)?;
            let dir = self.dir(&id);
            fault::point(Point::RunDir)?;
            match fs::create_dir(&dir) {
                Ok(()) => {
                    fault::pass(Point::RunDirMade);
                    File::open(&self.runs)?.sync_all()?;
                    return Ok((id, dir));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ids of all runs, oldest first. Ignores folders with other names.
    pub fn ids(&self) -> io::Result<Vec<RunId>> {
        let entries = match fs::read_dir(&self.runs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir()
                && let Ok(name) = entry.file_name().into_string()
                && is_id(&name)
                && fs::symlink_metadata(entry.path().join("journal.jsonl")).is_ok_and(|meta| meta.is_file())
            {
                ids.push(RunId(name));
            }
        }
        ids.sort();
        Ok(ids)
    }

    pub fn run(&self, id: RunId) -> StoredRun {
        StoredRun { dir: self.dir(&id), id }
    }

    /// Runs that are not session loops, newest first. A loop ends only when its session does.
    pub fn runs(&self) -> Result<impl Iterator<Item = StoredRun>, JournalError> {
        Ok(self.all()?.filter(|stored| !stored.is_loop()))
    }

    pub fn latest_run(&self) -> Result<Option<StoredRun>, JournalError> {
        Ok(self.runs()?.next())
    }

    /// All runs and session loops, newest first.
    pub fn all(&self) -> Result<impl Iterator<Item = StoredRun>, JournalError> {
        let ids = self.ids().map_err(|source| JournalError::Io { path: self.runs.clone(), source })?;
        Ok(ids.into_iter().rev().map(|id| self.run(id)))
    }
}

/// Creates an id that sorts by start time; the last part distinguishes runs of the same second. Always sorts after the last run, whatever
/// the clock says, because recovery and undo use the latest one.
fn new_id(now: Timestamp, last: Option<&RunId>) -> io::Result<RunId> {
    let mut random = [0_u8; 2];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let time = now.strftime("%Y%m%d-%H%M%S");
    // Leave half of the numbers for later ids.
    random[0] &= 0x7f;
    let id = RunId(format!("{time}-{}", verdone_text::hex(&random)));
    match last {
        Some(last) if *last >= id => Ok(after(last).unwrap_or(id)),
        Some(_) | None => Ok(id),
    }
}

fn after(last: &RunId) -> Option<RunId> {
    let (time, number) = last.as_str().rsplit_once('-')?;
    let next = u16::from_str_radix(number, 16).ok()?.checked_add(1)?;
    Some(RunId(format!("{time}-{next:04x}")))
}

#[cfg(test)]
mod tests;
