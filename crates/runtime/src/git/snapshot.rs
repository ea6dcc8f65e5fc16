//! What a checkpoint's commit holds, and reading it back.
//!
//! The tree: `manifest.json`, `index` (the raw index file), `files/N` (raw bytes), `staged/N` (blobs that only the index names,
//! so that they outlive it).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use verdone_core::event::Checkpoint;
use verdone_core::id::Oid;

use super::checkpoint::SnapshotLimits;
use super::error::GitError;
use super::files::Stat;
use super::path::{PathSet, RepoPath, encode};
use super::{Git, is_object_id};

pub(super) const VERSION: u32 = 1;
/// Blobs are fetched in portions of about this size, so that memory stays bounded.
const PORTION: u64 = 64 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) version: u32,
    pub(super) label: String,
    pub(super) head: Option<Oid>,
    pub(super) branch: Option<String>,
    /// Since the epoch.
    pub(super) taken_ns: i64,
    /// The modification time of the index file; absent when there was none.
    pub(super) index_ns: Option<i64>,
    /// Every path that was not clean.
    pub(super) entries: Vec<Kept>,
    /// Files kept on request, wherever they are. Absolute paths.
    pub(super) extra: Vec<Kept>,
    /// Not copied: repositories inside this one.
    pub(super) nested: Vec<RepoPath>,
    pub(super) submodules: Vec<RepoPath>,
    /// What git ignored; a directory stands for everything in it.
    pub(super) ignored: Vec<RepoPath>,
    /// Tracked files that git was told not to look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) hidden: Vec<RepoPath>,
    /// What could be seen of the repositories inside this one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) nested_states: BTreeMap<RepoPath, String>,
    #[serde(default)]
    pub(super) limits: SnapshotLimits,
    /// What tells that the user's own ignore rules, outside of the repository, were changed since.
    #[serde(default)]
    pub(super) user_rules: Vec<Option<Stat>>,
    /// The only paths that a restore may touch, beside the index; all of them where this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) only: Option<BTreeSet<RepoPath>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) taken_in: Option<TakenIn>,
}

/// Where a checkpoint was taken: the work trees of a repository share its refs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TakenIn {
    top: String,
    /// Tells projects in one work tree apart: each leaves its own `.verdone/` out.
    skipped: PathSet,
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
    File { file: usize, stat: Stat },
    Symlink { file: usize },
    Absent,
}

/// A checkpoint that has been read.
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

    /// The user's, not the attempt's: untracked, ignored or a nested repository when the checkpoint was taken.
    pub(super) fn protects(&self, path: &RepoPath) -> bool {
        self.entries.get(path).is_some_and(|kept| kept.untracked) || self.ignored.contains(path) || self.nested.contains(path)
    }

    /// Whether a restore may touch this path.
    pub(super) fn covers(&self, path: &RepoPath) -> bool {
        self.manifest.only.as_ref().is_none_or(|only| only.contains(path))
    }

    /// Whether a file is the one that was kept. A file that was young at the checkpoint is not trusted by its times.
    pub(super) fn untouched(&self, kept: &Stat, now: &Stat) -> bool {
        const CLOCK_TICK_NS: i64 = 100_000_000;
        kept == now && kept.ctime_ns.saturating_add(CLOCK_TICK_NS) < self.manifest.taken_ns
    }
}

impl Git {
    /// Whether a checkpoint was taken in this work tree, by a run that left the same paths out. One that does not say it was not.
    pub fn was_taken_here(&self, id: &Oid, skip: &PathSet) -> Result<bool, GitError> {
        Ok(self.snapshot(id)?.manifest.taken_in == Some(self.taken_in(skip)))
    }

    pub(super) fn taken_in(&self, skip: &PathSet) -> TakenIn {
        TakenIn { top: encode(self.top.as_os_str().as_encoded_bytes()), skipped: skip.clone() }
    }

    /// The checkpoint that a commit under `refs/verdone/` is.
    pub fn read_checkpoint(&self, id: &Oid) -> Result<Checkpoint, GitError> {
        Ok(self.snapshot(id)?.checkpoint.clone())
    }

    pub(super) fn snapshot(&self, id: &Oid) -> Result<Arc<Snapshot>, GitError> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(last) = last.filter(|last| last.checkpoint.id == *id) {
            return Ok(last);
        }
        let not_one = || GitError::NotACheckpoint { id: id.0.clone() };
        let bytes = self.blobs(id, &["manifest.json".to_owned()])?.into_iter().next().flatten().ok_or_else(not_one)?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| not_one())?;
        let found = value.get("version").and_then(serde_json::Value::as_u64).ok_or_else(not_one)?;
        if found > u64::from(VERSION) {
            return Err(GitError::NewerCheckpoint { id: id.0.clone(), found: found as u32, known: VERSION });
        }
        let manifest = serde_json::from_value(value).map_err(|_| not_one())?;
        Ok(self.remember(Snapshot::new(id.clone(), manifest)))
    }

    /// Raw contents of files in a checkpoint's tree, in the order asked for; None for one that is not there.
    pub(super) fn blobs(&self, id: &Oid, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if !is_object_id(id) {
            return Err(GitError::NotACheckpoint { id: id.0.clone() });
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let request = names.iter().flat_map(|name| [id.as_str(), ":", name.as_str(), "\n"]).collect::<String>();
        let output = self.plumbing("cat-file").args(["--batch"]).stdin(request.into_bytes()).run()?;
        let mut rest = output.as_slice();
        names
            .iter()
            .map(|name| {
                take_blob(&mut rest)
                    .ok_or_else(|| GitError::Unexpected { what: "cat-file", detail: format!("no answer for {id}:{name}") })
            })
            .collect()
    }

    /// Kept files with their bytes, handed over one by one.
    pub(super) fn each_kept<'a>(
        &self,
        id: &Oid,
        wanted: impl IntoIterator<Item = (&'a Kept, usize, u64)>,
        mut take: impl FnMut(&'a Kept, Vec<u8>) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let mut wanted = wanted.into_iter().peekable();
        while wanted.peek().is_some() {
            let (mut portion, mut size) = (Vec::new(), 0);
            while let Some((kept, number, bytes)) = wanted.next_if(|(_, _, bytes)| size == 0 || size + bytes <= PORTION) {
                size += bytes.max(1);
                portion.push((kept, format!("files/{number}")));
            }
            let names: Vec<String> = portion.iter().map(|(_, name)| name.clone()).collect();
            for ((kept, _), bytes) in portion.into_iter().zip(self.blobs(id, &names)?) {
                take(kept, bytes.ok_or_else(|| GitError::NotACheckpoint { id: id.0.clone() })?)?;
            }
        }
        Ok(())
    }
}

/// One record of `cat-file --batch`: `<id> blob <size>`, the bytes, a newline; or `<name> missing`.
#[expect(clippy::option_option, reason = "a file that is not there is an answer; no answer is a broken stream")]
pub(super) fn take_blob(rest: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let header = std::str::from_utf8(&rest[..end]).ok()?;
    *rest = &rest[end + 1..];
    if header.ends_with(" missing") {
        return Some(None);
    }
    let size: usize = header.rsplit(' ').next()?.parse().ok()?;
    let bytes = rest.get(..size)?.to_vec();
    *rest = rest.get(size + 1..)?;
    Some(Some(bytes))
}

pub(super) fn nanoseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

pub(super) fn time_of(nanoseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanoseconds.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_trusted_only_of_files_that_were_old_at_the_checkpoint() {
        const SECOND: i64 = 1_000_000_000;
        let manifest = Manifest {
            version: VERSION,
            label: String::new(),
            head: None,
            branch: None,
            taken_ns: 10 * SECOND,
            index_ns: None,
            entries: Vec::new(),
            extra: Vec::new(),
            nested: Vec::new(),
            submodules: Vec::new(),
            ignored: Vec::new(),
            hidden: Vec::new(),
            nested_states: BTreeMap::new(),
            limits: SnapshotLimits::default(),
            user_rules: Vec::new(),
            only: None,
            taken_in: None,
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
