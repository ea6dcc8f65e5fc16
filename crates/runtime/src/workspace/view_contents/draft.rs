//! A view under construction.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use verdone_core::base::id::digest;

use super::prepare::Step;
use super::system::System;
use super::{Tree, ViewRequest};
use crate::launcher::Mount;

pub(super) struct Draft<'r> {
    pub(super) request: &'r ViewRequest<'r>,
    pub(super) system: &'r System,
    pub(super) mounts: Vec<Mount>,
    pub(super) steps: Vec<Step>,
    pub(super) notes: Vec<String>,
    /// Copy-on-write folders of the tree, relative to the project's root.
    pub(super) mount_points: Vec<PathBuf>,
    /// Copy-on-write build folders, with their upper folders.
    pub(super) build_folders: Vec<(PathBuf, PathBuf)>,
    /// Folders of the tree whose writes go elsewhere, relative to its top, each with the folder that receives them.
    pub(super) written_apart: Vec<(PathBuf, PathBuf)>,
    /// The folder that the client uses instead of its own.
    pub(super) client_home: Option<PathBuf>,
    /// The same for Codex.
    pub(super) codex_home: Option<PathBuf>,
    /// Shared temporary folders that a private one covers.
    pub(super) temp: Vec<PathBuf>,
    /// The temporary folder that processes use.
    pub(super) temp_inside: PathBuf,
    folders: BTreeSet<PathBuf>,
}

impl<'r> Draft<'r> {
    pub(super) fn new(request: &'r ViewRequest<'r>, system: &'r System) -> Self {
        Self {
            request,
            system,
            mounts: Vec::new(),
            steps: Vec::new(),
            notes: Vec::new(),
            mount_points: Vec::new(),
            build_folders: Vec::new(),
            written_apart: Vec::new(),
            client_home: None,
            codex_home: None,
            temp: Vec::new(),
            temp_inside: PathBuf::from("/dev/shm"),
            folders: BTreeSet::new(),
        }
    }

    pub(super) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    pub(super) fn bind(&mut self, from: &Path, at: &Path, write: bool) {
        self.mounts.push(Mount::Bind { from: from.to_owned(), at: at.to_owned(), write });
    }

    /// Copy-on-write over a folder, at its own path or another.
    pub(super) fn overlay(&mut self, lower: &Path, at: &Path) {
        self.overlay_over(vec![lower.to_owned()], at);
    }

    /// Copy-on-write over folders, each of which covers the next. Returns the folder that receives the writes, which is always
    /// the same for this scratch folder.
    pub(super) fn overlay_over(&mut self, lower: Vec<PathBuf>, at: &Path) -> PathBuf {
        let own = self.request.scratch.join("overlays").join(key(at));
        let upper = own.join("upper");
        self.overlay_at(lower, &upper, &own.join("work"), at);
        upper
    }

    pub(super) fn overlay_at(&mut self, lower: Vec<PathBuf>, upper: &Path, work: &Path, at: &Path) {
        // The lowest one belongs to the user or to Verdone.
        let like = lower.last().cloned().unwrap_or_default();
        self.steps.push(Step::FolderLike { path: upper.to_owned(), like });
        self.steps.push(Step::Fresh { path: work.to_owned() });
        self.mounts.push(Mount::Overlay { lower, upper: upper.to_owned(), work: work.to_owned(), at: at.to_owned() });
    }

    /// A folder that must exist before the view is made.
    pub(super) fn folder(&mut self, path: &Path) {
        self.folder_with_mode(path, 0o700);
    }

    pub(super) fn folder_with_mode(&mut self, path: &Path, mode: u32) {
        if self.folders.insert(path.to_owned()) {
            self.steps.push(Step::Folder { path: path.to_owned(), mode });
        }
    }

    /// The project's root as seen inside.
    pub(super) fn root_at(&self) -> PathBuf {
        let below = self.request.root.strip_prefix(self.request.checkout).unwrap_or(Path::new(""));
        if below.as_os_str().is_empty() { self.request.at.to_owned() } else { self.request.at.join(below) }
    }

    /// Whether something can be mounted at a path of the tree. An agent may have put a link or a file in the way. If the tree is
    /// not writable inside, the folder is created now.
    pub(super) fn mount_point(&mut self, at: &Path) -> bool {
        let Ok(below) = at.strip_prefix(self.request.at) else { return true };
        let files = self.request.tree.files();
        if !is_clear(files, below) {
            self.note(format!("{} is not shown: something else is in its place in the workspace.", below.display()));
            return false;
        }
        if matches!(self.request.tree, Tree::ReadOnly(_) | Tree::Writable(_)) {
            self.steps.push(Step::MountPoint { tree: files.to_owned(), path: below.to_owned() });
        }
        true
    }

    /// Whether anything is mounted below a folder. If so, the kernel refuses an overlay over it.
    pub(super) fn has_mount_below(&self, folder: &Path) -> bool {
        self.system.mounts.iter().any(|mount| mount != folder && mount.starts_with(folder))
    }

    /// Whether a private temporary folder covers a path.
    pub(super) fn is_covered(&self, path: &Path) -> bool {
        self.temp.iter().any(|temp| path.starts_with(temp))
    }
}

/// A short name for a path of any length and content.
pub(in crate::workspace) fn key(path: &Path) -> String {
    digest(path.as_os_str().as_bytes())[..16].to_owned()
}

pub(super) fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Whether each component of a path below a folder is a folder or missing.
pub(super) fn is_clear(folder: &Path, below: &Path) -> bool {
    let mut path = folder.to_owned();
    for part in below.components() {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return false,
            Err(_) => return true,
        }
    }
    true
}
