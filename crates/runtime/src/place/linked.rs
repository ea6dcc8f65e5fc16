//! A run in a linked work tree: beside the repository, so that no tool that looks upward finds the user's checkout, and not in its
//! git directory, which agents may not write to. Made once for a branch and found again by the next run on it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use verdone_core::id::{Oid, folder_name};
use verdone_core::update::{Reporter, Update};

use super::{PlaceError, Wanted, real_parent};
use crate::atomic::write_atomically;
use crate::git::{Git, WorkTreeEntry};
use crate::plan_file::PlanRequest;
use crate::preflight::{Finding, Health};
use crate::project::{FRESHER, HOME, Project};
use crate::regular::read_regular;
use crate::run::{Ready, RunError, refuse_nested};
use crate::store::Store;

/// In a work tree's own git directory: it is ours.
pub(crate) const MARKER: &str = "verdone-made";

/// What the folder of our work trees is called after the repository's name.
pub(crate) const BESIDE: &str = "-worktrees";

/// Findings about the user's checkout that do not matter to a run elsewhere.
/// A name and some paths.
const LARGEST_MARKER: u64 = 1024 * 1024;
const OF_THE_CHECKOUT: [&str; 5] = ["branch", "work tree", "operation", "untracked", "files"];

/// What we remember about a work tree that we made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) branch: String,
    /// The projects in it that had a run, from the top of the work tree.
    pub(crate) roots: Vec<PathBuf>,
}

impl Marker {
    pub(crate) fn read(own_dir: &Path) -> Option<Self> {
        let path = own_dir.join(MARKER);
        // An agent can write there too: no pipe is waited for, and no path leads out of the work tree.
        let mut marker: Self = serde_json::from_slice(&read_regular(&path, LARGEST_MARKER).ok()?).ok()?;
        marker.roots.retain(|root| root.components().all(|part| matches!(part, Component::Normal(_))));
        Some(marker)
    }

    fn write(&self, own_dir: &Path) -> Result<(), PlaceError> {
        let path = own_dir.join(MARKER);
        let failed = |source| PlaceError::Io { path: path.clone(), source };
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        write_atomically(&path, &text).map_err(failed)
    }
}

/// Where the run would work: looked up and found possible, nothing made yet.
#[derive(Debug)]
pub struct Choice {
    pub branch: Wanted,
    pub path: PathBuf,
    pub state: WorkTreeState,
    /// Whether the branch has to be made.
    pub is_new_branch: bool,
    head: Oid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkTreeState {
    New,
    There,
    /// Known to git, but its folder was deleted.
    Gone,
}

/// A linked work tree that is there.
#[derive(Debug)]
pub struct Linked {
    pub branch: String,
    pub top: PathBuf,
    /// Where the user stands, seen from the work tree.
    pub start: PathBuf,
    /// The top of the user's checkout.
    from: PathBuf,
}

impl Choice {
    /// Finds the place of a run for the plan in the user's checkout, and refuses what could not be run there.
    pub fn look(ready: &Ready, argument: Option<&str>) -> Result<Self, RunError> {
        refuse_nested()?;
        let (git, project) = (&ready.git, &ready.request.project);
        let branch = Wanted::of(git, argument, Some(&ready.plan))?;
        let branch = branch.unwrap_or_else(|| Wanted::for_plan(&ready.plan, project));
        let head = git.status()?.head.ok_or(PlaceError::NoCommit)?;
        let trees = git.work_trees()?;
        let path = beside(git, &trees)?.join(folder_name(&branch.name));
        let found = find(&trees, &branch.name, &path)?;
        let path = found.map_or(path, |tree| tree.path.clone());
        let state = match found {
            None => WorkTreeState::New,
            Some(tree) if tree.missing => WorkTreeState::Gone,
            Some(_) => WorkTreeState::There,
        };
        let tip = git.branch_tip(&branch.name)?;
        if path != git.top() {
            let seen = seen_paths(ready);
            refuse_uncommitted(git, &seen)?;
            if let Some(tip) = &tip {
                let place = (state == WorkTreeState::There).then_some(path.as_path());
                refuse_older(git, &head, tip, &seen, &branch.name, place)?;
            }
        }
        Ok(Self { is_new_branch: tip.is_none(), branch, path, state, head })
    }

    /// Whether something that was found in the user's checkout counts for a run elsewhere.
    pub fn matters(finding: &Finding) -> bool {
        !OF_THE_CHECKOUT.contains(&finding.what)
    }

    /// Makes the work tree where it is not there yet, and remembers that it is ours.
    pub fn make(self, ready: &Ready, reporter: &mut dyn Reporter) -> Result<Linked, RunError> {
        let findings = ready.examine()?.into_iter();
        if let Some(bad) = findings.filter(Self::matters).find(|finding| finding.health == Health::Bad) {
            return Err(RunError::Refused(bad));
        }
        Ok(self.make_it(ready, reporter)?)
    }

    fn make_it(self, ready: &Ready, reporter: &mut dyn Reporter) -> Result<Linked, PlaceError> {
        let (git, project) = (&ready.git, &ready.request.project);
        if self.state == WorkTreeState::Gone {
            let answered = git.remove_work_tree(&self.path)?;
            if !answered.done {
                return Err(PlaceError::Gone { path: self.path, said: answered.why() });
            }
            let text = format!("the worktree {} was deleted; it is made anew from its branch", self.path.display());
            reporter.report(Update::Notice { text: &text });
        }
        if self.state != WorkTreeState::There {
            self.add(git)?;
        }
        let linked = Git::open(&self.path)?;
        let roots = self.remember(&linked, project)?;
        let from = |path: &Path| path.strip_prefix(&project.git_top).map_or_else(|_| PathBuf::new(), Path::to_path_buf);
        let (start, root) = (self.path.join(from(&project.start)), self.path.join(roots));
        // A folder without a tracked file is not there yet.
        fs::create_dir_all(&start).map_err(|source| PlaceError::Io { path: start.clone(), source })?;
        Store::of(&root).hide().map_err(|source| PlaceError::Io { path: root.join(HOME), source })?;
        let name = &self.branch.name;
        let how = match (self.state, self.is_new_branch) {
            (WorkTreeState::There, _) => "continued".to_owned(),
            (WorkTreeState::New | WorkTreeState::Gone, true) => format!("new at {}", self.head.short()),
            (WorkTreeState::New | WorkTreeState::Gone, false) => "which exists".to_owned(),
        };
        let place = self.path.display();
        reporter.report(Update::Notice {
            text: &format!(
                "working in {place} on branch {name} ({how}), by {}; your checkout stays as it is",
                self.branch.source.words()
            ),
        });
        reporter.report(Update::Notice {
            text: &format!("look at it with: verdone -C {place} status; take its commits over with: verdone land"),
        });
        Ok(Linked { branch: self.branch.name, top: self.path, start, from: project.git_top.clone() })
    }

    fn add(&self, git: &Git) -> Result<(), PlaceError> {
        let not_made = |said: String| PlaceError::NotMade { path: self.path.clone(), said };
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(|error| not_made(format!("{}: {error}", parent.display())))?;
        }
        let answered = git.add_work_tree(&self.path, &self.branch.name, self.is_new_branch)?;
        if answered.done { Ok(()) } else { Err(not_made(answered.why())) }
    }

    /// Answers with the project's root, from the top of the work tree.
    fn remember(&self, linked: &Git, project: &Project) -> Result<PathBuf, PlaceError> {
        let root = project.root.strip_prefix(&project.git_top).map_or_else(|_| PathBuf::new(), Path::to_path_buf);
        let known = Marker::read(linked.git_dir());
        // Killed while git made it, it may be without some of its files; no run of ours was in it yet.
        if known.is_none() && self.state == WorkTreeState::There && !linked.status()?.is_clean() {
            return Err(PlaceError::HalfMade { path: self.path.clone() });
        }
        let mut marker = known.unwrap_or_default();
        marker.branch.clone_from(&self.branch.name);
        if !marker.roots.contains(&root) {
            marker.roots.push(root.clone());
        }
        marker.write(linked.git_dir())?;
        Ok(root)
    }
}

impl Linked {
    /// The same request seen from the work tree: absolute paths into the user's checkout mean the work tree.
    #[must_use]
    pub fn seen_from_here(&self, request: PlanRequest) -> PlanRequest {
        let moved = |path: Option<PathBuf>| {
            path.map(|path| path.strip_prefix(&self.from).map(|below| self.top.join(below)).unwrap_or(path))
        };
        PlanRequest {
            named: moved(request.named),
            configured: moved(request.configured),
            loop_dir: moved(request.loop_dir),
            progress_path: moved(request.progress_path),
            root: request.root,
            cwd: request.cwd,
            prd: request.prd,
        }
    }
}

/// The folder for our work trees: next to the repository's main work tree.
fn beside(git: &Git, trees: &[WorkTreeEntry]) -> Result<PathBuf, PlaceError> {
    // In a submodule git names its own directory as the main work tree.
    let main = if git.git_dir() == git.common_dir() { git.top() } else { trees.first().map_or(git.top(), |tree| &tree.path) };
    let (Some(parent), Some(name)) = (main.parent(), main.file_name()) else {
        let said = "a repository at the root has no folder beside it".to_owned();
        return Err(PlaceError::NotMade { path: main.to_owned(), said });
    };
    let mut name = name.to_owned();
    name.push(BESIDE);
    Ok(parent.join(name))
}

/// The work tree of the branch, if it is one of ours. One of ours whose agent went to another branch is found by its place.
fn find<'t>(trees: &'t [WorkTreeEntry], branch: &str, place: &Path) -> Result<Option<&'t WorkTreeEntry>, PlaceError> {
    let marker = |tree: &WorkTreeEntry| tree.own_dir.as_deref().and_then(Marker::read);
    if let Some(tree) = trees.iter().find(|tree| tree.branch.as_deref() == Some(branch)) {
        // Killed before the marker was written, it is known by its place alone.
        if tree.path == place || marker(tree).is_some() {
            return Ok(Some(tree));
        }
        return Err(PlaceError::Elsewhere { branch: branch.to_owned(), path: tree.path.clone() });
    }
    let Some(tree) = trees.iter().find(|tree| tree.path == place) else {
        return if fs::symlink_metadata(place).is_ok() && !is_empty_folder(place) {
            Err(PlaceError::Taken { path: place.to_owned(), branch: branch.to_owned() })
        } else {
            Ok(None)
        };
    };
    if marker(tree).is_some_and(|marker| marker.branch == branch) {
        return Ok(Some(tree));
    }
    Err(PlaceError::Taken { path: place.to_owned(), branch: branch.to_owned() })
}

fn is_empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// What the user sees and expects the run to see: the plan with what is beside it, and the settings.
fn seen_paths(ready: &Ready) -> Vec<PathBuf> {
    let root = &ready.request.project.root;
    let mut paths = vec![real_parent(ready.plan.path())];
    paths.extend(fs::canonicalize(ready.plan.path()).ok().filter(|target| *target != paths[0]));
    paths.extend([HOME, FRESHER].map(|name| root.join(name)).into_iter().filter(|path| path.exists()));
    // A plan elsewhere is used where it is.
    paths.retain(|path| path.starts_with(ready.git.top()));
    paths
}

fn refuse_uncommitted(git: &Git, seen: &[PathBuf]) -> Result<(), PlaceError> {
    if seen.is_empty() {
        return Ok(());
    }
    let paths: Vec<&Path> = seen.iter().map(PathBuf::as_path).collect();
    let runs: Vec<PathBuf> = seen.iter().map(|path| path.join("runs")).collect();
    let entries = git.uncommitted(&paths)?.entries;
    let names = entries.iter().map(|entry| git.top().join(entry.path.as_path())).filter(|path| {
        // Kept by earlier runs, and by git's own rules never committed.
        !runs.iter().any(|runs| path.starts_with(runs))
    });
    let paths: Vec<String> = names.map(|path| shown(git, &path)).collect();
    if paths.is_empty() { Ok(()) } else { Err(PlaceError::Uncommitted { paths }) }
}

/// A run on an older plan than the one that the user sees would be a surprise.
fn refuse_older(
    git: &Git,
    head: &Oid,
    tip: &Oid,
    seen: &[PathBuf],
    branch: &str,
    worktree: Option<&Path>,
) -> Result<(), PlaceError> {
    for path in seen {
        let Some(repo_path) = git.repo_path(path) else { continue };
        if !git.knows_last_change(head, tip, &repo_path)? {
            let ours = git.status()?.branch.unwrap_or_else(|| head.short().to_owned());
            let (path, branch) = (shown(git, path), branch.to_owned());
            return Err(PlaceError::Older { path, branch, worktree: worktree.map(Path::to_owned), ours });
        }
    }
    Ok(())
}

fn shown(git: &Git, path: &Path) -> String {
    path.strip_prefix(git.top()).unwrap_or(path).display().to_string()
}
