//! `verdone log`: the journal, line by line, and with `--follow` as it grows.

use std::time::Duration;

use jiff::tz::TimeZone;
use verdone_core::event::{Event, Recorded};
use verdone_runtime::store::read_journal;

use super::latest::{is_going, latest};
use super::{Context, Outcome};
use crate::args::LogArgs;
use crate::error::CliError;
use crate::terminal::{print, say};

/// How often a growing journal is looked at.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) fn run(args: &LogArgs, context: &Context) -> Outcome {
    let (project, stored) = latest(context)?;
    show(&stored.journal, args, context)?;
    let path = stored.dir.join("journal.jsonl");
    let mut shown = stored.journal.clone();
    while args.follow && !ended(&shown) {
        // Asked before the journal is read again: what a run wrote before it went away is still shown.
        let going = is_going(&project, &stored);
        std::thread::sleep(PAUSE);
        let (journal, _) = read_journal(&path)?;
        if journal.len() > shown.len() {
            show(&journal[shown.len()..], args, context)?;
            shown = journal;
        }
        if !going && !ended(&shown) {
            say("note: nobody works on this run any more; the next `verdone run` puts things in order\n");
            break;
        }
    }
    Ok(0)
}

fn ended(journal: &[Recorded]) -> bool {
    journal.iter().rev().any(|recorded| matches!(recorded.event, Event::RunStopped { .. }))
}

fn show(journal: &[Recorded], args: &LogArgs, context: &Context) -> Result<(), CliError> {
    let (zone, style) = (TimeZone::system(), context.terminal.report_style());
    let mut out = String::new();
    for recorded in journal {
        if args.json {
            let line = serde_json::to_string(recorded).map_err(|error| CliError::error(error.to_string()))?;
            out.push_str(&verdone_report::escape_json(&line));
        } else {
            out.push_str(&verdone_report::log_line(recorded, &zone, &style));
        }
        out.push('\n');
    }
    Ok(print(&out)?)
}
