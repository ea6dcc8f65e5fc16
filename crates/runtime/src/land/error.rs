//! Why a run's commits do not land, and what to type next.

use std::path::PathBuf;

use verdone_core::id::RunId;

use crate::git::GitError;
use crate::run::RunError;
use crate::store::{Holder, JournalError, LockError};
use crate::words::plural;

#[derive(Debug, thiserror::Error)]
pub enum LandError {
    #[error("there is no worktree of a run to land")]
    Nothing,
    #[error("there is no worktree of a run on branch {branch:?}")]
    Unknown { branch: String, known: Vec<String> },
    #[error("there are several worktrees of runs: {}", branches.join(", "))]
    Several { branches: Vec<String> },
    #[error("this is the worktree of a run itself")]
    Inside { main: PathBuf },
    #[error("HEAD is detached: there is no branch to land on")]
    Detached,
    #[error("there is no commit here yet to land on")]
    NoCommit,
    #[error("branch {branch} is gone")]
    NoBranch { branch: String },
    #[error("a {operation} is in progress")]
    Operation { operation: &'static str },
    #[error("a {operation} is in progress in {}", path.display())]
    OperationThere { operation: &'static str, path: PathBuf },
    #[error("a run works in {}: {holder}", path.display())]
    Busy { path: PathBuf, holder: Holder },
    #[error("run {run} in {} did not end properly", path.display())]
    Unfinished { run: RunId, path: PathBuf },
    #[error("{} is not on branch {branch} but {}", path.display(), found.as_ref().map_or("detached".to_owned(), |name| format!("on {name}")))]
    OtherBranch { path: PathBuf, branch: String, found: Option<String> },
    #[error("uncommitted changes in {}: {names}", path.display())]
    Dirty { path: PathBuf, names: String },
    #[error(
        "{into} cannot be fast-forwarded: it has {ours} that {branch} has not, and {branch} has {theirs} of its own",
        ours = plural(*ours, "commit", "commits"), theirs = plural(*theirs, "commit", "commits")
    )]
    NotForward { into: String, branch: String, ours: u32, theirs: u32 },
    #[error("git did not move {into} forward, and nothing was changed: {said}")]
    InTheWay { into: String, said: String },
    #[error(transparent)]
    Nested(#[from] Box<RunError>),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl LandError {
    pub fn hints(&self) -> Vec<String> {
        let one = |hint: &str| vec![hint.to_owned()];
        match self {
            Self::Nothing => one("verdone run --worktree makes one"),
            Self::Unknown { known, .. } if known.is_empty() => one("verdone run --worktree makes one"),
            Self::Unknown { known, .. } => vec![format!("there are: {}", known.join(", "))],
            Self::Several { .. } => one("name one of them: verdone land BRANCH"),
            Self::Inside { main } => vec![format!("land from your own checkout: verdone -C {} land", main.display())],
            Self::Detached => one("git switch BRANCH first"),
            Self::NoCommit => one("git switch BRANCH first, to one that has a commit"),
            Self::NoBranch { .. } => one("git worktree list says what is left of it"),
            Self::Operation { .. } | Self::OperationThere { .. } => one("finish or abort it first"),
            Self::Busy { path, .. } => vec![
                format!("wait for it: verdone -C {} log --follow", path.display()),
                format!("or stop it: verdone -C {} stop", path.display()),
            ],
            Self::Unfinished { path, .. } => vec![format!("verdone -C {} run puts it in order first", path.display())],
            Self::OtherBranch { path, branch, .. } => vec![format!("git -C {} switch {branch}", path.display())],
            Self::Dirty { path, .. } => vec![format!("commit or undo them there: git -C {} status", path.display())],
            Self::NotForward { branch, .. } => {
                vec![format!("git merge {branch} brings both together; then verdone land again, to tidy up")]
            }
            Self::InTheWay { .. } => one("commit or move away what is named, and land again"),
            Self::Git(error) => error.hint().map(str::to_owned).into_iter().collect(),
            Self::Nested(_) | Self::Journal(_) | Self::Lock(_) => Vec::new(),
        }
    }
}
