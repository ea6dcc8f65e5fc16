//! What the end of an attempt teaches.

use std::path::Path;

use super::*;
use crate::check::lessons::Origin;

fn here() -> Taught<'static> {
    Taught { root: Path::new("/w/project"), check: Some("own") }
}

/// A state whose attempt was verified with this result.
fn judged(reason: Reason, runs: Vec<CheckRun>, hidden: &[&str]) -> State {
    let mut report = VerifyReport::empty(Surface::Run, None, TreeIds::of_attempt(Oid::from("t")));
    report.reasons = vec![reason];
    report.runs.insert(Tree::Attempt, runs);
    report.hidden = hidden.iter().map(|name| (*name).to_owned()).collect();
    let mut attempt = Attempt::new(Place { story: StoryId::from("A"), attempt: 2, turn: 1 }, "T");
    attempt.report = Some(Box::new(report));
    State { attempt: Some(attempt), run: Some(RunId::from("r1")), ..State::default() }
}

fn rejected(rejection: Rejection) -> Event {
    Event::AttemptRejected { place: Place { story: StoryId::from("A"), attempt: 2, turn: 1 }, rejection, reason: String::new() }
}

#[track_caller]
fn line(state: &State, rejection: Rejection) -> Option<String> {
    match teaching(state, &rejected(rejection), here())? {
        Teaching::Learn { lesson, origin } => {
            assert_eq!(origin, Origin::Attempt { run: "r1".to_owned(), story: "A".to_owned(), attempt: 2 });
            Some(lesson.line())
        }
        Teaching::Passed => panic!("a rejected attempt did not pass"),
    }
}

fn failed(first_error: &str, tail: &str) -> State {
    let run = CheckRun {
        name: "make".to_owned(),
        first_error: first_error.to_owned(),
        tail: tail.to_owned(),
        ..ran("make", CheckOutcome::Failed { code: 1 })
    };
    judged(Reason::Failure(Failure::CheckFailed { check: "make".to_owned(), said: "failed".to_owned() }), vec![run], &[])
}

#[test]
fn a_failed_check_teaches_its_first_error_and_a_file_of_the_project() {
    for (first_error, tail, expected) in [
        ("error: no b\n --> src/a.rs:4:2", "", "- A check failed: `make` in `src/a.rs` (\"error: no b\")"),
        ("error: x\n at /w/project/lib/b.ts:3", "", "- A check failed: `make` in `lib/b.ts` (\"error: x\")"),
        ("error: x\n at /usr/lib/b.ts:3", "./c.py:1: y\n", "- A check failed: `make` in `c.py` (\"error: x\")"),
        ("error: x\n at ../other/b.ts:3", "", "- A check failed: `make` (\"error: x\")"),
        ("", "one\n----\nthe last words\n====\n", "- A check failed: `make` (\"the last words\")"),
        ("", "", "- A check failed: `make`"),
    ] {
        assert_eq!(line(&failed(first_error, tail), Rejection::ChecksFailed).as_deref(), Some(expected), "{first_error:?}");
    }
}

#[test]
fn only_ends_that_the_agent_can_learn_from_teach_something() {
    let state = failed("error: x", "");
    let own = |words: &str| Some(format!("- {words}: `own`"));
    for (rejection, expected) in [
        (Rejection::NothingChanged, own("An attempt changed no file")),
        (Rejection::TurnFailed, own("A turn crashed or ran out of time")),
        (Rejection::TestsFailed, own("The agent's own test runs kept failing")),
        (Rejection::CommitRefused, own("The commit was refused")),
        (Rejection::NoProgress, Some("- A check failed: `make` (\"error: x\")".to_owned())),
        (Rejection::AlreadyGreen, None),
        (Rejection::UsageLimit, None),
        (Rejection::ServiceError, None),
        (Rejection::Stopped, None),
        (Rejection::Crashed, None),
    ] {
        assert_eq!(line(&state, rejection.clone()), expected, "{rejection:?}");
    }
    let nothing = Taught { check: None, ..here() };
    assert_eq!(teaching(&state, &rejected(Rejection::TurnFailed), nothing), None, "no prompt would ever get it");
}

#[test]
fn doubts_teach_facts_and_neither_a_judges_words_nor_hidden_output() {
    let files = vec!["tests/a.py".to_owned(), "b".to_owned()];
    let check = || "make".to_owned();
    let pristine = |files| Reason::Doubt(Doubt::PristineFailed { check: check(), said: "SECRET".to_owned(), files });
    let refuted = Reason::Doubt(Doubt::JudgeRefuted { findings: vec!["obey me".to_owned()] });
    for (reason, hidden, expected) in [
        (
            pristine(files.clone()),
            &[][..],
            Some("- Work passed only with changed tests or configuration: `make` in `tests/a.py`"),
        ),
        (pristine(files.clone()), &["make"], Some("- A hidden check failed: `make`")),
        (
            Reason::Doubt(Doubt::AutorunChanged { files }),
            &[],
            Some("- A file that runs outside the workspace was changed in `tests/a.py`"),
        ),
        (refuted, &[], Some("- The judge refuted work that passed its checks: `own`")),
        (Reason::Doubt(Doubt::JudgeUnknown { why: "x".to_owned() }), &[], None),
    ] {
        let state = judged(reason, Vec::new(), hidden);
        assert_eq!(line(&state, Rejection::NeedsReview).as_deref(), expected);
    }
}
