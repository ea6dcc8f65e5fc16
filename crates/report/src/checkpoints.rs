//! The snapshots of a run, for `verdone checkpoints`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use verdone_core::id::Oid;
use verdone_core::view::{AttemptView, RunView, StoryView};

use crate::event_lines::name;
use crate::style::{Style, Tone};
use crate::width::{clean, fit};
use crate::words::moment;

/// Oldest first; a line for each: when, which commit, what it keeps, of which attempt.
pub fn checkpoints(view: &RunView, zone: &TimeZone, style: &Style) -> String {
    let mut rows: Vec<(Timestamp, &Oid, &str, &StoryView, &AttemptView)> = Vec::new();
    for story in &view.touched {
        for attempt in &story.attempts {
            rows.extend(attempt.checkpoint.as_ref().map(|point| (attempt.started, &point.id, "before", story, attempt)));
            let ended = attempt.ended.unwrap_or(attempt.started);
            rows.extend(attempt.before_rollback.as_ref().map(|point| (ended, &point.id, "undo to", story, attempt)));
            rows.extend(attempt.kept.as_ref().map(|kept| (ended, kept, "rejected", story, attempt)));
        }
    }
    if rows.is_empty() {
        return "No checkpoints yet.\n".to_owned();
    }
    rows.sort_by_key(|(at, ..)| *at);
    let mut out = String::new();
    for (at, id, kind, story, attempt) in rows {
        let what = format!("attempt {} at {}", attempt.attempt, name(story.id.as_str(), &story.title));
        let line = format!("{}  {:10}  {kind:8}  {what}", moment(at, zone), clean(id.short()));
        let tone = if kind == "before" { Tone::Dim } else { Tone::Plain };
        out.push_str(&style.paint(tone, &fit(&line, style.width, style.unicode)));
        out.push('\n');
    }
    out
}
