//! Why a run cannot work where it was asked to, and what to type next.

use std::io;
use std::path::PathBuf;

use super::Source;
use crate::git::GitError;

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("{name:?} cannot be the name of a branch (asked for by {})", by.words())]
    BadName { name: String, by: Source },
    #[error("branch {branch} is checked out in {}: it can be in one work tree only", path.display())]
    Elsewhere { branch: String, path: PathBuf },
    #[error("git did not switch to branch {branch}, and nothing was changed: {said}")]
    NotSwitched { branch: String, said: String },
    #[error("there is no commit yet, so there is nothing to make a worktree from")]
    NoCommit,
    #[error("a worktree has only what is committed, and these are not: {}", paths.join(", "))]
    Uncommitted { paths: Vec<String> },
    #[error("branch {branch} has an older {path} than your checkout")]
    Older { path: String, branch: String, worktree: Option<PathBuf>, ours: String },
    #[error("{} is there already and is not the worktree of branch {branch}", path.display())]
    Taken { path: PathBuf, branch: String },
    #[error("{} was not made to its end: git lists changes in it that no run made", path.display())]
    HalfMade { path: PathBuf },
    #[error("the worktree {} cannot be made: {said}", path.display())]
    NotMade { path: PathBuf, said: String },
    #[error("the folder of the worktree {} is gone, and git does not let go of it: {said}", path.display())]
    Gone { path: PathBuf, said: String },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl PlaceError {
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::BadName { by: Source::Plan, .. } => {
                vec!["mend branchName in the plan, or name a branch: --branch NAME".to_owned()]
            }
            Self::BadName { by: Source::Argument | Source::PlanName, .. } => {
                vec!["git check-ref-format tells which names git takes; letters, digits, - and / are safe".to_owned()]
            }
            Self::Elsewhere { path, .. } if !path.exists() => {
                vec!["that folder is gone: git worktree prune lets go of it".to_owned()]
            }
            Self::Elsewhere { path, .. } => {
                vec![format!("work there: verdone -C {} run", path.display()), "or name another branch: --branch NAME".to_owned()]
            }
            Self::NotSwitched { .. } => vec!["move away or commit what is named, or choose another branch".to_owned()],
            Self::NoCommit => vec!["git add --all && git commit, or run without --worktree".to_owned()],
            Self::Uncommitted { paths } => vec![format!("git add -f {} && git commit", paths.join(" "))],
            Self::Older { worktree: Some(path), ours, .. } => {
                vec![format!("git -C {} merge {ours}, and run again", path.display())]
            }
            Self::Older { worktree: None, branch, ours, .. } => {
                vec![format!("git switch {branch} && git merge {ours}, or name another branch: --branch NAME")]
            }
            Self::Taken { .. } => vec!["move it away, or name another branch: --branch NAME".to_owned()],
            Self::HalfMade { path } => {
                vec![format!("look at it; to make it anew: git worktree remove -f -f {}", path.display())]
            }
            Self::NotMade { .. } => vec!["run without --worktree: --branch NAME keeps the run's commits apart too".to_owned()],
            Self::Gone { path, .. } => vec![format!("git worktree remove -f -f {}", path.display())],
            Self::Git(error) => error.hint().map(str::to_owned).into_iter().collect(),
            Self::Io { .. } => Vec::new(),
        }
    }
}
