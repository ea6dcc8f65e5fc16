//! Reads decisions of the Stop gate from the records of sessions.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use verdone_core::engine::session::StopRecord;

use super::lines::each_whole_line;
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

/// Reads the decisions of all sessions in a folder. Each is returned once, also while sessions write more.
#[derive(Debug)]
pub struct StopReader {
    folder: PathBuf,
    /// How much of each session's records was read.
    read: BTreeMap<String, u64>,
}

impl StopReader {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), read: BTreeMap::new() }
    }

    /// The decisions since the last call, oldest first.
    pub fn next_stops(&mut self) -> io::Result<Vec<StoredStop>> {
        let mut found = Vec::new();
        for session in sessions(&self.folder)? {
            let from = self.read.entry(session.name.clone()).or_default();
            *from = each_whole_line(&session.dir.join("events.jsonl"), *from, &mut |line| {
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
}
