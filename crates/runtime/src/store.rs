//! Where runs live: `.verdone/runs/<run-id>/`, one directory a run, its journal the only truth.

mod journal;
mod lock;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::event::{Event, Recorded};
use verdone_core::id::{RunId, StoryId};
use verdone_core::verdict::StoryVerdict;

use crate::atomic::write_atomically;
use crate::fault::{self, Point};

pub use journal::{Journal, JournalError, read_journal, readable_lines};
pub use lock::{Holder, LockError, RunLock};

/// All runs of a project.
#[derive(Debug, Clone)]
pub struct Store {
    runs: PathBuf,
}

/// A run that is on disk.
#[derive(Debug)]
pub struct StoredRun {
    pub id: RunId,
    pub dir: PathBuf,
    pub journal: Vec<Recorded>,
    /// What was wrong with the journal's end, where something was.
    pub damage: Option<String>,
}

impl Store {
    /// The store of the project whose `.verdone/` lies in `root`.
    pub fn of(root: &Path) -> Self {
        Self { runs: root.join(".verdone").join("runs") }
    }

    /// The directory of all runs.
    pub fn path(&self) -> &Path {
        &self.runs
    }

    pub fn dir(&self, run: &RunId) -> PathBuf {
        self.runs.join(run.as_str())
    }

    /// Makes the runs directory ignore itself, so that it never shows up in the user's git status.
    pub fn hide(&self) -> io::Result<()> {
        let ignore = self.runs.join(".gitignore");
        if fs::read(&ignore).is_ok_and(|bytes| bytes == b"*\n") {
            return Ok(());
        }
        fs::create_dir_all(&self.runs)?;
        write_atomically(&ignore, b"*\n")
    }

    /// Makes the directory of a new run.
    pub fn create(&self, now: Timestamp) -> io::Result<(RunId, PathBuf)> {
        self.hide()?;
        let last = self.ids()?.pop();
        loop {
            let id = new_id(now, last.as_ref())?;
            let dir = self.dir(&id);
            fault::point(Point::RunDir)?;
            match fs::create_dir(&dir) {
                Ok(()) => {
                    fault::pass(Point::RunDirMade);
                    return Ok((id, dir));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Names of everything that looks like a run's directory, with a journal or without.
    pub fn directories(&self) -> io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.runs)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                names.insert(entry.file_name());
            }
        }
        Ok(names)
    }

    /// Moves directories that are not among the `known` ones into `aside`: only a run of ours makes one, and others would pass
    /// for evidence. Answers with their names.
    pub fn put_back(&self, known: &BTreeSet<OsString>, aside: &Path) -> io::Result<Vec<String>> {
        let mut moved = Vec::new();
        for name in self.directories()?.difference(known) {
            fs::create_dir_all(aside)?;
            // Whatever its name is, its new place is ours to choose.
            let place = tempfile::Builder::new().prefix("run-").tempdir_in(aside)?.keep();
            fs::rename(self.runs.join(name), place)?;
            moved.push(format!(".verdone/runs/{}", name.display()));
        }
        Ok(moved)
    }

    /// Ids of all runs, oldest first.
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
                && fs::symlink_metadata(entry.path().join("journal.jsonl")).is_ok_and(|meta| meta.is_file())
            {
                ids.push(RunId(name));
            }
        }
        ids.sort();
        Ok(ids)
    }

    pub fn read(&self, id: &RunId) -> Result<StoredRun, JournalError> {
        let dir = self.dir(id);
        let (journal, damage) = read_journal(&dir.join("journal.jsonl"))?;
        Ok(StoredRun { id: id.clone(), dir, journal, damage })
    }

    /// The events of a run, without the lines that are broken: an old run must not stop a new one.
    pub fn readable(&self, id: &RunId) -> Result<Vec<Recorded>, JournalError> {
        match self.read(id) {
            Ok(stored) => Ok(stored.journal),
            Err(JournalError::Broken { path, .. }) => {
                let bytes = fs::read(&path).map_err(|source| JournalError::Io { path, source })?;
                let lines = readable_lines(&bytes);
                Ok(lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
            }
            Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => Err(error),
        }
    }

    /// The run that was started last.
    pub fn latest(&self) -> Result<Option<StoredRun>, JournalError> {
        let ids = self.ids().map_err(|source| JournalError::Io { path: self.runs.clone(), source })?;
        ids.last().map(|id| self.read(id)).transpose()
    }
}

/// What the journals know about a plan's stories: the best verdict of each that a run committed.
pub fn proven(store: &Store, plan: &str) -> Result<BTreeMap<StoryId, StoryVerdict>, JournalError> {
    let mut proven = BTreeMap::new();
    for id in store.ids().map_err(|source| JournalError::Io { path: store.runs.clone(), source })? {
        let journal = store.readable(&id)?;
        if !journal.iter().any(|line| matches!(&line.event, Event::RunStarted { plan: of, .. } if of == plan)) {
            continue;
        }
        for line in &journal {
            if let Event::Committed { place, verdict, .. } = &line.event {
                let best = proven.entry(place.story.clone()).or_insert(*verdict);
                *best = (*best).max(*verdict);
            }
        }
    }
    Ok(proven)
}

/// Sortable by start time; the last part tells apart runs of the same second. Always after the last run, whatever the clock says:
/// recovery and undo look at the latest one.
fn new_id(now: Timestamp, last: Option<&RunId>) -> io::Result<RunId> {
    let mut random = [0_u8; 2];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let time = now.strftime("%Y%m%d-%H%M%S");
    // Half of the numbers are left for those who come later.
    random[0] &= 0x7f;
    let id = RunId(format!("{time}-{}", verdone_core::id::hex(&random)));
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
mod tests {
    use super::*;

    #[test]
    fn a_new_run_is_always_the_latest() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::of(dir.path());
        let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let before: Timestamp = "2026-01-01T11:00:00Z".parse().unwrap();
        for now in [noon, noon, before, noon, noon] {
            let (id, run_dir) = store.create(now).unwrap();
            Journal::create(&run_dir).unwrap();
            assert_eq!(store.latest().unwrap().unwrap().id, id);
        }
    }
}
