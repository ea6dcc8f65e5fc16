//! Removes a folder, whatever an agent left in it: folders without permissions, names of any bytes, pipes, folders nested deeper
//! than a path can name. Removes links without following them, and never enters another file system.

use crate::base::open_folder::open_folder;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Deeper folders are moved up instead of entered, because each level costs a descriptor.
const MOST_DEPTH: usize = 64;
/// The most names to keep in memory at once.
const BATCH: usize = 4096;

/// Removes a file, or a folder with everything in it. It may be missing, and another process may be removing the same tree.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} cannot be removed", path.display())));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = match openat(CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut remover =
        Remover { device: fstat(&parent)?.st_dev, top: parent.as_fd(), name: name.as_bytes(), deep: Vec::new(), moved: 0 };
    remover.remove(parent.as_fd(), &CString::new(name.as_bytes())?, 0)?;
    while let Some(name) = remover.deep.pop() {
        remover.remove(parent.as_fd(), &name, 0)?;
    }
    Ok(())
}

struct Remover<'p> {
    device: u64,
    /// Where folders that are too deep are moved.
    top: BorrowedFd<'p>,
    name: &'p [u8],
    deep: Vec<CString>,
    moved: u64,
}

impl Remover<'_> {
    fn remove(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: usize) -> io::Result<()> {
        match unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // For a folder, Linux returns the first error and POSIX the second.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = match open_folder(parent, name) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if fstat(&folder)?.st_dev != self.device {
            return Err(io::Error::new(io::ErrorKind::CrossesDevices, "another file system is mounted below it"));
        }
        if depth >= MOST_DEPTH {
            return self.move_up(parent, name);
        }
        self.empty(folder.as_fd(), depth + 1)?;
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn empty(&mut self, folder: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
        loop {
            let names = some_names(folder)?;
            if names.is_empty() {
                return Ok(());
            }
            let mut failed = None;
            let mut removed = 0;
            for name in &names {
                match self.remove(folder, name, depth) {
                    Ok(()) => removed += 1,
                    Err(error) => failed = Some(error),
                }
            }
            // Otherwise names that cannot be removed would be listed forever.
            if let Some(error) = failed.filter(|_| removed == 0 || names.len() < BATCH) {
                return Err(error);
            }
        }
    }

    fn move_up(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        self.moved += 1;
        let unique = [b".deep-", self.moved.to_string().as_bytes(), b"-", &self.name[..self.name.len().min(100)]].concat();
        let unique = CString::new(unique)?;
        match renameat(parent, name, self.top, &unique) {
            Ok(()) => self.deep.push(unique),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn some_names(folder: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
        if names.len() == BATCH {
            break;
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn hostile_leftovers_are_removed_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, outside) = (dir.path().join("tree"), dir.path().join("outside"));
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::create_dir_all(tree.join("work/work")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "mine").unwrap();
        symlink(&outside, tree.join("a/link")).unwrap();
        symlink("nowhere", tree.join("a/dangling")).unwrap();
        fs::write(tree.join("a/b/c/file"), "x").unwrap();
        fs::write(tree.join(OsStr::from_bytes(b"\xff\n\x01 name")), "x").unwrap();
        rustix::fs::mknodat(CWD, tree.join("pipe"), rustix::fs::FileType::Fifo, Mode::empty(), 0).unwrap();
        with_mode(&tree.join("a/b/c"), 0o500);
        with_mode(&tree.join("a/b"), 0o000);
        with_mode(&tree.join("work/work"), 0o000);
        with_mode(&tree.join("work"), 0o000);
        with_mode(&tree, 0o100);
        remove_tree(&tree).unwrap();
        assert!(fs::symlink_metadata(&tree).is_err());
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "mine");
        remove_tree(&tree).unwrap();
        symlink(&outside, &tree).unwrap();
        remove_tree(&tree).unwrap();
        assert!(fs::symlink_metadata(&tree).is_err() && outside.join("kept").exists());
    }

    #[test]
    fn many_files_and_deep_folders_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        for n in 0..20_000 {
            fs::File::create(tree.join(n.to_string())).unwrap();
        }
        let mut at = openat(CWD, &tree, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&at, "folder", Mode::RWXU).unwrap();
            at = openat(&at, "folder", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        drop(at);
        remove_tree(&tree).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left, not even beside it");
    }
}
