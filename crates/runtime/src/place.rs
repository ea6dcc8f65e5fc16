//! Where a run works: on which branch, and in the user's checkout or in a linked work tree of its own.
//!
//! Nothing here touches the user's changes: what is in the way is refused by name, and git itself does the switching.

mod error;
mod linked;

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::id::encode_component;
use verdone_core::update::{Reporter, Update};

use crate::git::{Git, Status};
use crate::plan_file::PlanFile;
use crate::preflight::{self, Dirty, Health};
use crate::project::Project;
use crate::run::{Ready, RunError};
use crate::site;

pub use error::PlaceError;
pub(crate) use linked::{BESIDE, MARKER, Marker};
pub use linked::{Choice, Linked, WorkTreeState};

/// The branch that a run is to work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub name: String,
    pub source: Source,
}

/// Who asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `--branch`.
    Argument,
    /// The plan's `branchName`.
    Plan,
    /// Nobody: made from the plan's file name.
    PlanName,
}

impl Source {
    pub fn words(self) -> &'static str {
        match self {
            Self::Argument => "--branch",
            Self::Plan => "the plan's branchName",
            Self::PlanName => "the plan's name",
        }
    }
}

impl Wanted {
    /// `--branch`, else what the plan asks for. A name that git does not take is refused.
    pub fn of(git: &Git, argument: Option<&str>, plan: Option<&PlanFile>) -> Result<Option<Self>, PlaceError> {
        let named = argument.map(|name| (name.to_owned(), Source::Argument));
        let planned = || plan.and_then(|plan| plan.plan().branch.clone()).map(|name| (name, Source::Plan));
        let Some((name, source)) = named.or_else(planned) else { return Ok(None) };
        if !git.is_branch_name(&name)? {
            return Err(PlaceError::BadName { name, by: source });
        }
        Ok(Some(Self { name, source }))
    }

    /// A branch of Verdone's own for a plan that asks for none: its path, made harmless.
    fn for_plan(plan: &PlanFile, project: &Project) -> Self {
        let path = real_parent(plan.path()).with_extension("");
        let shown = site::shown(&path, &project.root);
        let parts = shown.split('/').map(|part| part.trim_start_matches('.')).filter(|part| !part.is_empty());
        Self { name: format!("verdone/{}", encode_component(&parts.collect::<Vec<_>>().join("-"))), source: Source::PlanName }
    }
}

/// Brings the work tree to the branch that is asked for, and answers with what a run needs there: the plan and the settings on that
/// branch are the ones that count. Comes after a dead run was put in order and, where the user's changes are set aside, after that.
pub fn settle<E: From<RunError>>(
    project: &Project,
    argument: Option<&str>,
    reporter: &mut dyn Reporter,
    read: impl Fn() -> Result<Ready, E>,
) -> Result<Ready, E> {
    let here = read();
    let planned = here.as_ref().is_ok_and(|ready| ready.plan.plan().branch.is_some());
    if argument.is_none() && !planned {
        return here;
    }
    let moved = move_to(project, argument, here.as_ref().ok(), reporter).map_err(E::from)?;
    if moved { read() } else { here }
}

/// Whether the work tree is on another branch than before.
fn move_to(
    project: &Project,
    argument: Option<&str>,
    here: Option<&Ready>,
    reporter: &mut dyn Reporter,
) -> Result<bool, RunError> {
    let git = Git::open(&project.root)?;
    let Some(wanted) = Wanted::of(&git, argument, here.map(|ready| &ready.plan))? else { return Ok(false) };
    let status = git.status()?;
    if status.branch.as_deref() == Some(&wanted.name) {
        return Ok(false);
    }
    let create = git.branch_tip(&wanted.name)?.is_none();
    // What cannot be read here cannot be read on a branch that begins here.
    if create && here.is_none() {
        return Ok(false);
    }
    if wanted.source == Source::Plan
        && let Some(finding) = here.map(Ready::approval).transpose()?.flatten()
    {
        return Err(RunError::Refused(finding));
    }
    refuse(&git, &status, project, here, create)?;
    switch(&git, &wanted, create)?;
    let (name, source) = (&wanted.name, wanted.source.words());
    let how = match (create, &status.head) {
        (true, Some(head)) => format!("made it at {}", head.short()),
        (true, None) => "the first commit will be on it".to_owned(),
        (false, _) => "it exists and is continued".to_owned(),
    };
    let back = status.branch.map(|before| format!("; back with: git switch {before}")).unwrap_or_default();
    reporter.report(Update::Notice { text: &format!("on branch {name} now, asked for by {source}: {how}{back}") });
    Ok(true)
}

/// What would be refused on the new branch too is refused before it is made; on one that exists, only what is in the way counts.
fn refuse(git: &Git, status: &Status, project: &Project, here: Option<&Ready>, create: bool) -> Result<(), RunError> {
    if let Some(ready) = here {
        // Changes that are set aside later stay where they are while a branch is made; on another one they may not fit.
        let dirty = if create && ready.request.allow_dirty { Dirty::SetAside } else { Dirty::Refused };
        if let Some(mut finding) = preflight::in_the_way(git, status, &ready.ours(), dirty) {
            if ready.request.allow_dirty && !create {
                finding.hints =
                    vec!["commit or stash them: they may not fit another branch; or leave them alone: --worktree".to_owned()];
            }
            return Err(RunError::Refused(finding));
        }
        let findings = if create { ready.examine()? } else { Vec::new() };
        let bad = findings.into_iter().find(|finding| finding.health == Health::Bad && finding.what != "branch");
        return bad.map_or(Ok(()), |finding| Err(RunError::Refused(finding)));
    }
    let (top, home) = (git.top(), project.root.join(".verdone"));
    let in_the_way = preflight::in_the_way(git, status, &|path| top.join(path).starts_with(&home), Dirty::Refused);
    in_the_way.map_or(Ok(()), |finding| Err(RunError::Refused(finding)))
}

/// Switches the work tree. Where git refuses, because something is in the way or another work tree has the branch, nothing changed.
pub fn switch(git: &Git, wanted: &Wanted, create: bool) -> Result<(), PlaceError> {
    let name = &wanted.name;
    if let Some(tree) = git.work_trees()?.into_iter().find(|tree| tree.branch.as_ref() == Some(name)) {
        return Err(PlaceError::Elsewhere { branch: name.clone(), path: tree.path });
    }
    let answered = git.switch_branch(name, create)?;
    if answered.done { Ok(()) } else { Err(PlaceError::NotSwitched { branch: name.clone(), said: answered.why() }) }
}

/// The path without links and `..` on the way to its last part.
fn real_parent(path: &Path) -> PathBuf {
    match (path.parent().map(fs::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}
