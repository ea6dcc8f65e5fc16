//! Paths of the checkout that are linked into a clean tree because the user says so. A tree may hold hostile links: nothing is
//! made through one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use super::CleanError;
use crate::regular::real_folder;

/// A path below the project, without detours.
pub(super) fn normal(path: &str) -> Result<PathBuf, CleanError> {
    let refused = |why| Err(CleanError::Share { path: path.to_owned(), why });
    let mut normal = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => return refused("leads out of the project"),
            Component::RootDir | Component::Prefix(_) => return refused("is not relative to the project"),
        }
    }
    match normal.components().next() {
        None => refused("is the project itself"),
        Some(first) if [".git", ".verdone"].iter().any(|name| first.as_os_str() == *name) => refused("cannot be shared"),
        Some(_) => Ok(normal),
    }
}

/// Links one path in, where the checkout has it.
pub(super) fn link(path: &Path, checkout: &Path, root: &Path) -> Result<(), CleanError> {
    let (from, to) = (checkout.join(path), root.join(path));
    if fs::symlink_metadata(&from).is_err() {
        return Ok(());
    }
    if fs::symlink_metadata(&to).is_ok() {
        return Err(CleanError::Share { path: path.display().to_string(), why: "is part of the tree" });
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    real_folder(root, parent).map_err(CleanError::io(&to))?;
    symlink(&from, &to).map_err(CleanError::io(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_project_are_shared() {
        for (path, said) in [
            ("node_modules", Ok("node_modules")),
            ("./a//b/.", Ok("a/b")),
            ("../x", Err("leads out")),
            ("a/../../x", Err("leads out")),
            ("/etc", Err("is not relative")),
            ("", Err("is the project itself")),
            (".", Err("is the project itself")),
            (".git/hooks", Err("cannot be shared")),
            (".verdone", Err("cannot be shared")),
        ] {
            match (normal(path), said) {
                (Ok(found), Ok(expected)) => assert_eq!(found, Path::new(expected), "{path}"),
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{path}: {error}"),
                (found, _) => panic!("{path}: {found:?}"),
            }
        }
    }

    #[test]
    fn nothing_is_linked_through_a_link_of_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let (checkout, root, outside) = (dir.path().join("checkout"), dir.path().join("root"), dir.path().join("outside"));
        for folder in [&checkout.join("vendor/x"), &root, &outside] {
            fs::create_dir_all(folder).unwrap();
        }
        symlink(&outside, root.join("vendor")).unwrap();
        assert!(link(Path::new("vendor/x"), &checkout, &root).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}
