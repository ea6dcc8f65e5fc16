//! `verdone status`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use verdone_report::fault_line;
use verdone_runtime::run::land::waiting;

use super::chosen_run::{brief_view, chosen, died, is_going, view};
use super::show::own_faults;
use super::{Context, Outcome};
use crate::args::StatusArgs;
use crate::terminal::{print, print_json, printable, say};

pub(super) fn run(args: &StatusArgs, context: &Context) -> Outcome {
    let (project, stored) = chosen(&args.run, context)?;
    if args.json {
        let view = view(&stored)?;
        print_json(&serde_json::json!(view))?;
        return Ok(0);
    }
    let view = brief_view(&stored)?;
    print(&verdone_report::status(&view, Timestamp::now(), &context.terminal.report_style()))?;
    if view.ended.is_none() && !is_going(&project, &stored) {
        say(died(&stored));
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
