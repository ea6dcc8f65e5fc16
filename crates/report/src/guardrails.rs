//! The page of `verdone guardrails`: each lesson with its history.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;
use verdone_core::check::lessons::{Lesson, Memory, Origin, Status, lessons_in, user_text};

use crate::style::{Style, Tone};
use crate::width::{clean_line, wrap};
use crate::wording::{moment, plural};

/// The lessons of a project.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Guardrails {
    /// The file with the lessons.
    pub file: String,
    /// The number of the user's own lines that are not empty.
    pub user_lines: usize,
    /// Lessons in the file, in its order.
    pub lessons: Vec<ListedLesson>,
    /// Lessons that are no longer in the file.
    pub dropped: Vec<ListedLesson>,
}

/// A lesson with its history.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedLesson {
    pub id: String,
    /// Its line in the file.
    pub text: String,
    #[serde(flatten)]
    pub lesson: Lesson,
    /// Absent for lines that came with the file, from another machine for example.
    pub history: Option<LessonHistory>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LessonHistory {
    pub status: Status,
    /// The user wrote the line or put it back: it is never dropped.
    pub is_users: bool,
    /// What taught it last.
    pub origin: Origin,
    /// How often it was learned.
    pub times: u32,
    #[schemars(with = "String")]
    pub first: Timestamp,
    #[schemars(with = "String")]
    pub last: Timestamp,
    /// The number of attempts whose prompts had it, and how many of them passed.
    pub used: u32,
    pub passed: u32,
    #[schemars(with = "Option<String>")]
    pub last_used: Option<Timestamp>,
}

impl Guardrails {
    pub fn new(file: &str, memory: &Memory) -> Self {
        let listed = |lesson: Lesson| {
            let id = lesson.id();
            let history = memory.history.lessons.get(&id).map(|entry| LessonHistory {
                status: entry.status,
                is_users: entry.is_users,
                origin: entry.origin.clone(),
                times: entry.times,
                first: entry.first,
                last: entry.last,
                used: entry.used,
                passed: entry.passed,
                last_used: entry.last_used,
            });
            ListedLesson { text: lesson.line(), id, history, lesson }
        };
        let mut dropped: Vec<_> = memory.history.lessons.values().filter(|entry| entry.status != Status::Kept).collect();
        dropped.sort_by_key(|entry| std::cmp::Reverse(entry.last));
        Self {
            file: file.to_owned(),
            user_lines: user_text(&memory.text).lines().filter(|line| !line.trim().is_empty()).count(),
            lessons: lessons_in(&memory.text).map(listed).collect(),
            dropped: dropped.into_iter().map(|entry| listed(entry.lesson.clone())).collect(),
        }
    }
}

/// The page, for a terminal or a pipe.
pub fn guardrails(page: &Guardrails, zone: &TimeZone, style: &Style) -> String {
    let mut out = String::new();
    let head = format!(
        "{}: {} and {}",
        clean_line(&page.file),
        plural(page.lessons.len(), "lesson", "lessons"),
        plural(page.user_lines, "other line", "other lines")
    );
    rows(Tone::Strong, &head, "", style, &mut out);
    list(&page.lessons, zone, style, &mut out);
    if !page.dropped.is_empty() {
        out.push('\n');
        rows(Tone::Strong, "Dropped", "", style, &mut out);
        list(&page.dropped, zone, style, &mut out);
    }
    out
}

fn list(lessons: &[ListedLesson], zone: &TimeZone, style: &Style, out: &mut String) {
    for lesson in lessons {
        rows(Tone::Plain, &clean_line(&lesson.text), "", style, out);
        let history = lesson.history.as_ref();
        let told =
            history.map_or_else(|| "no history: the line was already in the file".to_owned(), |history| sentence(history, zone));
        rows(Tone::Dim, &told, "  ", style, out);
    }
}

fn sentence(history: &LessonHistory, zone: &TimeZone) -> String {
    let origin = match &history.origin {
        Origin::Attempt { run, story, attempt } => {
            format!("attempt {attempt} at {} in run {}", clean_line(story), clean_line(run))
        }
        Origin::Stop { blocks, sessions } => {
            let blocks = plural(*blocks as usize, "block", "blocks");
            format!("the Stop gate: {blocks} in {}", plural(*sessions as usize, "session", "sessions"))
        }
    };
    let times = if history.times == 1 { "once".to_owned() } else { format!("{} times, last", history.times) };
    let used = match (history.used, history.passed) {
        (0, _) => "not used yet".to_owned(),
        (used, passed) => format!("used in {}, {passed} passed", plural(used as usize, "attempt", "attempts")),
    };
    let status = match history.status {
        Status::Kept if history.is_users => "; your line, never dropped",
        Status::Kept => "",
        Status::Dropped => "; dropped to make room, returns if it fails again",
        Status::DroppedByUser => "; you removed it, it does not return",
        Status::Overridden => "; you overrode it, it does not return",
    };
    format!("learned {times} {} from {origin}; {used}{status}", moment(history.last, zone))
}

fn rows(tone: Tone, text: &str, indent: &str, style: &Style, out: &mut String) {
    let room = style.width.saturating_sub(indent.len() + 2).max(1);
    for (at, row) in wrap(text, room, 12, style.unicode).iter().enumerate() {
        let more = if at == 0 { "" } else { "  " };
        out.push_str(&format!("{indent}{more}{}\n", style.paint(tone, row)));
    }
}
