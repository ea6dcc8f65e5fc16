//! The agent's workspace, and how it continues after its files were committed.
//!
//! An agent has written to it, so any name may be a link to anywhere. Never write through a link.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use verdone_core::agent::client_files::{LOCAL_SETTINGS, PROJECT_HOOKS, PROJECT_SETTINGS};
use verdone_core::base::id::{Oid, digest};

use super::copying::NOT_COPIED;
use super::credentials::Login;
use super::disposable::Disposable;
use super::error::WorkspaceError;
use super::run_workspaces::{GitRoom, LARGEST_COMPARED, Place};
use super::view::View;
use crate::base::plain_file::read_regular;
use crate::git::{Alternates, BOUND_OBJECTS, Git, PrivateRepository, RepoPath};
use crate::project::HOME;

/// Projects have fewer such files.
const MOST_SETTINGS: usize = 1000;

#[derive(Debug)]
pub(super) struct AgentSpace {
    /// The commit of its files before the agent changed them.
    pub(super) at: Oid,
    pub(super) branch: String,
    /// The agent's own program, copied from the checkout. It is not part of the work.
    pub(super) copied_program: Option<RepoPath>,
    // Declared before the folder, so that its processes end first.
    pub(super) view: Option<View>,
    /// The view in which git reads the files.
    pub(super) reader: Option<GitRoom>,
    // Declared after the view, so that it is no longer written to when it is dropped.
    pub(super) login: Option<Login>,
    pub(super) place: Option<Place>,
    /// When its files were checked out, and when the agent could first write, by the clock for file times.
    pub(super) ready: SystemTime,
    pub(super) opened: Option<SystemTime>,
    /// Verdone's index of the files, not visible in any view.
    pub(super) index: PathBuf,
    /// The index at checkout and its commit. Not visible in any view.
    pub(super) laid_out: PathBuf,
    pub(super) laid_out_from: Oid,
    /// Files in which the agent's changes have no effect, in their original state.
    pub(super) settings: Settings,
    pub(super) tree: PathBuf,
    pub(super) folder: Disposable,
}

/// Files that configure Verdone or the user's own sessions with the agent's client, relative to the project. They take effect
/// outside of any workspace.
const STEERING: [&str; 7] =
    [HOME, ".fresher/hooks", ".fresher/config.toml", ".fresher/config.sh", PROJECT_SETTINGS, LOCAL_SETTINGS, PROJECT_HOOKS];

/// Such files relative to the tree, with their digests; `None` for anything but a regular file.
pub(super) type Settings = BTreeMap<PathBuf, Option<String>>;

/// Paths where an agent's changes have no effect. If a parent is a link or a file, it stands for everything below.
pub(super) fn without_effect(tree: &Path, project: &Path) -> Vec<PathBuf> {
    STEERING.iter().map(|path| real_part(tree, &project.join(path))).collect()
}

/// The path, or its first parent that exists but is not a folder.
fn real_part(tree: &Path, path: &Path) -> PathBuf {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let other = above.into_iter().find(|above| fs::symlink_metadata(tree.join(above)).is_ok_and(|meta| !meta.is_dir()));
    other.unwrap_or(path).to_owned()
}

/// Reads the files that have no effect, except those that Verdone itself writes. Follows no links.
pub(super) fn settings(tree: &Path, project: &Path) -> Settings {
    let mut found = Settings::new();
    let mut left = without_effect(tree, project);
    while let Some(path) = left.pop().filter(|_| found.len() < MOST_SETTINGS) {
        let Ok(meta) = fs::symlink_metadata(tree.join(&path)) else { continue };
        if meta.is_dir() {
            let mut below = entries(tree, &path);
            if path == project.join(HOME) {
                below.retain(|path| !NOT_COPIED.iter().any(|name| path.file_name().is_some_and(|own| own == *name)));
            }
            left.extend(below);
        } else {
            let bytes = read_regular(&tree.join(&path), LARGEST_COMPARED).ok();
            found.insert(path, bytes.map(|bytes| digest(&bytes)));
        }
    }
    found
}

fn entries(tree: &Path, folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(tree.join(folder)).into_iter().flatten().flatten().map(|entry| folder.join(entry.file_name())).collect()
}

/// Continues at `commit`, whose files are already there except for `texts`, which Verdone changed. Writes these and updates the
/// repository in the workspace.
pub(super) fn follow(
    space: &mut AgentSpace,
    git: &Git,
    commit: &Oid,
    objects: Alternates,
    texts: &[(RepoPath, Vec<u8>)],
) -> Result<(), WorkspaceError> {
    for (path, bytes) in texts {
        let place = space.tree.join(path.as_path());
        write_beside_links(&space.tree, path.as_path(), bytes).map_err(WorkspaceError::io(&place))?;
    }
    git.read_into_index(commit, &space.index)?;
    replace_repository(space, git, commit, objects)?;
    space.at = commit.clone();
    Ok(())
}

/// Replaces a file. Every folder on the way must be a real one.
pub(super) fn write_beside_links(top: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut folder = top.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        if !fs::symlink_metadata(&folder)?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
        }
    }
    let mut draft = tempfile::Builder::new().prefix(".verdone-").tempfile_in(&folder)?;
    io::Write::write_all(&mut draft, bytes)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let place = folder.join(name);
    let mode = fs::symlink_metadata(&place).ok().filter(fs::Metadata::is_file).map(|meta| meta.permissions());
    let usual = || std::os::unix::fs::PermissionsExt::from_mode(0o644);
    draft.as_file().set_permissions(mode.unwrap_or_else(usual))?;
    draft.persist(place).map(drop).map_err(|error| error.error)
}

/// Recreates everything in `.git` except the mount points of the real objects. Repositories of submodules contain such mount
/// points, so they stay, as do the files of the submodules.
fn replace_repository(space: &AgentSpace, git: &Git, commit: &Oid, objects: Alternates) -> Result<(), WorkspaceError> {
    let own = space.tree.join(".git");
    let is_folder = fs::symlink_metadata(&own).is_ok_and(|meta| meta.is_dir());
    if !is_folder {
        let source = io::Error::new(io::ErrorKind::NotADirectory, "no longer a folder");
        return Err(WorkspaceError::Io { path: own, source });
    }
    let new = tempfile::tempdir_in(space.folder.path()).map_err(WorkspaceError::io(space.folder.path()))?;
    let (fresh, old) = (new.path().join("git"), new.path().join("old"));
    fs::create_dir(&old).map_err(WorkspaceError::io(&old))?;
    let repository =
        PrivateRepository { at: &fresh, branch: &space.branch, head: Some(commit), objects, index: Some(&space.index) };
    git.make_private_repository(&repository)?;
    move_all(&own, &old).and_then(|()| move_all(&fresh, &own)).map_err(WorkspaceError::io(&own))
}

fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        if !name.to_string_lossy().starts_with(BOUND_OBJECTS) && name != "modules" {
            fs::rename(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}
