//! Where a lifecycle script runs. It is the user's own program, so it is not sealed. Its working folder is a read-only view of
//! the run's tip.

use std::path::PathBuf;
use std::sync::Arc;

use verdone_core::base::id::Oid;

use super::{Disposable, Layer, Shown, Tree, ViewKind, WorkspaceError, Workspaces};
use crate::git::{BuiltFrom, Git};
use crate::launcher::Inside;
use crate::process::EnvPlan;
use crate::workspace::layer::Wanted;
use crate::workspace::view::View;

/// A view for one script, removed on drop.
#[derive(Debug)]
pub struct ScriptPlace {
    pub cwd: PathBuf,
    pub inside: Option<Inside>,
    pub env: EnvPlan,
    // Declared before the folder, so that its processes end first.
    _view: Option<View>,
    // Kept unchanged as long as a background script sees it.
    _layer: Arc<Layer>,
    _folder: Disposable,
}

impl Workspaces {
    /// The files of a commit, plus `copies` of the user's uncommitted files. `None` if there are no views; scripts then run in
    /// the checkout.
    pub fn script_place(&mut self, git: &Git, commit: &Oid, copies: &[PathBuf]) -> Result<Option<ScriptPlace>, WorkspaceError> {
        let objects = self.alternates()?;
        let top = self.project.git_top.clone();
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        if !open.ability.view.works() {
            return Ok(None);
        }
        let place = open.held.path().join(format!("script-layer-{}", open.number));
        let before = open.script_layer.as_ref().map(|layer| layer.folder().to_owned());
        let folder = self.new_folder("script")?;
        let mut room = self.filter_room(git, before.iter().chain([&place]))?;
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        let (tree, built) = (git.tree_of(commit)?, BuiltFrom::Checkout);
        let wanted = Wanted { tree: &tree, head: commit, objects, copies, top: &top, filters: room.filters()?, built };
        let layer = Arc::new(Layer::hold(open.script_layer.take().and_then(Arc::into_inner), git, wanted, place)?);
        open.script_layer = Some(Arc::clone(&layer));
        drop(room);
        let made = self.view(ViewKind::Script, Tree::ReadOnly(layer.tree()), folder.path(), Shown::default())?;
        let (cwd, inside, env) = (made.cwd, made.inside, made.env);
        Ok(Some(ScriptPlace { cwd, inside, env, _view: made.view, _layer: layer, _folder: folder }))
    }
}
