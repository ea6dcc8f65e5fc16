//! Pages that are printed once: summary, status, a story, the log.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use verdone_core::agent::{SessionUse, TurnOutcome};
use verdone_core::base::id::{RunId, StoryId};
use verdone_core::hook::{FaultTally, SessionTally};
use verdone_report::{FaultsOf, SessionOf, Sessions, Style, log_line, session, sessions, status, story, summary};

use crate::expected::same_as_file;
use crate::fixture::{Journal, half_a_run, whole_run};

fn widest(text: &str) -> usize {
    text.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap_or(0)
}

#[test]
fn the_summary_fits_and_keeps_each_result_apart() {
    for width in [20, 40, 80, 200] {
        let text = summary(&whole_run().view(), &Style { width, ..Style::default() });
        assert!(widest(&text) <= width, "{width}\n{text}");
        same_as_file(&format!("summary-{width}.txt"), &text);
    }
}

#[test]
fn a_run_without_stories_has_a_summary_without_a_table() {
    let view = verdone_core::journal::view::RunView::default();
    assert_eq!(
        summary(&view, &Style::default()),
        "0 of 0 stories done in the plan\n0 iterations, 0 commits, 0 attempts kept in 0s\n"
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
fn a_story_shows_attempts_reasons_trees_evidence_and_refs() {
    let view = whole_run().view();
    for (id, width) in [("US-002", 80), ("US-003", 80), ("US-003", 20), ("US-004", 200), ("US-005", 80), ("US-006", 80)] {
        let text = story(&view, &StoryId::from(id), &Style { width, ..Style::default() }).unwrap();
        assert!(widest(&text) <= width, "{text}");
        same_as_file(&format!("story-{id}-{width}.txt"), &text);
    }
    assert_eq!(story(&view, &StoryId::from("US-999"), &Style::default()), None);
}

fn session_of(id: &str, fresh: Option<&str>) -> SessionUse {
    let fresh = fresh.map(str::to_owned);
    SessionUse { id: id.to_owned(), fresh, tokens: Some(48_000), window: Some(200_000), compactions: 2, cut_commands: 1 }
}

#[test]
fn a_story_shows_the_session_of_each_turn_and_how_to_go_on_with_the_last() {
    let mut journal = Journal::new();
    journal.start(1).select("US-001", "Greet", 1, (1, 1, 1));
    journal.turn().ended_in(Some(session_of("5e55-one", Some("there is no session yet"))), 1, TurnOutcome::Ended, 0);
    journal.turn().ended_in(Some(session_of("5e55-two", Some("the last session is gone"))), 1, TurnOutcome::Ended, 0);
    journal.turn().ended_in(Some(session_of("5e55-two", None)), 1, TurnOutcome::Ended, 0);
    let text = story(&journal.view(), &StoryId::from("US-001"), &Style { width: 200, ..Style::default() }).unwrap();
    for line in [
        "session 5e55-one · fresh: there is no session yet · context 48,000 of 200,000 tokens (24%)",
        "session 5e55-two · fresh: the last session is gone · context",
        "session 5e55-two · same session · context",
        "the agent's context was compacted 2 times · 1 command in the background ended with the turn\n",
        "\n    claude --resume 5e55-two --fork-session\n",
        "verdone install",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn what_is_no_id_never_becomes_part_of_a_command() {
    for id in ["", "-p", "--dangerously-skip-permissions", "a b", "$(rm -rf ~)", "a;b", "a\nb", "\u{1b}[2J", "../a", "'"] {
        let mut journal = Journal::new();
        journal.start(1).select("US-001", "Greet", 1, (1, 1, 1)).turn();
        journal.ended_in(Some(session_of(id, None)), 1, TurnOutcome::Ended, 0);
        let text = story(&journal.view(), &StoryId::from("US-001"), &Style::default()).unwrap();
        assert!(!text.contains("--resume") && !text.contains(|c: char| c.is_control() && c != '\n'), "{id:?}\n{text}");
    }
}

#[test]
fn a_turn_that_is_made_again_has_cost_both_times() {
    let limit = TurnOutcome::UsageLimit { reason: "used up".to_owned(), resets_at: None };
    let mut journal = Journal::new();
    journal.start(1).select("US-001", "Greet", 1, (1, 1, 1)).turn().ended_in(None, 2, limit, 0).waits(9);
    journal.goes_on().ended_in(None, 3, TurnOutcome::Ended, 0);
    let text = story(&journal.view(), &StoryId::from("US-001"), &Style::default()).unwrap();
    assert!(text.contains("1 attempt · 1 turn ·"), "{text}");
    assert!(text.contains("Turn 1: agent stopped after 5s · 0.42 USD, 24,690 tokens"), "{text}");
}

#[test]
fn sessions_fit_any_width_and_their_names_steer_nothing() {
    let hostile = "\u{1b}[31m\u{202e}evil\n\u{9b}2J";
    let record = |more: serde_json::Value| {
        let mut value = serde_json::json!({ "at": "2026-11-15T08:00:00Z", "event": "X" });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value.to_string()
    };
    let mut tally = SessionTally::default();
    for n in 0..30 {
        let (tool, file) = (format!("{hostile} {n}"), format!("/p/{hostile}/{n}"));
        tally.add_line(&record(serde_json::json!({
            "record": "ran", "tool": tool, "id": null, "failed": n == 0, "interrupted": false, "duration_ms": 1500, "files": [file],
        })));
        tally.add_line(&record(serde_json::json!({
            "record": "decided", "tool": tool, "id": null, "verdict": "deny", "rule": tool, "place": null, "about": hostile,
            "reason": hostile, "needs_human": n == 1,
        })));
    }
    tally.add_line(&record(serde_json::json!({ "record": "ended", "reason": hostile })));
    let mut faults = FaultTally::default();
    faults.add_line(&record(serde_json::json!({ "record": "failed", "cause": hostile, "denied": true })));
    let found = SessionOf { id: hostile.to_owned(), run: Some(RunId::from(hostile)), tally };
    let faults = FaultsOf { run: None, file: hostile.to_owned(), tally: faults };
    let list = Sessions { sessions: vec![found.clone()], older: 3, faults: vec![faults] };
    for width in [20, 80, 200] {
        let style = Style { width, ..Style::default() };
        for text in [sessions(&list, &TimeZone::UTC, &style), session(&found, "/p", &TimeZone::UTC, &style)] {
            assert!(widest(&text) <= width, "{width}\n{text}");
            assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
        }
    }
    let text = session(&found, "/p", &TimeZone::UTC, &Style { width: 200, ..Style::default() });
    assert_eq!((text.matches("and 10 more").count(), text.matches("and 9 more").count()), (2, 1), "{text}");
    assert!(text.contains("30 calls (1 failed), 30 denied (1 needed a human), 45s in tools") && !text.contains("/p/"), "{text}");
    let list = sessions(&list, &TimeZone::UTC, &Style { width: 200, ..Style::default() });
    assert!(list.contains("and 3 older sessions\nThe guard failed 1 time (1 denied)"), "{list}");
    assert_eq!(sessions(&Sessions::default(), &TimeZone::UTC, &Style::default()), "No sessions were recorded yet.\n");
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
        let pages = [summary(&view, &style), status(&view, now, &style), story(&view, &id, &style).unwrap()];
        for page in &pages {
            prop_assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{:?}", page);
            // Names, symbols and indents keep their place even on unrealistically narrow screens.
            prop_assert!(widest(page) <= width.max(20), "{}", page);
        }
        prop_assert!(!log.chars().any(char::is_control), "{:?}", log);
    }
}
