//! The workspaces of one run: one for the agent, which lasts as long as its tree is right, and a fresh one for each set of checks.

mod script;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use verdone_core::config::{Config, NetworkAccess, SealSettings, WorkspacePath, WorkspaceSettings};
use verdone_core::event::{Seal, SealLevel};
use verdone_core::id::{Oid, digest};

use super::agent_space::{self, AgentSpace};
use super::credentials::Login;
use super::layer::{Layer, Wanted};
use super::probe::{Ability, Level, Part, probe};
use super::remove::remove_tree;
use super::reset;
use super::state::{Held, Owner, StateError, StateFolder};
use super::view::{View, ViewError};
use super::visible::{Abilities, AgentInUse, PrepareError, System, Tree, ViewKind, ViewRequest, Visible, build};
use super::{Inside, Mount, Network};
use crate::git::{
    Alternates, AttemptTree, Filters, Git, GitError, HookRun, Hooked, IgnoredEntry, Module, PathSet, PrivateRepository, ReadBack,
    RepoPath, copy_index_file, file_clock, file_clock_after,
};
use crate::process::{EnvPlan, check_program, own_program};
use crate::project::{HOME, Project};
use crate::regular::read_regular;

pub use script::ScriptPlace;

/// What of `.verdone/` no workspace gets.
pub(super) const NOT_COPIED: [&str; 4] = ["runs", "cache", "sessions", ".gitignore"];
/// The branch that git names where no agent works. Not `verdone`: the branches of runs are below that name.
pub(super) const OWN_BRANCH: &str = "verdone-check";
/// A larger file of the plan or of `.verdone/` is not compared.
pub(super) const LARGEST_COMPARED: u64 = 64 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("this machine cannot seal a workspace: {reason}")]
    Required { reason: String, remedy: Option<String> },
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("files here need the git filter {name:?}, which may run only in a private view; this machine has none: {reason}")]
    Filter { name: String, reason: String, remedy: Option<String> },
    #[error("cannot write the workspace: {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the temporary folder {} cannot be used: {source}", path.display())]
    Temp { path: PathBuf, source: io::Error },
    #[error("internal error: the workspaces are not open")]
    NotOpen,
}

impl WorkspaceError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// What to do next.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Filter { remedy, .. } => {
                remedy.iter().cloned().chain(["verdone doctor shows what is missing".to_owned()]).collect()
            }
            Self::Required { remedy, .. } => {
                let allow = "or allow weaker confinement: [seal] required = false".to_owned();
                remedy.iter().cloned().chain([allow, "verdone doctor shows what is missing".to_owned()]).collect()
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                vec!["free some space, or set workspace.state to a folder on a larger disk".to_owned()]
            }
            Self::Temp { .. } => vec!["set TMPDIR to a folder that can be written, or unset it".to_owned()],
            Self::View(_) | Self::Prepare(_) => vec!["verdone doctor shows what this machine can do".to_owned()],
            Self::State(_) | Self::Git(_) | Self::Io { .. } | Self::NotOpen => Vec::new(),
        }
    }
}

#[derive(Debug)]
pub struct WorkspaceRequest<'a> {
    pub project: &'a Project,
    pub config: &'a Config,
    /// The name of the workspaces.
    pub run: &'a str,
    pub run_dir: &'a Path,
    /// The folders with the repository's objects.
    pub objects: Vec<PathBuf>,
}

#[derive(Debug)]
pub struct Workspaces {
    project: Project,
    workspace: WorkspaceSettings,
    seal: SealSettings,
    agent: AgentInUse,
    /// The agent's own program, where it is named by a path: it may lie in the project and in no commit.
    agent_program: Option<PathBuf>,
    name: String,
    run_dir: PathBuf,
    objects: Vec<PathBuf>,
    open: Option<Open>,
    notes: Vec<String>,
    /// Notes that were taken.
    told: BTreeSet<String>,
}

/// What is on disk.
#[derive(Debug)]
struct Open {
    // Views before folders: whatever runs in them ends first.
    agent: Option<AgentSpace>,
    /// The agent's last workspace, without its view.
    spare: Option<AgentSpace>,
    layer: Option<Layer>,
    script_layer: Option<Arc<Layer>>,
    ability: Ability,
    ignored: Vec<IgnoredEntry>,
    modules: Vec<Module>,
    /// Filters of the user's git settings.
    filters: Vec<String>,
    system: System,
    number: u32,
    held: Held,
}

/// Where a process of a workspace works.
#[derive(Debug, Clone)]
pub struct Place {
    /// The project's root, as seen there.
    pub cwd: PathBuf,
    /// The top of its files, as seen from outside.
    pub tree: PathBuf,
    pub inside: Option<Inside>,
    pub env: EnvPlan,
    /// Folders of the project that can be emptied there, but not removed or renamed.
    pub mount_points: Vec<PathBuf>,
}

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

/// What the user's commit hooks made of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookOutcome {
    Refused { said: String },
    Passed { tree: Oid, message: String },
}

/// What an attempt's files amount to.
#[derive(Debug)]
pub struct ReadAttempt {
    pub tree: Oid,
    /// Why it cannot be committed as it is.
    pub obstacle: Option<String>,
}

/// A folder that is deleted in the background when this is dropped.
#[derive(Debug)]
pub(super) struct Disposable(PathBuf);

impl Disposable {
    pub(super) fn make(path: PathBuf) -> Result<Self, WorkspaceError> {
        fs::create_dir_all(&path).map_err(WorkspaceError::io(&path))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Disposable {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.0);
        // What is not deleted in time goes with the whole workspace, or is swept by the next run.
        let _ = std::thread::Builder::new().name("delete".to_owned()).spawn(move || remove_tree(&path));
    }
}

impl Workspaces {
    /// Nothing is written before [`Self::open`].
    pub fn new(request: &WorkspaceRequest<'_>) -> Self {
        let agents = &request.config.agent;
        let command = agents.command.run.as_ref().map(verdone_core::check::CommandSpec::display).unwrap_or_default();
        let started = agents.command.run.as_ref().filter(|_| agents.name == "command").and_then(check_program);
        let agent_program = started.filter(|name| name.contains('/')).map(|name| request.project.root.join(name));
        let agent_program = agent_program.filter(|path| path.is_file()).map(|path| fs::canonicalize(&path).unwrap_or(path));
        let agent = AgentInUse {
            name: agents.name.clone(),
            command,
            programs: own_program().into_iter().chain(agent_program.clone()).collect(),
        };
        Self {
            project: request.project.clone(),
            workspace: request.config.workspace.clone(),
            seal: request.config.seal.clone(),
            agent,
            agent_program,
            name: request.run.to_owned(),
            run_dir: request.run_dir.to_owned(),
            objects: request.objects.clone(),
            open: None,
            notes: Vec::new(),
            told: BTreeSet::new(),
        }
    }

    /// Makes the folder of the workspaces, and finds out how they can be sealed.
    pub fn open(&mut self, git: &Git) -> Result<PathBuf, WorkspaceError> {
        // Everything that is started reports there; without it, the probe would find no view.
        let temp = std::env::temp_dir();
        tempfile::tempfile_in(&temp).map_err(|source| WorkspaceError::Temp { path: temp, source })?;
        let state = StateFolder::from_environment(self.workspace.state.as_deref(), &self.project.git_top)?;
        let _ = state.sweep();
        let run = Some(self.name.clone());
        let owner = Owner { pid: std::process::id(), project: self.project.root.clone(), run };
        let held = state.create(&self.name, &owner)?;
        let ability = probe(held.path());
        if self.seal.required && !missing_seal(&ability, &self.seal).is_empty() {
            let (reason, remedy) = refusal(&ability);
            return Err(WorkspaceError::Required { reason, remedy });
        }
        let filters = git.filters()?;
        if !ability.view.works() {
            for name in &filters {
                if git.uses_filter(name)? {
                    let (reason, remedy) = refusal(&ability);
                    return Err(WorkspaceError::Filter { name: name.clone(), reason, remedy });
                }
            }
        }
        let mut ignored = git.ignored_entries()?;
        let submodules = self.submodules(git)?;
        if !submodules.is_empty() {
            let names: Vec<String> = submodules.iter().map(|entry| entry.path.display().to_string()).collect();
            let text = "submodules appear as they are in your checkout; changes in them are not committed";
            self.notes.push(format!("{text}: {}", names.join(", ")));
        }
        ignored.extend(submodules);
        let folder = held.path().to_owned();
        self.open = Some(Open {
            agent: None,
            spare: None,
            layer: None,
            script_layer: None,
            ability,
            ignored,
            modules: git.modules(),
            filters,
            system: System::read(),
            number: 0,
            held,
        });
        Ok(folder)
    }

    /// Submodules that the user's checkout has files of.
    fn submodules(&self, git: &Git) -> Result<Vec<IgnoredEntry>, WorkspaceError> {
        let top = &self.project.git_top;
        if !top.join(".gitmodules").exists() {
            return Ok(Vec::new());
        }
        let Some(head) = git.status()?.head else { return Ok(Vec::new()) };
        let has_files = |path: &PathBuf| fs::read_dir(top.join(path)).is_ok_and(|mut entries| entries.next().is_some());
        let found = git.submodules_of(&head)?.into_iter().filter(has_files);
        Ok(found.map(|path| IgnoredEntry { path, is_folder: true }).collect())
    }

    /// What the user should know about the workspaces, once.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.retain(|note| self.told.insert(note.clone()));
        notes
    }

    /// How agents and checks are confined.
    pub fn seal(&self) -> Seal {
        let Some(open) = &self.open else { return Seal { level: SealLevel::Unsealed, missing: Vec::new(), container: false } };
        let level = match open.ability.level() {
            Level::View | Level::ViewWithoutOwnProc => SealLevel::View,
            Level::CloneWithLandlock => SealLevel::Landlock,
            Level::UnsealedClone => SealLevel::Unsealed,
        };
        Seal { level, missing: missing(&open.ability, &self.seal), container: open.ability.container.is_some() }
    }

    /// Whether the agent's next attempt from this commit needs a new folder.
    pub fn needs_new_agent_space(&self, commit: &Oid) -> bool {
        self.open.as_ref().and_then(|open| open.agent.as_ref()).is_none_or(|agent| agent.at != *commit)
    }

    /// Makes the agent's workspace hold a commit and nothing else. `copies` are files of the user's that are in no commit.
    pub fn reset_agent(&mut self, git: &Git, commit: &Oid, branch: &str, copies: &[PathBuf]) -> Result<(), WorkspaceError> {
        if !self.needs_new_agent_space(commit) {
            return Ok(());
        }
        self.drop_agent();
        let objects = self.alternates()?;
        let top = self.project.git_top.clone();
        let mut files = self.files_to_copy(copies);
        files.extend(self.agent_program.iter().filter(|path| path.starts_with(&top)).cloned());
        let program = self.agent_program.as_ref().and_then(|path| git.repo_path(path));
        let project = self.below_top();
        let folder = self.new_folder("agent")?;
        let (tree, laid_out) = (folder.path().join("tree"), folder.path().join("index"));
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        let earlier = open.spare.take().filter(|_| open.ability.view.works());
        let mut reused = false;
        if let Some(earlier) = earlier {
            let room = self.filter_room(git, [earlier.folder.path()])?;
            reused = reset::reuse(&earlier, git, commit, &tree, &laid_out, &room.filters);
        }
        if !reused {
            fs::create_dir(&tree).map_err(WorkspaceError::io(&tree))?;
            let room = self.filter_room(git, [folder.path()])?;
            git.lay_out_files(commit, &tree, &laid_out, &room.filters)?;
            // Best effort: a build may take longer without it.
            let _ = git.copy_times(&tree, &laid_out);
        }
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        let reader = open.held.path().join("read");
        fs::create_dir_all(&reader).map_err(WorkspaceError::io(&reader))?;
        let index = reader.join(format!("index-{}", open.number));
        copy_index_file(&laid_out, &index)?;
        let copied_program = program.filter(|path| !tree.join(path.as_path()).exists());
        copy_files(&top, &tree, &files)?;
        let repository = PrivateRepository { at: &tree.join(".git"), branch, head: Some(commit), objects, index: Some(&index) };
        git.make_private_repository(&repository)?;
        open.agent = Some(AgentSpace {
            at: commit.clone(),
            branch: branch.to_owned(),
            copied_program,
            view: None,
            login: None,
            place: None,
            ready: file_clock(),
            opened: None,
            index,
            laid_out,
            laid_out_from: commit.clone(),
            settings: agent_space::settings(&tree, &project),
            tree,
            folder,
        });
        Ok(())
    }

    /// Brings files of the user's that are in no commit up to date in the agent's workspace.
    pub fn copy_again(&mut self, copies: &[PathBuf]) {
        let Some(agent) = self.open.as_ref().and_then(|open| open.agent.as_ref()) else { return };
        let top = &self.project.git_top;
        let done = copies.iter().filter_map(|file| Some((file, file.strip_prefix(top).ok()?))).try_for_each(|(file, below)| {
            let bytes = fs::read(file)?;
            let known = read_regular(&agent.tree.join(below), LARGEST_COMPARED).is_ok_and(|known| known == bytes);
            if known { Ok(()) } else { agent_space::write_beside_links(&agent.tree, below, &bytes) }
        });
        if done.is_err() {
            self.replace_agent_next();
        }
    }

    /// The files are not what was committed: the next attempt gets a new folder, and the client works here until then.
    pub fn replace_agent_next(&mut self) {
        if let Some(agent) = self.open.as_mut().and_then(|open| open.agent.as_mut()) {
            agent.at = Oid(String::new());
        }
    }

    /// The agent's workspace goes; whatever runs in it ends. Its files stay for the next one, which may need most of them.
    pub fn drop_agent(&mut self) {
        if let Some(open) = &mut self.open
            && let Some(mut agent) = open.agent.take()
        {
            (agent.view, agent.place) = (None, None);
            self.notes.extend(agent.login.take().and_then(|mut login| login.close()));
            open.spare = Some(agent);
        }
    }

    /// Saves a login that the agent's client renewed: the one that the user has may not be valid any more.
    pub fn save_login(&self) {
        if let Some(login) = self.open.as_ref().and_then(|open| open.agent.as_ref()?.login.as_ref()) {
            login.save();
        }
    }

    /// The way into the agent's workspace.
    pub fn agent(&mut self) -> Result<Place, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let agent = open.agent.as_ref().ok_or(WorkspaceError::NotOpen)?;
        if let Some(place) = &agent.place {
            return Ok(place.clone());
        }
        let tree = agent.tree.clone();
        let made = self.view(ViewKind::Agent, Tree::Writable(tree.clone()), agent.folder.path())?;
        let place = Place { cwd: made.cwd, tree, inside: made.inside, env: made.env, mount_points: made.mount_points };
        self.notes.extend(made.notes);
        let agent = self.open.as_mut().and_then(|open| open.agent.as_mut()).ok_or(WorkspaceError::NotOpen)?;
        (agent.view, agent.login, agent.place) = (made.view, Some(made.login), Some(place.clone()));
        agent.opened.get_or_insert_with(|| file_clock_after(agent.ready));
        Ok(place)
    }

    /// The tree of the agent's files, computed where nothing that it planted can run outside. `excluded` keeps its version of the base.
    pub fn read_attempt(&mut self, git: &Git, excluded: &PathSet, largest: u64) -> Result<ReadAttempt, WorkspaceError> {
        let at = self.project.git_top.clone();
        let scratch = self.new_folder("read")?;
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let agent = open.agent.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let reader = open.held.path().join("read");
        let (git_dir, objects) = (reader.join("git"), reader.join("objects"));
        if !git_dir.exists() {
            let new =
                PrivateRepository { at: &git_dir, branch: OWN_BRANCH, head: None, objects: Alternates::Direct, index: None };
            git.make_private_repository(&new)?;
        }
        fs::create_dir_all(&objects).map_err(WorkspaceError::io(&objects))?;
        let sealed = open.ability.view.works();
        let (known, room) = if sealed {
            let known: Vec<PathBuf> = (0..self.objects.len()).map(|number| reader.join(format!("base-{number}"))).collect();
            let mut mounts = vec![Mount::Bind { from: reader.clone(), at: reader.clone(), write: true }];
            for (from, at) in self.objects.iter().zip(&known) {
                fs::create_dir_all(at).map_err(WorkspaceError::io(at))?;
                mounts.push(Mount::Bind { from: from.clone(), at: at.clone(), write: false });
            }
            (known, self.git_room(Tree::ReadOnly(agent.tree.clone()), &at, scratch, mounts, Network::Off)?)
        } else {
            (self.objects.clone(), FilterRoom::without_view(open.filters.clone()))
        };
        let ignored: PathSet =
            open.ignored.iter().map(|entry| RepoPath::new(entry.path.as_os_str().as_encoded_bytes())).collect();
        let mut excluded = excluded.clone();
        let without_effect = agent_space::without_effect(&agent.tree, &self.below_top());
        excluded.extend(without_effect.iter().filter_map(|path| git.repo_path(&self.project.git_top.join(path))));
        excluded.extend(agent.copied_program.iter().cloned());
        let job = ReadBack {
            folder: &agent.tree,
            seen_at: if sealed { &at } else { &agent.tree },
            git_dir: &git_dir,
            index: &agent.index,
            objects: &objects,
            known_objects: &known,
            filters: &room.filters,
            excluded: &excluded,
            ignored: &ignored,
            largest_file: if largest == 0 { u64::MAX } else { largest },
            opened: agent.opened.unwrap_or(agent.ready),
        };
        let AttemptTree { tree, obstacles } = git.read_tree_of(&job)?;
        drop(room);
        git.import_objects(&objects, &tree, Some(&agent.at))?;
        git.import_large_files(&git_dir)?;
        Ok(ReadAttempt { tree, obstacle: obstacles.first().map(ToString::to_string) })
    }

    /// The agent's edits of files that are not its to change, by comparing them with what the workspace was given.
    pub fn edited(&self, given: &[(RepoPath, Vec<u8>)]) -> Vec<String> {
        let Some(agent) = self.open.as_ref().and_then(|open| open.agent.as_ref()) else { return Vec::new() };
        let now =
            |path: &RepoPath| read_regular(&agent.tree.join(path.as_path()), LARGEST_COMPARED).ok().map(|bytes| digest(&bytes));
        let plan = given.iter().filter(|(path, bytes)| now(path) != Some(digest(bytes))).map(|(path, _)| path.to_string());
        let settings = agent_space::settings(&agent.tree, &self.below_top());
        let names: BTreeSet<&PathBuf> = settings.keys().chain(agent.settings.keys()).collect();
        let changed = names.into_iter().filter(|name| settings.get(*name) != agent.settings.get(*name));
        plan.chain(changed.map(|name| name.display().to_string())).collect()
    }

    /// After a commit of exactly its files: the workspace continues from there. Where it cannot, the next attempt gets a new one.
    pub fn follow(&mut self, git: &Git, commit: &Oid, texts: &[(RepoPath, Vec<u8>)]) -> Result<(), WorkspaceError> {
        let objects = self.alternates()?;
        let project = self.below_top();
        let Some(agent) = self.open.as_mut().and_then(|open| open.agent.as_mut()) else { return Ok(()) };
        let followed = agent_space::follow(agent, git, commit, objects, texts);
        // What was named once is not named for every later story.
        agent.settings = agent_space::settings(&agent.tree, &project);
        if followed.is_err() {
            self.replace_agent_next();
        }
        followed
    }

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
        let files = self.files_to_copy(&[]);
        let top = self.project.git_top.clone();
        let folder = self.new_folder("check")?;
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let overlay = open.ability.view.works() && open.ability.overlay.works();
        let shown = if overlay {
            let place = open.held.path().join(format!("layer-{}", open.number));
            let before = open.layer.as_ref().map(|layer| layer.folder().to_owned());
            let room = self.filter_room(git, before.iter().chain([&place]))?;
            let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
            let wanted = Wanted { tree, head, objects, copies: &files, top: &top, filters: &room.filters };
            let layer = Layer::hold(open.layer.take(), git, wanted, place)?;
            let lower = layer.tree();
            open.layer = Some(layer);
            Tree::Overlay { lower, upper: folder.path().join("upper"), work: folder.path().join("work") }
        } else {
            let path = folder.path().join("tree");
            fs::create_dir(&path).map_err(WorkspaceError::io(&path))?;
            let index = folder.path().join("index");
            let room = self.filter_room(git, [folder.path()])?;
            git.lay_out_files(tree, &path, &index, &room.filters)?;
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

    /// Runs the user's commit hooks over a tree, sealed.
    pub fn run_commit_hooks(
        &mut self,
        git: &Git,
        tree: &Oid,
        base: &Oid,
        message: &str,
        deadline: Duration,
        called_off: &dyn Fn() -> bool,
    ) -> Result<HookOutcome, WorkspaceError> {
        let objects = self.alternates()?;
        let folder = self.new_folder("hook")?;
        let (files, index) = (folder.path().join("tree"), folder.path().join("index"));
        fs::create_dir(&files).map_err(WorkspaceError::io(&files))?;
        let room = self.filter_room(git, [folder.path()])?;
        git.lay_out_files(tree, &files, &index, &room.filters)?;
        drop(room);
        let git_dir_here = files.join(".git");
        let repository =
            PrivateRepository { at: &git_dir_here, branch: OWN_BRANCH, head: Some(base), objects, index: Some(&index) };
        git.make_private_repository(&repository)?;
        let made = self.view(ViewKind::Check, Tree::Writable(files.clone()), folder.path())?;
        let git_dir = made.at.join(".git");
        let job = HookRun {
            seen_at: &made.at,
            git_dir: &git_dir,
            git_dir_here: &git_dir_here,
            base: Some(base),
            message,
            inside: made.inside.as_ref(),
            env: &made.env,
            deadline,
        };
        let said = |output: String, why: &str| if output.trim().is_empty() { why.to_owned() } else { output };
        Ok(match git.run_commit_hooks(&job, called_off)? {
            Hooked::Accepted { tree: made, message, .. } => {
                if made != *tree {
                    git.import_objects(&git_dir_here.join("objects"), &made, Some(base))?;
                }
                HookOutcome::Passed { tree: made, message }
            }
            Hooked::Refused { output, timed_out: true, .. } => {
                let why = format!("the commit hooks did not end within {} s", deadline.as_secs());
                HookOutcome::Refused { said: format!("{why}\n{output}").trim().to_owned() }
            }
            Hooked::Refused { interrupted: true, .. } => HookOutcome::Refused { said: "the commit was interrupted".to_owned() },
            Hooked::Refused { output, .. } => HookOutcome::Refused { said: said(output, "a commit hook refused") },
        })
    }

    /// A new folder of the workspaces, for this purpose.
    fn new_folder(&mut self, purpose: &str) -> Result<Disposable, WorkspaceError> {
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        open.number += 1;
        Disposable::make(open.held.path().join(format!("{purpose}-{}", open.number)))
    }

    /// Where git may write files into folders of the workspaces: a filter could be, or start, a program that an agent wrote.
    fn filter_room<P: AsRef<Path>>(
        &mut self,
        git: &Git,
        folders: impl IntoIterator<Item = P>,
    ) -> Result<FilterRoom, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        if open.filters.is_empty() || !open.ability.view.works() {
            return Ok(FilterRoom::without_view(open.filters.clone()));
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
        // Git LFS fetches what is missing into its store. That is dropped, so that nothing planted stays there.
        if let Some(store) = git.large_file_store().filter(|_| overlay) {
            let (upper, work) = (scratch.path().join("lfs"), scratch.path().join("lfs-work"));
            for path in [&upper, &work] {
                fs::create_dir(path).map_err(WorkspaceError::io(path))?;
            }
            mounts.push(Mount::Overlay { lower: vec![store.clone()], upper, work, at: store });
        }
        let network = match self.seal.check_network {
            NetworkAccess::Open => Network::Open,
            NetworkAccess::Off => Network::Off,
        };
        self.git_room(Tree::Writable(first.clone()), &first, scratch, mounts, network)
    }

    /// A view for git alone: the tree, these mounts, and everything else as it is, but for what is hidden from agents too.
    fn git_room(
        &self,
        tree: Tree,
        at: &Path,
        folder: Disposable,
        mounts: Vec<Mount>,
        network: Network,
    ) -> Result<FilterRoom, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let mut visible = self.visible(ViewKind::Read, tree, at, folder.path())?;
        visible.plan.mounts.extend(mounts);
        visible.plan.network = possible(network, &open.ability);
        visible.preparation.carry_out()?;
        let view = View::open(&visible.plan, folder.path())?;
        let filters = Filters::Inside { inside: view.inside(), env: visible.env };
        Ok(FilterRoom { filters, _view: Some(view), _folder: Some(folder) })
    }

    fn view(&self, kind: ViewKind, tree: Tree, folder: &Path) -> Result<Made, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let at = match (open.ability.view.works(), self.workspace.path) {
            (true, WorkspacePath::Same) => self.project.git_top.clone(),
            (true, WorkspacePath::Own) | (false, _) => tree.files().to_owned(),
        };
        let mut visible = self.visible(kind, tree, &at, folder)?;
        visible.plan.network = possible(visible.plan.network, &open.ability);
        let mut notes = visible.notes;
        notes.extend(visible.preparation.carry_out()?);
        let (inside, view) = match open.ability.level() {
            Level::View | Level::ViewWithoutOwnProc => {
                let view = View::open(&visible.plan, folder)?;
                (Some(view.inside()), Some(view))
            }
            Level::CloneWithLandlock => {
                let path = folder.join("landlock.json");
                let inside = Inside::landlock(&visible.plan, &path).map_err(WorkspaceError::io(&path))?;
                (Some(inside), None)
            }
            Level::UnsealedClone => (None, None),
        };
        let login = Login::new(visible.credentials);
        let cwd = at.join(self.below_top());
        Ok(Made { at, cwd, inside, env: visible.env, view, login, notes, mount_points: visible.mount_points })
    }

    /// What a view shows.
    fn visible(&self, kind: ViewKind, tree: Tree, at: &Path, folder: &Path) -> Result<Visible, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let scratch = folder.join("scratch");
        fs::create_dir_all(&scratch).map_err(WorkspaceError::io(&scratch))?;
        let request = ViewRequest {
            kind,
            name: open.held.name(),
            port_base: open.held.port_base(),
            checkout: &self.project.git_top,
            root: &self.project.root,
            at,
            tree,
            objects: if kind == ViewKind::Read { &[] } else { &self.objects },
            modules: if kind == ViewKind::Read { &[] } else { &open.modules },
            ignored: &open.ignored,
            scratch: &scratch,
            state: open.held.state().path(),
            agent: Some(&self.agent).filter(|_| kind == ViewKind::Agent),
            run_dir: Some(&self.run_dir),
            workspace: &self.workspace,
            seal: &self.seal,
            abilities: Abilities { mounts: open.ability.view.works(), overlay: open.ability.overlay.works() },
        };
        Ok(build(&request, &open.system))
    }

    fn below_top(&self) -> PathBuf {
        self.project.root.strip_prefix(&self.project.git_top).unwrap_or(Path::new("")).to_owned()
    }

    fn alternates(&self) -> Result<Alternates, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        Ok(if open.ability.view.works() { Alternates::Bound } else { Alternates::Direct })
    }

    /// The user's files that a workspace needs although they are in no commit: those named, and the settings.
    fn files_to_copy(&self, named: &[PathBuf]) -> Vec<PathBuf> {
        let home = self.project.root.join(HOME);
        let mut found = named.to_vec();
        let mut left: Vec<PathBuf> = fs::read_dir(&home).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        left.retain(|path| !NOT_COPIED.iter().any(|name| path.file_name().is_some_and(|own| own == *name)));
        while let Some(path) = left.pop() {
            match fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => {
                    left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
                }
                Ok(meta) if meta.is_file() => found.push(path),
                Ok(_) | Err(_) => {}
            }
        }
        found
    }
}

/// A view that was built.
struct Made {
    /// The top of the tree, as seen there.
    at: PathBuf,
    cwd: PathBuf,
    inside: Option<Inside>,
    env: EnvPlan,
    view: Option<View>,
    login: Login,
    notes: Vec<String>,
    mount_points: Vec<PathBuf>,
}

/// Where git reads or writes files of an agent's.
struct FilterRoom {
    filters: Filters,
    // Before the folder: whatever runs in it ends first.
    _view: Option<View>,
    _folder: Option<Disposable>,
}

impl FilterRoom {
    fn without_view(filters: Vec<String>) -> Self {
        let filters = if filters.is_empty() { Filters::None } else { Filters::Off(filters) };
        Self { filters, _view: None, _folder: None }
    }
}

/// Copies files of the checkout into a tree that nobody else has written. The checkout's version counts, committed or not.
pub(super) fn copy_files(top: &Path, tree: &Path, files: &[PathBuf]) -> Result<(), WorkspaceError> {
    for file in files {
        let Ok(below) = file.strip_prefix(top) else { continue };
        let to = tree.join(below);
        if leads_elsewhere(tree, below) || fs::symlink_metadata(&to).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(WorkspaceError::io(parent))?;
        }
        // A link is replaced, not followed.
        match fs::remove_file(&to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(WorkspaceError::io(&to)(error)),
            _ => fs::copy(file, &to).map_err(WorkspaceError::io(&to))?,
        };
    }
    Ok(())
}

/// Whether a folder on the way to a path is a link or a file.
fn leads_elsewhere(tree: &Path, below: &Path) -> bool {
    let folders = below.ancestors().skip(1).map(|folder| tree.join(folder));
    folders.into_iter().any(|folder| fs::symlink_metadata(folder).is_ok_and(|meta| !meta.is_dir()))
}

/// Where the network cannot be cut off, [`missing`] says so.
fn possible(network: Network, ability: &Ability) -> Network {
    if ability.own_network.works() { network } else { Network::Open }
}

/// Why there is no full seal, and what helps.
fn refusal(ability: &Ability) -> (String, Option<String>) {
    let parts = [&ability.view, &ability.own_proc, &ability.own_network];
    let refused = parts.into_iter().find_map(|part| match part {
        Part::Refused(refusal) => Some((refusal.reason.clone(), refusal.remedy.clone())),
        Part::Works | Part::NotTried => None,
    });
    refused.unwrap_or_else(|| ("the reason is not known".to_owned(), None))
}

/// What this machine cannot do, in plain words.
fn missing(ability: &Ability, seal: &SealSettings) -> Vec<String> {
    let mut missing = missing_seal(ability, seal);
    missing.extend(told("no copy-on-write, so dependency folders are copied", &ability.overlay));
    missing
}

/// What this machine cannot enforce.
pub(super) fn missing_seal(ability: &Ability, seal: &SealSettings) -> Vec<String> {
    let mut missing: Vec<String> = told("no private view of the file system", &ability.view).into_iter().collect();
    missing.extend(told("processes outside are listed in /proc", &ability.own_proc));
    if [seal.agent_network, seal.check_network].contains(&NetworkAccess::Off) {
        let cut_off = told("the network cannot be cut off", &ability.own_network);
        let not_tried = || Some("the network cannot be cut off".to_owned()).filter(|_| ability.own_network == Part::NotTried);
        missing.extend(cut_off.or_else(not_tried));
    }
    match ability.level() {
        Level::View | Level::ViewWithoutOwnProc => {}
        Level::CloneWithLandlock => missing.push("credentials in the home folder can be read".to_owned()),
        Level::UnsealedClone => missing.push("no Landlock: nothing stops an agent from reading and writing elsewhere".to_owned()),
    }
    missing
}

fn told(what: &str, part: &Part) -> Option<String> {
    match part {
        Part::Refused(refusal) => Some(format!("{what}: {}", refusal.reason)),
        Part::Works | Part::NotTried => None,
    }
}
