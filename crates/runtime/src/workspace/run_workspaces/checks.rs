//! Fresh workspaces for checks and for questions about a tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use verdone_core::base::id::Oid;

use super::{Disposable, OWN_BRANCH, Shown, Workspaces};
use crate::git::{BuiltFrom, EarlierBuild, Git, PrivateRepository, file_clock};
use crate::launcher::Inside;
use crate::process::EnvPlan;
use crate::workspace::cache::{Cache, KeptCache, Written};
use crate::workspace::copying::{copy_files, files_to_copy};
use crate::workspace::credentials::Login;
use crate::workspace::error::WorkspaceError;
use crate::workspace::hidden::HIDDEN_VARIABLE;
use crate::workspace::layer::{Layer, Wanted};
use crate::workspace::view::View;
use crate::workspace::view_contents::{BuildFolders, Tree, ViewKind};

/// What a set of checks needs besides its tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckNeeds<'a> {
    pub start: Start,
    /// The folder of a hidden check, as named by its gate. The check finds it, read-only, at the path in `VERDONE_HIDDEN`. Other
    /// processes in the same workspace can see it as well, so nothing of such a workspace is kept.
    pub hidden: Option<&'a Path>,
}

/// What build folders contain when checks start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// The cache of the commit that the checks are based on. Without one, the content of the user's checkout.
    #[default]
    Warm,
    /// Nothing: neither the output of earlier checks nor the user's. Dependency folders are present.
    Cold,
}

/// A fresh workspace for checks, removed on drop.
#[derive(Debug)]
pub struct CheckPlace {
    pub cwd: PathBuf,
    /// Where files written at `cwd` appear outside: paths below `cwd`, the empty one first, each with the folder that receives
    /// the writes.
    pub written: Vec<(PathBuf, PathBuf)>,
    pub inside: Option<Inside>,
    pub env: EnvPlan,
    view: Option<View>,
    // Declared after the view, so that it is no longer written to when it is dropped.
    _login: Login,
    /// The files. They do not change while this workspace shows them.
    _layer: Option<Arc<Layer>>,
    /// Where build output is; `None` if it cannot be kept.
    build_output: Option<Written>,
    folder: Disposable,
}

impl CheckPlace {
    /// Ends all processes in the workspace and keeps the build output. Returns `None` if there is none, or if it cannot be kept:
    /// without copy-on-write, after a cold start, or if a hidden check ran.
    pub fn keep(mut self, git: &Git) -> Option<KeptCache> {
        drop(self.view.take());
        let own = self.folder.path();
        let mut name = std::ffi::OsString::from("cache-");
        name.push(own.file_name()?);
        self.build_output.take()?.collect(git, own.with_file_name(name))
    }
}

impl Workspaces {
    /// A workspace with exactly the files of a tree, unmodified. `head` becomes HEAD there: the commit that the tree is based on.
    pub fn checks_on(&mut self, git: &Git, tree: &Oid, head: &Oid, needs: CheckNeeds<'_>) -> Result<CheckPlace, WorkspaceError> {
        self.fresh_place(git, tree, head, ViewKind::Check, needs)
    }

    /// Like [`Self::checks_on`], for an agent that is asked about the tree. Its client needs its login, and its hooks need the
    /// run's folder.
    pub fn question_on(&mut self, git: &Git, tree: &Oid, head: &Oid) -> Result<CheckPlace, WorkspaceError> {
        self.fresh_place(git, tree, head, ViewKind::Agent, CheckNeeds::default())
    }

    /// Settings come from the checkout, unless they belong to the trees.
    fn copied_files(&self) -> Vec<PathBuf> {
        if self.settings_of_trees { Vec::new() } else { files_to_copy(&self.project.root, &[]) }
    }

    /// Assigns a cache to the commit whose tree it was built from. It replaces the previous cache. If a workspace still shows
    /// that one, the new cache is lost.
    pub fn adopt_cache(&mut self, kept: KeptCache, commit: &Oid) {
        if let Some(open) = &mut self.open {
            let before = open.cache.take();
            open.cache = kept.into_cache(before, commit, &self.project.git_top).map(Arc::new);
        }
    }

    /// Whether checks start from the build output of an earlier commit's checks.
    pub fn has_cache(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.cache.is_some())
    }

    fn fresh_place(
        &mut self,
        git: &Git,
        tree: &Oid,
        head: &Oid,
        kind: ViewKind,
        needs: CheckNeeds<'_>,
    ) -> Result<CheckPlace, WorkspaceError> {
        self.open_if_needed(git)?;
        let folder = self.new_folder("check")?;
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let hidden = needs.hidden.map(|folder| open.hidden.real(folder).map(Path::to_owned)).transpose()?;
        let needs = CheckNeeds { hidden: hidden.as_deref(), ..needs };
        let place = if open.ability.view.works() && open.ability.overlay.works() {
            self.overlaid_place(git, tree, head, kind, needs, folder)?
        } else {
            self.laid_out_place(git, tree, head, kind, needs, folder)?
        };
        Ok(match hidden {
            Some(hidden) => CheckPlace { env: place.env.with(HIDDEN_VARIABLE, hidden), build_output: None, ..place },
            None => place,
        })
    }

    /// A copy-on-write workspace over a reusable layer.
    fn overlaid_place(
        &mut self,
        git: &Git,
        tree: &Oid,
        head: &Oid,
        kind: ViewKind,
        needs: CheckNeeds<'_>,
        folder: Disposable,
    ) -> Result<CheckPlace, WorkspaceError> {
        let begun = file_clock();
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let warm = needs.start == Start::Warm && kind == ViewKind::Check;
        let cache = open.cache.clone().filter(|cache| warm && cache.is_of(head));
        let layer = match &cache {
            Some(cache) => cache.with_build(|build| self.layer_for(git, tree, head, Some((cache, build))))?,
            None => self.layer_for(git, tree, head, None)?,
        };
        let (files, upper, work) = (layer.tree(), folder.path().join("upper"), folder.path().join("work"));
        let new_folders = cache.as_ref().and_then(|cache| cache.new_folders(&files));
        if let Some(new) = &new_folders {
            new.make_folders_around(&files, &upper).map_err(WorkspaceError::io(&upper))?;
        }
        let built = new_folders.map(|new| new.tree);
        let build_folders = match (&cache, needs.start) {
            (Some(cache), _) => BuildFolders::Kept(cache.layers()),
            (None, Start::Warm) => BuildFolders::Checkout,
            (None, Start::Cold) => BuildFolders::Absent,
        };
        let shown = Tree::Overlay { lower: files, built, upper: upper.clone(), work };
        let made = self.view(kind, shown, folder.path(), Shown { build_folders, hidden: needs.hidden })?;
        let project = self.below_top();
        let written = written(&project, &upper, made.written_apart);
        let build_output = warm.then(|| Written {
            layer: Arc::clone(&layer),
            upper,
            build_folders: made.build_folders,
            over: cache,
            settings: self.workspace.clone(),
            project,
            begun,
        });
        Ok(CheckPlace {
            cwd: made.cwd,
            written,
            inside: made.inside,
            env: made.env,
            view: made.view,
            _login: made.login,
            _layer: Some(layer),
            build_output,
            folder,
        })
    }

    /// A layer with the files of a tree, with times that match the cache.
    fn layer_for(
        &mut self,
        git: &Git,
        tree: &Oid,
        head: &Oid,
        cache: Option<(&Arc<Cache>, &EarlierBuild<'_>)>,
    ) -> Result<Arc<Layer>, WorkspaceError> {
        let objects = self.alternates()?;
        let files = self.copied_files();
        let top = self.project.git_top.clone();
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        let place = open.held.path().join(format!("layer-{}", open.number));
        // Leave a layer alone that a workspace still shows.
        let before = open.layer.take().and_then(Arc::into_inner);
        let before = before.filter(|layer| cache.is_none_or(|(cache, _)| cache.agrees_with(layer)));
        let folders = before.as_ref().map(|layer| layer.folder().to_owned());
        let mut room = self.filter_room(git, folders.iter().chain([&place]))?;
        let built = cache.map_or(BuiltFrom::Checkout, |(_, build)| BuiltFrom::Workspace(build));
        let wanted = Wanted { tree, head, objects, copies: &files, top: &top, filters: room.filters()?, built };
        let layer = Arc::new(Layer::hold(before, git, wanted, place)?);
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        open.layer = Some(Arc::clone(&layer));
        Ok(layer)
    }

    /// A new folder for each workspace, for systems without copy-on-write.
    fn laid_out_place(
        &mut self,
        git: &Git,
        tree: &Oid,
        head: &Oid,
        kind: ViewKind,
        needs: CheckNeeds<'_>,
        folder: Disposable,
    ) -> Result<CheckPlace, WorkspaceError> {
        let objects = self.alternates()?;
        let copies = self.copied_files();
        let (files, index) = (folder.path().join("tree"), folder.path().join("index"));
        fs::create_dir(&files).map_err(WorkspaceError::io(&files))?;
        let mut room = self.filter_room(git, [folder.path()])?;
        git.lay_out_files(tree, &files, &index, room.filters()?)?;
        drop(room);
        // Best effort: without it, only a build takes longer.
        let _ = git.copy_times(&files, &index);
        copy_files(&self.project.git_top, &files, &copies)?;
        let repository =
            PrivateRepository { at: &files.join(".git"), branch: OWN_BRANCH, head: Some(head), objects, index: Some(&index) };
        git.make_private_repository(&repository)?;
        let build_folders = match needs.start {
            Start::Warm => BuildFolders::Checkout,
            Start::Cold => BuildFolders::Absent,
        };
        let made =
            self.view(kind, Tree::Writable(files.clone()), folder.path(), Shown { build_folders, hidden: needs.hidden })?;
        let written = written(&self.below_top(), &files, made.written_apart);
        Ok(CheckPlace {
            cwd: made.cwd,
            written,
            inside: made.inside,
            env: made.env,
            view: made.view,
            _login: made.login,
            _layer: None,
            build_output: None,
            folder,
        })
    }
}

/// Where writes to the project in the tree go: into `tree`, or into one of the separate folders.
fn written(project: &Path, tree: &Path, apart: Vec<(PathBuf, PathBuf)>) -> Vec<(PathBuf, PathBuf)> {
    let in_project = |(path, folder): (PathBuf, PathBuf)| Some((path.strip_prefix(project).ok()?.to_owned(), folder));
    std::iter::once((PathBuf::new(), tree.join(project))).chain(apart.into_iter().filter_map(in_project)).collect()
}
