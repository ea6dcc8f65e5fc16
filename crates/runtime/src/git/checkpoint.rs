//! Takes checkpoints: two git processes, and neither HEAD, index nor work tree is touched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use verdone_core::config::Limits;
use verdone_core::event::Checkpoint;
use verdone_core::id::{Oid, RunId};

use super::Git;
use super::chain::{Stream, one_line};
use super::error::GitError;
use super::files::{self, Found};
use super::index::IndexFile;
use super::path::{PathSet, RepoPath};
use super::snapshot::{Kept, Manifest, Snapshot, State, VERSION, nanoseconds};
use super::status::{Kind, Status};

#[derive(Debug)]
pub struct CheckpointRequest<'a> {
    /// The run whose chain it joins.
    pub chain: &'a RunId,
    pub label: &'a str,
    /// Files to keep even if git ignores them or they lie outside the repository: the plan. Relative to the top level or absolute.
    pub extra: &'a [PathBuf],
    /// Paths that are not copied.
    pub skip: &'a PathSet,
    pub limits: SnapshotLimits,
}

/// How much a checkpoint may copy, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotLimits {
    pub file: u64,
    pub total: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self::from(&Limits::default())
    }
}

impl From<&Limits> for SnapshotLimits {
    fn from(limits: &Limits) -> Self {
        let bytes = |limit: u64| if limit == 0 { u64::MAX } else { limit };
        Self { file: bytes(limits.snapshot_file_bytes), total: bytes(limits.snapshot_bytes) }
    }
}

impl Git {
    /// Snapshots the index and every modified, staged, deleted and untracked file. Nested repositories and submodules are
    /// opaque: listed, not copied. Clean files are git's already; ignored files are not kept.
    pub fn checkpoint(&self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, GitError> {
        let (status, hidden) = (self.status_and_ignored()?, self.hidden()?);
        let index = IndexFile::read(&self.index_path())?;
        let mut paths = paths_to_keep(&status, request.skip);
        for path in hidden.iter().filter(|path| !request.skip.contains(path)) {
            if self.is_file(path)?.is_some() {
                paths.insert(path, false);
            }
        }
        self.refuse_large(&paths, request.limits)?;
        let extra_paths = self.beyond_git(&status, request);
        let nested_states = self.states_of_nested(&status)?;
        let user_rules = self.rules_of_the_user()?;
        let subject = format!("checkpoint: {}", one_line(request.label));
        let (id, manifest) = self.append(request.chain, |stream, previous| {
            let mut tree = Vec::new();
            let mut keeper = Keeper { stream, tree: &mut tree, count: 0 };
            let taken = SystemTime::now();
            let entries = keeper.entries(&self.top, &paths)?;
            let extra = keeper.extra(&extra_paths)?;
            if let Some(index) = &index {
                tree.push((stream.blob(&index.bytes)?, "index".to_owned()));
            }
            for (number, blob) in staged_blobs(&status).enumerate() {
                tree.push((blob.0.clone(), format!("staged/{number}")));
            }
            let manifest = Manifest {
                version: VERSION,
                label: request.label.to_owned(),
                head: status.head.clone(),
                branch: status.branch.clone(),
                taken_ns: nanoseconds(taken),
                index_ns: index.as_ref().map(|index| nanoseconds(index.modified)),
                entries,
                extra,
                nested: paths_of(&status, |kind| *kind == Kind::Nested),
                submodules: paths_of(&status, |kind| matches!(kind, Kind::Submodule { .. })),
                ignored: paths_of(&status, |kind| *kind == Kind::Ignored),
                hidden: hidden.iter().cloned().collect(),
                nested_states: nested_states.clone(),
                limits: request.limits,
                user_rules: user_rules.clone(),
                only: None,
                taken_in: Some(self.taken_in(request.skip)),
            };
            let json = serde_json::to_vec(&manifest).expect("a manifest has only string keys");
            tree.push((stream.blob(&json)?, "manifest.json".to_owned()));
            let head: Vec<&str> = status.head.iter().map(Oid::as_str).collect();
            let commit = stream.commit(&subject, Some(previous), &head, &tree)?;
            stream.ask(&commit)?;
            Ok(manifest)
        })?;
        Ok(self.remember(Snapshot::new(id, manifest)).checkpoint.clone())
    }

    /// Moves files or directories of the work tree into `dir`, where they are out of the way and not lost.
    pub fn set_aside(&self, paths: &[RepoPath], dir: &Path) -> Result<Vec<PathBuf>, GitError> {
        let there = |path: &&RepoPath| files::stat(&self.top, path).is_ok_and(|meta| meta.is_some());
        let move_one = |path: &RepoPath| {
            let moved = files::set_aside(&self.top, path, dir).map_err(GitError::io(path.as_path()))?;
            files::prune(&self.top, path);
            Ok(moved)
        };
        paths.iter().filter(there).map(move_one).collect()
    }

    /// Those of the extra files that git or the snapshot does not have anyway: a large plan is not copied at every checkpoint.
    fn beyond_git(&self, status: &Status, request: &CheckpointRequest<'_>) -> Vec<PathBuf> {
        let ignored: PathSet = paths_of(status, |kind| *kind == Kind::Ignored).into_iter().collect();
        let beyond = |path: RepoPath| ignored.contains(&path) || request.skip.contains(&path);
        // One that is not there costs nothing to remember.
        let needed = |place: &PathBuf| !place.exists() || self.repo_path(place).is_none_or(beyond);
        // A plan that is a link is kept and put back where it really is.
        let place = |path: &PathBuf| self.top.join(path).canonicalize().unwrap_or_else(|_| self.top.join(path));
        request.extra.iter().map(place).filter(needed).collect()
    }

    /// Whether a checkpoint could copy everything that is not clean; an error with the list where not.
    pub fn fits_a_checkpoint(&self, status: &Status, skip: &PathSet, limits: SnapshotLimits) -> Result<(), GitError> {
        self.refuse_large(&paths_to_keep(status, skip), limits)
    }

    /// The limits under which a checkpoint was taken. They hold for every snapshot that belongs to it, whatever the settings say now.
    pub fn limits_of(&self, checkpoint: &Checkpoint) -> Result<SnapshotLimits, GitError> {
        Ok(self.snapshot(&checkpoint.id)?.manifest.limits)
    }

    fn refuse_large(&self, paths: &BTreeMap<&RepoPath, bool>, limits: SnapshotLimits) -> Result<(), GitError> {
        let mut sizes = Vec::new();
        for path in paths.keys() {
            let meta = files::stat(&self.top, path).map_err(GitError::io(path.as_path()))?;
            if let Some(meta) = meta.filter(std::fs::Metadata::is_file) {
                sizes.push(((*path).clone(), meta.len()));
            }
        }
        let total: u64 = sizes.iter().map(|(_, size)| size).sum();
        let mut large: Vec<_> = sizes.iter().filter(|(_, size)| *size > limits.file).cloned().collect();
        if large.is_empty() && total > limits.total {
            sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
            sizes.truncate(20);
            large = sizes;
        }
        if large.is_empty() { Ok(()) } else { Err(GitError::TooLarge { files: large }) }
    }
}

/// Copies files into a stream and numbers them.
struct Keeper<'a, 'b> {
    stream: &'a mut Stream<'b>,
    tree: &'a mut Vec<(String, String)>,
    count: usize,
}

impl Keeper<'_, '_> {
    fn entries(&mut self, top: &Path, paths: &BTreeMap<&RepoPath, bool>) -> Result<Vec<Kept>, GitError> {
        let keep = |(path, untracked): (&&RepoPath, &bool)| {
            let found = files::read(top, path).map_err(GitError::io(path.as_path()))?;
            Ok(Kept { path: (*path).clone(), untracked: *untracked, state: self.keep(found)? })
        };
        paths.iter().map(keep).collect()
    }

    fn extra(&mut self, paths: &[PathBuf]) -> Result<Vec<Kept>, GitError> {
        use std::os::unix::ffi::OsStrExt as _;
        let keep = |place: &PathBuf| {
            let found = files::read_outside(place).map_err(GitError::io(place))?;
            Ok(Kept { path: RepoPath::new(place.as_os_str().as_bytes()), untracked: false, state: self.keep(found)? })
        };
        paths.iter().map(keep).collect()
    }

    fn keep(&mut self, found: Found) -> Result<State, GitError> {
        match found {
            Found::Nothing => Ok(State::Absent),
            Found::File { bytes, stat } => Ok(State::File { file: self.put(&bytes)?, stat }),
            Found::Symlink { target } => Ok(State::Symlink { file: self.put(&target)? }),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<usize, GitError> {
        let number = self.count;
        self.count += 1;
        self.tree.push((self.stream.blob(bytes)?, format!("files/{number}")));
        Ok(number)
    }
}

/// Each path once, with whether it is untracked.
fn paths_to_keep<'a>(status: &'a Status, skip: &PathSet) -> BTreeMap<&'a RepoPath, bool> {
    let mut paths = BTreeMap::new();
    for entry in status.entries.iter().filter(|entry| !skip.contains(&entry.path)) {
        match entry.kind {
            Kind::Tracked { head: None, index: None, .. } | Kind::Untracked => {
                paths.entry(&entry.path).or_insert(matches!(entry.kind, Kind::Untracked));
            }
            // Also when it is listed a second time as untracked: HEAD knows it, so it is not the user's private file.
            Kind::Tracked { .. } | Kind::Unmerged { .. } => {
                paths.insert(&entry.path, false);
            }
            Kind::Submodule { .. } | Kind::Nested | Kind::Ignored => {}
        }
    }
    paths
}

/// Blobs that may hang on the index alone.
fn staged_blobs(status: &Status) -> impl Iterator<Item = &Oid> {
    status.entries.iter().flat_map(|entry| match &entry.kind {
        Kind::Tracked { index: Some(blob), .. } => std::slice::from_ref(&blob.id),
        Kind::Unmerged { stages } => stages.as_slice(),
        Kind::Tracked { index: None, .. } | Kind::Submodule { .. } | Kind::Untracked | Kind::Nested | Kind::Ignored => &[],
    })
}

fn paths_of(status: &Status, wanted: impl Fn(&Kind) -> bool) -> Vec<RepoPath> {
    status.entries.iter().filter(|entry| wanted(&entry.kind)).map(|entry| entry.path.clone()).collect()
}
