//! `verdone status`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use verdone_report::fault_line;
use verdone_runtime::git::Git;
use verdone_runtime::store::{Store, owed};

use super::land::{note, worktrees};
use super::latest::{brief_view, is_going, latest, view};
use super::show::own_faults;
use super::{Context, Outcome};
use crate::args::StatusArgs;
use crate::terminal::{print, print_json, printable, say};

pub(super) fn run(args: &StatusArgs, context: &Context) -> Outcome {
    let (project, stored) = latest(context)?;
    if args.json {
        let view = view(&stored)?;
        print_json(&serde_json::json!(view))?;
        return Ok(0);
    }
    let view = brief_view(&stored)?;
    print(&verdone_report::status(&view, Timestamp::now(), &context.terminal.report_style()))?;
    if view.ended.is_none() && !is_going(&project, &stored) {
        say("note: nobody works on this run any more; the next `verdone run` puts things in order\n");
    }
    if let Some(found) = own_faults(&project.root) {
        say(&printable(&format!("note: in your own sessions: {}\n", fault_line(&found, &TimeZone::system()))));
    }
    // The latest run's own are in its view already.
    for (run, command) in
        owed(&Git::open(&project.root)?, &Store::of(&project.root))?.into_iter().filter(|(run, _)| *run != stored.id)
    {
        say(&printable(&format!("note: run {run} still keeps changes of yours that it could not put back: {command}\n")));
    }
    for waiting in worktrees(&project) {
        say(&printable(&format!("note: {} (verdone land)\n", note(&waiting))));
    }
    Ok(0)
}
