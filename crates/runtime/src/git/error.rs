//! Git errors, and what to type next.

use std::io;
use std::path::{Path, PathBuf};

use verdone_core::base::id::Oid;

use crate::launcher::Failure;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git was not found on PATH")]
    Missing,
    #[error("git is too old: 2.31 or newer is needed")]
    TooOld,
    #[error("git cannot read this repository: {message}")]
    UnknownFormat { message: String },
    #[error("{} is not in a git repository", dir.display())]
    NotARepository { dir: PathBuf },
    #[error("{} is a bare repository", dir.display())]
    Bare { dir: PathBuf },
    #[error("{} is inside a git directory, not in a work tree", dir.display())]
    NotAWorkTree { dir: PathBuf },
    #[error("git does not know who you are: {message}")]
    NoIdentity { message: String },
    #[error("git {what} failed: {message}")]
    Failed { what: String, code: Option<i32>, message: String },
    #[error("git {what} did not finish within {seconds} s")]
    TimedOut { what: String, seconds: u64 },
    #[error("unexpected output from git {what}: {detail}")]
    Unexpected { what: &'static str, detail: String },
    #[error("another git process is using {}; if none is running, remove that file", lock.display())]
    Locked { lock: PathBuf },
    #[error("{id} is not a checkpoint of this repository")]
    NotACheckpoint { id: String },
    #[error("checkpoint {id} has format {found}, newer than {known}")]
    NewerCheckpoint { id: String, found: u32, known: u32 },
    #[error("branch {name} is at {}, not at {}", shown_tip(found.as_ref()), shown_tip(expected.as_ref()))]
    BranchMoved { name: String, expected: Option<Oid>, found: Option<Oid> },
    /// Moving the branch would leave that work tree with outdated files and an outdated index.
    #[error("branch {name} is checked out in {}{}", at.display(), why.as_ref().map_or_else(String::new, |why| format!(", and {why}")))]
    CheckedOut { name: String, at: PathBuf, why: Option<String> },
    #[error("git stopped in the middle of landing: {said}")]
    LandedHalf { said: String },
    #[error("git could not be started in the workspace: {0}")]
    NotStarted(Failure),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl GitError {
    /// What the user can do about it, if known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("install git"),
            Self::TooOld | Self::UnknownFormat { .. } => Some("install a newer git"),
            Self::NotARepository { .. } => Some("run `git init` first, or change into a repository"),
            Self::Bare { .. } | Self::NotAWorkTree { .. } => Some("change into a work tree: `git worktree add ../work`"),
            Self::NoIdentity { .. } => Some("run `git config user.name NAME` and `git config user.email MAIL`"),
            Self::NotACheckpoint { .. } | Self::NewerCheckpoint { .. } => Some("start the loop again: `verdone loop start`"),
            Self::Locked { .. } => Some("wait for the other git process; if none is running, remove the lock file"),
            Self::CheckedOut { .. } => Some("switch to another branch there: `git switch BRANCH`"),
            Self::LandedHalf { .. } => Some("fix the cause, then run `verdone land` again to finish the landing"),
            Self::Failed { .. }
            | Self::TimedOut { .. }
            | Self::Unexpected { .. }
            | Self::BranchMoved { .. }
            | Self::NotStarted(_)
            | Self::Io { .. } => None,
        }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

/// Why a story was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Git or one of the user's git hooks refused. The index is unchanged.
    #[error("the commit was refused: {message}")]
    Refused {
        message: String,
        /// The deadline passed: a hook hangs, or signing asks for a passphrase without a terminal.
        timed_out: bool,
    },
    #[error(transparent)]
    Git(#[from] GitError),
}

fn shown_tip(tip: Option<&Oid>) -> &str {
    tip.map_or("no commit", Oid::short)
}
