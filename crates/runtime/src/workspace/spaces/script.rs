//! Where a lifecycle script runs: the user's own program, not sealed, with a read-only view of the run's tip as its working folder.

use std::path::PathBuf;

use verdone_core::id::Oid;

use super::{Disposable, Layer, Tree, ViewKind, WorkspaceError, Workspaces, copy_files};
use crate::git::Git;
use crate::process::EnvPlan;
use crate::workspace::Inside;
use crate::workspace::view::View;

/// A view for one script; gone when dropped.
#[derive(Debug)]
pub struct ScriptPlace {
    pub cwd: PathBuf,
    pub inside: Option<Inside>,
    pub env: EnvPlan,
    // Before the folder: whatever runs in it ends first.
    _view: Option<View>,
    _folder: Disposable,
}

impl Workspaces {
    /// The files of a commit, and `copies` of the user's files that are in no commit. Nothing where views are missing: a script runs
    /// in the checkout there.
    pub fn script_place(&mut self, git: &Git, commit: &Oid, copies: &[PathBuf]) -> Result<Option<ScriptPlace>, WorkspaceError> {
        let objects = self.alternates()?;
        let top = self.project.git_top.clone();
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        if !open.ability.view.works() {
            return Ok(None);
        }
        let place = open.held.path().join("script-layer");
        let folder = self.new_folder("script")?;
        let room = self.filter_room(git, &place)?;
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        let layer = Layer::hold(open.script_layer.take(), git, &git.tree_of(commit)?, &place, &room.filters)?;
        drop(room);
        layer.show(git, commit, objects)?;
        let files = layer.tree();
        copy_files(&top, &files, copies)?;
        open.script_layer = Some(layer);
        let made = self.view(ViewKind::Script, Tree::ReadOnly(files), folder.path())?;
        Ok(Some(ScriptPlace { cwd: made.cwd, inside: made.inside, env: made.env, _view: made.view, _folder: folder }))
    }
}
