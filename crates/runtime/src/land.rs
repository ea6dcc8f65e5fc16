//! Landing: the commits of a run's own work tree come to the branch of the user's checkout, by a fast-forward or not at all. Then the
//! journals of its runs move over, and the work tree goes where nothing would be lost with it.

mod error;
mod move_runs;

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::id::{Oid, RunId};

use crate::atomic::is_draft;
use crate::git::{Entry, Git, WorkTreeEntry};
use crate::place::{BESIDE, MARKER, Marker};
use crate::project::Project;
use crate::recover::unfinished;
use crate::run::refuse_nested;
use crate::store::{LockError, RunLock};
use crate::words::listed;

pub use error::LandError;
use move_runs::move_runs;

/// What the user asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct LandRequest<'a> {
    /// The branch, where there is more than one to choose from.
    pub branch: Option<&'a str>,
    /// Leave the work tree and its runs where they are.
    pub keep: bool,
    /// Remove the work tree although ignored files go with it.
    pub remove: bool,
}

/// What became of it.
#[derive(Debug)]
pub struct Landed {
    pub branch: String,
    /// The branch of the user's checkout.
    pub into: String,
    pub from: Oid,
    pub to: Oid,
    /// None where the branch had them already.
    pub commits: u32,
    /// Runs whose journals are in the user's checkout now.
    pub runs: Vec<RunId>,
    pub worktree: PathBuf,
    pub fate: Fate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Removed,
    /// It stays, because `--keep` says so.
    Kept,
    /// It stays, because something in it is nowhere else.
    Stays {
        reason: String,
        hint: String,
    },
}

/// A work tree of ours, seen from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub branch: String,
    pub path: PathBuf,
    /// Commits that the current branch does not have.
    pub commits: u32,
}

/// A work tree that we made.
struct Ours {
    tree: WorkTreeEntry,
    branch: String,
    own_dir: PathBuf,
    marker: Marker,
}

pub fn land(project: &Project, request: LandRequest<'_>) -> Result<Landed, LandError> {
    refuse_nested().map_err(Box::new)?;
    let git = Git::open(&project.git_top)?;
    let _here = RunLock::take(git.git_dir())?;
    refuse_unready(&git, project)?;
    let status = git.status()?;
    let into = status.branch.ok_or(LandError::Detached)?;
    let from = status.head.ok_or(LandError::NoCommit)?;
    let ours = choose(&git, request.branch)?;
    let path = ours.tree.path.clone();
    let _there = RunLock::take(&ours.own_dir).map_err(|error| match error {
        LockError::Held { holder } => LandError::Busy { path: path.clone(), holder },
        LockError::Io { .. } => LandError::Lock(error),
    })?;
    refuse_unfinished(&ours)?;
    let to = git.branch_tip(&ours.branch)?.ok_or_else(|| LandError::NoBranch { branch: ours.branch.clone() })?;
    let commits = forward(&git, &ours.branch, &into, &from, &to)?;
    let mut landed =
        Landed { branch: ours.branch.clone(), into, from, to, commits, runs: Vec::new(), worktree: path, fate: Fate::Kept };
    if !request.keep {
        tidy_up(&git, &ours, request.remove, &mut landed)?;
    }
    Ok(landed)
}

/// Work trees of ours other than this one, with what they have for the current branch. No process is started where there are none.
pub fn waiting(git: &Git) -> Result<Vec<Waiting>, LandError> {
    let markers = fs::read_dir(git.common_dir().join("worktrees")).into_iter().flatten().flatten();
    if !markers.into_iter().any(|entry| entry.path().join(MARKER).is_file()) {
        return Ok(Vec::new());
    }
    let head = git.status()?.head;
    let mut found = Vec::new();
    for ours in all(git)? {
        let tip = git.branch_tip(&ours.branch)?;
        let commits = match (&head, &tip) {
            (Some(head), Some(tip)) => git.apart(head, tip)?.1,
            (None, _) | (_, None) => 0,
        };
        found.push(Waiting { branch: ours.branch, path: ours.tree.path, commits });
    }
    Ok(found)
}

fn refuse_unready(git: &Git, project: &Project) -> Result<(), LandError> {
    if Marker::read(git.git_dir()).is_some() {
        let main = git.work_trees()?.into_iter().next().map_or_else(|| project.git_top.clone(), |tree| tree.path);
        return Err(LandError::Inside { main });
    }
    if let Some(operation) = git.operation_in_progress() {
        return Err(LandError::Operation { operation });
    }
    match unfinished(&project.root)? {
        Some(run) => Err(LandError::Unfinished { run, path: project.root.clone() }),
        None => Ok(()),
    }
}

fn all(git: &Git) -> Result<Vec<Ours>, LandError> {
    let trees = git.work_trees()?.into_iter().filter(|tree| tree.path != git.top());
    Ok(trees
        .filter_map(|tree| {
            let own_dir = tree.own_dir.clone()?;
            let marker = Marker::read(&own_dir)?;
            Some(Ours { branch: marker.branch.clone(), tree, own_dir, marker })
        })
        .collect())
}

fn choose(git: &Git, branch: Option<&str>) -> Result<Ours, LandError> {
    let mut all = all(git)?;
    if let Some(branch) = branch {
        let known: Vec<String> = all.iter().map(|ours| ours.branch.clone()).collect();
        let found = all.into_iter().find(|ours| ours.branch == branch);
        return found.ok_or_else(|| LandError::Unknown { branch: branch.to_owned(), known });
    }
    match (all.pop(), all.len()) {
        (None, _) => Err(LandError::Nothing),
        (Some(only), 0) => Ok(only),
        (Some(last), _) => {
            Err(LandError::Several { branches: all.iter().chain([&last]).map(|ours| ours.branch.clone()).collect() })
        }
    }
}

/// The work tree has to be in order: on its branch, nothing half done, nothing uncommitted of what git knows.
fn refuse_unfinished(ours: &Ours) -> Result<(), LandError> {
    let path = &ours.tree.path;
    let missing = ours.tree.missing;
    for root in ours.marker.roots.iter().filter(|_| !missing) {
        let root = path.join(root);
        if let Some(run) = unfinished(&root)? {
            return Err(LandError::Unfinished { run, path: root });
        }
    }
    if ours.tree.branch.as_ref() != Some(&ours.branch) {
        return Err(LandError::OtherBranch { path: path.clone(), branch: ours.branch.clone(), found: ours.tree.branch.clone() });
    }
    if missing {
        return Ok(());
    }
    let there = Git::open(path)?;
    if let Some(operation) = there.operation_in_progress() {
        return Err(LandError::OperationThere { operation, path: path.clone() });
    }
    let changed: Vec<String> = names(there.status()?.entries.iter().filter(|entry| !entry.is_untracked()));
    if changed.is_empty() { Ok(()) } else { Err(LandError::Dirty { path: path.clone(), names: listed(&changed) }) }
}

/// How many commits the branch of the checkout gained.
fn forward(git: &Git, branch: &str, into: &str, from: &Oid, to: &Oid) -> Result<u32, LandError> {
    let (ours, theirs) = git.apart(from, to)?;
    if theirs == 0 {
        return Ok(0);
    }
    if ours > 0 {
        let (into, branch) = (into.to_owned(), branch.to_owned());
        return Err(LandError::NotForward { into, branch, ours, theirs });
    }
    let answered = git.fast_forward(to)?;
    if !answered.done {
        return Err(LandError::InTheWay { into: into.to_owned(), said: answered.why() });
    }
    Ok(theirs)
}

/// Moves the runs over, and removes the work tree where nothing is lost with it.
fn tidy_up(git: &Git, ours: &Ours, remove: bool, landed: &mut Landed) -> Result<(), LandError> {
    let path = &ours.tree.path;
    let stays = |reason: String, hint: String| Fate::Stays { reason, hint };
    if !ours.tree.missing {
        for root in &ours.marker.roots {
            match move_runs(path, git.top(), root) {
                Ok(runs) => landed.runs.extend(runs),
                Err(error) => {
                    landed.fate =
                        stays(format!("its runs cannot be moved: {error}"), "verdone land, when that is mended".to_owned());
                    return Ok(());
                }
            }
        }
        let there = Git::open(path)?;
        let untracked = names(there.status()?.entries.iter());
        if !untracked.is_empty() {
            let hint = "move away what you need of them, delete the rest, and: verdone land".to_owned();
            landed.fate = stays(format!("untracked files are only there: {}", listed(&untracked)), hint);
            return Ok(());
        }
        let runs: Vec<PathBuf> = ours.marker.roots.iter().map(|root| root.join(".verdone/runs")).collect();
        let ignored: Vec<String> = there
            .ignored()?
            .iter()
            .filter(|path| !runs.iter().any(|runs| is_only_ours(path, runs)))
            .map(|path| path.display().to_string())
            .collect();
        if !ignored.is_empty() && !remove {
            let hint = format!("verdone land --remove {} deletes it with them", ours.branch);
            landed.fate = stays(format!("ignored files are only there: {}", listed(&ignored)), hint);
            return Ok(());
        }
    }
    let answered = git.remove_work_tree(path)?;
    landed.fate = if answered.done {
        // Only our own folder, and only where it is empty.
        let beside = path.parent().filter(|parent| parent.to_string_lossy().ends_with(BESIDE));
        let _ = beside.map(fs::remove_dir);
        Fate::Removed
    } else {
        stays(format!("git does not remove it: {}", answered.why()), format!("git worktree remove {}", path.display()))
    };
    Ok(())
}

/// What is left of `.verdone/runs/` when the runs are gone: its ignore file, and a copy of it that a killed process did not finish.
fn is_only_ours(path: &Path, runs: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path == runs || (path.parent() == Some(runs) && (name == ".gitignore" || is_draft(name)))
}

fn names<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<String> {
    entries.map(|entry| entry.path.to_string()).collect()
}
