//! The file's text and the history together, and what changes them.

use jiff::Timestamp;

use super::guardrails_text::{append_line, has_line, lessons_in, remove_line};
use super::history::{Entry, History, Origin, Status};
use super::kind::Kind;
use super::line::Lesson;
use super::settings::LearnSettings;

/// The most bytes that the kept lessons take in the file.
pub const MOST_BYTES: usize = 8 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// The text of `.verdone/guardrails.md`.
    pub text: String,
    pub history: History,
}

impl Memory {
    /// Applies the user's edits: a lesson whose line is gone counts as dropped by the user; one whose line is back is kept.
    pub fn follow_user(&mut self) {
        for entry in self.history.lessons.values_mut() {
            let is_there = has_line(&self.text, &entry.lesson.line());
            match (entry.status, is_there) {
                (Status::Kept, false) => entry.status = Status::DroppedByUser,
                (Status::Dropped | Status::DroppedByUser | Status::Overridden, true) => {
                    (entry.status, entry.is_users) = (Status::Kept, true);
                }
                (Status::Kept, true) | (Status::Dropped | Status::DroppedByUser | Status::Overridden, false) => {}
            }
        }
    }

    /// Whether the file has this lesson.
    pub fn has(&self, lesson: &Lesson) -> bool {
        let id = lesson.id();
        lessons_in(&self.text).any(|found| found.id() == id)
    }

    /// Adds what an attempt or the Stop gate taught.
    pub fn learn(&mut self, lesson: Lesson, origin: Origin, settings: &LearnSettings, now: Timestamp) {
        self.follow_user();
        if !settings.enabled || settings.lessons == 0 {
            return;
        }
        let id = lesson.id();
        if let Some(entry) = self.history.lessons.get_mut(&id) {
            entry.times = entry.times.saturating_add(1);
            (entry.last, entry.origin) = (now, origin);
            if entry.status == Status::Dropped {
                entry.status = Status::Kept;
                self.text = append_line(&self.text, &entry.lesson.line());
            }
        } else {
            let found = lessons_in(&self.text).find(|found| found.id() == id);
            let is_users = found.is_some();
            let entry = Entry { is_users, ..Entry::new(found.unwrap_or(lesson), origin, now) };
            if !is_users {
                self.text = append_line(&self.text, &entry.lesson.line());
            }
            self.history.lessons.insert(id.clone(), entry);
        }
        self.make_room(&id, settings);
        self.history.forget_oldest();
    }

    /// An attempt's prompt has these lessons.
    pub fn note_use(&mut self, ids: &[String], now: Timestamp) {
        for id in ids {
            if let Some(entry) = self.history.lessons.get_mut(id) {
                entry.used = entry.used.saturating_add(1);
                entry.last_used = Some(now);
            }
        }
    }

    /// An attempt whose prompt had these lessons passed.
    pub fn note_pass(&mut self, ids: &[String]) {
        for id in ids {
            if let Some(entry) = self.history.lessons.get_mut(id) {
                entry.passed = entry.passed.saturating_add(1);
            }
        }
    }

    /// Drops a lesson, unless its line is the user's.
    pub(super) fn drop_lesson(&mut self, id: &str, status: Status) {
        let kept = self.history.lessons.get_mut(id).filter(|entry| entry.status == Status::Kept && !entry.is_users);
        if let Some(entry) = kept {
            entry.status = status;
            self.text = remove_line(&self.text, &entry.lesson.line());
        }
    }

    /// Drops lessons until the others fit: notes of agents before facts, those that no pass followed before the others, and among them the
    /// oldest. The newest stays.
    fn make_room(&mut self, newest: &str, settings: &LearnSettings) {
        loop {
            let ours = self.history.lessons.iter().filter(|(_, entry)| entry.status == Status::Kept && !entry.is_users);
            let ours: Vec<(&String, &Entry)> = ours.collect();
            let bytes: usize = ours.iter().map(|(_, entry)| entry.lesson.line().len() + 1).sum();
            if ours.len() <= settings.lessons as usize && bytes <= MOST_BYTES {
                return;
            }
            let others = ours.into_iter().filter(|(id, _)| *id != newest);
            let victim = others.min_by_key(|(id, entry)| {
                let is_fact = entry.lesson.kind != Kind::AgentNote;
                (is_fact, entry.passed > 0, entry.last_touched(), (*id).clone())
            });
            let Some(victim) = victim.map(|(id, _)| id.clone()) else { return };
            self.drop_lesson(&victim, Status::Dropped);
        }
    }
}
