//! Which run a command looks at: the one that the user names, or the last one that has what the command needs.

use verdone_core::journal::view::RunView;
use verdone_report::plural;
use verdone_runtime::git::Git;
use verdone_runtime::project::Project;
use verdone_runtime::session::Loops;
use verdone_runtime::store::{RunLock, Store, StoredRun};

use super::Context;
use crate::args::RunArg;
use crate::error::{CliError, Kind};
use crate::terminal::{printable, say};

/// How many runs are searched for something. Reading more journals would take too long.
const MOST_SEARCHED: usize = 200;
const LATEST: &str = "last";

/// The named run, or the latest one.
pub(super) fn chosen(run: &RunArg, context: &Context) -> Result<(Project, StoredRun), CliError> {
    let latest = RunArg { run: Some(run.run.clone().unwrap_or_else(|| LATEST.to_owned())) };
    chosen_with(&latest, context, |_| true)
}

/// The named run, or the last one that has what the command needs. If none has it, the latest one.
pub(super) fn chosen_with(
    run: &RunArg,
    context: &Context,
    has: impl Fn(&RunView) -> bool,
) -> Result<(Project, StoredRun), CliError> {
    let project = context.project()?;
    let runs: Vec<StoredRun> = Store::new(&project.root).all()?.collect();
    let Some(latest) = runs.first().cloned() else {
        return Err(CliError::new(Kind::Usage, "no run was started here yet").hint("verdone run PLAN"));
    };
    if let Some(name) = &run.run {
        let found = named(&runs, name).map_err(|message| CliError::usage(message).hint("verdone runs"))?;
        return Ok((project, found.clone()));
    }
    for stored in runs.into_iter().take(MOST_SEARCHED) {
        let is_chosen = match stored.brief_view() {
            Ok((view, _)) => has(&view),
            // The command reports it: an older run must not hide that the latest one cannot be read.
            Err(_) => stored.id == latest.id,
        };
        if is_chosen {
            return Ok((project, stored));
        }
    }
    Ok((project, latest))
}

/// Finds a run by its id, by the start or end of it, or by its age: `last`, `last-1` and so on. Newest runs first.
fn named<'r>(runs: &'r [StoredRun], name: &str) -> Result<&'r StoredRun, String> {
    if let Some(age) = age(name) {
        let too_old = || format!("--run {name}: only {} here", plural(runs.len(), "run is", "runs are"));
        return runs.get(age).ok_or_else(too_old);
    }
    let found: Vec<&StoredRun> =
        runs.iter().filter(|run| run.id.as_str().starts_with(name) || run.id.as_str().ends_with(name)).collect();
    match found[..] {
        [run] => Ok(run),
        [] => Err(format!("--run {name}: no such run here")),
        [..] => Err(format!("--run {name}: {} runs have an id like that", found.len())),
    }
}

/// How many runs came after the meant one, if the name counts from the last.
fn age(name: &str) -> Option<usize> {
    match name.strip_prefix(LATEST)? {
        "" => Some(0),
        rest => rest.strip_prefix('-')?.parse().ok(),
    }
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
pub(super) fn died(stored: &StoredRun) -> String {
    if stored.is_loop() {
        return "note: this loop no longer holds a session; `verdone loop start` starts another one\n".to_owned();
    }
    let mut note = "note: this run died; the next `verdone run` cleans up and continues\n".to_owned();
    let output = stored.output();
    if output.metadata().is_ok_and(|found| found.len() > 0) {
        note.push_str(&printable(&format!("note: its last messages are in {}\n", output.display())));
    }
    note
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

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::base::id::RunId;

    #[test]
    fn a_run_is_named_by_id_or_age() {
        let store = Store::new(std::path::Path::new("/nowhere"));
        let run = |id: &str| store.run(RunId(id.to_owned()));
        let runs = [run("20260103-120000-00ff"), run("20260102-120000-1234"), run("20260102-110000-0a0b")];
        for (name, expected) in [
            ("last", Ok(0)),
            ("last-2", Ok(2)),
            ("last-3", Err("--run last-3: only 3 runs are here")),
            ("last-x", Err("--run last-x: no such run here")),
            ("20260102-110000-0a0b", Ok(2)),
            ("1234", Ok(1)),
            ("20260103", Ok(0)),
            ("20260102", Err("--run 20260102: 2 runs have an id like that")),
        ] {
            let found = named(&runs, name).map(|run| &run.id);
            match expected {
                Ok(at) => assert_eq!(found.unwrap(), &runs[at].id, "{name}"),
                Err(message) => assert_eq!(found.unwrap_err(), message),
            }
        }
    }
}
