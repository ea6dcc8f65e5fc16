//! Counts what keeps blocking sessions. A cause that blocks again and again becomes a lesson; one that the user overrides does not.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::history::{Origin, Status};
use super::line::Lesson;
use super::memory::Memory;
use super::settings::LearnSettings;

/// How often a cause must block, and in how many sessions: one session that works towards a passing check is not a pattern.
pub const BLOCKS_TO_LEARN: u32 = 3;
pub const SESSIONS_TO_LEARN: usize = 2;

const MOST_CAUSES: usize = 100;
const MOST_SESSIONS: usize = 20;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCounts {
    /// By the id of the lesson that the cause would become.
    #[serde(default)]
    causes: BTreeMap<String, StopCount>,
    /// What blocked each session last, the newest session last.
    #[serde(default)]
    last: Vec<(String, Vec<String>)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StopCount {
    blocks: u32,
    sessions: Vec<String>,
    at: Timestamp,
}

impl Memory {
    /// The Stop gate blocked this session for these causes.
    pub fn note_block(&mut self, session: &str, causes: Vec<Lesson>, settings: &LearnSettings, now: Timestamp) {
        let stops = &mut self.history.stops;
        stops.last.retain(|(known, _)| known != session);
        stops.last.push((session.to_owned(), causes.iter().map(Lesson::id).collect()));
        let surplus = stops.last.len().saturating_sub(MOST_SESSIONS);
        stops.last.drain(..surplus);
        for cause in causes {
            let count = self.history.stops.causes.entry(cause.id()).or_default();
            count.blocks = count.blocks.saturating_add(1);
            count.at = now;
            if count.sessions.len() < MOST_SESSIONS && !count.sessions.iter().any(|known| known == session) {
                count.sessions.push(session.to_owned());
            }
            if count.blocks >= BLOCKS_TO_LEARN && count.sessions.len() >= SESSIONS_TO_LEARN {
                let origin = Origin::Stop { blocks: count.blocks, sessions: count.sessions.len() as u32 };
                self.learn(cause, origin, settings, now);
            }
        }
        self.history.stops.forget_oldest();
    }

    /// Whether an override by the user would change anything.
    pub fn was_blocked(&self, session: &str) -> bool {
        self.history.stops.last.iter().any(|(known, causes)| known == session && !causes.is_empty())
    }

    /// The user let the session end although it was blocked: its last causes do not matter to the user.
    pub fn note_override(&mut self, session: &str) {
        self.follow_user();
        let stops = &mut self.history.stops;
        let Some(at) = stops.last.iter().position(|(known, _)| known == session) else { return };
        let (_, causes) = stops.last.remove(at);
        for id in causes {
            self.history.stops.causes.remove(&id);
            self.drop_lesson(&id, Status::Overridden);
        }
    }
}

impl StopCounts {
    fn forget_oldest(&mut self) {
        while self.causes.len() > MOST_CAUSES {
            let oldest = self.causes.iter().min_by_key(|(id, count)| (count.at, (*id).clone())).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return };
            self.causes.remove(&oldest);
        }
    }
}
