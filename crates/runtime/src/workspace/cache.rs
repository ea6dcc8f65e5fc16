//! Keeps the build output of checks. What the checks of a committed story wrote into build folders is shown to the checks of
//! later stories, so that large builds stay incremental. Everything else that checks write is discarded.
//!
//! On disk a cache is a folder. It has one layer for each build folder of the checkout, one more for build folders that exist
//! only in workspaces, and the index of the files that it was built from, with their times.

mod collect;
mod merge;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use verdone_core::base::id::Oid;

use super::disposable::Disposable;
use super::layer::Layer;
use super::remove::remove_tree;
use crate::git::{DatedBy, EarlierBuild};

pub(super) use collect::Written;
use merge::merge;

/// What checks wrote into build folders. Deleted on drop, unless [`super::Workspaces::adopt_cache`] takes it.
#[derive(Debug)]
pub struct KeptCache {
    parts: Parts,
    /// Build folders from the cache below that were removed.
    gone: Vec<PathBuf>,
    /// The cache below it.
    over: Option<Arc<Cache>>,
}

/// The cache of one commit.
#[derive(Debug)]
pub(super) struct Cache {
    base: Oid,
    parts: Parts,
}

#[derive(Debug)]
struct Parts {
    folder: Disposable,
    /// The layer of each build folder of the checkout, by its path below the top.
    layers: BTreeMap<PathBuf, PathBuf>,
    /// Build folders that the checkout does not have.
    new: BTreeSet<PathBuf>,
    build: Build,
}

/// When and from what a cache was built.
#[derive(Debug)]
struct Build {
    /// The origin of each file's time, in the order of the index.
    dated: Arc<[DatedBy]>,
    begun: SystemTime,
    ended: SystemTime,
    /// The folder of the files.
    layer: PathBuf,
}

impl Parts {
    /// Where new build folders are.
    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    /// Merges another cache that was written on top of this one. `checkout` has the build folders below both.
    fn add(mut self, above: KeptCache, checkout: &Path) -> io::Result<Self> {
        for path in &above.gone {
            remove_tree(&self.tree().join(path))?;
            self.new.remove(path);
        }
        for (path, layer) in &above.parts.layers {
            let own = self.layers.entry(path.clone()).or_insert_with(|| self.folder.path().join(collect::name_of(path)));
            merge(layer, own, Some(&checkout.join(path)))?;
        }
        if !above.parts.new.is_empty() {
            merge(&above.parts.tree(), &self.tree(), None)?;
            self.new.extend(above.parts.new.iter().cloned());
        }
        fs::rename(above.parts.index(), self.index())?;
        self.build = above.parts.build;
        Ok(self)
    }
}

impl KeptCache {
    /// The cache of the commit whose tree it was built from. `None` if that is impossible; the next checks then start from the
    /// caches of the checkout.
    pub(super) fn into_cache(mut self, before: Option<Arc<Cache>>, base: &Oid, checkout: &Path) -> Option<Cache> {
        let base = base.clone();
        let Some(over) = self.over.take() else { return Some(Cache { base, parts: self.parts }) };
        // Incomplete without the cache below it.
        let before = before.filter(|before| Arc::ptr_eq(before, &over))?;
        drop(over);
        // A workspace may still show it. Then it must not change.
        let before = Arc::into_inner(before)?;
        Some(Cache { base, parts: before.parts.add(self, checkout).ok()? })
    }
}

impl Cache {
    pub(super) fn is_of(&self, base: &Oid) -> bool {
        self.base == *base
    }

    /// The layers of build folders that the checkout also has, by their paths below its top.
    pub(super) fn layers(&self) -> &BTreeMap<PathBuf, PathBuf> {
        &self.parts.layers
    }

    /// Build folders that the checkout does not have, if any, and if `files` has nothing in their places.
    pub(super) fn new_folders(&self, files: &Path) -> Option<NewFolders<'_>> {
        let new = &self.parts.new;
        let covers = |path: &PathBuf| fs::symlink_metadata(files.join(path)).is_ok();
        (!new.is_empty() && !new.iter().any(covers)).then(|| NewFolders { tree: self.parts.tree(), paths: new })
    }

    pub(super) fn with_build<T>(&self, then: impl FnOnce(&EarlierBuild<'_>) -> T) -> T {
        let Build { dated, begun, ended, .. } = &self.parts.build;
        then(&EarlierBuild { index: &self.parts.index(), dated, begun: *begun, ended: *ended })
    }

    /// Whether the times of folders in this layer match the cache: the layer is the one that it was built from, or a later one.
    /// In any other layer, a folder may have lost a file before the cache was built, which the folder's time would not show.
    pub(super) fn agrees_with(&self, layer: &Layer) -> bool {
        layer.folder() == self.parts.build.layer || layer.made() > self.parts.build.ended
    }
}

/// A folder to show above the files, and the build folders in it.
#[derive(Debug)]
pub(super) struct NewFolders<'a> {
    pub(super) tree: PathBuf,
    pub(super) paths: &'a BTreeSet<PathBuf>,
}

impl NewFolders<'_> {
    /// Recreates the parent folders in `upper` with the permissions and times from `files`. Those of the cache have other times.
    pub(super) fn make_folders_around(&self, files: &Path, upper: &Path) -> io::Result<()> {
        let around = |path: &PathBuf| path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
        let around: BTreeSet<PathBuf> = self.paths.iter().flat_map(around).collect();
        for folder in &around {
            fs::create_dir_all(upper.join(folder))?;
        }
        // Innermost first, because creating an entry changes the time of its folder.
        for folder in around.iter().rev() {
            let like = fs::metadata(files.join(folder))?;
            fs::set_permissions(upper.join(folder), like.permissions())?;
            let times = fs::FileTimes::new().set_modified(like.modified()?);
            fs::File::open(upper.join(folder))?.set_times(times)?;
        }
        Ok(())
    }
}
