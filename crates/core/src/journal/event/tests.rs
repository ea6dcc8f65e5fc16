//! Journals of older versions stay readable.

use super::*;
use crate::engine::run::{Phase, State, apply};
use crate::journal::view::{Brief, Counts, RunView};
use crate::verify::{StoryResult, TreeIds};

/// A run of the first edition, which worked in the user's checkout, with every event and name that is no longer written.
const FIRST_EDITION: &str = include_str!("../../../tests/fixtures/first_edition.jsonl");
/// Real runs from before the verification engine: with alarms, and with `verdict` instead of proof and outcome.
const VERDICTS: &str = include_str!("../../../tests/fixtures/verdicts.jsonl");
/// The same with `--unverified`, which is now called `--unchecked`.
const UNVERIFIED: &str = include_str!("../../../tests/fixtures/unverified.jsonl");

fn read(lines: &str) -> Vec<Recorded> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn journal() -> Vec<Recorded> {
    read(FIRST_EDITION)
}

fn reports(journal: &[Recorded]) -> Vec<&Verified> {
    journal.iter().filter_map(verified).collect()
}

fn verified(recorded: &Recorded) -> Option<&Verified> {
    if let Event::Verified(verified) = &recorded.event { Some(verified) } else { None }
}

#[test]
fn old_names_are_read_as_what_took_their_place() {
    let events: Vec<Event> = journal().into_iter().map(|recorded| recorded.event).collect();
    let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, Event::Retired)), 6);
    assert_eq!(count(|event| matches!(event, Event::AttemptStarted { base: None, .. })), 2);
    assert_eq!(count(|event| matches!(event, Event::AttemptKept { files: 3, .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::AttemptDropped { .. })), 1);
    let failed = |event: &Event| matches!(event, Event::Verified(seen) if seen.report.outcome == Outcome::Failed);
    assert_eq!(count(failed), 2);
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
fn a_verification_from_before_the_engine_is_a_report_of_what_it_said() {
    let old = read(VERDICTS);
    let found = reports(&old);
    let says = |seen: &Verified| (seen.report.outcome, seen.report.problems().join("; "), seen.runs().len(), seen.changed);
    let failed = "`grep -q two one.txt` failed with exit code 1".to_owned();
    assert_eq!(says(found[0]), (Outcome::Failed, failed, 1, 1));
    assert_eq!(says(found[1]), (Outcome::Done, String::new(), 2, 1));
    assert_eq!(found[1].report.trees, TreeIds::of_attempt(Oid::from("831fe23f0980186eba71fa31b92488e2384b076f")));
    assert_eq!((found[3].report.outcome, found[3].report.proof), (Outcome::Failed, None), "what was refused was not done");
    assert!(found[3].report.sentence().starts_with("this looks like"), "{}", found[3].report.sentence());
    for (word, expected) in [("nothing_changed", "no file was changed"), ("interrupted", "the verification was interrupted")] {
        let line = VERDICTS.lines().find(|line| line.contains(r#""event":"verified""#)).unwrap();
        let line = line.replace(r#""outcome":"failed","tree""#, &format!(r#""outcome":"{word}","tree""#));
        assert_eq!(reports(&read(&line))[0].report.sentence(), expected);
    }
}

#[test]
fn old_words_for_proofs_are_read_as_those_of_today() {
    for (lines, unchecked, expected) in
        [(VERDICTS, false, &[Proof::Verified, Proof::Untested][..]), (UNVERIFIED, true, &[Proof::Unchecked])]
    {
        let (mut started, mut committed) = (Vec::new(), Vec::new());
        for recorded in read(lines) {
            match recorded.event {
                Event::CommitStarted { proof, outcome: Outcome::Done, .. } => started.push(proof),
                Event::Committed { proof, outcome: Outcome::Done, .. } => committed.push(proof),
                Event::RunStarted { unchecked: found, .. } => assert_eq!(found, unchecked),
                _ => {}
            }
        }
        assert_eq!((started.as_slice(), committed.as_slice()), (expected, expected));
    }
    let view = RunView::from_journal(&read(VERDICTS));
    let kept_attempts = 1;
    assert_eq!(view.counts, Counts { verified: 1, untested: 1, failed: 1, kept_attempts, ..Counts::default() });
    // These journals do not say what the agent claimed.
    assert_eq!((view.false_claims.checks_failed, view.exit_code), (0, Some(4)));
    let view = RunView::from_journal(&read(UNVERIFIED));
    assert_eq!((view.counts, view.unchecked), (Counts { unchecked: 1, ..Counts::default() }, true));
    let mut state = State::default();
    for recorded in read(UNVERIFIED) {
        apply(&mut state, &recorded);
    }
    assert_eq!(state.results[&StoryId::from("US-001")], StoryResult::done(Proof::Unchecked));
}

#[test]
fn a_line_that_is_written_today_reads_back() {
    let last = read(VERDICTS).pop().unwrap();
    let place = || Place { story: StoryId::from("A"), attempt: 1, turn: 2 };
    let (reasons, by) = (vec!["why".to_owned()], "Jo".to_owned());
    let review = Event::ReviewNeeded { place: place(), work: Oid::from("w"), base: None, proof: Proof::Untested, reasons };
    for event in [review, Event::Refused { story: StoryId::from("A"), by }] {
        let recorded = Recorded { event, ..last.clone() };
        let line = serde_json::to_string(&recorded).unwrap();
        assert_eq!(serde_json::from_str::<Recorded>(&line).unwrap(), recorded, "{line}");
    }
}

#[test]
fn a_brief_view_of_an_old_journal_adds_up_to_the_same() {
    for journal in [FIRST_EDITION, VERDICTS, UNVERIFIED] {
        let lines: Vec<&str> = journal.lines().filter(|line| !line.contains(r#""event":"undone""#)).collect();
        let mut brief = Brief::default();
        for line in &lines {
            brief.push(format!("{line}\n").as_bytes()).unwrap();
        }
        let brief = brief.finish().unwrap();
        let whole = RunView::from_journal(&read(&lines.join("\n")));
        assert_eq!((brief.counts, brief.tokens, brief.restored), (whole.counts, whole.tokens, whole.restored));
        assert_eq!((brief.false_claims, brief.commits, brief.tip), (whole.false_claims, whole.commits, whole.tip));
        assert_eq!((brief.phase, brief.exit_code, brief.iterations), (whole.phase, whole.exit_code, whole.iterations));
    }
}
