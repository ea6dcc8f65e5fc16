//! The checkpoint of a session loop records what was changed and untracked when the loop began, so that a story's commit leaves
//! it out. It does not touch HEAD, the index or the work tree, and copies no files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use verdone_core::base::id::{Oid, RunId, digest};
use verdone_core::journal::event::Checkpoint;

use super::Git;
use super::chain::one_line;
use super::error::GitError;
use super::files::{self, FileState, Stat};
use super::path::{PathSet, RepoPath};
use super::snapshot::{Kept, Manifest, Snapshot, State, VERSION, nanoseconds};
use super::status::{Change, Kind, Status};

#[derive(Debug)]
pub struct CheckpointRequest<'a> {
    /// Determines the name of the ref.
    pub chain: &'a RunId,
    pub label: &'a str,
    /// Paths to leave out.
    pub skip: &'a PathSet,
    /// Larger files are compared only by size and times.
    pub largest_file: u64,
}

impl Git {
    /// Records every modified, staged, deleted and untracked file. Nested repositories and submodules are opaque. Clean files are
    /// already in git, and ignored files are only listed.
    pub fn checkpoint(&self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, GitError> {
        let (status, hidden) = (self.status_and_ignored()?, self.hidden()?);
        let mut paths = changed_paths(&status, request.skip);
        for path in hidden.iter().filter(|path| !request.skip.contains(path)) {
            if self.is_file(path)?.is_some() {
                paths.insert(path, false);
            }
        }
        let taken = SystemTime::now();
        let manifest = Manifest {
            version: VERSION,
            head: status.head.clone(),
            branch: status.branch.clone(),
            taken_ns: nanoseconds(taken),
            entries: entries(&self.top, &paths, request.largest_file)?,
            staged: paths_of(&status, is_staged),
            nested: paths_of(&status, |kind| *kind == Kind::Nested),
            ignored: paths_of(&status, |kind| *kind == Kind::Ignored),
            hidden: hidden.iter().cloned().collect(),
            nested_states: self.states_of_nested(&status)?,
        };
        let json = serde_json::to_vec(&manifest).expect("a manifest has only string keys");
        let subject = format!("checkpoint: {}", one_line(request.label));
        // HEAD becomes a parent, so that it is still available for comparison after a rebase.
        let head: Vec<&str> = status.head.iter().map(Oid::as_str).collect();
        let id = self.append(request.chain, |stream, previous| {
            let file = stream.blob(&json)?;
            let commit = stream.commit(&subject, Some(previous), &head, &[(file, "manifest.json".to_owned())])?;
            stream.ask(&commit)
        })?;
        Ok(self.remember(Snapshot::new(id, manifest)).checkpoint.clone())
    }
}

fn entries(top: &Path, paths: &BTreeMap<&RepoPath, bool>, largest: u64) -> Result<Vec<Kept>, GitError> {
    let keep = |(path, untracked): (&&RepoPath, &bool)| {
        let state = state_of(top, path, largest).map_err(GitError::io(path.as_path()))?;
        Ok(Kept { path: (*path).clone(), untracked: *untracked, state })
    };
    paths.iter().map(keep).collect()
}

fn state_of(top: &Path, path: &RepoPath, largest: u64) -> std::io::Result<State> {
    let Some(meta) = files::stat(top, path)? else { return Ok(State::Absent) };
    if meta.is_file() && meta.len() > largest {
        return Ok(State::File { digest: None, stat: Stat::from_metadata(&meta) });
    }
    Ok(match files::read(top, path)? {
        FileState::Nothing => State::Absent,
        FileState::File { bytes, stat } => State::File { digest: Some(digest(&bytes)), stat },
        FileState::Symlink { target } => State::Symlink { digest: digest(&target) },
    })
}

/// Each path once, and whether it is untracked.
fn changed_paths<'a>(status: &'a Status, skip: &PathSet) -> BTreeMap<&'a RepoPath, bool> {
    let mut paths = BTreeMap::new();
    for entry in status.entries.iter().filter(|entry| !skip.contains(&entry.path)) {
        match entry.kind {
            Kind::Tracked { head: None, index: None, .. } | Kind::Untracked => {
                paths.entry(&entry.path).or_insert(matches!(entry.kind, Kind::Untracked));
            }
            // Even if it is also listed as untracked: HEAD contains it, so it is not the user's private file.
            Kind::Tracked { .. } | Kind::Unmerged { .. } => {
                paths.insert(&entry.path, false);
            }
            Kind::Submodule { .. } | Kind::Nested | Kind::Ignored => {}
        }
    }
    paths
}

fn is_staged(kind: &Kind) -> bool {
    match kind {
        Kind::Tracked { staged, .. } | Kind::Submodule { staged, .. } => *staged != Change::None,
        Kind::Unmerged { .. } => true,
        Kind::Untracked | Kind::Nested | Kind::Ignored => false,
    }
}

fn paths_of(status: &Status, wanted: impl Fn(&Kind) -> bool) -> Vec<RepoPath> {
    status.entries.iter().filter(|entry| wanted(&entry.kind)).map(|entry| entry.path.clone()).collect()
}
