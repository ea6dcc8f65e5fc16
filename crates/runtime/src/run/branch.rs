//! The branch of a run: a new one at the user's HEAD, the requested one, or that of an
//! earlier run of the same plan that has not landed yet.

use verdone_core::base::id::{Oid, RunId};
use verdone_core::base::plural::plural;
use verdone_core::journal::event::Event;
use verdone_core::journal::update::{Reporter, Update};

use super::RunError;
use crate::base::finding::Finding;
use crate::git::Git;
use crate::preflight;
use crate::store::Store;

/// The input for choosing a run's branch.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// `--branch`, else the plan's `branchName`.
    pub named: Option<&'a str>,
    /// Start over from HEAD, ignoring earlier runs.
    pub fresh: bool,
    pub plan: &'a str,
}

/// The branch of a run and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunBranch {
    /// `None`: it is named after the run.
    pub name: Option<String>,
    /// Its current tip. `None` if it does not exist.
    pub at: Option<Oid>,
    /// The commit that the run starts from; it moves the branch there first.
    pub tip: Oid,
    /// The user's branch and commit.
    pub target: Option<String>,
    pub head: Oid,
}

impl RunBranch {
    pub fn choose(git: &Git, store: &Store, wanted: &Wanted<'_>) -> Result<Self, RunError> {
        let status = git.status()?;
        let Some(head) = status.head else {
            return Err(RunError::Refused(preflight::no_commit()));
        };
        let target = status.branch;
        if let Some(name) = wanted.named
            && !git.is_branch_name(name)?
        {
            return Err(refused(&format!("{name:?} is not a valid branch name"), &["choose another one with --branch NAME"]));
        }
        // A branch that is checked out is only moved by landing.
        let named = wanted.named.filter(|name| target.as_deref() != Some(*name)).map(str::to_owned);
        let earlier = || if wanted.fresh { Ok(None) } else { last_branch(store, wanted.plan) };
        let name = match named {
            Some(name) => Some(name),
            None => earlier()?,
        };
        let new = |name| Self { name, at: None, tip: head.clone(), target: target.clone(), head: head.clone() };
        let Some(name) = name else {
            // Git stores a branch as a file, so a branch `verdone` prevents `verdone/<run>`.
            if git.branch_tip("verdone")?.is_some() {
                let message = "the branch \"verdone\" blocks the names of run branches (verdone/RUN)";
                return Err(refused(message, &["rename it: git branch -m verdone NAME", "or choose one with --branch NAME"]));
            }
            return Ok(new(None));
        };
        if let Some(path) = git.checked_out_at(&name)? {
            let message = format!("branch {name} is checked out in {}", path.display());
            return Err(refused(&message, &["choose another one with --branch NAME"]));
        }
        let asked_for = wanted.named.is_some();
        let Some(tip) = git.branch_tip(&name)? else { return Ok(new(asked_for.then_some(name))) };
        let (waiting, behind) = git.ahead_behind(&tip, &head)?;
        if waiting == 0 {
            // Everything has landed, so the next commit goes on top of the user's branch.
            return Ok(if asked_for { Self { at: Some(tip), ..new(Some(name)) } } else { new(None) });
        }
        if behind > 0 {
            let on = target.as_deref().unwrap_or("HEAD");
            let message = format!(
                "{} on branch {name} not landed yet, and {on} has moved on",
                plural(waiting as usize, "commit is", "commits are")
            );
            return Err(refused(
                &message,
                &["verdone land re-applies and re-verifies them", "or start over: verdone run --fresh"],
            ));
        }
        Ok(Self { name: Some(name), at: Some(tip.clone()), tip, target, head })
    }

    /// The branch name. By default it is derived from the run's id.
    pub fn name_for(&self, run: &RunId) -> String {
        self.name.clone().unwrap_or_else(|| format!("verdone/{run}"))
    }

    /// Reports which branch is continued.
    pub fn announce(&self, git: &Git, reporter: &mut dyn Reporter) -> Result<(), RunError> {
        if let Some(name) = self.name.as_ref().filter(|_| self.at.is_some()) {
            let (waiting, _) = git.ahead_behind(&self.tip, &self.head)?;
            let text = format!("continuing branch {name} ({} to land)", plural(waiting as usize, "commit", "commits"));
            reporter.report(Update::Notice { text: &text });
        }
        Ok(())
    }
}

/// The branch of the last run of this plan.
fn last_branch(store: &Store, plan: &str) -> Result<Option<String>, RunError> {
    let ids = store.ids().map_err(|source| RunError::Io { doing: "reading .verdone/runs/".to_owned(), source })?;
    for id in ids.into_iter().rev() {
        // Skip unreadable journals.
        let Ok(beginning) = store.run(id).beginning() else { continue };
        let started = beginning.into_iter().find_map(|line| match line.event {
            Event::RunStarted { plan, branch, target, .. } => Some((plan, branch, target)),
            _ => None,
        });
        if let Some((of, branch, target)) = started
            && of == plan
        {
            // Runs of the first edition worked directly on the user's branch.
            return Ok(branch.filter(|branch| target.is_some() || branch.starts_with("verdone/")));
        }
    }
    Ok(None)
}

fn refused(message: &str, hints: &[&str]) -> RunError {
    let hints = hints.iter().map(|hint| (*hint).to_owned()).collect();
    RunError::Refused(Finding { hints, ..Finding::bad("branch", message, []) })
}
