//! Lists linked work trees and their branches.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Git;
use super::error::GitError;
use crate::base::plain_file::read_regular;

/// A path and a newline.
const LARGEST_PATH: u64 = 64 * 1024;

/// A work tree of the repository, as git lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkTreeEntry {
    pub path: PathBuf,
    /// Without `refs/heads/`; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// Its folder is gone.
    pub missing: bool,
    /// Where the repository stores the work tree's own data; `None` for the main one.
    pub own_dir: Option<PathBuf>,
}

impl Git {
    /// All work trees, the main one first.
    pub fn work_trees(&self) -> Result<Vec<WorkTreeEntry>, GitError> {
        // Git before 2.36 does not support `-z` here.
        let answer = self.plumbing("worktree").args(["list", "--porcelain", "-z"]).answer()?;
        let (output, end) = if answer.status.success() {
            (answer.stdout, 0)
        } else {
            (self.plumbing("worktree").args(["list", "--porcelain"]).run()?, b'\n')
        };
        let own = own_dirs(&self.common_dir);
        let mut trees: Vec<WorkTreeEntry> = Vec::new();
        for line in output.split(|byte| *byte == end) {
            let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
            let (name, value) = (&line[..at], line.get(at + 1..).unwrap_or_default());
            if name == b"worktree" {
                let path = PathBuf::from(OsStr::from_bytes(value));
                let own_dir = own.iter().find(|(of, _)| *of == path).map(|(_, dir)| dir.clone());
                trees.push(WorkTreeEntry { missing: !path.is_dir(), path, branch: None, own_dir });
                continue;
            }
            let Some(tree) = trees.last_mut() else { continue };
            if name == b"branch" {
                tree.branch = String::from_utf8_lossy(value).strip_prefix("refs/heads/").map(str::to_owned);
            }
        }
        Ok(trees)
    }

    /// The other work trees of the repository, found without starting git.
    pub(crate) fn other_checkouts(&self) -> Vec<PathBuf> {
        let main = self.common_dir.file_name().filter(|name| *name == ".git").and_then(|_| self.common_dir.parent());
        let linked = own_dirs(&self.common_dir).into_iter().map(|(folder, _)| folder);
        let top = fs::canonicalize(&self.top).unwrap_or_else(|_| self.top.clone());
        main.map(|main| fs::canonicalize(main).unwrap_or_else(|_| main.to_owned()))
            .into_iter()
            .chain(linked)
            .filter(|folder| *folder != top && folder.is_dir())
            .collect()
    }

    /// The folder of each linked work tree and its directory in the repository, found without starting git.
    pub(super) fn folders_of_linked(&self) -> Vec<(PathBuf, PathBuf)> {
        own_dirs(&self.common_dir)
    }
}

/// The folder of each linked work tree and its directory in the repository.
fn own_dirs(common_dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(entries) = fs::read_dir(common_dir.join("worktrees")) else { return Vec::new() };
    let mut found = Vec::new();
    for dir in entries.flatten().map(|entry| entry.path()) {
        let Ok(text) = read_regular(&dir.join("gitdir"), LARGEST_PATH) else { continue };
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        // Newer versions of git may write a path relative to this directory.
        let link = dir.join(OsStr::from_bytes(text));
        let Some(path) = link.parent() else { continue };
        found.push((fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()), dir));
    }
    found
}
