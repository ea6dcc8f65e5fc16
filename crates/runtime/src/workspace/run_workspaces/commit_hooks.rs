//! Runs the user's commit hooks over a tree in a separate workspace.

use std::fs;
use std::time::Duration;

use verdone_core::base::id::Oid;

use super::{OWN_BRANCH, Shown, Workspaces};
use crate::git::{Git, HookRun, Hooked, PrivateRepository};
use crate::workspace::error::WorkspaceError;
use crate::workspace::view_contents::{Tree, ViewKind};

/// The result of the user's commit hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookOutcome {
    Refused { said: String },
    Passed { tree: Oid, message: String },
}

impl Workspaces {
    /// Runs the user's commit hooks over a tree, sealed.
    pub fn run_commit_hooks(
        &mut self,
        git: &Git,
        tree: &Oid,
        base: &Oid,
        message: &str,
        deadline: Duration,
        called_off: &dyn Fn() -> bool,
    ) -> Result<HookOutcome, WorkspaceError> {
        let objects = self.alternates()?;
        let folder = self.new_folder("hook")?;
        let (files, index) = (folder.path().join("tree"), folder.path().join("index"));
        fs::create_dir(&files).map_err(WorkspaceError::io(&files))?;
        let mut room = self.filter_room(git, [folder.path()])?;
        git.lay_out_files(tree, &files, &index, room.filters()?)?;
        drop(room);
        let git_dir_here = files.join(".git");
        let repository =
            PrivateRepository { at: &git_dir_here, branch: OWN_BRANCH, head: Some(base), objects, index: Some(&index) };
        git.make_private_repository(&repository)?;
        let made = self.view(ViewKind::Check, Tree::Writable(files.clone()), folder.path(), Shown::default())?;
        let git_dir = made.at.join(".git");
        let job = HookRun {
            seen_at: &made.at,
            git_dir: &git_dir,
            git_dir_here: &git_dir_here,
            base: Some(base),
            message,
            inside: made.inside.as_ref(),
            env: &made.env,
            deadline,
        };
        let said = |output: String, why: &str| if output.trim().is_empty() { why.to_owned() } else { output };
        Ok(match git.run_commit_hooks(&job, called_off)? {
            Hooked::Accepted { tree: made, message, .. } => {
                if made != *tree {
                    git.import_objects(&git_dir_here.join("objects"), &made, Some(base))?;
                }
                HookOutcome::Passed { tree: made, message }
            }
            Hooked::Refused { output, timed_out: true, .. } => {
                let why = format!("the commit hooks did not finish within {} s", deadline.as_secs());
                HookOutcome::Refused { said: format!("{why}\n{output}").trim().to_owned() }
            }
            Hooked::Refused { interrupted: true, .. } => HookOutcome::Refused { said: "the commit was interrupted".to_owned() },
            Hooked::Refused { output, .. } => HookOutcome::Refused { said: said(output, "a commit hook refused") },
        })
    }
}
