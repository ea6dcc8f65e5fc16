//! Whether journals come from local runs. Only then may their commands be run.

use std::fs;
use std::path::Path;

use super::Store;
use crate::git::Git;

/// Journals are never committed. Those that git tracks, or that are behind a link, came with the repository.
pub fn are_local(git: &Git, store: &Store) -> bool {
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let runs = store.path();
    is_folder(runs) && runs.parent().is_some_and(is_folder) && matches!(git.tracks(runs), Ok(false))
}
