//! Errors of workspaces, and what to do about them.

use std::io;
use std::path::{Path, PathBuf};

use super::state::StateError;
use super::view::ViewError;
use super::view_contents::PrepareError;
use crate::git::GitError;

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("this machine cannot seal a workspace: {reason}")]
    Required { reason: String, remedy: Option<String> },
    #[error("the hosts in [seal] {setting} cannot be enforced on this machine: {reason}")]
    HostList { setting: &'static str, reason: String, remedy: Option<String> },
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
    #[error("the hidden folder of gate {gate:?}, {}, cannot be used: {why}", folder.display())]
    Hidden { gate: String, folder: PathBuf, why: &'static str },
    #[error("gate {gate:?} has hidden checks, which only a private view can hide from agents; this machine has none: {reason}")]
    HiddenNeedsView { gate: String, reason: String, remedy: Option<String> },
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
            Self::Hidden { .. } => vec!["name a folder elsewhere, for example ~/hidden/PROJECT".to_owned()],
            Self::Filter { remedy, .. } | Self::HiddenNeedsView { remedy, .. } => {
                remedy.iter().cloned().chain(["verdone doctor shows what is missing".to_owned()]).collect()
            }
            Self::HostList { setting, remedy, .. } => {
                let open = format!("or give up the list: [seal] {setting} = \"open\"");
                remedy.iter().cloned().chain([open, "verdone doctor shows what is missing".to_owned()]).collect()
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
