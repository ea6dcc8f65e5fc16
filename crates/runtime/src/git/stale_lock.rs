//! Removes lock files left behind by killed git processes, which would block every later git command. Only locks that appeared
//! during the run and that a run takes itself are removed, once no git process works there any more. Only a landing locks the
//! user's index, HEAD and branch, so without the mark of a landing such a lock belongs to somebody else.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use verdone_core::base::id::{RunId, encode_component};

use super::Git;
use super::error::GitError;
use super::kept_attempt::ATTEMPTS;
use crate::base::plain_file::read_regular;

/// Other programs than git lock only briefly.
const PATIENCE: Duration = Duration::from_secs(1);
/// File times come from a coarser clock than `SystemTime::now`.
pub(super) const TICK: Duration = Duration::from_millis(10);
const LARGEST_HEAD: u64 = 64 * 1024;

/// Where another process that holds the lock may be working.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// In this work tree.
    Here,
    /// In any work tree of the repository.
    Everywhere,
}

impl Git {
    /// Removes locks that appeared since then and have no owner. Returns their paths. Our own processes and the agent's must have
    /// ended before.
    pub fn remove_stale_locks(&self, since: SystemTime, run: &RunId, branch: Option<&str>) -> Result<Vec<PathBuf>, GitError> {
        let made_since = |path: &Path, since: SystemTime| {
            let since = since.checked_sub(TICK).unwrap_or(since);
            identity(path).is_some_and(|(_, _, made)| made >= since)
        };
        let mut locks = self.locks_of_run(run, branch);
        locks.retain(|(lock, _)| made_since(lock, since));
        if let Some(landing) = self.interrupted_landing() {
            let found = self.locks_of_landing(&landing.branch).into_iter();
            let ours = found.filter(|lock| made_since(lock, since.max(landing.since)));
            locks.extend(ours.map(|lock| (lock, Reach::Here)));
        }
        locks.sort();
        locks.dedup();
        if locks.is_empty() {
            return Ok(Vec::new());
        }
        let before: Vec<_> = locks.iter().map(|(lock, _)| identity(lock)).collect();
        thread::sleep(PATIENCE);
        let mut removed = Vec::new();
        for ((lock, reach), before) in locks.into_iter().zip(before) {
            if before.is_some() && identity(&lock) == before && !self.is_worked_in(reach) {
                fs::remove_file(&lock).map_err(GitError::io(&lock))?;
                removed.push(lock);
            }
        }
        Ok(removed)
    }

    /// The locks that a run takes itself: those of its own branch and refs.
    fn locks_of_run(&self, run: &RunId, branch: Option<&str>) -> Vec<(PathBuf, Reach)> {
        let mut found: Vec<(PathBuf, Reach)> =
            branch.and_then(|branch| self.lock_of_branch(branch)).map(|lock| (lock, Reach::Here)).into_iter().collect();
        let shared = ["refs/notes/verdone.lock", "packed-refs.lock", "config.lock"];
        found.extend(shared.iter().map(|name| (self.common_dir.join(name), Reach::Everywhere)));
        let attempts = self.common_dir.join(ATTEMPTS).join(encode_component(run.as_str()));
        let entries = fs::read_dir(attempts).into_iter().flatten().flatten().map(|entry| entry.path());
        found.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "lock")).map(|lock| (lock, Reach::Here)));
        found.retain(|(lock, _)| is_file(lock));
        found
    }

    /// The locks that a landing takes: of its branch, and of index and HEAD if this work tree is on that branch.
    fn locks_of_landing(&self, branch: &str) -> Vec<PathBuf> {
        let head = read_regular(&self.git_dir.join("HEAD"), LARGEST_HEAD).unwrap_or_default();
        let is_here = String::from_utf8_lossy(&head).trim_end().strip_prefix("ref: refs/heads/") == Some(branch);
        let of_work_tree = ["index.lock", "HEAD.lock"].map(|name| self.git_dir.join(name)).into_iter().filter(|_| is_here);
        self.lock_of_branch(branch).into_iter().chain(of_work_tree).filter(|lock| is_file(lock)).collect()
    }

    fn lock_of_branch(&self, branch: &str) -> Option<PathBuf> {
        let is_plain = branch.split('/').all(|part| !["", ".", ".."].contains(&part));
        is_plain.then(|| self.common_dir.join(format!("refs/heads/{branch}.lock")))
    }

    /// Whether a git process has its working directory there. If unknown, assumes that one does.
    fn is_worked_in(&self, reach: Reach) -> bool {
        let mut places = vec![self.top.clone(), self.git_dir.clone(), self.common_dir.clone()];
        if reach == Reach::Everywhere {
            // The main work tree contains its git directory.
            places.extend(self.common_dir.parent().map(Path::to_owned));
            places.extend(self.folders_of_linked().into_iter().map(|(folder, _)| folder));
        }
        let Ok(processes) = fs::read_dir("/proc") else { return true };
        let is_git = |dir: &Path| fs::read_to_string(dir.join("comm")).is_ok_and(|name| name.starts_with("git"));
        let is_there = |dir: &Path| match fs::read_link(dir.join("cwd")) {
            Ok(cwd) => places.iter().any(|place| cwd.starts_with(place)),
            // Either gone in the meantime, or another user's process.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        processes.flatten().map(|entry| entry.path()).any(|dir| is_git(&dir) && is_there(&dir))
    }
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

fn identity(path: &Path) -> Option<(u64, u64, SystemTime)> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.ino(), meta.size(), meta.modified().ok()?))
}
