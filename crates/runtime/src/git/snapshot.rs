//! The content of a checkpoint's commit, and how to read it. Its tree has one file, `manifest.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use verdone_core::base::id::Oid;
use verdone_core::journal::event::Checkpoint;

use super::error::GitError;
use super::files::Stat;
use super::path::{PathSet, RepoPath};
use super::{Git, is_object_id};

/// Version 1 also had copies of the files.
pub(super) const VERSION: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) version: u32,
    pub(super) head: Option<Oid>,
    pub(super) branch: Option<String>,
    /// Since the epoch.
    pub(super) taken_ns: i64,
    /// Every path that was not clean.
    pub(super) entries: Vec<Kept>,
    /// Paths that are in the index but not in HEAD.
    pub(super) staged: Vec<RepoPath>,
    /// Repositories inside this one.
    pub(super) nested: Vec<RepoPath>,
    /// Ignored paths. A directory stands for everything in it.
    pub(super) ignored: Vec<RepoPath>,
    /// Tracked files that are hidden from git.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) hidden: Vec<RepoPath>,
    /// A digest of each repository inside this one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) nested_states: BTreeMap<RepoPath, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) path: RepoPath,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) untracked: bool,
    #[serde(flatten)]
    pub(super) state: State,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum State {
    File {
        /// Digest of the content; `None` if the file was too large to read.
        digest: Option<String>,
        stat: Stat,
    },
    Symlink {
        /// Digest of the target.
        digest: String,
    },
    Absent,
}

/// A checkpoint, read from its commit.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) checkpoint: Checkpoint,
    pub(super) manifest: Manifest,
    pub(super) entries: BTreeMap<RepoPath, Kept>,
    pub(super) ignored: PathSet,
    pub(super) nested: PathSet,
    pub(super) hidden: BTreeSet<RepoPath>,
}

impl Snapshot {
    pub(super) fn new(id: Oid, manifest: Manifest) -> Self {
        Self {
            checkpoint: Checkpoint { id, head: manifest.head.clone(), branch: manifest.branch.clone() },
            entries: manifest.entries.iter().map(|kept| (kept.path.clone(), kept.clone())).collect(),
            ignored: manifest.ignored.iter().cloned().collect(),
            nested: manifest.nested.iter().cloned().collect(),
            hidden: manifest.hidden.iter().cloned().collect(),
            manifest,
        }
    }

    /// Whether a path belongs to the user and not to the attempt: it was untracked, ignored or a nested repository at the
    /// checkpoint.
    pub(super) fn protects(&self, path: &RepoPath) -> bool {
        self.entries.get(path).is_some_and(|kept| kept.untracked) || self.ignored.contains(path) || self.nested.contains(path)
    }

    /// Whether a file is unchanged since it was recorded. If it was very young at the checkpoint, its times are not trusted.
    pub(super) fn untouched(&self, kept: &Stat, now: &Stat) -> bool {
        const CLOCK_TICK_NS: i64 = 100_000_000;
        kept == now && kept.ctime_ns.saturating_add(CLOCK_TICK_NS) < self.manifest.taken_ns
    }
}

impl Git {
    pub(super) fn snapshot(&self, id: &Oid) -> Result<Arc<Snapshot>, GitError> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(last) = last.filter(|last| last.checkpoint.id == *id) {
            return Ok(last);
        }
        let not_one = || GitError::NotACheckpoint { id: id.0.clone() };
        if !is_object_id(id) {
            return Err(not_one());
        }
        let answer = self.plumbing("cat-file").args(["blob", &format!("{id}:manifest.json")]).answer()?;
        if !answer.status.success() {
            return Err(not_one());
        }
        let value: serde_json::Value = serde_json::from_slice(&answer.stdout).map_err(|_| not_one())?;
        let found = value.get("version").and_then(serde_json::Value::as_u64).ok_or_else(not_one)?;
        if found > u64::from(VERSION) {
            return Err(GitError::NewerCheckpoint { id: id.0.clone(), found: found as u32, known: VERSION });
        }
        let manifest = serde_json::from_value(value).map_err(|_| not_one())?;
        Ok(self.remember(Snapshot::new(id.clone(), manifest)))
    }
}

pub(super) fn nanoseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_trusted_only_of_files_that_were_old_at_the_checkpoint() {
        const SECOND: i64 = 1_000_000_000;
        let manifest = Manifest {
            version: VERSION,
            head: None,
            branch: None,
            taken_ns: 10 * SECOND,
            entries: Vec::new(),
            staged: Vec::new(),
            nested: Vec::new(),
            ignored: Vec::new(),
            hidden: Vec::new(),
            nested_states: BTreeMap::new(),
        };
        let snapshot = Snapshot::new("a".into(), manifest);
        let changed_at = |ctime_ns| Stat { dev: 1, ino: 2, size: 3, mode: 0o644, mtime_ns: 0, ctime_ns };
        for (kept, now, untouched) in
            [(9 * SECOND, 9 * SECOND, true), (9 * SECOND, 9 * SECOND + 1, false), (10 * SECOND - 1000, 10 * SECOND - 1000, false)]
        {
            assert_eq!(snapshot.untouched(&changed_at(kept), &changed_at(now)), untouched, "{kept} {now}");
        }
    }
}
