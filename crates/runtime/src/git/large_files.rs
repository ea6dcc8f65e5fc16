//! Imports files that Git LFS stores outside of the objects: what a filter wrote for a workspace's tree goes to the real
//! repository.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use verdone_text::hex;

use super::Git;
use super::error::GitError;
use crate::base::plain_file::open_regular;

/// Where Git LFS stores content by digest, below a git folder.
const STORE: &str = "lfs/objects";

impl Git {
    /// Copies files that the real repository lacks. Skips files whose content does not match their name, because the filter that
    /// wrote them may have run the agent's code.
    pub(crate) fn import_large_files(&self, git_dir: &Path) -> Result<(), GitError> {
        let (from, to) = (git_dir.join(STORE), self.common_dir.join(STORE));
        let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
        if !from.ancestors().take(3).all(is_folder) {
            return Ok(());
        }
        copy_missing(&from, &to).map_err(GitError::io(&from))
    }

    /// The folder of Git LFS, if it exists.
    pub(crate) fn large_file_store(&self) -> Option<PathBuf> {
        let folder = self.common_dir.join("lfs");
        fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir()).then_some(folder)
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
                copy_verified(&entry.path(), &to.join(&path))?;
            }
        }
    }
    Ok(())
}

/// Copies a file if its name is the digest of its content and it is in the folders that Git LFS would use.
fn copy_verified(from: &Path, to: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (to.parent(), to.file_name().and_then(|name| name.to_str())) else { return Ok(()) };
    if name.len() != 64
        || !folder.ends_with(Path::new(name.get(..2).unwrap_or_default()).join(name.get(2..4).unwrap_or_default()))
    {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    let mut hash = Sha256::new();
    let mut file = open_regular(from, fs::OpenOptions::new().read(true))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        hash.update(&buffer[..length]);
        draft.write_all(&buffer[..length])?;
    }
    if hex(&hash.finalize()) != name {
        return Ok(());
    }
    draft.as_file().sync_all()?;
    draft.persist(to).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_copied_if_they_are_what_their_names_say_and_known_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        copy_missing(&from, &to).unwrap();
        assert!(!to.exists(), "nothing to copy");
        let place = |text: &str| {
            let name = verdone_core::base::id::digest(text.as_bytes());
            format!("{}/{}/{name}", &name[..2], &name[2..4])
        };
        let (new, known, forged) = (place("one"), place("two"), place("three"));
        for (folder, name, text) in [
            (&from, &new, "one"),
            (&from, &known, "two"),
            (&to, &known, "old"),
            (&from, &forged, "evil"),
            (&from, &"ab/cd/x".into(), "x"),
        ] {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        copy_missing(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join(&new)).unwrap(), "one");
        assert_eq!(fs::read_to_string(to.join(&known)).unwrap(), "old");
        assert!(!to.join(&forged).exists() && !to.join("ab/cd/x").exists());
    }
}
