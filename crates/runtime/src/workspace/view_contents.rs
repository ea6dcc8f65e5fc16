//! Plans what the processes of one view see, as data: the mounts, the environment, what to prepare on disk, and what is missing
//! compared with the ideal. Nothing is mounted here; only [`Preparation::carry_out`] writes.
//!
//! The order of the mounts matters, because a later one covers an earlier one. Private temporary folders come first, because
//! anything below /tmp has to be mounted again on top of them. Then come HOME and the agent's own state, the project's tree, its
//! ignored folders, the parts of the run's folder, and last of all what is hidden.

mod agent_state;
mod codex_state;
mod copy;
mod draft;
mod environment;
mod folders;
mod hidden;
mod home_folder;
mod masks;
mod prepare;
mod submodules;
mod system;
mod temp;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use verdone_core::agent::AgentKind;
use verdone_core::agent::client_files::LoginForm;
use verdone_core::config::{NetworkAccess, SealSettings, WorkspaceSettings};

use crate::git::{IgnoredEntry, Module};
use crate::launcher::{Mount, Network, ViewPlan};
use crate::process::EnvPlan;
use draft::Draft;
use prepare::Step;

/// Folders of the project that may contain lifecycle scripts.
const SCRIPT_HOMES: [&str; 2] = [crate::project::HOME, ".fresher"];

pub(super) use draft::key;
pub(super) use folders::run_folders;
pub use prepare::{Preparation, PrepareError};
pub use system::System;

/// What the view is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewKind {
    /// A working agent.
    Agent,
    /// A check, a setup command or one of the user's git hooks.
    Check,
    /// Git reading an agent's tree: no network, no ignored folders, an unchanged HOME. Its output goes to the temporary folder.
    Read,
    /// A lifecycle script. It is the user's own program, so it is not sealed. It sees the project's files but cannot write them.
    Script,
}

/// The files shown at the project's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// This folder itself.
    Writable(PathBuf),
    /// Copy-on-write over this folder and over `built`, which contains build folders that are missing in it. The preparation
    /// recreates `work`.
    Overlay { lower: PathBuf, built: Option<PathBuf>, upper: PathBuf, work: PathBuf },
    /// This folder, read-only.
    ReadOnly(PathBuf),
}

impl Tree {
    /// The folder that contains the files.
    pub fn files(&self) -> &Path {
        match self {
            Self::Writable(folder) | Self::ReadOnly(folder) | Self::Overlay { lower: folder, .. } => folder,
        }
    }
}

/// Where the content of build folders comes from. These are the ignored folders with the mode `cache`.
#[derive(Debug, Clone, Copy, Default)]
pub enum BuildFolders<'a> {
    /// From the checkout.
    #[default]
    Checkout,
    /// From the checkout, below the output of earlier checks: a layer for each path, relative to the top of the checkout.
    Kept(&'a BTreeMap<PathBuf, PathBuf>),
    /// Left out, along with tool caches inside dependency folders.
    Absent,
}

/// Folders that no setting can show, by their real paths: those of hidden checks, and those of runs in other checkouts of the
/// repository.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hidden<'a> {
    pub all: &'a [PathBuf],
    /// The folder that this view may see.
    pub shown: Option<&'a Path>,
}

/// What this system supports, according to the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Namespaces in which mounting works. Without them, every path shows the real system.
    pub mounts: bool,
    /// Overlays with an upper layer in the state folder.
    pub overlay: bool,
}

/// The agent in an [`ViewKind::Agent`] view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentInUse {
    pub kind: AgentKind,
    /// The command line of an agent with an arbitrary command. Names of known clients in it determine which login it needs.
    pub command: String,
    /// Absolute paths of the programs that it starts with. They stay visible even below /tmp.
    pub programs: Vec<PathBuf>,
}

/// Everything that a view is made from. Paths are absolute and without symlinks.
#[derive(Debug)]
pub struct ViewRequest<'a> {
    pub kind: ViewKind,
    /// The workspace's name, for `COMPOSE_PROJECT_NAME`.
    pub name: &'a str,
    /// The first of the workspace's own ports.
    pub port_base: u16,
    /// The top of the user's work tree.
    pub checkout: &'a Path,
    /// The project's root in it: where `.verdone/` is.
    pub root: &'a Path,
    /// Where the tree is seen: at `checkout`, or at its own path.
    pub at: &'a Path,
    pub tree: Tree,
    /// Object folders of the user's repository. The first appears at `.git/base-objects` of the tree, the others at
    /// `.git/base-objects-2` and so on. Only used if `.git` is a folder of the tree.
    pub objects: &'a [PathBuf],
    /// Repositories of submodules. Their objects appear at `base-objects` of their private repositories.
    pub modules: &'a [Module],
    /// What git ignores in the checkout; see [`crate::git::Git::ignored_entries`].
    pub ignored: &'a [IgnoredEntry],
    pub build_folders: BuildFolders<'a>,
    pub hidden: Hidden<'a>,
    /// A folder of the workspace for upper layers, copies and temporary files. A view that continues an earlier one uses the same
    /// folder.
    pub scratch: &'a Path,
    /// Verdone's state folder.
    pub state: &'a Path,
    pub agent: Option<&'a AgentInUse>,
    /// The run's folder in the checkout, `.verdone/runs/<id>`.
    pub run_dir: Option<&'a Path>,
    pub workspace: &'a WorkspaceSettings,
    pub seal: &'a SealSettings,
    pub abilities: Abilities,
}

/// A view, ready to be prepared and launched.
#[derive(Debug)]
pub struct Visible {
    pub plan: ViewPlan,
    pub env: EnvPlan,
    /// What is missing or degraded, and why: for the start of a run, `doctor` and the evidence.
    pub notes: Vec<String>,
    /// Copy-on-write folders of the tree, relative to the project's root. They can be emptied inside, but not removed or renamed.
    pub mount_points: Vec<PathBuf>,
    /// Copy-on-write build folders, relative to the top of the tree, each with the folder that receives the writes.
    pub build_folders: Vec<(PathBuf, PathBuf)>,
    /// The same for every folder of the tree whose writes go elsewhere.
    pub written_apart: Vec<(PathBuf, PathBuf)>,
    pub preparation: Preparation,
    /// Where the client would write a renewed login, and the user's own file.
    pub credentials: Option<Credentials>,
}

/// The client's login file: the one that the view writes, and the user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    pub written: PathBuf,
    pub own: PathBuf,
    /// The file in which the client records the account: the view's, and the user's own.
    pub answers: Option<(PathBuf, PathBuf)>,
    pub form: LoginForm,
}

pub fn build(request: &ViewRequest<'_>, system: &System) -> Visible {
    let mut draft = Draft::new(request, system);
    match (request.kind, request.abilities.mounts) {
        (ViewKind::Script, true) => script(&mut draft),
        (_, true) => sealed(&mut draft),
        (_, false) => unmounted(&mut draft),
    }
    let env = environment::plan(&mut draft);
    let credentials = agent_state::credentials(&draft).or_else(|| codex_state::credentials(&draft));
    let network = match request.kind {
        ViewKind::Agent => network(request.seal.agent_network),
        ViewKind::Check => network(request.seal.check_network),
        ViewKind::Read => Network::Off,
        ViewKind::Script => Network::Open,
    };
    Visible {
        plan: ViewPlan { mounts: draft.mounts, network },
        env,
        notes: draft.notes,
        mount_points: draft.mount_points,
        build_folders: draft.build_folders,
        written_apart: draft.written_apart,
        preparation: Preparation { steps: draft.steps },
        credentials,
    }
}

fn network(setting: NetworkAccess) -> Network {
    match setting {
        NetworkAccess::Open => Network::Open,
        NetworkAccess::Off => Network::Off,
    }
}

fn sealed(draft: &mut Draft<'_>) {
    let request = draft.request;
    temp::private(draft);
    home_folder::show(draft);
    home_folder::write_through(draft);
    // If the home folder is inside the project, the tree covers it, so the client's own folders are mounted on top of the tree.
    let late = draft.system.home.as_ref().is_some_and(|home| home.starts_with(request.at));
    if !late {
        agent_state::show(draft);
        codex_state::show(draft);
    }
    // Git that reads files has its own folders there.
    let in_state = request.at.starts_with(request.state) || request.kind == ViewKind::Read;
    if in_state {
        // The visible parts of the state folder are mounted into an empty one.
        draft.mounts.push(Mount::Scratch { at: request.state.to_owned() });
    }
    if request.at != request.checkout {
        folders::keep_checkout_out_of_reach(draft);
    }
    tree(draft);
    if late {
        agent_state::show(draft);
        codex_state::show(draft);
    }
    if request.kind != ViewKind::Read {
        folders::show(draft);
        run_parts(draft);
    }
    masks::hide(draft);
    if !in_state {
        draft.mounts.push(Mount::Mask { at: request.state.to_owned() });
    }
    hidden::hide(draft);
}

/// A lifecycle script sees everything like the user does, except for the project's files.
fn script(draft: &mut Draft<'_>) {
    let request = draft.request;
    write_everywhere(draft);
    own_temp(draft);
    tree(draft);
    folders::show(draft);
    // The scripts themselves and the folders that they write to: the user's version, whatever the run's commits contain.
    for home in SCRIPT_HOMES {
        let (own, at) = (request.root.join(home), draft.root_at().join(home));
        if own.is_dir() && draft.mount_point(&at) {
            draft.bind(&own, &at, true);
        }
    }
}

/// Mounts everything writable, because a view is read-only where no mount covers it.
fn write_everywhere(draft: &mut Draft<'_>) {
    for folder in draft.system.roots.clone() {
        draft.bind(&folder, &folder, true);
    }
}

/// A temporary folder at its real path.
fn own_temp(draft: &mut Draft<'_>) {
    let temp = draft.request.scratch.join("temp/own");
    draft.folder(&temp);
    draft.bind(&temp, &temp, true);
    draft.temp_inside = temp;
}

/// Without namespaces, every path is real, and the plan only determines what may be written.
fn unmounted(draft: &mut Draft<'_>) {
    let request = draft.request;
    if request.kind == ViewKind::Script {
        write_everywhere(draft);
    }
    own_temp(draft);
    let memory = Path::new("/dev/shm");
    draft.bind(memory, memory, true);
    let files = request.tree.files().to_owned();
    let write = !matches!(request.tree, Tree::ReadOnly(_));
    draft.bind(&files, &files, write);
    if !matches!(request.kind, ViewKind::Read | ViewKind::Script) {
        folders::copy_in(draft);
        home_folder::write_through(draft);
        agent_state::copy_in(draft);
        codex_state::copy_in(draft);
        link_run_parts(draft);
        draft.note(
            "This system has no private views: the home folder can be read, and credentials in it are not hidden.".to_owned(),
        );
    }
    masks::hide(draft);
}

fn tree(draft: &mut Draft<'_>) {
    let request = draft.request;
    let at = request.at.to_owned();
    match &request.tree {
        Tree::Writable(folder) => draft.bind(folder, &at, true),
        Tree::ReadOnly(folder) => draft.bind(folder, &at, false),
        Tree::Overlay { lower, built, upper, work } => {
            draft.overlay_at(built.iter().chain([lower]).cloned().collect(), upper, work, &at);
        }
    }
    if !draft::is_real_folder(&request.tree.files().join(".git")) {
        return;
    }
    for (n, objects) in request.objects.iter().enumerate() {
        let name = if n == 0 { "base-objects".to_owned() } else { format!("base-objects-{}", n + 1) };
        let place = at.join(".git").join(name);
        if draft.mount_point(&place) {
            draft.bind(objects, &place, false);
        }
    }
    submodules::show_objects(draft);
}

/// The parts of the run's folder in an agent's view, and whether they are writable: what the hooks inside record about their
/// sessions; prompts, with the story of the turn for those hooks; and the socket of the tools. Nothing else of `.verdone/runs` is in the tree, neither
/// journals nor output.
const RUN_PARTS: [(&str, bool); 3] = [("sessions", true), ("turns", false), ("tools", false)];

fn run_parts(draft: &mut Draft<'_>) {
    let Some(run) = draft.request.run_dir else { return };
    if draft.request.kind != ViewKind::Agent {
        return;
    }
    for (name, write) in RUN_PARTS {
        let from = run.join(name);
        let Ok(below) = from.strip_prefix(draft.request.root) else { continue };
        let place = draft.root_at().join(below);
        draft.folder(&from);
        if draft.mount_point(&place) {
            draft.bind(&from, &place, write);
        }
    }
}

/// Like [`run_parts`], for systems without mounts: the tree has links to them.
fn link_run_parts(draft: &mut Draft<'_>) {
    let Some(run) = draft.request.run_dir.filter(|_| draft.request.kind == ViewKind::Agent) else { return };
    for (name, write) in RUN_PARTS {
        let part = run.join(name);
        draft.folder(&part);
        if write {
            draft.bind(&part, &part, true);
        }
        let Ok(below) = run.strip_prefix(draft.request.root) else { continue };
        let place = draft.root_at().join(below);
        if draft.mount_point(&place) {
            draft.steps.push(Step::Link { at: place.join(name), to: part });
        }
    }
}

/// The file outside that receives the writes to a path inside; `None` if it is not writable.
pub fn written_at(mounts: &[Mount], inside: &Path) -> Option<PathBuf> {
    let covers = |at: &PathBuf| inside.strip_prefix(at).ok().map(Path::to_path_buf);
    let joined = |folder: &Path, rest: PathBuf| if rest.as_os_str().is_empty() { folder.to_owned() } else { folder.join(rest) };
    mounts.iter().rev().find_map(|mount| match mount {
        Mount::Bind { from, at, write } => covers(at).map(|rest| write.then(|| joined(from, rest))),
        Mount::Overlay { upper, at, .. } => covers(at).map(|rest| Some(joined(upper, rest))),
        Mount::Scratch { at } | Mount::Mask { at } => covers(at).map(|_| None),
    })?
}

#[cfg(test)]
mod tests;
