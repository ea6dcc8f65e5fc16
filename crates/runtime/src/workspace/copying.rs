//! The user's uncommitted files that a workspace gets.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::WorkspaceError;
use crate::project::HOME;

/// Parts of `.verdone/` that no workspace gets.
pub(super) const NOT_COPIED: [&str; 4] = ["runs", "cache", "sessions", ".gitignore"];

/// The user's uncommitted files that a workspace needs: those named, and the settings.
pub(super) fn files_to_copy(root: &Path, named: &[PathBuf]) -> Vec<PathBuf> {
    let home = root.join(HOME);
    let mut found = named.to_vec();
    let mut left: Vec<PathBuf> = fs::read_dir(&home).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    left.retain(|path| !NOT_COPIED.iter().any(|name| path.file_name().is_some_and(|own| own == *name)));
    while let Some(path) = left.pop() {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            Ok(meta) if meta.is_file() => found.push(path),
            Ok(_) | Err(_) => {}
        }
    }
    found
}

/// Copies files of the checkout into a tree that only Verdone has written. Uses the checkout's version, committed or not.
pub(super) fn copy_files(top: &Path, tree: &Path, files: &[PathBuf]) -> Result<(), WorkspaceError> {
    for file in files {
        let Ok(below) = file.strip_prefix(top) else { continue };
        let to = tree.join(below);
        if leads_elsewhere(tree, below) || fs::symlink_metadata(&to).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(WorkspaceError::io(parent))?;
        }
        // Replace a link instead of following it.
        match fs::remove_file(&to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(WorkspaceError::io(&to)(error)),
            _ => fs::copy(file, &to).map_err(WorkspaceError::io(&to))?,
        };
    }
    Ok(())
}

/// Whether a parent folder of the path is a link or a file.
fn leads_elsewhere(tree: &Path, below: &Path) -> bool {
    let folders = below.ancestors().skip(1).map(|folder| tree.join(folder));
    folders.into_iter().any(|folder| fs::symlink_metadata(folder).is_ok_and(|meta| !meta.is_dir()))
}
