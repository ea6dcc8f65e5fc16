//! Edits of the text of `.verdone/guardrails.md`. They add and remove whole lines of lessons and keep every other byte.

use super::line::Lesson;

/// The lessons in the file, in order.
pub fn lessons_in(text: &str) -> impl Iterator<Item = Lesson> + '_ {
    text.lines().filter_map(Lesson::parse)
}

/// What the user wrote: the text without the lessons.
pub fn user_text(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| Lesson::parse(bare(line)).is_none()).collect()
}

pub(super) fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

/// Adds a line at the end, with the line breaks that the file has.
pub(super) fn append_line(text: &str, line: &str) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let missing = if text.is_empty() || text.ends_with('\n') { "" } else { end };
    format!("{text}{missing}{line}{end}")
}

/// Removes a line. If the user copied it, only the last one is ours.
pub(super) fn remove_line(text: &str, line: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = lines.iter().rposition(|found| bare(found) == line);
    lines.iter().enumerate().filter(|(index, _)| Some(*index) != at).map(|(_, line)| *line).collect()
}

fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}
