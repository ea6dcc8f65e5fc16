//! `verdone log --stops`: the Stop gate's decisions in the user's own sessions, with a summary.

use jiff::tz::TimeZone;
use verdone_core::engine::session::StopTally;
use verdone_report::{StopOf, Stops};
use verdone_runtime::store::sessions::{StoredStop, own_sessions, stops};

use super::super::{Context, Outcome};
use crate::terminal::{print, print_json};

pub(super) fn run(json: bool, context: &Context) -> Outcome {
    let project = context.project()?;
    let found = stops(&own_sessions(&project.root))?;
    let mut tally = StopTally::default();
    for stop in &found {
        tally.add(&stop.record);
    }
    if json {
        let one = |StoredStop { session, at, event, record }| StopOf { session, at, event, stop: record };
        let all = Stops { stops: found.into_iter().map(one).collect(), summary: tally };
        print_json(&serde_json::json!(all))?;
        return Ok(0);
    }
    let zone = TimeZone::system();
    let lines = found.iter().map(|stop| verdone_report::stop_line(&stop.session, stop.at, &stop.event, &stop.record, &zone));
    let text: String = lines.collect();
    print(&format!("{text}{}", verdone_report::stop_summary(&tally)))?;
    Ok(0)
}
