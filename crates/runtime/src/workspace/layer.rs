//! The files that check workspaces are copy-on-write over: written by Verdone alone, and brought from one tree to the next.

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::id::Oid;

use super::spaces::{OWN_BRANCH, WorkspaceError};
use crate::git::{Alternates, Filters, Git, PrivateRepository};

#[derive(Debug)]
pub(super) struct Layer {
    folder: PathBuf,
    holds: Oid,
}

impl Layer {
    /// A layer with the files of a tree: the one from before, where there is one.
    pub(super) fn hold(
        before: Option<Self>,
        git: &Git,
        tree: &Oid,
        folder: &Path,
        filters: &Filters,
    ) -> Result<Self, WorkspaceError> {
        if let Some(layer) = before {
            if layer.holds == *tree {
                return Ok(layer);
            }
            if git.update_files(tree, &layer.tree(), &layer.index(), filters).is_ok() {
                return Ok(Self { holds: tree.clone(), ..layer });
            }
        }
        // Made anew: what is there cannot be brought to the tree.
        let layer = Self { folder: folder.to_owned(), holds: tree.clone() };
        if layer.tree().exists() {
            super::remove::remove_tree(&layer.tree()).map_err(WorkspaceError::io(folder))?;
            let _ = fs::remove_file(layer.index());
        }
        fs::create_dir_all(layer.tree()).map_err(WorkspaceError::io(folder))?;
        git.lay_out_files(tree, &layer.tree(), &layer.index(), filters)?;
        // Best effort: a build may take longer without it.
        let _ = git.copy_times(&layer.tree(), &layer.index());
        Ok(layer)
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Gives the files a repository of their own, whose HEAD is this commit.
    pub(super) fn show(&self, git: &Git, head: &Oid, objects: Alternates) -> Result<(), WorkspaceError> {
        let at = self.tree().join(".git");
        if at.exists() {
            super::remove::remove_tree(&at).map_err(WorkspaceError::io(&at))?;
        }
        let index = self.index();
        let repository = PrivateRepository { at: &at, branch: OWN_BRANCH, head: Some(head), objects, index: Some(&index) };
        Ok(git.make_private_repository(&repository)?)
    }
}
