//! The settings as a dead run began with them: `.verdone/`, git's settings and hooks, fresher's. Put back before git is asked
//! anything, because what an agent wrote there would decide what git answers and what a commit runs.

use verdone_core::update::{Reporter, Update};

use super::{RecoverError, begin, ended, io_error};
use crate::pipes::remove_pipes;
use crate::project::{GitDirs, Project};
use crate::protected::Protected;
use crate::signal::Signals;
use crate::store::{JournalError, Store};

/// Whether there was a dead run with settings to put back: then the user has been told of it. What is found is kept beside the run.
pub(super) fn put_back(
    project: &Project,
    store: &Store,
    signals: &Signals,
    reporter: &mut dyn Reporter,
) -> Result<bool, RecoverError> {
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    let Some(stored) = ids.into_iter().next_back().map(|id| store.run(id)) else { return Ok(false) };
    Protected::sweep(&stored.dir).map_err(io_error("tidying the run's directory"))?;
    let died = match stored.last_state() {
        Ok(state) => !ended(&state),
        // It does not say that the run has ended.
        Err(JournalError::Broken { .. }) => true,
        Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => return Err(error.into()),
    };
    if !died || !Protected::is_saved(&stored.dir) {
        return Ok(false);
    }
    begin(&stored.id, signals, reporter);
    let failed = || io_error("putting settings back");
    let dirs = GitDirs::of(&project.git_top);
    let aside = stored.dir.join("undone/as-found");
    let mut changed = Vec::new();
    for (number, protected) in
        Protected::saved(&project.root, &project.git_top, dirs.as_ref(), &stored.dir).map_err(failed())?.iter().enumerate()
    {
        // Each has a place of its own: they have files of the same names.
        changed.extend(protected.put_back(&aside.join(number.to_string())).map_err(failed())?);
    }
    if let Some(dirs) = &dirs {
        let pipes = remove_pipes(&project.git_top, &[&dirs.common, &dirs.own]).map_err(io_error("removing a pipe"))?;
        changed.extend(pipes.iter().map(|pipe| crate::site::shown(pipe, &project.root)));
    }
    if !changed.is_empty() {
        let text =
            format!("put back as it was when that run began: {}; what was there is in {}", changed.join(", "), aside.display());
        reporter.report(Update::Notice { text: &text });
    }
    Ok(true)
}
