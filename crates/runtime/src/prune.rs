//! Making room: what old runs kept is deleted, their journals stay. The evidence of every story lives on in those and in git notes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use verdone_core::id::RunId;
use verdone_core::machine::Phase;

use crate::git::{Git, GitError};
use crate::store::{JournalError, LockError, RunLock, Store};

#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// What a prune deleted, or would delete.
#[derive(Debug, Default)]
pub struct Pruned {
    pub runs: Vec<RunId>,
    /// Left alone, because uncommitted changes of the user's are nowhere else.
    pub with_changes: Vec<RunId>,
    pub bytes: u64,
}

/// Deletes prompts, outputs, snapshots and kept attempts of all but the newest `keep` runs. A run that did not end is left alone.
pub fn prune(git: &Git, root: &Path, keep: usize, dry_run: bool) -> Result<Pruned, PruneError> {
    let _lock = RunLock::take(git.git_dir())?;
    let store = Store::of(root);
    let ids = store.ids().map_err(|source| PruneError::Io { path: root.join(".verdone/runs"), source })?;
    let mut pruned = Pruned::default();
    for id in ids.iter().rev().skip(keep) {
        let stored = store.run(id.clone());
        let state = stored.last_state()?;
        if !matches!(state.phase, Phase::Stopped { .. }) || state.undoing.is_some() {
            continue;
        }
        let dir = store.dir(id);
        let bytes = size_without_journal(&dir).map_err(|source| PruneError::Io { path: dir.clone(), source })?;
        let has_ref = git.runs_with_refs()?.iter().any(|name| name == id.as_str());
        if bytes == 0 && !has_ref {
            continue;
        }
        let owes = || Ok::<_, PruneError>(stored.owes_changes()? || (stored.forgot_changes()? && git.stash_of(id)?.is_some()));
        if has_ref && owes()? {
            pruned.with_changes.push(id.clone());
            continue;
        }
        if !dry_run {
            git.forget_run(id)?;
            empty(&dir).map_err(|source| PruneError::Io { path: dir.clone(), source })?;
        }
        pruned.bytes += bytes;
        pruned.runs.push(id.clone());
    }
    Ok(pruned)
}

/// Bytes of everything below `.verdone/runs/`.
pub fn disk_use(root: &Path) -> io::Result<u64> {
    size(&root.join(".verdone/runs"))
}

fn empty(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() == "journal.jsonl" {
            continue;
        }
        if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
    }
    Ok(())
}

fn size_without_journal(dir: &Path) -> io::Result<u64> {
    let journal = fs::symlink_metadata(dir.join("journal.jsonl")).map_or(0, |meta| meta.len());
    Ok(size(dir)?.saturating_sub(journal))
}

/// Links are counted as what they are, never followed.
fn size(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() { open.push(entry.path()) } else { bytes += meta.len() }
        }
    }
    Ok(bytes)
}
