//! `verdone status`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use verdone_core::journal::view::RunView;
use verdone_report::fault_line;
use verdone_runtime::project::Project;
use verdone_runtime::run::land::waiting;
use verdone_runtime::store::{Store, StoredRun};

use super::chosen_run::{brief_view, chosen, died, is_going, view};
use super::show::own_faults;
use super::{Context, Outcome};
use crate::args::StatusArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, printable, say};

pub(super) fn run(args: &StatusArgs, context: &Context) -> Outcome {
    let (project, stored) = chosen(&args.run, context)?;
    if args.json {
        let mut view = view(&stored)?;
        add_pending_requests(&project, &stored, &mut view)?;
        print_json(&serde_json::json!(view))?;
        return Ok(0);
    }
    let mut view = brief_view(&stored)?;
    add_pending_requests(&project, &stored, &mut view)?;
    print(&verdone_report::status(&view, Timestamp::now(), &context.terminal.report_style()))?;
    if view.ended.is_none() && !is_going(&project, &stored) {
        say(&died(&stored));
    }
    if let Some(found) = own_faults(&project.root) {
        say(&printable(&format!("note: in your own sessions: {}\n", fault_line(&found, &TimeZone::system()))));
    }
    // For the run shown above, the page itself already says so.
    for waiting in waiting(&project)?.into_iter().filter(|waiting| view.branch.as_ref() != Some(&waiting.branch)) {
        say(&printable(&format!("note: {} (verdone land)\n", waiting.sentence())));
    }
    Ok(0)
}

/// What the run has not recorded yet. Notes of an ended run wait only until the next run of its plan takes them.
fn add_pending_requests(project: &Project, stored: &StoredRun, view: &mut RunView) -> Result<(), CliError> {
    stored.add_pending_requests(view);
    let store = Store::new(&project.root);
    let mut later = store.all()?.take_while(|run| run.id != stored.id);
    if view.ended.is_some() && later.any(|run| run.is_run_of(&view.plan)) {
        view.pending.clear();
    }
    Ok(())
}
