//! The latest run, for the commands that look at past runs.

use verdone_core::journal::view::RunView;
use verdone_runtime::git::Git;
use verdone_runtime::project::Project;
use verdone_runtime::session::Loops;
use verdone_runtime::store::{RunLock, Store, StoredRun};

use super::Context;
use crate::error::{CliError, Kind};
use crate::terminal::say;

/// The latest run; if there is none, an error that says how to start one.
pub(super) fn latest(context: &Context) -> Result<(Project, StoredRun), CliError> {
    let project = context.project()?;
    let stored = Store::new(&project.root).latest()?;
    let Some(stored) = stored else {
        return Err(CliError::new(Kind::Usage, "no run was started here yet").hint("verdone run PLAN"));
    };
    Ok((project, stored))
}

/// Whether this run is active. A run is active while a process holds its lock. A session loop needs no process: it is active until it ends.
pub(super) fn is_going(project: &Project, stored: &StoredRun) -> bool {
    if stored.is_loop() {
        return Loops::new(&project.root).hold(&stored.id);
    }
    let holder = Git::open(&project.root).ok().and_then(|git| RunLock::holder(git.git_dir()));
    holder.is_some_and(|holder| holder.run.as_ref() == Some(&stored.id))
}

/// The note for a run that is no longer active but has no end in its journal.
pub(super) fn died(stored: &StoredRun) -> &'static str {
    if stored.is_loop() {
        "note: this loop no longer holds a session; `verdone loop start` starts another one\n"
    } else {
        "note: this run died; the next `verdone run` cleans up and continues\n"
    }
}

/// The complete run; warns if the journal is damaged.
pub(super) fn view(stored: &StoredRun) -> Result<RunView, CliError> {
    let (view, damage) = stored.view()?;
    warn(stored, damage.as_deref());
    Ok(view)
}

/// The run without the details of finished stories.
pub(super) fn brief_view(stored: &StoredRun) -> Result<RunView, CliError> {
    let (view, damage) = stored.brief_view()?;
    warn(stored, damage.as_deref());
    Ok(view)
}

pub(super) fn warn(stored: &StoredRun, damage: Option<&str>) {
    if let Some(damage) = damage {
        say(&format!("warning: the journal of run {}: {damage}\n", stored.id));
    }
}
