//! `verdone show --sessions` and `--session ID`: sessions of the last run and the user's own.

use std::path::Path;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use verdone_core::base::id::RunId;
use verdone_report::{FaultsOf, SessionOf, Sessions, session, sessions as page};
use verdone_runtime::store::sessions::{StoredSession, faults, own_sessions, run_sessions, sessions};
use verdone_runtime::store::{Store, StoredRun};

use crate::command::install::root;
use crate::command::{Context, Outcome};
use crate::error::CliError;
use crate::terminal::{print, print_json, printable, say};

/// How many of the newest sessions to list: each listed session must be read to its end.
const LISTED: usize = 20;

pub(super) fn all(json: bool, context: &Context) -> Outcome {
    let root = root(context);
    let latest = Store::new(&root).all()?.next();
    let mut stored: Vec<(Option<RunId>, StoredSession)> = Vec::new();
    if let Some(run) = &latest {
        stored.extend(sessions(&run_sessions(&run.dir))?.into_iter().map(|found| (Some(run.id.clone()), found)));
    }
    stored.extend(sessions(&own_sessions(&root))?.into_iter().map(|found| (None, found)));
    let older = stored.len().saturating_sub(LISTED);
    let listed = stored.into_iter().take(LISTED).filter_map(|(run, found)| added_up(run, &found)).collect();
    let mut found = Sessions { sessions: listed, older, faults: Vec::new() };
    found.faults.extend(latest.and_then(|run| faults_of(&root, &run_sessions(&run.dir), Some(run.id))));
    found.faults.extend(faults_of(&root, &own_sessions(&root), None));
    if json {
        print_json(&serde_json::json!(found))?;
    } else {
        print(&page(&found, &TimeZone::system(), &context.terminal.report_style()))?;
    }
    Ok(0)
}

pub(super) fn one(id: &str, json: bool, context: &Context) -> Outcome {
    let root = root(context);
    let (run, stored) = find(id, &root)?;
    let tally = stored.tally()?;
    let found = SessionOf { id: stored.name, run, tally };
    if json {
        print_json(&serde_json::json!(found))?;
    } else {
        print(&session(&found, &root.to_string_lossy(), &TimeZone::system(), &context.terminal.report_style()))?;
    }
    Ok(0)
}

/// The sessions of a run, oldest first.
pub(super) fn of_run(run: &StoredRun) -> Result<Vec<SessionOf>, CliError> {
    let found = sessions(&run_sessions(&run.dir))?;
    Ok(found.iter().rev().filter_map(|found| added_up(Some(run.id.clone()), found)).collect())
}

/// Hook faults in the user's own sessions within the last day. Older ones have been reported often enough.
pub(in crate::command) fn own_faults(root: &Path) -> Option<FaultsOf> {
    let day = SignedDuration::from_hours(24);
    let is_new = |at: Timestamp| Timestamp::now().duration_since(at) < day;
    faults_of(root, &own_sessions(root), None).filter(|found| found.tally.last.is_none_or(is_new))
}

/// Finds a session by id among the user's own and those of all stored runs.
fn find(id: &str, root: &Path) -> Result<(Option<RunId>, StoredSession), CliError> {
    let store = Store::new(root);
    let mut found: Vec<(Option<RunId>, StoredSession)> =
        sessions(&own_sessions(root))?.into_iter().map(|session| (None, session)).collect();
    for run in store.ids()?.into_iter().rev() {
        let folder = run_sessions(&store.dir(&run));
        found.extend(sessions(&folder)?.into_iter().map(|session| (Some(run.clone()), session)));
    }
    found.retain(|(_, session)| session.is_meant_by(id));
    // A full name means exactly that session; if there are two, the newer one.
    let whole = found.iter().position(|(_, session)| session.is_named(id));
    match (whole, found.len()) {
        (Some(at), _) => Ok(found.swap_remove(at)),
        (None, 1) => Ok(found.swap_remove(0)),
        (None, 0) => {
            Err(CliError::usage(format!("no session {id:?} was recorded"))
                .hint("verdone show --sessions lists recorded sessions"))
        }
        (None, _) => {
            let names: Vec<&str> = found.iter().take(5).map(|(_, session)| session.name.as_str()).collect();
            Err(CliError::usage(format!("several sessions begin with {id:?}")).hint(format!("among them {}", names.join(", "))))
        }
    }
}

/// Warns about an unreadable session, and leaves it out.
fn added_up(run: Option<RunId>, stored: &StoredSession) -> Option<SessionOf> {
    match stored.tally() {
        Ok(tally) => Some(SessionOf { id: stored.name.clone(), run, tally }),
        Err(error) => {
            say(&printable(&format!("warning: session {} cannot be read: {error}\n", stored.name)));
            None
        }
    }
}

fn faults_of(root: &Path, folder: &Path, run: Option<RunId>) -> Option<FaultsOf> {
    let file = folder.join("faults.jsonl");
    let file = file.strip_prefix(root).unwrap_or(&file).display().to_string();
    match faults(folder) {
        Ok(tally) => tally.map(|tally| FaultsOf { run, file, tally }),
        Err(error) => {
            say(&printable(&format!("warning: {file} cannot be read: {error}\n")));
            None
        }
    }
}
