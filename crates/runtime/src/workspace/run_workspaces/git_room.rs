//! Views in which git reads or writes files that may come from an agent.

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::config::NetworkAccess;

use super::{Disposable, Shown, Workspaces};
use crate::git::{Filters, Git};
use crate::launcher::Mount;
use crate::workspace::error::WorkspaceError;
use crate::workspace::proxy::{Asker, Gateway};
use crate::workspace::seal::possible;
use crate::workspace::view::View;
use crate::workspace::view_contents::{Tree, ViewKind, network, through_proxy};

/// Where git reads or writes an agent's files.
#[derive(Debug)]
pub(in crate::workspace) struct GitRoom {
    filters: Filters,
    // Declared before the folder, so that its processes end first.
    view: Option<View>,
    _folder: Option<Disposable>,
}

impl GitRoom {
    pub(super) fn without_view(filters: Vec<String>) -> Self {
        let filters = if filters.is_empty() { Filters::None } else { Filters::Off(filters) };
        Self { filters, view: None, _folder: None }
    }

    /// How to start git there. Waits until the view is ready.
    pub(super) fn filters(&mut self) -> Result<&Filters, WorkspaceError> {
        if let Some(view) = &mut self.view {
            view.wait_until_ready()?;
        }
        Ok(&self.filters)
    }
}

impl Workspaces {
    /// A view in which git may write files into these folders. A filter could be, or start, a program that an agent wrote.
    pub(super) fn filter_room<P: AsRef<Path>>(
        &mut self,
        git: &Git,
        folders: impl IntoIterator<Item = P>,
    ) -> Result<GitRoom, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        if open.filters.is_empty() || !open.ability.view.works() {
            return Ok(GitRoom::without_view(open.filters.clone()));
        }
        let overlay = open.ability.overlay.works();
        let scratch = self.new_folder("filter")?;
        let folders: Vec<PathBuf> = folders.into_iter().map(|folder| folder.as_ref().to_owned()).collect();
        let first = folders[0].clone();
        let mut mounts = Vec::new();
        for folder in folders {
            fs::create_dir_all(&folder).map_err(WorkspaceError::io(&folder))?;
            mounts.push(Mount::Bind { from: folder.clone(), at: folder, write: true });
        }
        // Git LFS downloads missing files into its store. These are discarded, so that nothing planted stays there.
        if let Some(store) = git.large_file_store().filter(|_| overlay) {
            let (upper, work) = (scratch.path().join("lfs"), scratch.path().join("lfs-work"));
            for path in [&upper, &work] {
                fs::create_dir(path).map_err(WorkspaceError::io(path))?;
            }
            mounts.push(Mount::Overlay { lower: vec![store.clone()], upper, work, at: store });
        }
        self.git_room(Tree::Writable(first.clone()), &first, scratch, mounts, &self.seal.check_network)
    }

    /// Starts building a view for git alone: the tree, these mounts and the rest of the system, except what is hidden from agents
    /// too.
    pub(super) fn git_room(
        &self,
        tree: Tree,
        at: &Path,
        folder: Disposable,
        mounts: Vec<Mount>,
        access: &NetworkAccess,
    ) -> Result<GitRoom, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let mut visible = self.visible(ViewKind::Read, tree, at, folder.path(), Shown::default())?;
        visible.plan.mounts.extend(mounts);
        visible.plan.network = possible(network(access), &open.ability);
        if let Some(hosts) = access.hosts() {
            visible.env = through_proxy(visible.env, &hosts);
        }
        visible.preparation.carry_out()?;
        let view = View::begin(&visible.plan, folder.path(), Gateway::new(access, Asker::Check, &self.refusals))?;
        let filters = Filters::Inside { inside: view.inside(), env: visible.env };
        Ok(GitRoom { filters, view: Some(view), _folder: Some(folder) })
    }
}
