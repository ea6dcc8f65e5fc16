//! Paths from the settings, and readable errors about paths.

use std::io;
use std::path::{Path, PathBuf};

/// A path from the settings. `~/` is the home folder; a relative path starts at `root`.
pub(super) fn expand(text: &str, home: Option<&Path>, root: &Path) -> Option<PathBuf> {
    match text.strip_prefix('~') {
        Some(rest) => Some(home?.join(rest.trim_start_matches('/')).components().collect()),
        None => Some(root.join(text).components().collect()),
    }
}

/// Explains an error with a file of a workspace, and what to do about it.
pub(super) fn explain(what: &str, path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull => {
            format!(
                "the disk is full: cannot {what} {path}. Free some space, or set `workspace.state` to a folder on another disk"
            )
        }
        io::ErrorKind::QuotaExceeded => {
            format!("your disk quota is used up: cannot {what} {path}. Free some space, or set `workspace.state` to another disk")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("cannot {what} {path}: the file system is read-only. Set `workspace.state` to a folder that can be written")
        }
        io::ErrorKind::PermissionDenied => {
            format!("cannot {what} {path}: permission denied. Set `workspace.state` to a folder you own")
        }
        io::ErrorKind::CrossesDevices => {
            format!("cannot {what} {path}: it spans two file systems. The state folder must be on one")
        }
        _ => format!("cannot {what} {path}: {error}"),
    }
}

/// The path with links resolved as far as it exists.
pub(super) fn resolve_existing(path: &Path) -> PathBuf {
    for known in path.ancestors() {
        if let Ok(real) = std::fs::canonicalize(known) {
            let rest = path.strip_prefix(known).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_spelled_from_home_or_the_project() {
        let expand = |text| expand(text, Some(Path::new("/h")), Path::new("/p"));
        for (text, path) in [("~/x/", "/h/x"), ("~", "/h"), ("/a//b", "/a/b"), ("./s/t", "/p/s/t")] {
            assert_eq!(expand(text), Some(PathBuf::from(path)), "{text}");
        }
        assert_eq!(super::expand("~/x", None, Path::new("/p")), None);
    }

    #[test]
    fn a_full_disk_is_told_in_plain_words() {
        let said = |kind: io::ErrorKind| explain("create", Path::new("/s/x"), &kind.into());
        assert!(said(io::ErrorKind::StorageFull).starts_with("the disk is full: cannot create /s/x."));
        assert!(said(io::ErrorKind::CrossesDevices).contains("spans two file systems"));
        assert!(said(io::ErrorKind::PermissionDenied).contains("workspace.state"));
        assert!(said(io::ErrorKind::NotFound).starts_with("cannot create /s/x: "));
    }

    #[test]
    fn the_part_of_a_path_that_exists_is_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir(real.join("real")).unwrap();
        std::os::unix::fs::symlink(real.join("real"), real.join("link")).unwrap();
        assert_eq!(resolve_existing(&real.join("link/a/b")), real.join("real/a/b"));
        assert_eq!(resolve_existing(&real.join("link")), real.join("real"));
    }
}
