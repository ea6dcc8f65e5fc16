//! Journals of the first edition, which worked in the user's checkout, stay readable.

use super::*;
use crate::machine::{Phase, State, apply};
use crate::view::{Brief, Counts, RunView};

/// A run with every event and name that the second edition does not write any more.
const FIRST_EDITION: &str = include_str!("../../tests/fixtures/first_edition.jsonl");

fn journal() -> Vec<Recorded> {
    FIRST_EDITION.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn old_names_are_read_as_what_took_their_place() {
    let events: Vec<Event> = journal().into_iter().map(|recorded| recorded.event).collect();
    let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, Event::Retired)), 6);
    assert_eq!(count(|event| matches!(event, Event::AttemptStarted { base: None, .. })), 2);
    assert_eq!(count(|event| matches!(event, Event::AttemptKept { files: 3, .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::AttemptDropped { .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::Verified { outcome: VerifyOutcome::Refused, .. })), 2);
    assert_eq!(count(|event| matches!(event, Event::AttemptRejected { rejection: Rejection::ChecksFailed, .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::Undone { story: None, tip: None, .. })), 1);
}

#[test]
fn an_old_journal_folds_to_the_same_run() {
    let mut state = State::default();
    for recorded in journal() {
        apply(&mut state, &recorded);
    }
    assert_eq!(state.phase, Phase::Stopped { finish: Finish::Manual, exit_code: 130 });
    assert_eq!((state.iteration, state.attempt, state.progress.attempts.get(&StoryId::from("A"))), (2, None, Some(&1)));

    let view = RunView::from_journal(&journal());
    assert_eq!(view.counts, Counts { kept_attempts: 1, ..Counts::default() });
    assert_eq!((view.exit_code, view.commits, view.open, &view.landing, &view.seal), (Some(130), 0, 2, &None, &None));
    let story = view.story(&StoryId::from("A")).unwrap();
    assert_eq!((story.kept(), story.attempts[0].files), (Some(&Oid::from("k1")), 3));
    assert_eq!(view.undone, ["the rollback"]);
}

#[test]
fn a_brief_view_of_an_old_journal_adds_up_to_the_same() {
    let lines: Vec<&str> = FIRST_EDITION.lines().filter(|line| !line.contains(r#""event":"undone""#)).collect();
    let mut brief = Brief::default();
    for line in &lines {
        brief.push(format!("{line}\n").as_bytes()).unwrap();
    }
    let brief = brief.finish().unwrap();
    let whole: Vec<Recorded> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let whole = RunView::from_journal(&whole);
    assert_eq!((brief.counts, brief.tokens, brief.restored), (whole.counts, whole.tokens, whole.restored));
    assert_eq!((brief.phase, brief.exit_code, brief.iterations), (whole.phase, whole.exit_code, whole.iterations));
}
