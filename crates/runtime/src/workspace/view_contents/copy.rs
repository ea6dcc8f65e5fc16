//! Copies folders with their times, which caches depend on. Shares blocks if the file system can.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Copies a folder with everything in it to a path that does not exist yet. Links stay links. Leaves out pipes, sockets, devices,
/// unreadable files and `.git` files, which point to another repository, often the user's own. Returns the paths that were left
/// out because of an error.
pub(super) fn copy_folder(from: &Path, to: &Path, except: &[OsString]) -> io::Result<Vec<PathBuf>> {
    let mut unread = Vec::new();
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    let mut done: Vec<(PathBuf, fs::Metadata)> = Vec::new();
    while let Some((from, to)) = folders.pop() {
        let top = done.is_empty();
        let meta = fs::metadata(&from)?;
        fs::create_dir(&to)?;
        let entries = match fs::read_dir(&from) {
            Ok(entries) => entries,
            Err(error) if is_left_out(&error) && !top => {
                unread.push(from);
                continue;
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if (top && except.contains(&name)) || (kind.is_file() && name == ".git") {
                continue;
            }
            let (source, target) = (entry.path(), to.join(name));
            if kind.is_dir() {
                folders.push((source, target));
            } else if kind.is_file() || kind.is_symlink() {
                match copy_file(&source, &target) {
                    Ok(()) => {}
                    Err(error) if is_left_out(&error) => unread.push(source),
                    Err(error) => return Err(error),
                }
            }
        }
        done.push((to, meta));
    }
    // Last, because a folder's time changes with its entries, and an unwritable folder accepts no entries.
    for (folder, meta) in done.iter().rev() {
        let times = FileTimes::new().set_modified(meta.modified()?);
        File::open(folder)?.set_times(times)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(meta.permissions().mode() | 0o700))?;
    }
    Ok(unread)
}

/// Copies one file with its mode and time, or a link.
pub(super) fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(from)?;
    if meta.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    // `std` lets the kernel share the blocks if the file system can.
    fs::copy(from, to)?;
    let times = FileTimes::new().set_modified(meta.modified()?);
    match File::options().append(true).open(to) {
        Ok(file) => file.set_times(times),
        // The file is not writable, but a read-only descriptor is enough to set its time.
        Err(_) => File::open(to).and_then(|file| file.set_times(times)),
    }
}

fn is_left_out(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound)
}

/// Whether the files of a folder have more than this many bytes in total.
pub(super) fn is_larger(folder: &Path, most: u64) -> bool {
    let mut bytes = 0;
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                left.push(entry.path());
            }
            bytes += meta.len();
            if bytes > most {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_copy_keeps_times_modes_and_links_and_leaves_pipes_and_git_files_out() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("sub/deep")).unwrap();
        fs::create_dir(from.join("left")).unwrap();
        fs::write(from.join("sub/file"), "text").unwrap();
        fs::write(from.join("sub/deep/tool"), "#!").unwrap();
        fs::set_permissions(from.join("sub/deep/tool"), fs::Permissions::from_mode(0o555)).unwrap();
        symlink("file", from.join("sub/link")).unwrap();
        fs::write(from.join("sub/.git"), "gitdir: ../../.git/modules/sub\n").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, from.join("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        let then = SystemTime::now() - Duration::from_hours(100);
        for name in ["sub/file", "sub/deep/tool", "sub/deep", "sub"] {
            File::open(from.join(name)).unwrap().set_times(FileTimes::new().set_modified(then)).unwrap();
        }
        assert_eq!(copy_folder(&from, &to, &["left".into()]).unwrap(), Vec::<PathBuf>::new());
        for name in ["sub/file", "sub/deep/tool", "sub/deep", "sub"] {
            let (a, b) = (fs::metadata(from.join(name)).unwrap(), fs::metadata(to.join(name)).unwrap());
            assert_eq!((a.modified().unwrap(), a.permissions()), (b.modified().unwrap(), b.permissions()), "{name}");
        }
        assert_eq!(fs::read_link(to.join("sub/link")).unwrap(), Path::new("file"));
        assert!(!to.join("pipe").exists() && !to.join("sub/.git").exists() && !to.join("left").exists());
        assert!(is_larger(&from, 5) && !is_larger(&from, 1 << 20));
        assert!(copy_folder(&from, &to, &[]).is_err(), "nothing is copied over what is there");
    }
}
