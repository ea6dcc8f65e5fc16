//! Active loops, stored in the user's state folder: outside the work tree, so that an agent writing in the project can neither release its
//! session nor weaken the loop. Each loop has a folder, which exists only while the loop holds its session.
//!
//! Every file in it is sealed. `loop.json` has what was fixed at the start and the gate's counters, written by the hook. Only the worker
//! writes `journal.jsonl` (the journal), `finding.json` (the last answer) and `memory.json` (check results).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use verdone_core::base::id::digest;

use crate::base::atomic::{replace_for_good, replace_for_readers};
use crate::base::plain_file::read_regular;
use crate::base::seal::{Seal, state_home};
use crate::project::{HOME, Project, find_git_top};

use super::StopError;
use super::files::{LARGEST, file_error};

/// The loop that waits for a session. No session can have this name.
pub(super) const NEXT: &str = ".next";
/// Names the project of the folder, whose own name is a digest.
pub(super) const PROJECT: &str = "project";
pub(super) const LOOP: &str = "loop.json";
pub(super) const JOURNAL: &str = "journal.jsonl";
pub(super) const FINDING: &str = "finding.json";
pub(super) const MEMORY: &str = "memory.json";

/// The loops of one project.
#[derive(Debug, Clone)]
pub(super) struct SealedCopy {
    root: PathBuf,
    home: PathBuf,
    /// The project's folder, computed on demand: most events never need it.
    folder: Arc<OnceLock<PathBuf>>,
    /// Opened once: an answer reads and writes several files.
    seal: Arc<OnceLock<Option<Seal>>>,
}

/// Whether a write must survive a crash. A sync costs more than the rest of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Yes,
    No,
}

impl SealedCopy {
    /// `None` if the user has no state folder. Does not access the disk.
    pub(super) fn find(root: &Path) -> Option<Self> {
        let home = state_home(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
        Some(Self { root: root.to_owned(), home, folder: Arc::default(), seal: Arc::default() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        // If it cannot be read, assume that it exists.
        fs::symlink_metadata(self.path(name, LOOP))
            .map_or_else(|error| !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory), |_| true)
    }

    /// All sessions with a loop.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir()).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| entry.file_name().to_str().map(str::to_owned);
        let mut names: Vec<String> = entries.filter_map(name).filter(|name| !name.starts_with('.') && self.has(name)).collect();
        names.sort();
        names
    }

    /// `None` if the file does not exist; an error if we did not write it.
    pub(super) fn get<T: DeserializeOwned>(&self, name: &str, file: &str) -> Result<Option<T>, StopError> {
        let broken = |source| StopError::Broken { path: self.path(name, file), source };
        self.get_bytes(name, file)?.map(|body| serde_json::from_slice(&body).map_err(broken)).transpose()
    }

    pub(super) fn get_bytes(&self, name: &str, file: &str) -> Result<Option<Vec<u8>>, StopError> {
        let path = self.path(name, file);
        let end = if name == NEXT { "verdone loop stop".to_owned() } else { format!("verdone loop stop --session {name}") };
        let bytes = match read_regular(&path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
            Err(_) => return Err(StopError::Copy { path, end }),
        };
        let body = self.seal().and_then(|seal| seal.checked(file, &bytes).map(<[u8]>::to_vec));
        body.map(Some).ok_or(StopError::Copy { path, end })
    }

    /// A file that we sealed and left in the project. `None` if there is no valid one.
    pub(super) fn read_sealed<T: DeserializeOwned>(&self, path: &Path, file: &str) -> Option<T> {
        let bytes = read_regular(path, LARGEST).ok()?;
        serde_json::from_slice(self.seal()?.checked(file, &bytes)?).ok()
    }

    /// If writing fails, the previous content stays.
    pub(super) fn put(&self, name: &str, file: &str, value: &impl Serialize, durable: Durable) -> Result<(), StopError> {
        let broken = |source| StopError::Broken { path: self.path(name, file), source };
        self.put_bytes(name, file, &serde_json::to_vec(value).map_err(broken)?, durable)
    }

    pub(super) fn put_bytes(&self, name: &str, file: &str, body: &[u8], durable: Durable) -> Result<(), StopError> {
        let text = self.seal().ok_or(StopError::NoSecret)?.put_on(file, body);
        let path = self.path(name, file);
        let written = match durable {
            Durable::Yes => replace_for_good(&path, &text),
            Durable::No => replace_for_readers(&path, &text),
        };
        written.map_err(|source| file_error(&path, source))
    }

    /// Creates the folder of a new loop and removes what an earlier one left.
    pub(super) fn make(&self, name: &str) -> Result<PathBuf, StopError> {
        self.remove(name)?;
        let folder = self.dir().join(name);
        fs::create_dir_all(&folder).map_err(|source| file_error(&folder, source))?;
        let (path, root) = (self.dir().join(PROJECT), self.root.as_os_str().as_encoded_bytes());
        replace_for_readers(&path, root).map_err(|source| file_error(&path, source))?;
        Ok(folder)
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), StopError> {
        let folder = self.dir().join(name);
        match fs::remove_dir_all(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(file_error(&folder, source)),
        }
        // A leftover file makes the gate release sooner, never later.
        let _ = fs::remove_file(self.faults(name));
        Ok(())
    }

    /// A file whose length counts failures of the gate.
    pub(super) fn faults(&self, name: &str) -> PathBuf {
        self.dir().join(format!("{name}.faults"))
    }

    /// Removes an earlier version's loop of a session, which has too little information to continue. Returns whether there was one.
    pub(super) fn forget_old(&self, name: &str) -> bool {
        fs::remove_file(self.dir().join(format!("{name}.json"))).is_ok()
    }

    /// Gives the waiting loop to a session. The rename is atomic, so only one of two sessions gets it.
    pub(super) fn hand_over(&self, name: &str) -> Result<bool, StopError> {
        let next = self.dir().join(NEXT);
        match fs::rename(&next, self.dir().join(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(file_error(&next, source)),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        let project = || digest(self.root.as_os_str().as_encoded_bytes());
        self.folder.get_or_init(|| self.home.join("verdone/loops").join(&project()[..32]))
    }

    pub(super) fn path(&self, name: &str, file: &str) -> PathBuf {
        self.dir().join(name).join(file)
    }

    fn seal(&self) -> Option<&Seal> {
        let open = || {
            let top = find_git_top(&self.root).unwrap_or_else(|_| self.root.clone());
            Seal::from_environment(&self.root, &top)
        };
        self.seal.get_or_init(open).as_ref()
    }

    pub(super) fn has_seal(&self) -> bool {
        self.seal().is_some()
    }
}

/// The project in which a loop holds a session although its `.verdone/` is gone. Searches
/// upward from the start folder, below the nearest existing `.verdone/`.
pub fn root_of_held_loop(project: &Project) -> Option<PathBuf> {
    let there = Some(project.root.as_path()).filter(|root| root.join(HOME).is_dir());
    let levels = project.start.ancestors().take_while(|dir| dir.starts_with(&project.git_top) && Some(*dir) != there);
    let is_armed = |sealed_copy: SealedCopy| sealed_copy.has(NEXT) || !sealed_copy.names().is_empty();
    levels.filter(|dir| SealedCopy::find(dir).is_some_and(is_armed)).map(Path::to_path_buf).next()
}
