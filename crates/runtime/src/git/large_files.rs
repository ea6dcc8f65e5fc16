//! Files that Git LFS keeps beside the objects: what a filter wrote for a workspace's tree is brought to the real repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Git;
use super::error::GitError;

/// Where Git LFS keeps content, by its digest, below a git folder.
const STORE: &str = "lfs/objects";

impl Git {
    /// Copies what the real repository does not have. The names are digests, so nothing is ever replaced.
    pub(crate) fn import_large_files(&self, git_dir: &Path) -> Result<(), GitError> {
        let (from, to) = (git_dir.join(STORE), self.common_dir.join(STORE));
        copy_missing(&from, &to).map_err(GitError::io(&from))
    }
}

fn copy_missing(from: &Path, to: &Path) -> io::Result<()> {
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        let entries = match fs::read_dir(from.join(&below)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound && below.as_os_str().is_empty() => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                left.push(path);
            } else if kind.is_file() && fs::symlink_metadata(to.join(&path)).is_err() {
                let folder = to.join(&below);
                fs::create_dir_all(&folder)?;
                let mut draft = tempfile::NamedTempFile::new_in(&folder)?;
                io::copy(&mut fs::File::open(entry.path())?, &mut draft)?;
                draft.as_file().sync_all()?;
                draft.persist(to.join(&path)).map_err(|error| error.error)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_copied_and_known_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        copy_missing(&from, &to).unwrap();
        assert!(!to.exists(), "nothing to copy");
        for (folder, name, text) in [(&from, "ab/cd/new", "one"), (&from, "ab/cd/known", "two"), (&to, "ab/cd/known", "old")] {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        copy_missing(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("ab/cd/new")).unwrap(), "one");
        assert_eq!(fs::read_to_string(to.join("ab/cd/known")).unwrap(), "old");
        assert_eq!(fs::read_dir(to.join("ab/cd")).unwrap().count(), 2);
    }
}
