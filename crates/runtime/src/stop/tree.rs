//! Which tree is judged: HEAD, what differs from it and the content of what differs, by one `git status`. Cheaper than writing a tree
//! and as good as a key.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::id::{Oid, digest};
use verdone_core::stop::Base;

use crate::git::{Git, GitError, PathSet, Status};
use crate::project::{GitDirs, HOME};
use crate::regular::read_regular;

use super::StopError;

/// A hook waits for it.
const GIT_DEADLINE: Duration = Duration::from_secs(30);
/// The content of larger files is not read: their size and times stand for it.
const LARGEST: u64 = 4 * 1024 * 1024;
/// Nor is more than this in all.
const MOST: u64 = 64 * 1024 * 1024;
/// The client writes and hides these by itself when a session begins.
const CLIENTS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) key: String,
    pub(super) head: Option<Oid>,
    /// Nothing differs from HEAD but what is ours.
    pub(super) clean: bool,
    status: Status,
    own: PathSet,
}

pub(super) fn git(top: &Path) -> Result<Git, StopError> {
    let dirs = GitDirs::of(top).ok_or_else(|| GitError::NotARepository { dir: top.to_owned() })?;
    Ok(Git::found(top, dirs, GIT_DEADLINE))
}

/// `ours` are the plan and its progress files: Verdone writes them itself.
pub(super) fn look(root: &Path, top: &Path, ours: &[PathBuf]) -> Result<Tree, StopError> {
    let git = git(top)?;
    let status = git.status()?;
    let own = not_work(&git, root, top, ours);
    let mut text = format!("{:?}\n", status.head).into_bytes();
    let (mut clean, mut left) = (true, MOST);
    for entry in status.entries.iter().filter(|entry| !own.contains(&entry.path)) {
        clean = false;
        text.extend_from_slice(entry.path.as_bytes());
        text.extend_from_slice(format!("\0{:?}\0", entry.kind).as_bytes());
        text.extend_from_slice(&content(&top.join(entry.path.as_path()), &mut left));
        text.push(b'\n');
    }
    Ok(Tree { key: digest(&text)[..32].to_owned(), head: status.head.clone(), clean, status, own })
}

/// Files that the client writes, wherever they are: no work of anybody's.
pub(super) fn of_the_client(root: &Path, top: &Path) -> impl Iterator<Item = PathBuf> {
    CLIENTS.iter().flat_map(move |name| [root.join(name), top.join(name)])
}

/// What is nobody's work, wherever it lies: the plan's files, Verdone's own folder, settings of the client.
pub(super) fn not_work(git: &Git, root: &Path, top: &Path, ours: &[PathBuf]) -> PathSet {
    let theirs = of_the_client(root, top);
    ours.iter().cloned().chain([root.join(HOME)]).chain(theirs).filter_map(|path| git.repo_path(&path)).collect()
}

impl Tree {
    /// The tree to compare later ones with.
    pub(super) fn base(&self, top: &Path) -> Result<Base, StopError> {
        let content = git(top)?.content(&self.status, &self.own)?;
        Ok(Base { key: self.key.clone(), head: self.head.clone(), content })
    }

    /// Whether files differ. A commit alone changes the key and no file.
    pub(super) fn differs(&self, base: &Base, top: &Path) -> Result<bool, StopError> {
        if self.key == base.key {
            return Ok(false);
        }
        Ok(self.head == base.head || git(top)?.content(&self.status, &self.own)? != base.content)
    }
}

fn content(path: &Path, left: &mut u64) -> Vec<u8> {
    let Ok(meta) = fs::symlink_metadata(path) else { return b"gone".to_vec() };
    if meta.is_symlink() {
        return fs::read_link(path).map(|to| to.as_os_str().as_bytes().to_vec()).unwrap_or_default();
    }
    let stamp = || format!("{}-{}.{}-{}.{}", meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
    let reads = meta.is_file() && meta.len() <= *left;
    let read = if reads { read_regular(path, LARGEST) } else { Err(io::ErrorKind::InvalidData.into()) };
    *left = left.saturating_sub(read.as_ref().map_or(0, |bytes| bytes.len() as u64));
    let seen = read.map_or_else(|_| stamp(), |bytes| digest(&bytes));
    format!("{:o} {seen}", meta.permissions().mode() & 0o111).into_bytes()
}
