//! `verdone log --stops`: the Stop gate's decisions in the user's own sessions, with a summary, or with `--follow` as they are made.

use jiff::tz::TimeZone;
use verdone_core::engine::session::StopTally;
use verdone_report::{StopOf, Stops};
use verdone_runtime::store::sessions::{StopReader, StoredStop, own_sessions};

use super::super::{Context, Outcome};
use super::PAUSE;
use crate::args::LogArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, print_verbatim};

pub(super) fn run(args: &LogArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let mut reader = StopReader::new(&own_sessions(&project.root));
    if args.follow {
        loop {
            print_each(reader.next_stops()?, args.json)?;
            std::thread::sleep(PAUSE);
        }
    }
    let found = reader.next_stops()?;
    let mut tally = StopTally::default();
    for stop in &found {
        tally.add(&stop.record);
    }
    if args.json {
        let all = Stops { stops: found.into_iter().map(published).collect(), summary: tally };
        print_json(&serde_json::json!(all))?;
        return Ok(0);
    }
    print_each(found, false)?;
    print(&verdone_report::stop_summary(&tally))?;
    Ok(0)
}

fn print_each(found: Vec<StoredStop>, json: bool) -> Result<(), CliError> {
    if found.is_empty() {
        return Ok(());
    }
    let zone = TimeZone::system();
    let line = |stop: StoredStop| verdone_report::stop_line(&stop.session, stop.at, &stop.event, &stop.record, &zone);
    let object = |stop| format!("{}\n", verdone_report::escape_json(&serde_json::json!(published(stop)).to_string()));
    if json {
        print_verbatim(&found.into_iter().map(object).collect::<String>())?;
    } else {
        print(&found.into_iter().map(line).collect::<String>())?;
    }
    Ok(())
}

fn published(stop: StoredStop) -> StopOf {
    let StoredStop { session, at, event, record } = stop;
    StopOf { session, at, event, stop: record }
}
