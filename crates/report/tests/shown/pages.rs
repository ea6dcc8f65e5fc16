//! Pages that are printed once: summary, status, a story, the log.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use verdone_core::id::StoryId;
use verdone_report::{Style, checkpoints, log_line, status, story, summary};

use crate::expected::same_as_file;
use crate::fixture::{Journal, half_a_run, whole_run};

fn widest(text: &str) -> usize {
    text.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap_or(0)
}

#[test]
fn the_summary_fits_and_keeps_verified_apart() {
    for width in [20, 40, 80, 200] {
        let text = summary(&whole_run().view(), &Style { width, ..Style::default() });
        assert!(widest(&text) <= width, "{width}\n{text}");
        same_as_file(&format!("summary-{width}.txt"), &text);
    }
}

#[test]
fn a_run_without_stories_has_a_summary_without_a_table() {
    let view = verdone_core::view::RunView::default();
    assert_eq!(
        summary(&view, &Style::default()),
        "0 verified; 0 of 0 stories done in the plan\n0 iterations, 0 commits, 0 rollbacks in 0s\n"
    );
}

#[test]
fn status_tells_where_a_run_stands() {
    let view = half_a_run().view();
    let now = view.last.unwrap().checked_add(jiff::SignedDuration::from_secs(75)).unwrap();
    let text = status(&view, now, &Style::default());
    assert!(widest(&text) <= 80);
    same_as_file("status-running.txt", &text);
    let view = whole_run().view();
    same_as_file("status-ended.txt", &status(&view, now, &Style::default()));
}

#[test]
fn a_story_shows_attempts_evidence_and_refs() {
    let view = whole_run().view();
    for (id, width) in [("US-002", 80), ("US-003", 80), ("US-003", 20), ("US-004", 200)] {
        let text = story(&view, &StoryId::from(id), &Style { width, ..Style::default() }).unwrap();
        assert!(widest(&text) <= width, "{text}");
        same_as_file(&format!("story-{id}-{width}.txt"), &text);
    }
    assert_eq!(story(&view, &StoryId::from("US-999"), &Style::default()), None);
}

#[test]
fn checkpoints_are_listed_oldest_first() {
    let text = checkpoints(&whole_run().view(), &TimeZone::UTC, &Style::default());
    assert!(widest(&text) <= 80);
    same_as_file("checkpoints.txt", &text);
}

#[test]
fn the_log_is_one_line_an_event_in_local_time() {
    let journal = whole_run();
    let lines: Vec<String> = journal.recorded().map(|recorded| log_line(recorded, &TimeZone::UTC, &Style::default())).collect();
    assert!(lines.iter().all(|line| !line.contains('\n')));
    same_as_file("log.txt", &format!("{}\n", lines.join("\n")));
}

proptest! {
    #[test]
    fn hostile_plans_neither_break_pages_nor_the_terminal(id in any::<String>(), title in any::<String>(), width in 0_usize..120, unicode: bool) {
        let mut journal = Journal::new();
        journal.start(3).select(&id, &title, 1, (1, 3, 3)).turn();
        let (view, style) = (journal.view(), Style { color: false, width, unicode });
        let (id, now) = (StoryId(id), view.last.unwrap());
        let zone = TimeZone::UTC;
        let log: String = journal.recorded().map(|recorded| log_line(recorded, &zone, &style)).collect();
        let pages = [summary(&view, &style), status(&view, now, &style), story(&view, &id, &style).unwrap(), checkpoints(&view, &zone, &style)];
        for page in &pages {
            prop_assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{:?}", page);
            // Names, signs and indents keep their place on screens that nobody has.
            prop_assert!(widest(page) <= width.max(20), "{}", page);
        }
        prop_assert!(!log.chars().any(char::is_control), "{:?}", log);
    }
}
