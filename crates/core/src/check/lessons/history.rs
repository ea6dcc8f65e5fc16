//! What is remembered about each lesson besides its line: where it comes from, how often it was learned and used, and why it was dropped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line::Lesson;
use super::stop_cause::StopCounts;

/// A history with a higher version is not written.
pub const HISTORY_VERSION: u32 = 1;

/// Dropped lessons that are remembered, so that they do not come back.
const MOST_DROPPED: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub v: u32,
    /// By [`Lesson::id`].
    #[serde(default)]
    pub lessons: BTreeMap<String, Entry>,
    #[serde(default)]
    pub stops: StopCounts,
}

impl Default for History {
    fn default() -> Self {
        Self { v: HISTORY_VERSION, lessons: BTreeMap::new(), stops: StopCounts::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    pub lesson: Lesson,
    pub status: Status,
    /// The user wrote the line, or had it from someone else: it is never dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_users: bool,
    /// What taught it last.
    pub origin: Origin,
    /// How often it was learned, and when.
    pub times: u32,
    #[schemars(with = "String")]
    pub first: Timestamp,
    #[schemars(with = "String")]
    pub last: Timestamp,
    /// Number of attempts whose prompts had it, and how many of them passed.
    #[serde(default)]
    pub used: u32,
    #[serde(default)]
    pub passed: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub last_used: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It is in the file.
    Kept,
    /// There was no room for it. It comes back when it is learned again.
    Dropped,
    /// The user deleted or changed its line. It does not come back.
    DroppedByUser,
    /// The user overrode the Stop gate that taught it. It does not come back.
    Overridden,
}

/// What taught a lesson.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum Origin {
    Attempt { run: String, story: String, attempt: u32 },
    Stop { blocks: u32, sessions: u32 },
}

impl Entry {
    pub(super) fn new(lesson: Lesson, origin: Origin, now: Timestamp) -> Self {
        let (status, times, used, passed) = (Status::Kept, 1, 0, 0);
        Self { lesson, status, is_users: false, origin, times, first: now, last: now, used, passed, last_used: None }
    }

    /// When it last mattered.
    pub(super) fn last_touched(&self) -> Timestamp {
        self.last_used.map_or(self.last, |used| used.max(self.last))
    }
}

impl History {
    /// Forgets the oldest dropped lessons.
    pub(super) fn forget_oldest(&mut self) {
        let dropped = self.lessons.iter().filter(|(_, entry)| entry.status != Status::Kept);
        let mut dropped: Vec<(Timestamp, String)> = dropped.map(|(id, entry)| (entry.last_touched(), id.clone())).collect();
        dropped.sort();
        let surplus = dropped.len().saturating_sub(MOST_DROPPED);
        for (_, id) in &dropped[..surplus] {
            self.lessons.remove(id);
        }
    }
}
