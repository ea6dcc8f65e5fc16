//! The copy of every loop that holds, sealed, in the user's state folder: outside of the work tree, so that an agent that deletes, edits
//! or writes a loop's file in the project neither frees its session nor makes an easier loop of it. The copy alone says that a loop goes
//! on, and it is there as long as the loop holds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use verdone_core::id::digest;

use crate::atomic::{replace_for_good, replace_for_readers};
use crate::project::{HOME, Project, find_git_top};
use crate::regular::read_regular;
use crate::seal::{Seal, state_home};

use super::StopError;
use super::files::{LARGEST, file_error, remove};

/// The loop that waits for a session. No session has such a name.
pub(super) const NEXT: &str = ".next";
/// Says which project the folder is about: its name is a digest.
pub(super) const PROJECT: &str = "project";
const PURPOSE: &str = "loop";

/// The copies of one project.
#[derive(Debug, Clone)]
pub(super) struct Custody {
    root: PathBuf,
    home: PathBuf,
    /// The project's folder: most events never ask for it.
    folder: Arc<OnceLock<PathBuf>>,
    /// Opened once: an answer reads and writes a copy.
    seal: Arc<OnceLock<Option<Seal>>>,
}

/// What is kept of one loop.
#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    Copy(Vec<u8>),
    /// Something is there that we did not write, or cannot read.
    Broken(PathBuf),
}

impl Custody {
    /// Nothing where the user has no state folder. Looks at no file.
    pub(super) fn of(root: &Path) -> Option<Self> {
        let home = state_home(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
        Some(Self { root: root.to_owned(), home, folder: Arc::default(), seal: Arc::default() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        // What cannot be looked at may be there.
        fs::symlink_metadata(self.path(name))
            .map_or_else(|error| !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory), |_| true)
    }

    /// Every session with a copy.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir()).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".json").map(str::to_owned);
        let mut names: Vec<String> = entries.filter_map(name).filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    pub(super) fn get(&self, name: &str) -> Kept {
        let path = self.path(name);
        let bytes = match read_regular(&path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Kept::Nothing,
            Err(_) => return Kept::Broken(path),
        };
        let body = self.seal().and_then(|seal| seal.checked(PURPOSE, &bytes).map(<[u8]>::to_vec));
        body.map_or(Kept::Broken(path), Kept::Copy)
    }

    /// Where it cannot be written, what was kept before stays: a loop never goes on by less than its last copy.
    pub(super) fn put(&self, name: &str, body: &[u8], durable: bool) -> Result<(), StopError> {
        let text = self.seal().ok_or(StopError::NoSecret)?.put_on(PURPOSE, body);
        let path = self.path(name);
        if fs::symlink_metadata(&path).is_err() {
            self.make()?;
        }
        let written = if durable { replace_for_good(&path, &text) } else { replace_for_readers(&path, &text) };
        written.map_err(|source| file_error(&path, source))
    }

    fn make(&self) -> Result<(), StopError> {
        fs::create_dir_all(self.dir()).map_err(|source| file_error(self.dir(), source))?;
        let (path, root) = (self.dir().join(PROJECT), self.root.as_os_str().as_encoded_bytes());
        replace_for_readers(&path, root).map_err(|source| file_error(&path, source))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), StopError> {
        remove(&self.path(name))?;
        // One that stays makes the gate let go sooner, never later.
        let _ = fs::remove_file(self.faults(name));
        Ok(())
    }

    /// A file whose length counts the faults of the gate.
    pub(super) fn faults(&self, name: &str) -> PathBuf {
        self.dir().join(format!("{name}.faults"))
    }

    /// Gives the waiting loop to a session: in one step, so that of two sessions one gets it.
    pub(super) fn hand_over(&self, name: &str) -> Result<bool, StopError> {
        let next = self.path(NEXT);
        match fs::rename(&next, self.path(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(file_error(&next, source)),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        let project = || digest(self.root.as_os_str().as_encoded_bytes());
        self.folder.get_or_init(|| self.home.join("verdone/loops").join(&project()[..32]))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir().join(format!("{name}.json"))
    }

    fn seal(&self) -> Option<&Seal> {
        let open = || {
            let top = find_git_top(&self.root).unwrap_or_else(|_| self.root.clone());
            Seal::from_environment(&self.root, &top)
        };
        self.seal.get_or_init(open).as_ref()
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
