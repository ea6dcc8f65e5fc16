//! Collects what the checks of one workspace wrote into build folders, and moves it to a place where it can be kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use verdone_core::config::{FolderMode, WorkspaceSettings};

use super::super::disposable::Disposable;
use super::super::layer::Layer;
use super::super::view_contents::key;
use super::{Build, Cache, KeptCache, Parts};
use crate::git::{Git, copy_index_file};
use crate::project::HOME;

/// Where the checks of a workspace wrote. None of their processes may still be running when this is collected.
#[derive(Debug)]
pub(in crate::workspace) struct Written {
    /// The unmodified files.
    pub(in crate::workspace) layer: Arc<Layer>,
    /// What was written over them.
    pub(in crate::workspace) upper: PathBuf,
    /// Build folders that the checkout also has, with what was written over each.
    pub(in crate::workspace) build_folders: Vec<(PathBuf, PathBuf)>,
    /// The cache below all of this.
    pub(in crate::workspace) over: Option<Arc<Cache>>,
    pub(in crate::workspace) settings: WorkspaceSettings,
    /// The project's root below the top.
    pub(in crate::workspace) project: PathBuf,
    /// When its files were dated.
    pub(in crate::workspace) begun: SystemTime,
}

impl Written {
    /// Moves everything to `place`. Returns `None` if there is no cache to keep, or if it could not be moved; a build then takes
    /// longer.
    pub(in crate::workspace) fn collect(self, git: &Git, place: PathBuf) -> Option<KeptCache> {
        let folder = Disposable::make(place).ok()?;
        let layers = self.move_build_folders(folder.path()).ok()?;
        let (found, gone) = self.new_folders().ok()?;
        let found = if found.is_empty() { found } else { git.ignored_folders(&self.layer.tree(), &found).ok()? };
        move_new_folders(&self.upper, &folder.path().join("tree"), &found).ok()?;
        if layers.is_empty() && found.is_empty() && self.over.is_none() {
            return None;
        }
        copy_index_file(&self.layer.index(), &folder.path().join("index")).ok()?;
        let layer = self.layer.folder().to_owned();
        let build = Build { dated: self.layer.dated(), begun: self.begun, ended: SystemTime::now(), layer };
        let parts = Parts { folder, layers, new: found.into_iter().collect(), build };
        Some(KeptCache { parts, gone, over: self.over })
    }

    fn move_build_folders(&self, to: &Path) -> io::Result<BTreeMap<PathBuf, PathBuf>> {
        let mut layers = BTreeMap::new();
        for (path, upper) in &self.build_folders {
            if is_empty(upper)? {
                continue;
            }
            let layer = to.join(name_of(path));
            fs::rename(upper, &layer)?;
            layers.insert(path.clone(), layer);
        }
        Ok(layers)
    }

    /// Build folders that are not among the files, and removed ones of the cache below. Follows no links.
    fn new_folders(&self) -> io::Result<(BTreeSet<PathBuf>, Vec<PathBuf>)> {
        let (mut found, mut gone) = (BTreeSet::new(), Vec::new());
        let mut left = vec![PathBuf::new()];
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(self.upper.join(&folder))? {
                let entry = entry?;
                let path = folder.join(entry.file_name());
                if [Path::new(".git"), Path::new(HOME)].iter().any(|ours| path.ends_with(ours)) {
                    continue;
                }
                let meta = fs::symlink_metadata(entry.path())?;
                let among_files = fs::symlink_metadata(self.layer.tree().join(&path)).ok();
                match among_files {
                    Some(file) if file.is_dir() && meta.is_dir() => left.push(path),
                    None if is_whiteout(&meta) => gone.push(path),
                    None if meta.is_dir() && self.is_build_folder(&path) && !is_empty(&entry.path())? => {
                        found.insert(path);
                    }
                    Some(_) | None => {}
                }
            }
        }
        Ok((found, gone))
    }

    fn is_build_folder(&self, path: &Path) -> bool {
        let below = path.strip_prefix(&self.project);
        let mode = below.map_or_else(|_| FolderMode::suggested_by(path), |below| self.settings.mode_of(below));
        mode == FolderMode::Cache
    }
}

fn move_new_folders(upper: &Path, to: &Path, paths: &BTreeSet<PathBuf>) -> io::Result<()> {
    fs::create_dir(to)?;
    for path in paths {
        let place = to.join(path);
        fs::create_dir_all(place.parent().unwrap_or(to))?;
        fs::rename(upper.join(path), place)?;
    }
    Ok(())
}

pub(super) fn name_of(path: &Path) -> String {
    format!("layer-{}", key(path))
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(folder)?.next().is_none())
}

/// Whether this is a whiteout, by which an overlay hides a removed entry of a lower layer.
pub(super) fn is_whiteout(meta: &Metadata) -> bool {
    meta.file_type().is_char_device() && meta.rdev() == 0
}
