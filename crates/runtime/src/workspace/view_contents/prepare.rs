//! Prepares on disk what a view needs. An agent may have worked in the tree before, so never write through a link.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::copy::{copy_file, copy_folder};
use crate::base::plain_file::real_folder;
use crate::workspace::paths::explain;
use crate::workspace::remove::remove_tree;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A folder, created with its parents if it is missing.
    Folder {
        path: PathBuf,
        mode: u32,
    },
    /// The same, with the permissions of another folder: those of the upper layer are visible in an overlay.
    FolderLike {
        path: PathBuf,
        like: PathBuf,
    },
    /// An empty folder. Leftovers of an earlier mount are removed.
    Fresh {
        path: PathBuf,
    },
    /// An empty folder in the upper folder of an overlay that hides the lower one.
    Opaque {
        path: PathBuf,
    },
    /// A folder below a tree, in which an agent may have worked.
    MountPoint {
        tree: PathBuf,
        path: PathBuf,
    },
    /// A file or a link, copied below a tree unless the path exists.
    CopyFile {
        from: PathBuf,
        to: PathBuf,
        path: PathBuf,
    },
    /// A folder, copied unless the target exists.
    CopyFolder {
        from: PathBuf,
        to: PathBuf,
        except: Vec<OsString>,
    },
    /// A file in a folder that no view shows.
    OwnFile {
        path: PathBuf,
        text: Vec<u8>,
    },
    Link {
        at: PathBuf,
        to: PathBuf,
    },
}

/// The steps before a view is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparation {
    pub(super) steps: Vec<Step>,
}

/// Why a workspace cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[error("{}", explain(what, path, source))]
pub struct PrepareError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl PrepareError {
    fn new(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { what, path, source }
    }
}

impl Preparation {
    /// Executes the steps. Returns notes about files that could not be copied. If something that the view needs fails, that is an
    /// error.
    pub fn carry_out(&self) -> Result<Vec<String>, PrepareError> {
        let mut notes = Vec::new();
        for step in &self.steps {
            match step {
                Step::Folder { path, mode } => folder(path, *mode).map_err(PrepareError::new("create", path))?,
                Step::FolderLike { path, like } => {
                    let mode = fs::metadata(like).map_or(0o700, |meta| meta.mode() & 0o7777);
                    folder(path, mode | 0o700).map_err(PrepareError::new("create", path))?;
                }
                Step::Fresh { path } => fresh(path).map_err(PrepareError::new("create", path))?,
                Step::Opaque { path } => opaque(path).map_err(PrepareError::new("create", path))?,
                Step::MountPoint { tree, path } => {
                    real_folder(tree, path).map_err(PrepareError::new("create", &tree.join(path)))?;
                }
                Step::CopyFile { from, to, path } => match file(from, to, path) {
                    Err(error) if !is_fatal(&error) => notes.push(not_copied(from, &error)),
                    done => done.map_err(PrepareError::new("copy", from))?,
                },
                Step::CopyFolder { from, to, except } => match whole_folder(from, to, except) {
                    Err(error) if !is_fatal(&error) => notes.push(not_copied(from, &error)),
                    done => {
                        let unread = done.map_err(PrepareError::new("copy", from))?;
                        if let Some(first) = unread.first() {
                            notes.push(format!(
                                "Could not read {} of the files in {}, starting with {}.",
                                unread.len(),
                                from.display(),
                                first.display()
                            ));
                        }
                    }
                },
                Step::OwnFile { path, text } => own_file(path, text).map_err(PrepareError::new("write", path))?,
                Step::Link { at, to } => match symlink(to, at) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    done => done.map_err(PrepareError::new("create", at))?,
                },
            }
        }
        Ok(notes)
    }
}

fn not_copied(from: &Path, error: &io::Error) -> String {
    format!("{} is missing in the workspace: {error}.", from.display())
}

/// On a full disk the agent cannot work either.
fn is_fatal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ReadOnlyFilesystem)
}

fn folder(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // Independent of the umask.
    if mode == 0o700 { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(mode)) }
}

fn own_file(path: &Path, text: &[u8]) -> io::Result<()> {
    folder(path.parent().unwrap_or(path), 0o700)?;
    fs::write(path, text)
}

fn fresh(path: &Path) -> io::Result<()> {
    remove_tree(path)?;
    folder(path, 0o700)
}

fn opaque(path: &Path) -> io::Result<()> {
    folder(path, 0o755)?;
    // The attribute that unprivileged overlays use.
    Ok(rustix::fs::setxattr(path, "user.overlay.opaque", b"y", rustix::fs::XattrFlags::empty())?)
}

fn file(from: &Path, to: &Path, path: &Path) -> io::Result<()> {
    let parent = real_folder(to, path.parent().unwrap_or(Path::new("")))?;
    let target = parent.join(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    // Also true for a dangling link, so nothing is written through it.
    if fs::symlink_metadata(&target).is_ok() { Ok(()) } else { copy_file(from, &target) }
}

/// Copies to a temporary name first, so that an interrupted copy is never mistaken for a complete one.
fn whole_folder(from: &Path, to: &Path, except: &[OsString]) -> io::Result<Vec<PathBuf>> {
    if fs::symlink_metadata(to).is_ok_and(|meta| !meta.is_dir() || fs::read_dir(to).is_ok_and(|mut all| all.next().is_some())) {
        return Ok(Vec::new());
    }
    let mut half = to.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    half.push(".verdone-copy");
    let half = to.with_file_name(half);
    remove_tree(&half)?;
    if let Some(parent) = to.parent() {
        folder(parent, 0o700)?;
    }
    let unread = copy_folder(from, &half, except)?;
    // Replaces an existing empty folder.
    fs::rename(&half, to)?;
    Ok(unread)
}
