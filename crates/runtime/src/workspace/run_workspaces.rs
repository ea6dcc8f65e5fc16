//! The workspaces of one run: one for the agent, kept as long as its tree is right, and a fresh one for each set of checks.

mod checks;
mod commit_hooks;
mod git_room;
mod opening;
mod read_attempt;
mod script;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use verdone_core::base::id::{Oid, digest};
use verdone_core::check::Gate;
use verdone_core::config::{Config, SealSettings, WorkspacePath, WorkspaceSettings};

use super::agent_space::{self, AgentSpace};
use super::cache::Cache;
use super::copying::{copy_files, files_to_copy};
use super::credentials::Login;
use super::disposable::Disposable;
use super::error::WorkspaceError;
use super::hidden::HiddenFolders;
use super::layer::Layer;
use super::probe::{Ability, Level};
use super::proxy::{Asker, Gateway, Refusals};
use super::reuse;
use super::seal::possible;
use super::state::Held;
use super::view::View;
use super::view_contents::{Abilities, AgentInUse, BuildFolders, Hidden, System, Tree, ViewKind, ViewRequest, Visible, build};
use crate::base::plain_file::read_regular;
use crate::git::{
    Alternates, Git, IgnoredEntry, Module, PrivateRepository, RepoPath, copy_index_file, file_clock_after, latest_file_time,
};
use crate::launcher::Inside;
use crate::process::{EnvPlan, check_program, own_program};
use crate::project::Project;

pub use checks::{CheckNeeds, CheckPlace, Start};
pub use commit_hooks::HookOutcome;
pub(super) use git_room::GitRoom;
pub use read_attempt::ReadAttempt;
pub use script::ScriptPlace;

/// The branch name in workspaces without an agent. Not `verdone`, because the branches of runs are below that name.
pub(super) const OWN_BRANCH: &str = "verdone-check";
/// Where git keeps its own files while it reads the agent's.
const READER: &str = "read";
/// Larger files of the plan or of `.verdone/` are not compared.
pub(super) const LARGEST_COMPARED: u64 = 64 * 1024 * 1024;

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
    /// The agent's own program, if it is given by path. It may be an uncommitted file of the project.
    agent_program: Option<PathBuf>,
    name: String,
    /// `None` without a run.
    run_dir: Option<PathBuf>,
    objects: Vec<PathBuf>,
    /// Whether trees keep their own `.verdone/` instead of the checkout's.
    settings_of_trees: bool,
    gates: Vec<Gate>,
    open: Option<Open>,
    notes: Vec<String>,
    /// Hosts that were not in a list.
    refusals: Arc<Refusals>,
    /// Notes that were already returned.
    told: BTreeSet<String>,
}

/// The workspaces on disk.
#[derive(Debug)]
struct Open {
    // Views come before folders, so that their processes end first.
    agent: Option<AgentSpace>,
    /// The agent's last workspace, without its view.
    spare: Option<AgentSpace>,
    /// The files of the last check workspace, and the build output of checks for the stories that follow a commit.
    layer: Option<Arc<Layer>>,
    cache: Option<Arc<Cache>>,
    script_layer: Option<Arc<Layer>>,
    ability: Ability,
    ignored: Vec<IgnoredEntry>,
    modules: Vec<Module>,
    /// Filters in the user's git settings.
    filters: Vec<String>,
    hidden: HiddenFolders,
    system: System,
    number: u32,
    held: Held,
}

/// Where the processes of a workspace run.
#[derive(Debug, Clone)]
pub struct Place {
    /// The project's root, as seen there.
    pub cwd: PathBuf,
    /// The top of its files, as seen from outside.
    pub tree: PathBuf,
    pub inside: Option<Inside>,
    pub env: EnvPlan,
    /// Folders of the project that can be emptied inside, but not removed or renamed.
    pub mount_points: Vec<PathBuf>,
}

impl Workspaces {
    /// Writes nothing before [`Self::open`].
    pub fn new(request: &WorkspaceRequest<'_>) -> Self {
        let agents = &request.config.agent;
        let acp = agents.acp_agent(agents.name).and_then(|(_, acp)| acp.command.as_ref());
        let command = acp.or(agents.command.run.as_ref()).map(verdone_core::check::CommandSpec::display).unwrap_or_default();
        let started = acp.or(agents.own_command()).and_then(check_program);
        let agent_program = started.filter(|name| name.contains('/')).map(|name| request.project.root.join(name));
        let agent_program = agent_program.filter(|path| path.is_file()).map(|path| fs::canonicalize(&path).unwrap_or(path));
        let agent =
            AgentInUse { kind: agents.name, command, programs: own_program().into_iter().chain(agent_program.clone()).collect() };
        Self {
            project: request.project.clone(),
            workspace: request.config.workspace.clone(),
            seal: request.config.seal.clone(),
            agent,
            agent_program,
            name: request.run.to_owned(),
            run_dir: Some(request.run_dir.to_owned()),
            gates: request.config.gate.clone(),
            objects: request.objects.clone(),
            settings_of_trees: false,
            open: None,
            notes: Vec::new(),
            refusals: Arc::default(),
            told: BTreeSet::new(),
        }
    }

    /// Makes checks see the `.verdone/` of their tree instead of the checkout's, because it may be part of the judged work.
    pub fn leave_settings_of_trees(&mut self) {
        self.settings_of_trees = true;
    }

    /// What the user should know about the workspaces. Returns each note only once.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(self.refusals.drain());
        notes.retain(|note| self.told.insert(note.clone()));
        notes
    }

    /// Whether the agent's next attempt, from this commit, needs a new folder.
    pub fn needs_new_agent_space(&self, commit: &Oid) -> bool {
        self.open.as_ref().and_then(|open| open.agent.as_ref()).is_none_or(|agent| agent.at != *commit)
    }

    /// Makes the agent's workspace contain exactly the files of a commit. `copies` are uncommitted files of the user to add.
    pub fn reset_agent(&mut self, git: &Git, commit: &Oid, branch: &str, copies: &[PathBuf]) -> Result<(), WorkspaceError> {
        if !self.needs_new_agent_space(commit) {
            return Ok(());
        }
        self.drop_agent();
        let objects = self.alternates()?;
        let top = self.project.git_top.clone();
        let mut files = files_to_copy(&self.project.root, copies);
        files.extend(self.agent_program.iter().filter(|path| path.starts_with(&top)).cloned());
        let program = self.agent_program.as_ref().and_then(|path| git.repo_path(path));
        let project = self.below_top();
        let folder = self.new_folder("agent")?;
        let (tree, laid_out) = (folder.path().join("tree"), folder.path().join("index"));
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        let earlier = open.spare.take().filter(|_| open.ability.view.works());
        let mut reused = false;
        if let Some(earlier) = earlier {
            let mut room = self.filter_room(git, [earlier.folder.path()])?;
            reused = reuse::reuse_files(&earlier, git, commit, &tree, &laid_out, room.filters()?);
        }
        if !reused {
            fs::create_dir(&tree).map_err(WorkspaceError::io(&tree))?;
            let mut room = self.filter_room(git, [folder.path()])?;
            git.lay_out_files(commit, &tree, &laid_out, room.filters()?)?;
            // Best effort: without it, only a build takes longer.
            let _ = git.copy_times(&tree, &laid_out);
        }
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        let reader = open.held.path().join(READER);
        fs::create_dir_all(&reader).map_err(WorkspaceError::io(&reader))?;
        let index = open.held.path().join(format!("index-{}", open.number));
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
            reader: None,
            login: None,
            place: None,
            ready: latest_file_time(),
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

    /// Updates uncommitted files of the user in the agent's workspace.
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

    /// For files that differ from the commit: the next attempt gets a new folder. Until then, the client keeps working here.
    pub fn replace_agent_next(&mut self) {
        if let Some(agent) = self.open.as_mut().and_then(|open| open.agent.as_mut()) {
            agent.at = Oid(String::new());
        }
    }

    /// Closes the agent's workspace and ends its processes. Its files stay for the next workspace, which may need most of them.
    pub fn drop_agent(&mut self) {
        if let Some(open) = &mut self.open
            && let Some(mut agent) = open.agent.take()
        {
            (agent.view, agent.reader, agent.place) = (None, None, None);
            self.notes.extend(agent.login.take().and_then(|mut login| login.close()));
            open.spare = Some(agent);
        }
    }

    /// Saves a login that the agent's client renewed, because the user's may no longer be valid.
    pub fn save_login(&self) {
        if let Some(login) = self.open.as_ref().and_then(|open| open.agent.as_ref()?.login.as_ref()) {
            login.save();
        }
    }

    /// How to enter the agent's workspace.
    pub fn agent(&mut self) -> Result<Place, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let agent = open.agent.as_ref().ok_or(WorkspaceError::NotOpen)?;
        if let Some(place) = &agent.place {
            return Ok(place.clone());
        }
        let tree = agent.tree.clone();
        let made = self.view(ViewKind::Agent, Tree::Writable(tree.clone()), agent.folder.path(), Shown::default())?;
        let place = Place { cwd: made.cwd, tree, inside: made.inside, env: made.env, mount_points: made.mount_points };
        self.notes.extend(made.notes);
        let agent = self.open.as_mut().and_then(|open| open.agent.as_mut()).ok_or(WorkspaceError::NotOpen)?;
        (agent.view, agent.login, agent.place) = (made.view, Some(made.login), Some(place.clone()));
        agent.opened.get_or_insert_with(|| file_clock_after(agent.ready));
        // If this fails, reading fails too and reports why.
        if let Ok(reader) = self.begin_reader() {
            self.keep_reader(reader);
        }
        Ok(place)
    }

    /// The agent's edits of files that it must not change, found by comparing them with their original content.
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

    /// Continues the workspace after a commit of exactly its files. If that fails, the next attempt gets a new one.
    pub fn follow(&mut self, git: &Git, commit: &Oid, texts: &[(RepoPath, Vec<u8>)]) -> Result<(), WorkspaceError> {
        let objects = self.alternates()?;
        let project = self.below_top();
        let Some(agent) = self.open.as_mut().and_then(|open| open.agent.as_mut()) else { return Ok(()) };
        let followed = agent_space::follow(agent, git, commit, objects, texts);
        // Do not report the same edits again for every later story.
        agent.settings = agent_space::settings(&agent.tree, &project);
        if followed.is_err() {
            self.replace_agent_next();
        }
        followed
    }

    /// A new folder below the workspaces' folder.
    fn new_folder(&mut self, purpose: &str) -> Result<Disposable, WorkspaceError> {
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        open.number += 1;
        Disposable::make(open.held.path().join(format!("{purpose}-{}", open.number)))
    }

    fn view(&self, kind: ViewKind, tree: Tree, folder: &Path, shown: Shown<'_>) -> Result<Made, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let at = match (open.ability.view.works(), self.workspace.path) {
            (true, WorkspacePath::Same) => self.project.git_top.clone(),
            (true, WorkspacePath::Own) | (false, _) => tree.files().to_owned(),
        };
        let mut visible = self.visible(kind, tree, &at, folder, shown)?;
        visible.plan.network = possible(visible.plan.network, &open.ability);
        let mut notes = visible.notes;
        notes.extend(visible.preparation.carry_out()?);
        let (inside, view) = match open.ability.level() {
            Level::View | Level::ViewWithoutOwnProc => {
                let view = View::open_with(&visible.plan, folder, self.gateway(kind))?;
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
        Ok(Made {
            at,
            cwd,
            inside,
            env: visible.env,
            view,
            login,
            notes,
            mount_points: visible.mount_points,
            build_folders: visible.build_folders,
            written_apart: visible.written_apart,
        })
    }

    /// The way out of a view whose network is a list of hosts.
    fn gateway(&self, kind: ViewKind) -> Option<Gateway> {
        match kind {
            ViewKind::Agent => Gateway::new(&self.seal.agent_network, Asker::Agent, &self.refusals),
            ViewKind::Check => Gateway::new(&self.seal.check_network, Asker::Check, &self.refusals),
            ViewKind::Read | ViewKind::Script => None,
        }
    }

    /// What a view shows.
    fn visible(&self, kind: ViewKind, tree: Tree, at: &Path, folder: &Path, shown: Shown<'_>) -> Result<Visible, WorkspaceError> {
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
            build_folders: shown.build_folders,
            hidden: Hidden { all: open.hidden.all(), shown: shown.hidden },
            scratch: &scratch,
            state: open.held.state().path(),
            agent: Some(&self.agent).filter(|_| kind == ViewKind::Agent),
            run_dir: self.run_dir.as_deref(),
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
}

/// A finished view.
struct Made {
    /// The top of the tree, as seen inside.
    at: PathBuf,
    cwd: PathBuf,
    inside: Option<Inside>,
    env: EnvPlan,
    view: Option<View>,
    login: Login,
    notes: Vec<String>,
    mount_points: Vec<PathBuf>,
    build_folders: Vec<(PathBuf, PathBuf)>,
    written_apart: Vec<(PathBuf, PathBuf)>,
}

/// What a view shows besides its tree.
#[derive(Debug, Clone, Copy, Default)]
struct Shown<'a> {
    build_folders: BuildFolders<'a>,
    /// The folder of a hidden check.
    hidden: Option<&'a Path>,
}
