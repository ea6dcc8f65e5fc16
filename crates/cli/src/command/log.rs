//! `verdone log`: the journal line by line, with `--follow` as it grows.

mod stops;

use std::time::Duration;

use jiff::tz::TimeZone;
use verdone_core::journal::event::Event;
use verdone_runtime::store::JournalReader;

use super::chosen_run::{chosen, died, is_going, warn};
use super::{Context, Outcome};
use crate::args::LogArgs;
use crate::error::CliError;
use crate::terminal::{print, print_verbatim, say};

/// How often to check a growing journal.
const PAUSE: Duration = Duration::from_millis(200);
/// How much text to collect before printing it.
const PART: usize = 64 * 1024;

pub(super) fn run(args: &LogArgs, context: &Context) -> Outcome {
    if args.stops {
        return stops::run(args, context);
    }
    let (project, stored) = chosen(&args.run, context)?;
    let mut reader = JournalReader::open(&stored.journal())?;
    let mut ended = show(&mut reader, args, context)?;
    warn(&stored, reader.damage()?.filter(|_| !is_going(&project, &stored)).as_deref());
    while args.follow && !ended {
        // Check this before reading the journal again, so that everything a run wrote before it ended is still shown.
        let going = is_going(&project, &stored);
        std::thread::sleep(PAUSE);
        reader = JournalReader::open_at(&stored.journal(), reader.offset())?;
        ended = show(&mut reader, args, context)?;
        if !going && !ended {
            say(&died(&stored));
            break;
        }
    }
    Ok(0)
}

/// Prints the unread rest of the journal while reading it; returns whether the run has ended.
fn show(journal: &mut JournalReader, args: &LogArgs, context: &Context) -> Result<bool, CliError> {
    let (zone, style) = (TimeZone::system(), context.terminal.report_style());
    let write = if args.json { print_verbatim } else { print };
    let (mut out, mut ended) = (String::new(), false);
    for recorded in journal {
        let recorded = recorded?;
        ended |= matches!(recorded.event, Event::RunStopped { .. });
        if args.json {
            let line = serde_json::to_string(&recorded).map_err(|error| CliError::error(error.to_string()))?;
            out.push_str(&verdone_report::escape_json(&line));
        } else {
            out.push_str(&verdone_report::log_line(&recorded, &zone, &style));
        }
        out.push('\n');
        if out.len() > PART {
            write(&out)?;
            out.clear();
        }
    }
    write(&out)?;
    Ok(ended)
}
