//! `verdone runs`: the runs of this project.

use jiff::tz::TimeZone;
use verdone_report::ListedRun;
use verdone_runtime::store::{Store, StoredRun};

use super::chosen_run::is_going;
use super::{Context, Outcome};
use crate::args::RunsArgs;
use crate::terminal::{print, print_json, say};

pub(super) fn run(args: &RunsArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let all: Vec<StoredRun> = Store::new(&project.root).all()?.collect();
    let mut list = Vec::new();
    for stored in all.iter().take(args.limit) {
        match stored.brief_view() {
            Ok((view, _)) => list.push(ListedRun::new(stored.id.as_str(), &view, is_going(&project, stored))),
            Err(error) => say(&format!("warning: the journal of run {} cannot be read: {error}\n", stored.id)),
        }
    }
    if args.json {
        print_json(&serde_json::json!(list))?;
        return Ok(0);
    }
    if list.is_empty() {
        say("no run was started here yet\nhint: verdone run PLAN\n");
        return Ok(0);
    }
    print(&verdone_report::runs(&list, &TimeZone::system(), &context.terminal.report_style()))?;
    if all.len() > args.limit {
        say(&format!("{} older; list them with --limit {}\n", all.len() - args.limit, all.len()));
    }
    Ok(0)
}
