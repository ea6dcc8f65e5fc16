//! The loops that hold, in the user's state folder: outside of the work tree, so that an agent that writes in the project neither frees
//! its session nor makes an easier loop of it. Each loop has a folder, and a folder is there only while its loop holds.
//!
//! Every file in it carries a seal. `loop.json` is what was fixed at the start and what the gate counts, written by the hook.
//! `journal.jsonl` is the journal, `finding.json` the last answer and `memory.json` what checks said, written by the worker alone.

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

/// The loop that waits for a session. No session has such a name.
pub(super) const NEXT: &str = ".next";
/// Says which project the folder is about: its name is a digest.
pub(super) const PROJECT: &str = "project";
pub(super) const LOOP: &str = "loop.json";
pub(super) const JOURNAL: &str = "journal.jsonl";
pub(super) const FINDING: &str = "finding.json";
pub(super) const MEMORY: &str = "memory.json";

/// The loops of one project.
#[derive(Debug, Clone)]
pub(super) struct Custody {
    root: PathBuf,
    home: PathBuf,
    /// The project's folder: most events never ask for it.
    folder: Arc<OnceLock<PathBuf>>,
    /// Opened once: an answer reads and writes several files.
    seal: Arc<OnceLock<Option<Seal>>>,
}

/// Whether a write has to survive a crash. A sync costs more than all the rest of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Yes,
    No,
}

impl Custody {
    /// Nothing where the user has no state folder. Looks at no file.
    pub(super) fn of(root: &Path) -> Option<Self> {
        let home = state_home(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
        Some(Self { root: root.to_owned(), home, folder: Arc::default(), seal: Arc::default() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        // What cannot be looked at may be there.
        fs::symlink_metadata(self.path(name, LOOP))
            .map_or_else(|error| !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory), |_| true)
    }

    /// Every session with a loop.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir()).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| entry.file_name().to_str().map(str::to_owned);
        let mut names: Vec<String> = entries.filter_map(name).filter(|name| !name.starts_with('.') && self.has(name)).collect();
        names.sort();
        names
    }

    /// Nothing where there is no such file; an error where it is not one that we wrote.
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

    /// What we sealed and left in the project; nothing where that is not so.
    pub(super) fn read_sealed<T: DeserializeOwned>(&self, path: &Path, file: &str) -> Option<T> {
        let bytes = read_regular(path, LARGEST).ok()?;
        serde_json::from_slice(self.seal()?.checked(file, &bytes)?).ok()
    }

    /// Where it cannot be written, what was kept before stays.
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

    /// The folder of a new loop. Whatever an earlier one left goes.
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
        // One that stays makes the gate let go sooner, never later.
        let _ = fs::remove_file(self.faults(name));
        Ok(())
    }

    /// A file whose length counts the faults of the gate.
    pub(super) fn faults(&self, name: &str) -> PathBuf {
        self.dir().join(format!("{name}.faults"))
    }

    /// What an earlier version kept of a session's loop: it says too little to continue with. Answers whether there was something.
    pub(super) fn forget_old(&self, name: &str) -> bool {
        fs::remove_file(self.dir().join(format!("{name}.json"))).is_ok()
    }

    /// Gives the waiting loop to a session: in one step, so that of two sessions one gets it.
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

/// The project that a loop holds a session of although its `.verdone/` is gone: that of a folder, or of one above it, below the next one
/// that is there.
pub fn armed_root(project: &Project) -> Option<PathBuf> {
    let there = Some(project.root.as_path()).filter(|root| root.join(HOME).is_dir());
    let levels = project.start.ancestors().take_while(|dir| dir.starts_with(&project.git_top) && Some(*dir) != there);
    let is_armed = |custody: Custody| custody.has(NEXT) || !custody.names().is_empty();
    levels.filter(|dir| Custody::of(dir).is_some_and(is_armed)).map(Path::to_path_buf).next()
}
