//! The tree that a session loop would commit now.
//!
//! A candidate is HEAD's tree plus the work tree's version of tracked files and plus new files. Files that were untracked or
//! ignored at the checkpoint belong to the user. They are never included, whatever the agent staged or wrote into `.gitignore`.

use std::fmt;

use verdone_core::base::id::Oid;
use verdone_core::journal::event::Checkpoint;

use super::Git;
use super::error::GitError;
use super::files::{self, Stat};
use super::index::TempIndex;
use super::path::{PathSet, RepoPath};
use super::snapshot::{Snapshot, State};
use super::status::{Blob, Change, Entry, Kind, Status};

#[derive(Debug, Clone)]
pub struct CandidateRules {
    /// Never committed: `.verdone/` and files of the client.
    pub excluded: PathSet,
    /// New files larger than this many bytes block a commit.
    pub largest_file: u64,
}

impl Default for CandidateRules {
    fn default() -> Self {
        Self { excluded: PathSet::default(), largest_file: 100_000_000 }
    }
}

/// A tree that may become a commit.
#[derive(Debug)]
pub struct Candidate {
    pub tree: Oid,
    pub head: Option<Oid>,
    pub history: History,
    /// Why this tree should not be committed.
    pub obstacles: Vec<Obstacle>,
    pub(super) index: TempIndex,
}

/// What happened to the branch since the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum History {
    Same,
    /// The agent added commits.
    Advanced,
    /// HEAD is on another branch, or does not contain the checkpoint's commit.
    Moved {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Git is in the middle of a merge, rebase or similar.
    Operation(&'static str),
    /// An unresolved conflict.
    Unmerged(RepoPath),
    /// A submodule was changed or added.
    Submodule(RepoPath),
    /// A repository was created inside this one.
    Nested(RepoPath),
    /// A nested repository from before the checkpoint was changed or deleted.
    NestedChanged(RepoPath),
    TooLarge {
        path: RepoPath,
        bytes: u64,
    },
    /// The agent itself committed a file that must not be in a commit.
    Protected(RepoPath),
    /// Newly hidden from git, or changed while hidden. The commit would differ from what was checked.
    Hidden(RepoPath),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(operation) => write!(f, "a {operation} is in progress"),
            Self::Unmerged(path) => write!(f, "{path} has an unresolved conflict"),
            Self::Submodule(path) => write!(f, "the submodule {path} was changed"),
            Self::Nested(path) => write!(f, "a repository was created inside this one: {path}"),
            Self::NestedChanged(path) => write!(f, "the repository inside this one was changed: {path}"),
            Self::TooLarge { path, bytes } => write!(f, "{path} is too large to commit ({} MB)", bytes.div_ceil(1_000_000)),
            Self::Protected(path) => write!(f, "{path} was committed, but is not part of the story"),
            Self::Hidden(path) => {
                write!(
                    f,
                    "{path} was hidden from git, or changed while hidden (assume-unchanged, skip-worktree): see git ls-files -v"
                )
            }
        }
    }
}

impl Git {
    /// The tree that would be committed now. Reads the user's index and work tree without changing them.
    pub fn candidate(&self, since: &Checkpoint, rules: &CandidateRules) -> Result<Candidate, GitError> {
        let snapshot = self.snapshot(&since.id)?;
        let status = &self.status()?;
        let index = self.copy_index()?;
        let plan = self.plan(status, &snapshot, rules)?;
        let tree = self.write_tree(&index, &plan)?;
        let changes = self.changed_paths(since.head.as_ref(), &tree)?;
        let mut obstacles = plan.obstacles;
        obstacles.extend(self.operation_in_progress().map(Obstacle::Operation));
        let committed = changes
            .iter()
            .filter(|changed| not_for_a_commit(&changed.path, &snapshot, rules) || snapshot.protects(&changed.path));
        obstacles.extend(committed.map(|changed| Obstacle::Protected(changed.path.clone())));
        obstacles.extend(self.newly_hidden(&snapshot)?.into_iter().map(Obstacle::Hidden));
        for (path, before) in &snapshot.manifest.nested_states {
            if self.state_of_nested(path)? != *before {
                obstacles.push(Obstacle::NestedChanged(path.clone()));
            }
        }
        let history = self.history(since, status)?;
        Ok(Candidate { tree, head: status.head.clone(), history, obstacles, index })
    }

    /// Files hidden since the checkpoint, and files hidden before that have changed.
    fn newly_hidden(&self, snapshot: &Snapshot) -> Result<Vec<RepoPath>, GitError> {
        let mut found: Vec<RepoPath> = self.hidden()?.difference(&snapshot.hidden).cloned().collect();
        for path in &snapshot.hidden {
            let kept = snapshot.entries.get(path).map(|kept| &kept.state);
            let meta = files::stat(&self.top, path).map_err(GitError::io(path.as_path()))?;
            let same = match (kept, meta) {
                (Some(State::File { stat, .. }), Some(meta)) => Stat::from_metadata(&meta) == *stat,
                (Some(State::Symlink { .. }), Some(meta)) => meta.is_symlink(),
                (Some(State::Absent) | None, None) => true,
                (Some(_) | None, _) => false,
            };
            if !same {
                found.push(path.clone());
            }
        }
        Ok(found)
    }

    pub(super) fn history(&self, since: &Checkpoint, status: &Status) -> Result<History, GitError> {
        let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "a detached HEAD".to_owned());
        if status.branch != since.branch {
            let reason = format!("HEAD moved from {} to {}", name(&since.branch), name(&status.branch));
            return Ok(History::Moved { reason });
        }
        let (old, new) = match (&since.head, &status.head) {
            (old, new) if old == new => return Ok(History::Same),
            (None, _) => return Ok(History::Advanced),
            (Some(_), None) => return Ok(History::Moved { reason: "the branch was deleted".to_owned() }),
            (Some(old), Some(new)) => (old, new),
        };
        if self.is_part_of(old, new)? {
            return Ok(History::Advanced);
        }
        Ok(History::Moved { reason: format!("{} is no longer part of the branch", old.short()) })
    }

    pub(super) fn write_tree(&self, index: &TempIndex, plan: &Plan) -> Result<Oid, GitError> {
        self.update_index(index, plan)?;
        self.plumbing("write-tree").env("GIT_INDEX_FILE", index.path()).line().map(Oid)
    }

    pub(super) fn update_index(&self, index: &TempIndex, plan: &Plan) -> Result<(), GitError> {
        let path = index.path();
        if !plan.exact.is_empty() {
            let stdin = plan.exact.clone();
            self.plumbing("update-index").args(["-z", "--index-info"]).env("GIT_INDEX_FILE", &path).stdin(stdin).run()?;
        }
        if !plan.from_work_tree.is_empty() {
            let options = ["--add", "--remove", "--replace", "-z", "--stdin"];
            let stdin = plan.from_work_tree.clone();
            self.plumbing("update-index").args(options).env("GIT_INDEX_FILE", &path).stdin(stdin).run()?;
        }
        Ok(())
    }

    /// The changes to make to the copied index.
    fn plan(&self, status: &Status, snapshot: &Snapshot, rules: &CandidateRules) -> Result<Plan, GitError> {
        let mut plan = Plan::like(&snapshot.checkpoint.id);
        let excluded = |path: &RepoPath| not_for_a_commit(path, snapshot, rules);
        for Entry { path, kind } in &status.entries {
            match kind {
                Kind::Tracked { staged, head, index, .. } if excluded(path) || (head.is_none() && snapshot.protects(path)) => {
                    if *staged != Change::None || index.is_none() {
                        plan.set(path, head.as_ref());
                    }
                }
                // Removed from the index, so it is gone from the tree too, unless it is also listed as a new file.
                Kind::Tracked { staged: Change::Deleted, .. } | Kind::Tracked { work: Change::None, .. } | Kind::Ignored => {}
                // Handled separately, because git refuses to update a path below what is now a symbolic link.
                Kind::Tracked { work: Change::Deleted, .. } => plan.set(path, None),
                Kind::Tracked { work: Change::Modified | Change::Added | Change::TypeChanged, .. } => {
                    self.add_file(&mut plan, path, rules)?;
                }
                Kind::Submodule { staged, head } => {
                    plan.obstacles.push(Obstacle::Submodule(path.clone()));
                    if *staged != Change::None {
                        plan.set(path, head.as_ref());
                    }
                }
                Kind::Unmerged { .. } => {
                    plan.obstacles.push(Obstacle::Unmerged(path.clone()));
                    if self.is_file(path)?.is_some() { plan.add_path(path) } else { plan.set(path, None) }
                }
                Kind::Untracked | Kind::Nested if excluded(path) || snapshot.protects(path) => {}
                Kind::Untracked => self.add_file(&mut plan, path, rules)?,
                Kind::Nested => plan.obstacles.push(Obstacle::Nested(path.clone())),
            }
        }
        Ok(plan)
    }

    fn add_file(&self, plan: &mut Plan, path: &RepoPath, rules: &CandidateRules) -> Result<(), GitError> {
        match self.is_file(path)? {
            Some(bytes) if bytes > rules.largest_file => plan.obstacles.push(Obstacle::TooLarge { path: path.clone(), bytes }),
            Some(_) => plan.add_path(path),
            None => {}
        }
        Ok(())
    }

    /// The size of an existing file or link.
    pub(super) fn is_file(&self, path: &RepoPath) -> Result<Option<u64>, GitError> {
        let meta = files::stat(&self.top, path).map_err(GitError::io(path.as_path()))?;
        Ok(meta.filter(|meta| !meta.is_dir()).map(|meta| meta.len()))
    }
}

/// Excluded by the rules, or the user's own version of a file that is hidden from git.
fn not_for_a_commit(path: &RepoPath, snapshot: &Snapshot, rules: &CandidateRules) -> bool {
    rules.excluded.contains(path) || snapshot.hidden.contains(path)
}

/// Input for `update-index`.
#[derive(Debug)]
pub(super) struct Plan {
    /// Hexadecimal digits of an object id in this repository.
    id_length: usize,
    /// Entries set to a known blob or removed.
    exact: Vec<u8>,
    /// Paths whose content comes from the work tree, through the user's filters.
    from_work_tree: Vec<u8>,
    obstacles: Vec<Obstacle>,
}

impl Plan {
    /// An empty plan for a repository whose ids are as long as this one.
    pub(super) fn like(id: &Oid) -> Self {
        Self { id_length: id.0.len(), exact: Vec::new(), from_work_tree: Vec::new(), obstacles: Vec::new() }
    }

    pub(super) fn add_path(&mut self, path: &RepoPath) {
        self.from_work_tree.extend_from_slice(path.as_bytes());
        self.from_work_tree.push(0);
    }

    pub(super) fn set(&mut self, path: &RepoPath, blob: Option<&Blob>) {
        let line = match blob {
            Some(blob) => format!("{} {}\t", blob.mode, blob.id),
            None => format!("0 {}\t", "0".repeat(self.id_length)),
        };
        self.exact.extend_from_slice(line.as_bytes());
        self.exact.extend_from_slice(path.as_bytes());
        self.exact.push(0);
    }
}
