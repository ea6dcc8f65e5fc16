//! Stores the outputs of a verification: `.verdone/cache/outputs/`, one folder per tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;
use verdone_core::base::id::Oid;

use super::VerifyError;
use crate::base::cache_folder::cache_folder;
use crate::base::plain_file::real_folder;
use crate::git::is_object_id;
use crate::project::shown;

/// For how many trees outputs are kept.
const KEPT_TREES: usize = 20;

pub(super) enum Outputs {
    Kept(PathBuf),
    /// Removed when dropped.
    Gone(TempDir),
}

impl Outputs {
    /// The folder for check output. If the cache cannot be written, a temporary one and the reason.
    pub(super) fn make(root: &Path, tree: &Oid) -> Result<(Self, Option<io::Error>), VerifyError> {
        let trouble = match kept(root, tree) {
            Ok(folder) => return Ok((Self::Kept(folder), None)),
            Err(trouble) => trouble,
        };
        let made = tempfile::Builder::new().prefix("verdone-verify-").tempdir();
        let made = made.map_err(|source| VerifyError::Io { doing: "creating a folder for outputs".to_owned(), source })?;
        Ok((Self::Gone(made), Some(trouble)))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Gone(folder) => folder.path(),
        }
    }

    /// An output file's path for the user. `None` if it will be deleted.
    pub(super) fn shown(&self, root: &Path, file: &str) -> Option<String> {
        match self {
            Self::Kept(path) => Some(format!("{}/{file}", shown(path, root))),
            Self::Gone(_) => None,
        }
    }
}

/// The note for the user if the cache cannot be written.
pub(super) fn not_kept(trouble: &io::Error) -> String {
    format!(".verdone/cache cannot be used, so nothing is cached for the next run: {trouble}")
}

fn kept(root: &Path, tree: &Oid) -> io::Result<PathBuf> {
    let all = real_folder(&cache_folder(root)?, Path::new("outputs"))?;
    let own = real_folder(&all, Path::new(tree.as_str()))?;
    let mut older: Vec<(SystemTime, PathBuf)> = Vec::new();
    // Delete only folders with names like ours.
    let is_ours = |entry: &fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_folder && entry.path() != own && entry.file_name().to_str().is_some_and(|name| is_object_id(&Oid::from(name)))
    };
    for entry in fs::read_dir(&all)?.flatten().filter(is_ours) {
        let modified = entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        older.push((modified, entry.path()));
    }
    older.sort();
    for (_, path) in &older[..older.len().saturating_sub(KEPT_TREES)] {
        let _ = fs::remove_dir_all(path);
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_trees_are_deleted_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (root, own) = (dir.path().join("project"), dir.path().join("own"));
        let tree = |number: usize| Oid(format!("{number:040x}"));
        let fill = |folder: &Path| {
            for name in (0..KEPT_TREES + 5).map(|number| tree(number).0).chain((0..5).map(|number| format!("mine-{number}"))) {
                fs::create_dir_all(folder.join(name)).unwrap();
            }
        };
        let count = |folder: &Path| fs::read_dir(folder).unwrap().count();
        fill(&own);
        fs::create_dir_all(root.join(".verdone/cache")).unwrap();
        std::os::unix::fs::symlink(&own, root.join(".verdone/cache/outputs")).unwrap();
        let (outputs, trouble) = Outputs::make(&root, &tree(999)).unwrap();
        assert!(matches!(outputs, Outputs::Gone(_)));
        assert!(not_kept(&trouble.unwrap()).contains("outputs is not a folder, and links are not followed"));
        assert_eq!(count(&own), KEPT_TREES + 10, "nothing is deleted or written there");

        let all = root.join(".verdone/cache/outputs");
        fs::remove_file(&all).unwrap();
        fill(&all);
        assert!(Outputs::make(&root, &tree(999)).unwrap().1.is_none());
        assert_eq!(count(&all), KEPT_TREES + 1 + 5, "the newest, the one in use, and what is not ours");
    }
}
