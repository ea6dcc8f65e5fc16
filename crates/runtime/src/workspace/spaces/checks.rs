//! Fresh workspaces, for checks and for questions about a tree.

use std::fs;
use std::path::PathBuf;

use verdone_core::id::Oid;

use super::{Disposable, OWN_BRANCH, Workspaces};
use crate::git::{Git, PrivateRepository};
use crate::process::EnvPlan;
use crate::workspace::Inside;
use crate::workspace::copying::{copy_files, files_to_copy};
use crate::workspace::credentials::Login;
use crate::workspace::error::WorkspaceError;
use crate::workspace::layer::{Layer, Wanted};
use crate::workspace::view::View;
use crate::workspace::visible::{Tree, ViewKind};

/// A fresh workspace for checks; gone when dropped.
#[derive(Debug)]
pub struct CheckPlace {
    pub cwd: PathBuf,
    /// Where files that are written at `cwd` are found from outside.
    pub written: PathBuf,
    pub inside: Option<Inside>,
    pub env: EnvPlan,
    _view: Option<View>,
    // After the view: nobody writes it any more.
    _login: Login,
    _folder: Disposable,
}

impl Workspaces {
    /// A workspace with exactly the files of a tree, which nobody has written to. `head` is what git calls HEAD there.
    pub fn checks_on(&mut self, git: &Git, tree: &Oid, head: &Oid) -> Result<CheckPlace, WorkspaceError> {
        self.fresh_place(git, tree, head, ViewKind::Check)
    }

    /// The same for an agent that is asked about the tree: its client needs its login, and its hooks the run's folder.
    pub fn question_on(&mut self, git: &Git, tree: &Oid, head: &Oid) -> Result<CheckPlace, WorkspaceError> {
        self.fresh_place(git, tree, head, ViewKind::Agent)
    }

    fn fresh_place(&mut self, git: &Git, tree: &Oid, head: &Oid, kind: ViewKind) -> Result<CheckPlace, WorkspaceError> {
        let objects = self.alternates()?;
        let files = if self.settings_of_trees { Vec::new() } else { files_to_copy(&self.project.root, &[]) };
        let top = self.project.git_top.clone();
        let folder = self.new_folder("check")?;
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let overlay = open.ability.view.works() && open.ability.overlay.works();
        let shown = if overlay {
            let place = open.held.path().join(format!("layer-{}", open.number));
            let before = open.layer.as_ref().map(|layer| layer.folder().to_owned());
            let mut room = self.filter_room(git, before.iter().chain([&place]))?;
            let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
            let wanted = Wanted { tree, head, objects, copies: &files, top: &top, filters: room.filters()? };
            let layer = Layer::hold(open.layer.take(), git, wanted, place)?;
            let lower = layer.tree();
            open.layer = Some(layer);
            Tree::Overlay { lower, upper: folder.path().join("upper"), work: folder.path().join("work") }
        } else {
            let path = folder.path().join("tree");
            fs::create_dir(&path).map_err(WorkspaceError::io(&path))?;
            let index = folder.path().join("index");
            let mut room = self.filter_room(git, [folder.path()])?;
            git.lay_out_files(tree, &path, &index, room.filters()?)?;
            let _ = git.copy_times(&path, &index);
            copy_files(&top, &path, &files)?;
            let repository =
                PrivateRepository { at: &path.join(".git"), branch: OWN_BRANCH, head: Some(head), objects, index: Some(&index) };
            git.make_private_repository(&repository)?;
            Tree::Writable(path)
        };
        let written = match &shown {
            Tree::Overlay { upper, .. } => upper.clone(),
            Tree::Writable(tree) | Tree::ReadOnly(tree) => tree.clone(),
        };
        let made = self.view(kind, shown, folder.path())?;
        let written = written.join(self.below_top());
        Ok(CheckPlace {
            cwd: made.cwd,
            written,
            inside: made.inside,
            env: made.env,
            _view: made.view,
            _login: made.login,
            _folder: folder,
        })
    }
}
