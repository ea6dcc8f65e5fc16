//! The files below the copy-on-write check workspaces. Only Verdone writes them, and updates them to the next tree while no view
//! shows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use verdone_core::base::id::Oid;

use super::copying::copy_files;
use super::disposable::Disposable;
use super::error::WorkspaceError;
use super::run_workspaces::OWN_BRANCH;
use crate::git::{Alternates, BuiltFrom, DatedBy, Filters, Git, PrivateRepository, attribute_files, file_clock};

#[derive(Debug)]
pub(super) struct Layer {
    folder: Disposable,
    holds: Oid,
    made: SystemTime,
    /// The origin of each file's time, in the order of the index.
    dated: Arc<[DatedBy]>,
    /// The user's uncommitted files.
    copies: Vec<PathBuf>,
}

/// What a layer should show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) tree: &'a Oid,
    /// The commit that is HEAD there.
    pub(super) head: &'a Oid,
    pub(super) objects: Alternates,
    /// Files of the checkout, whose top is `top`, to show in the checkout's version.
    pub(super) copies: &'a [PathBuf],
    pub(super) top: &'a Path,
    pub(super) filters: &'a Filters,
    /// What the caches shown with it were built from.
    pub(super) built: BuiltFrom<'a>,
}

impl Layer {
    /// A layer with the wanted content: the earlier one if it can be changed, otherwise a new one at `place`.
    pub(super) fn hold(before: Option<Self>, git: &Git, wanted: Wanted<'_>, place: PathBuf) -> Result<Self, WorkspaceError> {
        let since = SystemTime::now();
        // A file copied earlier is either copied again or must be removed.
        let before = before.filter(|layer| layer.copies.iter().all(|copy| wanted.copies.contains(copy)));
        let mut layer = match before.and_then(|layer| layer.changed_to(git, wanted.tree, wanted.filters)) {
            Some(layer) => layer,
            None => Self::new(git, wanted.tree, place, wanted.filters)?,
        };
        layer.dated = git.date_files(&layer.tree(), &layer.index(), wanted.built, since)?.into();
        layer.show(git, wanted.head, wanted.objects)?;
        layer.copies = wanted.copies.to_vec();
        copy_files(wanted.top, &layer.tree(), wanted.copies)?;
        Ok(layer)
    }

    fn changed_to(self, git: &Git, tree: &Oid, filters: &Filters) -> Option<Self> {
        if self.holds != *tree {
            let attributes = attribute_files(&self.index()).ok()?;
            git.update_files(tree, &self.tree(), &self.index(), filters).ok()?;
            // Attributes also determine how files are written that are equal in both trees.
            if attribute_files(&self.index()).ok()? != attributes {
                return None;
            }
        }
        Some(Self { holds: tree.clone(), ..self })
    }

    fn new(git: &Git, tree: &Oid, place: PathBuf, filters: &Filters) -> Result<Self, WorkspaceError> {
        let folder = Disposable::make(place)?;
        let layer = Self { folder, holds: tree.clone(), made: file_clock(), dated: Arc::default(), copies: Vec::new() };
        fs::create_dir(layer.tree()).map_err(WorkspaceError::io(layer.folder.path()))?;
        git.lay_out_files(tree, &layer.tree(), &layer.index(), filters)?;
        Ok(layer)
    }

    /// When its folders were made. None of them is older.
    pub(super) fn made(&self) -> SystemTime {
        self.made
    }

    pub(super) fn dated(&self) -> Arc<[DatedBy]> {
        Arc::clone(&self.dated)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    pub(super) fn index(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    /// Gives the files their own repository, whose HEAD is this commit.
    fn show(&self, git: &Git, head: &Oid, objects: Alternates) -> Result<(), WorkspaceError> {
        let at = self.tree().join(".git");
        if at.exists() {
            super::remove::remove_tree(&at).map_err(WorkspaceError::io(&at))?;
        }
        let index = self.index();
        let repository = PrivateRepository { at: &at, branch: OWN_BRANCH, head: Some(head), objects, index: Some(&index) };
        Ok(git.make_private_repository(&repository)?)
    }
}
