//! Private workspaces: the file trees in which agents work and checks run, and the views in which their processes see them.
//!
//! A run never works in the user's checkout. Whatever an agent or a check writes goes into a folder below the user's state
//! folder. Inside, that folder appears at the project's own path. It is deleted with the workspace.

mod agent_space;
mod cache;
mod copying;
mod credentials;
mod disposable;
mod doctor;
mod error;
mod hidden;
mod layer;
pub mod measure;
mod paths;
mod probe;
mod proxy;
mod remove;
mod reuse;
mod run_workspaces;
mod seal;
mod state;
mod view;
mod view_contents;

pub use cache::KeptCache;
pub use credentials::{CopyBack, copy_back};
pub use doctor::examine;
pub use error::WorkspaceError;
pub use hidden::HIDDEN_VARIABLE;
pub use probe::{Ability, Level, Part, Refusal, probe};
pub use run_workspaces::{
    CheckNeeds, CheckPlace, HookOutcome, Place, ReadAttempt, ScriptPlace, Start, WorkspaceRequest, Workspaces,
};
pub use state::{Deletion, Held, Owner, StateError, StateFolder, Stored, compose_project};
pub use view::{View, ViewError};
pub use view_contents::{
    Abilities, AgentInUse, BuildFolders, Credentials, Hidden, Preparation, PrepareError, System, Tree, ViewKind, ViewRequest,
    Visible, build, written_at,
};

/// Removes what dead processes left in the default state folder. Best effort: the next call tries again.
pub(crate) fn sweep(git_top: &std::path::Path) {
    if let Ok(state) = StateFolder::from_environment(None, git_top) {
        let _ = state.sweep();
    }
}
