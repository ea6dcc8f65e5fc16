//! Which tree is judged: everything that a check can see of it, by one `git status` and a look at the times of all files. Cheaper than
//! writing a tree, and a better key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::base::id::{Oid, digest};
use verdone_core::engine::session::Base;

use crate::base::digest_cache::KnownFiles;
use crate::git::{Git, GitError, PathSet};
use crate::project::{GitDirs, HOME};

use super::StopError;

/// A hook waits for it.
const GIT_DEADLINE: Duration = Duration::from_secs(30);
/// The client writes and hides these by itself when a session begins.
const CLIENTS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(super) key: String,
    pub(crate) head: Option<Oid>,
    /// Nothing differs from HEAD but what is ours.
    pub(super) clean: bool,
    /// Of all files but ours, whatever is committed of them.
    pub(crate) content: String,
}

pub(super) fn git(top: &Path) -> Result<Git, StopError> {
    let dirs = GitDirs::of(top).ok_or_else(|| GitError::NotARepository { dir: top.to_owned() })?;
    Ok(Git::found(top, dirs, GIT_DEADLINE))
}

/// `ours` are the plan and its progress files: Verdone writes them itself.
pub(crate) fn look(root: &Path, top: &Path, ours: &[PathBuf]) -> Result<Tree, StopError> {
    let git = git(top)?;
    let own = not_work(&git, root, top, ours);
    let (status, looked) = git.look(&mut KnownFiles::of(root, top), &own, &|_| true)?;
    let clean = status.entries.iter().all(|entry| own.contains(&entry.path));
    let key = digest(format!("{}\n{}", looked.content, looked.around).as_bytes())[..32].to_owned();
    Ok(Tree { key, head: status.head, clean, content: looked.content })
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
    pub(super) fn base(&self) -> Base {
        Base { key: self.key.clone(), head: self.head.clone(), content: self.content.clone() }
    }

    /// Whether files differ. A commit alone changes the key and no file.
    pub(super) fn differs(&self, base: &Base) -> bool {
        self.key != base.key && self.content != base.content
    }
}
