//! Replaces a file so that a crash leaves either the old or the new version, never a partial one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::base::fault::{self, Point};

/// Writes a temporary file next to it, syncs and renames. Keeps the file's mode and follows links.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_atomically_with(path, |file| file.write_all(bytes))
}

/// The same for content that is not in memory.
pub fn write_atomically_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fault::point(Point::AtomicWrite)?;
    let mut file = draft_in(parent)?;
    write(file.as_file_mut())?;
    match fs::metadata(&target) {
        Ok(meta) => file.as_file().set_permissions(meta.permissions())?,
        Err(_) => file.as_file().set_permissions(default_mode())?,
    }
    file.as_file().sync_all()?;
    fault::point(Point::AtomicRename)?;
    file.persist(&target)?;
    fault::point(Point::AtomicRenamed)?;
    File::open(parent)?.sync_all()
}

/// Atomically replaces a file for concurrent readers, without syncing: the content is not needed after a crash. Replaces a link instead of
/// following it. Only the current user can read the new file.
pub(crate) fn replace_for_readers(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = draft_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// The same, but synced, so that it survives a crash.
pub(crate) fn replace_for_good(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let mut file = draft_in(parent)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(parent)?.sync_all()
}

/// A temporary file that is removed when dropped. [`sweep_drafts`] recognises it by its name.
pub(crate) fn draft_in(dir: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(DRAFT.0).suffix(DRAFT.1).rand_bytes(RANDOM).tempfile_in(dir)
}

/// Removes drafts that a killed process left in a directory. The caller must hold the run lock: then no other process is writing drafts.
pub(crate) fn sweep_drafts(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_draft) && !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

const DRAFT: (&str, &str) = (".verdone-", ".tmp");
const RANDOM: usize = 6;

/// Whether a file name is that of a draft.
pub(crate) fn is_draft(name: &str) -> bool {
    let random = name.strip_prefix(DRAFT.0).and_then(|rest| rest.strip_suffix(DRAFT.1));
    random.is_some_and(|random| random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn default_mode() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    fs::Permissions::from_mode(0o644)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn content_changes_and_mode_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn only_drafts_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        drop(draft_in(dir.path()).unwrap().keep().unwrap());
        for name in [".verdone-backup", ".verdone-mynotes.tmp", "a.tmp"] {
            fs::write(dir.path().join(name), "mine").unwrap();
        }
        sweep_drafts(dir.path()).unwrap();
        sweep_drafts(&dir.path().join("missing")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }
}
