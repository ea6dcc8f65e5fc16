//! Where the outputs of a verification are kept: `.verdone/cache/outputs/`, a folder for each tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;
use verdone_core::id::Oid;

use super::VerifyError;
use crate::site;
use crate::verify::hide;

/// Outputs of this many trees are kept.
const KEPT_TREES: usize = 20;

pub(super) enum Outputs {
    Kept(PathBuf),
    /// Removed when dropped.
    Gone(TempDir),
}

impl Outputs {
    /// The folder for what checks say. Where the cache cannot be written, one that is gone afterwards, and why.
    pub(super) fn make(root: &Path, tree: &Oid) -> Result<(Self, Option<String>), VerifyError> {
        let source = match kept(root, tree) {
            Ok(folder) => return Ok((Self::Kept(folder), None)),
            Err(source) => source,
        };
        let text = format!(".verdone/cache cannot be used, so nothing is kept for the next time: {source}");
        let made = tempfile::Builder::new().prefix("verdone-verify-").tempdir();
        let made = made.map_err(|source| VerifyError::Io { doing: "making a folder for outputs".to_owned(), source })?;
        Ok((Self::Gone(made), Some(text)))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Gone(folder) => folder.path(),
        }
    }

    /// A file of it as the user finds it; nothing where it will be gone.
    pub(super) fn shown(&self, root: &Path, file: &str) -> Option<String> {
        match self {
            Self::Kept(path) => Some(format!("{}/{file}", site::shown(path, root))),
            Self::Gone(_) => None,
        }
    }
}

fn kept(root: &Path, tree: &Oid) -> io::Result<PathBuf> {
    hide(root)?;
    let all = root.join(".verdone/cache/outputs");
    let own = all.join(tree.as_str());
    fs::create_dir_all(&own)?;
    let mut older: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&all)?.flatten().filter(|entry| entry.path() != own) {
        let modified = entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        older.push((modified, entry.path()));
    }
    older.sort();
    for (_, path) in &older[..older.len().saturating_sub(KEPT_TREES)] {
        let _ = fs::remove_dir_all(path);
    }
    Ok(own)
}
