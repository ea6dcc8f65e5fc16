//! Pipes where git expects files: git would wait for ever for somebody to write into one. There is nothing in one to lose.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Where git's objects are is looked at in part only: there are many, and git opens them by names that nobody can foresee.
const OBJECTS: &str = "objects";

/// Removes them from the top of the work tree and from the git directories, links to them too. Answers with what was removed.
pub(crate) fn remove_pipes(top: &Path, git_dirs: &[&Path]) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> =
        [".gitignore", ".gitattributes"].iter().map(|name| top.join(name)).filter(|path| is_pipe(path)).collect();
    for git_dir in git_dirs {
        let mut open = vec![git_dir.to_path_buf(), git_dir.join(OBJECTS).join("info")];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && entry.file_name() != OBJECTS => open.push(path),
                    Ok(kind) if kind.is_fifo() => found.push(path),
                    Ok(kind) if kind.is_symlink() && leads_to_a_pipe(&path) => found.push(path),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
    found.sort();
    found.dedup();
    for path in &found {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(found)
}

fn is_pipe(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

fn leads_to_a_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}
