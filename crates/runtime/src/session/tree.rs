//! Identifies the tree to judge: everything that a check can see, from one `git status`
//! and the times of all files. Cheaper than writing a tree, and a better key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::agent::client_files::{LOCAL_SETTINGS, PROJECT_SETTINGS};
use verdone_core::base::id::{Oid, digest};
use verdone_core::engine::session::Base;

use crate::base::digest_cache::KnownFiles;
use crate::git::{Git, GitError, PathSet};
use crate::project::{GitDirs, HOME};

use super::StopError;

/// Short, because a hook waits for it.
const GIT_DEADLINE: Duration = Duration::from_secs(30);
const MOST_NAMED: usize = 5;
/// The client writes and hides these files when a session starts.
const CLIENTS: [&str; 2] = [PROJECT_SETTINGS, LOCAL_SETTINGS];

#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(super) key: String,
    pub(crate) head: Option<Oid>,
    /// Nothing differs from HEAD except our own files.
    pub(super) clean: bool,
    /// Names of files that differ from HEAD, the first few, and how many there are.
    uncommitted: (Vec<String>, usize),
    /// Digest of all files except ours, committed or not.
    pub(crate) content: String,
}

pub(super) fn git(top: &Path) -> Result<Git, StopError> {
    let dirs = GitDirs::new(top).ok_or_else(|| GitError::NotARepository { dir: top.to_owned() })?;
    Ok(Git::found(top, dirs, GIT_DEADLINE))
}

/// `ours` are the plan and its progress files, which Verdone itself writes.
pub(crate) fn fingerprint(root: &Path, top: &Path, ours: &[PathBuf]) -> Result<Tree, StopError> {
    let git = git(top)?;
    let own = not_work(&git, root, top, ours);
    let (status, looked) = git.scan_work_tree(&mut KnownFiles::open(root, top), &own, &|_| true)?;
    let differing = || status.entries.iter().filter(|entry| !own.contains(&entry.path));
    let uncommitted = (differing().take(MOST_NAMED).map(|entry| entry.path.to_string()).collect(), differing().count());
    let clean = uncommitted.1 == 0;
    let key = digest(format!("{}\n{}", looked.content, looked.around).as_bytes())[..32].to_owned();
    Ok(Tree { key, head: status.head, clean, uncommitted, content: looked.content })
}

/// Files that the client writes; they are not part of the work.
pub(super) fn client_settings_paths(root: &Path, top: &Path) -> impl Iterator<Item = PathBuf> {
    CLIENTS.iter().flat_map(move |name| [root.join(name), top.join(name)])
}

/// Files that are not part of the work: the plan's files, Verdone's folder, and the client's settings.
pub(super) fn not_work(git: &Git, root: &Path, top: &Path, ours: &[PathBuf]) -> PathSet {
    let theirs = client_settings_paths(root, top);
    ours.iter().cloned().chain([root.join(HOME)]).chain(theirs).filter_map(|path| git.repo_path(&path)).collect()
}

impl Tree {
    /// The base to compare later trees with.
    pub(super) fn base(&self) -> Base {
        Base { key: self.key.clone(), head: self.head.clone(), content: self.content.clone() }
    }

    /// Which changes are not committed, for the agent. `None` if there are none.
    pub(super) fn uncommitted_words(&self) -> Option<String> {
        let (named, count) = &self.uncommitted;
        let more = count - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (*count > 0)
            .then(|| format!("There are uncommitted changes: {}{more}. Commit what belongs to the work", named.join(", ")))
    }

    /// Whether files differ. A commit alone changes the key but no file.
    pub(super) fn differs(&self, base: &Base) -> bool {
        self.key != base.key && self.content != base.content
    }
}
