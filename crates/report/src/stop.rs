//! Decisions of the Stop gate: one line each, and a summary.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::engine::session::{CauseTally, StopRecord, StopTally};

use crate::wording::{duration, moment, plural};

/// Enough characters to recognise a session.
const SESSION: usize = 8;
const LONGEST_REASON: usize = 120;

/// What `verdone log --stops --json` prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Stops {
    /// Oldest first.
    pub stops: Vec<StopOf>,
    pub summary: StopTally,
}

/// One decision of the Stop gate and the session it was made in.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StopOf {
    /// The client's session id, with `%XX` for every character other than a letter, digit, `-` or `_`. This is also the name of its folder.
    pub session: String,
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    /// The client's event: `Stop`, `SubagentStop`, `TaskCompleted` or `TeammateIdle`.
    pub event: String,
    pub stop: StopRecord,
}

/// The JSON Schema of `verdone log --stops --json`.
pub fn stops_schema() -> serde_json::Value {
    let mut schema = schema_for!(Stops).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".to_owned(), "Verdone stops".into());
    }
    schema
}

/// One decision. Further messages follow on lines below it.
pub fn stop_line(session: &str, at: Option<Timestamp>, event: &str, record: &StopRecord, zone: &TimeZone) -> String {
    let when = at.map_or_else(String::new, |at| moment(at, zone));
    let session: String = session.chars().take(SESSION).collect();
    let event = if event == "Stop" { String::new() } else { format!(" {event}") };
    let story = record.story.as_ref().map(|story| format!(" [{}]", sanitise_line(story))).unwrap_or_default();
    let reason = sanitise_line(&record.reason);
    let reason: String = reason.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST_REASON).collect();
    let took = duration(record.ms);
    let more = record.notes.iter().fold(String::new(), |text, note| format!("{text}    note: {}\n", sanitise_line(note)));
    format!(
        "{when}  {}{event}  {} {}{story}  {took}  {reason}\n{more}",
        sanitise_line(&session),
        sanitise_line(&record.decision),
        sanitise_line(&record.cause)
    )
}

/// The summary of all decisions.
pub fn stop_summary(tally: &StopTally) -> String {
    let count = |table: &BTreeMap<String, CauseTally>| table.values().map(|cause| cause.count as usize).sum::<usize>();
    let (blocks, yields) = (count(&tally.blocks), count(&tally.yields));
    if blocks + yields == 0 {
        return "The Stop gate has made no decisions yet. `verdone loop start` starts a loop.\n".to_owned();
    }
    let mut text = format!("\n{}, {}\n", plural(blocks, "block", "blocks"), plural(yields, "release", "releases"));
    for (title, table) in [("held because", &tally.blocks), ("let go because", &tally.yields), ("verdicts", &tally.verdicts)] {
        for (cause, tally) in table {
            text.push_str(&format!(
                "  {title:<14} {:<18} {:>5}   average {}, longest {}\n",
                sanitise_line(cause),
                tally.count,
                duration(tally.average_ms()),
                duration(tally.longest_ms)
            ));
        }
    }
    text
}
