//! Lock files that a git process left behind because it was killed: every later git would refuse to work until somebody removes
//! them. Only those are removed that appeared in our time, when no git process works in this repository any more.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::Git;
use super::error::GitError;

/// Other programs than git lock for moments only.
const PATIENCE: Duration = Duration::from_secs(1);
/// File times come from a coarser clock than ours.
const TICK: Duration = Duration::from_millis(10);

impl Git {
    /// Removes locks that appeared since then and that nobody holds; says which. Our own processes and the agent's must have
    /// been ended before.
    pub fn remove_stale_locks(&self, since: SystemTime) -> Result<Vec<PathBuf>, GitError> {
        let since = since.checked_sub(TICK).unwrap_or(since);
        let young = |path: &PathBuf| identity(path).is_some_and(|(_, _, made)| made >= since);
        let locks: Vec<PathBuf> = self.locks().into_iter().filter(young).collect();
        if locks.is_empty() {
            return Ok(Vec::new());
        }
        let before: Vec<_> = locks.iter().map(|lock| identity(lock)).collect();
        thread::sleep(PATIENCE);
        let mut removed = Vec::new();
        for (lock, before) in locks.into_iter().zip(before) {
            if before.is_some() && identity(&lock) == before && !self.is_worked_in() {
                fs::remove_file(&lock).map_err(GitError::io(&lock))?;
                removed.push(lock);
            }
        }
        Ok(removed)
    }

    /// Locks that are there: of the index, of HEAD and its branch, of our own refs.
    fn locks(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = ["index.lock", "HEAD.lock"].iter().map(|name| self.git_dir.join(name)).collect();
        found.extend(["packed-refs.lock", "config.lock"].iter().map(|name| self.common_dir.join(name)));
        let mut open: Vec<PathBuf> =
            ["heads", "verdone", "notes"].iter().map(|name| self.common_dir.join("refs").join(name)).collect();
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open.push(entry.path());
                } else if entry.path().extension().is_some_and(|extension| extension == "lock") {
                    found.push(entry.path());
                }
            }
        }
        found.retain(|lock| fs::symlink_metadata(lock).is_ok_and(|meta| meta.is_file()));
        found
    }

    /// Whether some git process has its working directory here. Where that cannot be known, it is taken for granted.
    fn is_worked_in(&self) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else { return true };
        let is_git = |dir: &Path| fs::read_to_string(dir.join("comm")).is_ok_and(|name| name.starts_with("git"));
        let is_here = |dir: &Path| {
            fs::read_link(dir.join("cwd"))
                .is_ok_and(|cwd| [&self.top, &self.git_dir, &self.common_dir].iter().any(|place| cwd.starts_with(place)))
        };
        processes.flatten().map(|entry| entry.path()).any(|dir| is_git(&dir) && is_here(&dir))
    }
}

fn identity(path: &Path) -> Option<(u64, u64, SystemTime)> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.ino(), meta.size(), meta.modified().ok()?))
}
