//! The folder that contains the workspaces. It is outside of every project and has one entry for each workspace, protected by a
//! kernel lock. An entry that is not locked belongs to a dead process.
//!
//! ```text
//! <state folder>/workspaces/<name>/       the workspace's files
//! <state folder>/workspaces/<name>.lock   the lock, with its owner
//! <state folder>/ports/<slot>.lock        one for each port range in use
//! <state folder>/trash/                   what is being deleted
//! ```

mod lock;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use verdone_core::base::id::{digest, encode_component};

use super::paths::{expand, explain, resolve_existing};
use super::remove::remove_tree;
use crate::base::seal::state_home;
use lock::hold;

const LOCK: &str = ".lock";
/// How many port ranges the workspaces of one user can have at the same time.
const SLOTS: u64 = 200;
const FIRST_PORT: u16 = 10_000;
/// Ports in a range. The last range ends below the kernel's ephemeral ports.
const PORTS: u16 = 100;
/// How long deleting its workspaces may delay the end of a run.
const LAST_DELETION: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("no folder for workspaces: HOME is not set. Set `workspace.state` to a folder outside the project")]
    NoHome,
    #[error("the folder for workspaces, {}, is inside the project {}: set `workspace.state` to one outside", folder.display(), project.display())]
    InsideProject { folder: PathBuf, project: PathBuf },
    #[error("the project {} is inside the folder for workspaces, {}: set `workspace.state` to another one", project.display(), folder.display())]
    AroundProject { folder: PathBuf, project: PathBuf },
    #[error("the folder for workspaces, {}, belongs to another user: set `workspace.state` to a folder you own", folder.display())]
    NotOurs { folder: PathBuf },
    #[error("the workspace {name} is in use by process {pid}")]
    InUse { name: String, pid: u32 },
    #[error("{}", explain(what, path, source))]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

impl StateError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// The owner of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Owner {
    pub pid: u32,
    /// The project's root in the user's checkout.
    pub project: PathBuf,
    pub run: Option<String>,
}

/// A workspace on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub name: String,
    pub owner: Owner,
    /// Bytes on disk, as far as they are readable.
    pub size: u64,
    pub in_use: bool,
}

/// The state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder {
    path: PathBuf,
}

impl StateFolder {
    /// Opens the folder from the settings, or else from the environment, and creates it if it is missing. Refuses a folder that
    /// is inside the work tree at `git_top` or contains it.
    pub fn open(configured: Option<&str>, git_top: &Path, get: impl Fn(&str) -> Option<String>) -> Result<Self, StateError> {
        let home = get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let folder = match configured {
            Some(text) => expand(text, home.as_deref(), git_top),
            None => state_home(&get).map(|home| home.join("verdone")),
        };
        let folder = resolve_existing(&folder.ok_or(StateError::NoHome)?);
        let project = resolve_existing(git_top);
        if folder.starts_with(&project) {
            return Err(StateError::InsideProject { folder, project });
        }
        if project.starts_with(&folder) {
            return Err(StateError::AroundProject { folder, project });
        }
        for part in ["workspaces", "ports", "trash"] {
            let part = folder.join(part);
            DirBuilder::new().recursive(true).mode(0o700).create(&part).map_err(StateError::io("create", &part))?;
            let meta = fs::symlink_metadata(&part).map_err(StateError::io("read", &part))?;
            if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
                return Err(StateError::NotOurs { folder: part });
            }
            if meta.mode() & 0o777 != 0o700 {
                let private = fs::Permissions::from_mode(0o700);
                fs::set_permissions(&part, private).map_err(StateError::io("protect", &part))?;
            }
        }
        Ok(Self { path: folder })
    }

    /// Like [`Self::open`], with the environment of this process.
    pub fn from_environment(configured: Option<&str>, git_top: &Path) -> Result<Self, StateError> {
        Self::open(configured, git_top, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an empty workspace and keeps it locked until it is dropped. Removes what a dead owner left under this name.
    pub fn create(&self, name: &str, owner: &Owner) -> Result<Held, StateError> {
        let name = encode_component(name);
        let (folder, lock) = self.places(&name);
        let Some(file) = hold(&lock).map_err(StateError::io("lock", &lock))? else {
            return Err(StateError::InUse { name, pid: lock::owner(&lock).pid });
        };
        self.discard(&folder)?;
        lock::write_owner(&file, owner).map_err(StateError::io("write", &lock))?;
        DirBuilder::new().mode(0o700).create(&folder).map_err(StateError::io("create", &folder))?;
        let ports = self.take_ports(&name)?;
        Ok(Held { state: self.clone(), name, folder, lock, _file: file, ports })
    }

    /// All workspaces, by name.
    pub fn list(&self) -> Result<Vec<Stored>, StateError> {
        let all = self.names()?.into_iter().map(|name| {
            let (folder, lock) = self.places(&name);
            Stored { owner: lock::owner(&lock), size: size_of(&folder), in_use: lock::is_held(&lock), name }
        });
        Ok(all.collect())
    }

    /// Removes a workspace that is not locked. It may be missing.
    pub fn remove(&self, name: &str) -> Result<Deletion, StateError> {
        let (folder, lock) = self.places(name);
        if !is_name(name) {
            return Ok(Deletion::none());
        }
        if fs::symlink_metadata(&lock).is_err() && fs::symlink_metadata(&folder).is_err() {
            return Ok(Deletion::none());
        }
        let Some(_held) = hold(&lock).map_err(StateError::io("lock", &lock))? else {
            return Err(StateError::InUse { name: name.to_owned(), pid: lock::owner(&lock).pid });
        };
        let deletion = self.discard(&folder)?;
        // Remove the lock last. A workspace without one can still be found by its folder.
        let _ = fs::remove_file(&lock);
        Ok(deletion)
    }

    /// Removes the workspaces of dead owners and finishes interrupted deletions. Returns the names of the workspaces.
    pub fn sweep(&self) -> Result<(Vec<String>, Deletion), StateError> {
        let mut gone = Vec::new();
        for name in self.names()? {
            match self.remove(&name) {
                Ok(_) => gone.push(name),
                Err(StateError::InUse { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let trash = self.path.join("trash");
        let entries = fs::read_dir(&trash).map_err(StateError::io("read", &trash))?;
        Ok((gone, Deletion::new(entries.flatten().map(|entry| entry.path()).collect())))
    }

    fn places(&self, name: &str) -> (PathBuf, PathBuf) {
        let all = self.path.join("workspaces");
        (all.join(name), all.join(format!("{name}{LOCK}")))
    }

    /// Names of workspaces. An entry may have only a lock or only a folder.
    fn names(&self) -> Result<Vec<String>, StateError> {
        let all = self.path.join("workspaces");
        let entries = fs::read_dir(&all).map_err(StateError::io("read", &all))?;
        let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
        let mut names: Vec<String> =
            entries.flatten().filter_map(name).map(|name| name.strip_suffix(LOCK).unwrap_or(&name).to_owned()).collect();
        names.retain(|name| is_name(name));
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Moves a folder out of the way at once and deletes it in the background.
    fn discard(&self, folder: &Path) -> Result<Deletion, StateError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let unique = format!("{}-{nanos}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let to = self.path.join("trash").join(unique);
        match fs::rename(folder, &to) {
            Ok(()) => Ok(Deletion::new(vec![to])),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Deletion::none()),
            Err(error) => Err(StateError::io("remove", folder)(error)),
        }
    }

    /// Reserves a port range that no other workspace of this user is using.
    fn take_ports(&self, name: &str) -> Result<Ports, StateError> {
        let first = u64::from_str_radix(&digest(name.as_bytes())[..8], 16).unwrap_or(0);
        for n in 0..SLOTS {
            let slot = (first + n) % SLOTS;
            let lock = self.path.join("ports").join(format!("{slot}{LOCK}"));
            if let Some(file) = hold(&lock).map_err(StateError::io("lock", &lock))? {
                return Ok(Ports { base: FIRST_PORT + slot as u16 * PORTS, _file: Some(file) });
            }
        }
        // With that many at once, workspaces share ranges.
        Ok(Ports { base: FIRST_PORT + (first % SLOTS) as u16 * PORTS, _file: None })
    }
}

#[derive(Debug)]
struct Ports {
    base: u16,
    _file: Option<File>,
}

/// A workspace that we own. Removed on drop.
#[derive(Debug)]
pub struct Held {
    state: StateFolder,
    name: String,
    folder: PathBuf,
    lock: PathBuf,
    _file: File,
    ports: Ports,
}

impl Held {
    /// The name of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The state folder that contains it.
    pub fn state(&self) -> &StateFolder {
        &self.state
    }

    /// The first of a hundred ports that no other workspace of this user has.
    pub fn port_base(&self) -> u16 {
        self.ports.base
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The next sweep removes what cannot be moved away now or takes longer.
        if let Ok(deletion) = self.state.discard(&self.folder) {
            // Last, because another process may use the name once the lock file is gone.
            let _ = fs::remove_file(&self.lock);
            deletion.wait_at_most(LAST_DELETION);
        }
    }
}

/// A background deletion. If this process ends first, a later sweep finishes it.
#[derive(Debug)]
pub struct Deletion {
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Deletion {
    fn none() -> Self {
        Self { thread: None }
    }

    fn new(paths: Vec<PathBuf>) -> Self {
        if paths.is_empty() {
            return Self::none();
        }
        let all = move || paths.iter().map(|path| remove_tree(path)).fold(Ok(()), io::Result::and);
        Self { thread: thread::Builder::new().name("delete".to_owned()).spawn(all).ok() }
    }

    fn wait_at_most(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the deletion is done.
    pub fn wait(self) -> io::Result<()> {
        self.thread.map_or(Ok(()), |thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("the deletion failed"))))
    }
}

/// Bytes on disk below a folder. Unreadable folders count as empty.
fn size_of(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        bytes += meta.blocks() * 512;
        if meta.is_dir() {
            left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}

/// A name that Docker Compose accepts for a project.
pub fn compose_project(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    format!("verdone-{}", name.chars().map(plain).collect::<String>())
}

/// Whether this can be the name of a workspace's folder. Rejects paths and foreign files.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_%".contains(&byte))
}

#[cfg(test)]
mod tests;
