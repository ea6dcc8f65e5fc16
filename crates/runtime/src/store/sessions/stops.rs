//! Reads decisions of the Stop gate from the records of sessions.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use verdone_core::engine::session::StopRecord;

use super::lines::each_line;
use super::sessions;

/// One decision and its session.
#[derive(Debug, Clone)]
pub struct StoredStop {
    pub session: String,
    pub at: Option<Timestamp>,
    pub event: String,
    pub record: StopRecord,
}

#[derive(Deserialize)]
struct Line {
    at: Option<Timestamp>,
    #[serde(default)]
    event: String,
    record: String,
    #[serde(flatten)]
    stop: StopRecord,
}

/// The decisions of all sessions in a folder, oldest first.
pub fn stops(folder: &Path) -> io::Result<Vec<StoredStop>> {
    let mut found = Vec::new();
    for session in sessions(folder)? {
        each_line(&session.dir.join("events.jsonl"), 0, &mut |line| {
            let Some(line) = line.filter(|line| line.contains("\"record\":\"stop\"")) else { return };
            let Ok(line) = serde_json::from_str::<Line>(line) else { return };
            if line.record == "stop" {
                found.push(StoredStop { session: session.name.clone(), at: line.at, event: line.event, record: line.stop });
            }
        })?;
    }
    found.sort_by_key(|stop| stop.at);
    Ok(found)
}
