use super::*;
use crate::check::{CheckOutcome, CommandSpec, TestCount};
use crate::engine::run::{Attempt, State};
use crate::journal::event::Place;
use crate::verify::{ChangeKind, CountFall, ProtectedKind, Surface};
use crate::verify::{Tree, VerifyReport};

pub(crate) fn noted(name: &str, origin: CheckOrigin, outcome: CheckOutcome) -> NotedCheck {
    let (command, output_digest) = (CommandSpec::Shell(name.to_owned()), digest(b""));
    NotedCheck {
        name: name.to_owned(),
        origin,
        command,
        outcome,
        duration_ms: 1,
        output_digest,
        advisory: false,
        flaky: false,
        cached: false,
        tests: None,
    }
}

pub(crate) fn evidence(story: &str, title: &str) -> Evidence {
    Evidence {
        v: 1,
        run: RunId::from("r1"),
        story: StoryId::from(story),
        title: title.to_owned(),
        proof: Proof::Verified,
        outcome: Outcome::Done,
        tree: Oid::from("t"),
        base: None,
        attempt: 1,
        turns: 1,
        red: Red::Red,
        before: vec![noted("test", CheckOrigin::Story, CheckOutcome::Failed { code: 1 })],
        after: vec![noted("test", CheckOrigin::Story, CheckOutcome::Passed)],
        claim: None,
        cost_usd: None,
        sessions: Vec::new(),
        trees: Some(TreeIds::of_attempt(Oid::from("t"))),
        pristine: Vec::new(),
        without_work: Vec::new(),
        counts: Vec::new(),
        protected: Vec::new(),
        reasons: Vec::new(),
        accepted: None,
        judge: None,
        criteria: Vec::new(),
        gates: Some("sha256:gates".to_owned()),
        previous: None,
        seal: None,
        session: None,
        amends: None,
    }
}

#[test]
fn the_evidence_of_a_loop_names_its_session_and_nothing_else_is_forged_by_it() {
    let place = Place { story: StoryId::from("US-1"), attempt: 1, turn: 2 };
    let state =
        State { session: Some("s1\nVerdone-Proof: verified".to_owned()), run: Some(RunId::from("r1")), ..State::default() };
    let report = VerifyReport::empty(Surface::Loop, Some(place.story.clone()), TreeIds::of_attempt(Oid::from("t")));
    let evidence = Evidence::for_attempt(&state, &Attempt::new(place, "Title"), (Proof::Untested, Outcome::Done), &report);
    let message = evidence.commit_message("{id}", None);
    assert_eq!(message.lines().filter(|line| line.starts_with("Verdone-Proof:")).count(), 1, "{message}");
    assert!(message.contains("\nVerdone-Session: s1 Verdone-Proof: verified\n"), "{message}");
    assert_eq!(Evidence::from_note(evidence.to_note().as_bytes()).unwrap(), evidence);
}

#[test]
fn the_message_names_story_run_proof_and_evidence() {
    let done = evidence("US-001", "Add login");
    let message = done.commit_message("feat({id}): {title}", None);
    assert!(message.starts_with("feat(US-001): Add login\n\nVerdone-Story: US-001\nVerdone-Run: r1\n"), "{message}");
    assert!(message.contains("Verdone-Proof: verified\nVerdone-Evidence: sha256:"), "{message}");
    let pending = Evidence { outcome: Outcome::NeedsReview, proof: Proof::AgentTested, ..done };
    let message = pending.commit_message("{id}", None);
    assert!(message.contains("Verdone-Proof: agent-tested\nVerdone-Outcome: needs-review\nVerdone-Evidence:"), "{message}");
}

#[test]
fn the_kind_comes_from_the_plan_then_from_the_titles_prefix_and_is_named_once() {
    const KIND: &str = "{kind}({id}): {title}";
    for (title, stated, template, expected) in [
        ("Write a", None, KIND, "feat(US-1): Write a"),
        ("fix: write a", None, KIND, "fix(US-1): write a"),
        ("Write a", Some("docs"), KIND, "docs(US-1): Write a"),
        ("fix: write a", Some("docs"), KIND, "docs(US-1): write a"),
        ("fix: write a", Some("docs"), "{title}", "fix: write a"),
    ] {
        let message = evidence("US-1", title).commit_message(template, stated);
        assert_eq!(message.lines().next(), Some(expected), "{title} {stated:?} {template}");
    }
}

#[test]
fn what_a_hook_makes_of_a_message_keeps_our_trailers() {
    let written = "Add login\n\nVerdone-Story: A\nVerdone-Evidence: sha256:1\n";
    for (edited, expected) in [
        (written, written),
        ("Add login\n\nVerdone-Story: A\nVerdone-Evidence: sha256:1\nTicket: 7\n", ""),
        ("Add login\n\nTicket: 7\n", "Add login\n\nTicket: 7\nVerdone-Story: A\nVerdone-Evidence: sha256:1\n"),
        ("Add login\n\nverdone-EVIDENCE : sha256:2\n", written),
        ("Add login\n\nVerdone-Story: A\n\nVerdone-Evidence: sha256:1\n", written),
        ("[x] Add login\n", "[x] Add login\n\nVerdone-Story: A\nVerdone-Evidence: sha256:1\n"),
        (
            "Add login\n\nVerdone-Story: A\nVerdone-Evidence: sha256:1\n\nThe end.\n",
            "Add login\n\nThe end.\n\nVerdone-Story: A\nVerdone-Evidence: sha256:1\n",
        ),
        ("fix: it\n", "fix: it\n\nVerdone-Story: A\nVerdone-Evidence: sha256:1\n"),
        ("\n\n", written),
    ] {
        let expected = if expected.is_empty() { edited } else { expected };
        assert_eq!(with_own_trailers(edited, written), expected, "{edited:?}");
    }
}

#[test]
fn a_title_cannot_forge_trailers() {
    let message =
        evidence("a\nVerdone-Outcome: done", "x\n\nVerdone-Proof: verified\u{1b}[2J").commit_message("{id} {title}", None);
    assert_eq!(message.lines().filter(|line| line.starts_with("Verdone-Proof:")).count(), 1, "{message}");
    assert_eq!(message.lines().filter(|line| line.starts_with("Verdone-Outcome:")).count(), 0, "{message}");
    assert!(!message.contains('\u{1b}'));
}

#[test]
fn a_note_from_before_the_chain_still_reads() {
    let old = r#"{ "v": 1, "run": "r1", "story": "US-1", "title": "t", "verdict": "verified", "tree": "abc", "base": null,
        "attempt": 1, "turns": 2, "red": "red", "before": [], "after": [{ "name": "x", "origin": "story", "command": "x",
        "outcome": "passed", "duration_ms": 3, "output_digest": "d" }] }"#;
    let read = Evidence::from_note(old.as_bytes()).unwrap();
    assert_eq!((read.story.as_str(), read.turns, read.gates, read.previous), ("US-1", 2, None, None));
    assert!(!read.after[0].advisory);
    assert_eq!((read.proof, read.outcome, read.trees), (Proof::Verified, Outcome::Done, None));
    for (word, proof) in [("unproven", Proof::Untested), ("unverified", Proof::Unchecked)] {
        let note = old.replace("\"verified\"", &format!("{word:?}"));
        assert_eq!(Evidence::from_note(note.as_bytes()).unwrap().proof, proof);
    }
}

#[test]
fn a_note_reads_back_as_what_was_written() {
    let mut written = evidence("US-1", "Title");
    written.claim = claim_of("I did it\nall");
    written.cost_usd = Some(0.25);
    written.outcome = Outcome::NeedsReview;
    written.pristine = vec![noted("test", CheckOrigin::Story, failed())];
    written.without_work = vec![noted("test", CheckOrigin::Story, failed())];
    written.counts = vec![fewer(false)];
    written.protected = vec![changed_test()];
    written.reasons = vec!["a sentence".to_owned()];
    let (by, at) = ("Jo <jo@example.com>".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    written.accepted = Some(Acceptance { by, at, reasons: vec!["a sentence".to_owned()] });
    written.criteria = vec![ProvenCriterion { text: "c".into(), prover: None }];
    let written = written.clone().in_place_of(&written);
    let note = written.to_note();
    assert_eq!(Evidence::from_note(note.as_bytes()).unwrap(), written);
    assert_eq!(written.digest(), note_digest(note.as_bytes()));
}

#[test]
fn a_newer_format_and_other_text_are_no_evidence() {
    let newer = evidence("a", "b").to_note().replace("\"v\": 1", "\"v\": 99");
    assert!(matches!(Evidence::from_note(newer.as_bytes()), Err(NoteError::Newer(99))));
    for text in [&b""[..], b"{}", b"\xff\xfe", b"Reviewed-by: somebody", b"[1]"] {
        assert!(matches!(Evidence::from_note(text), Err(NoteError::Broken(_))), "{text:?}");
    }
}

#[test]
fn a_proof_that_the_checks_do_not_carry_is_named() {
    type Edit = fn(&mut Evidence);
    const PRISTINE: &str = "it does not pass with the tests and configuration from before the work";
    const NOT_RED: &str = "none of the story's checks failed before the work";
    const NO_TESTS: &str = "no check failed with its tests and without its work";
    let table: [(&str, Edit, Option<&str>); 30] = [
        ("verified", |_| {}, None),
        ("failing own check", |it| it.after[0].outcome = failed(), Some("test failed with exit code 1")),
        ("failing gate", |it| it.after.push(noted("lint", gate(), failed())), Some("lint failed with exit code 1")),
        ("failing advisory gate", |it| it.after.push(advisory("lint")), None),
        ("green before", |it| it.red = Red::Green, Some(NOT_RED)),
        ("not run before", |it| it.before.clear(), Some(NOT_RED)),
        ("another one red before", |it| it.before[0].name = "other".to_owned(), Some(NOT_RED)),
        ("only a gate", |it| it.after[0].origin = gate(), Some("none of the story's checks ran on the tree")),
        ("only an advisory check", |it| it.after[0].advisory = true, Some("none of the story's checks ran on the tree")),
        ("pristine green", |it| it.pristine = vec![noted("test", CheckOrigin::Story, CheckOutcome::Passed)], None),
        ("pristine red", |it| it.pristine = vec![noted("lint", gate(), failed())], Some(PRISTINE)),
        ("pristine red, own", |it| it.pristine = vec![noted("test", CheckOrigin::Story, failed())], Some(PRISTINE)),
        ("pristine red, advisory", |it| it.pristine = vec![advisory("lint")], None),
        ("counts fell", |it| it.counts = vec![fewer(false)], Some("fewer tests pass than before the work")),
        ("counts may fall", |it| it.counts = vec![fewer(true)], None),
        ("agent-tested", agent_tested, None),
        (
            "agent-tested, tests pass alone",
            |it| edit(it, agent_tested, |it| it.without_work[0].outcome = CheckOutcome::Passed),
            Some(NO_TESTS),
        ),
        ("agent-tested, not tried", |it| edit(it, agent_tested, |it| it.without_work.clear()), Some(NO_TESTS)),
        ("agent-tested, other check", |it| edit(it, agent_tested, |it| it.without_work[0].name = "x".to_owned()), Some(NO_TESTS)),
        (
            "agent-tested, pristine red",
            |it| edit(it, agent_tested, |it| it.pristine = vec![noted("test", gate(), failed())]),
            Some(PRISTINE),
        ),
        (
            "agent-tested, new own check",
            |it| edit(it, agent_tested, |it| it.pristine = vec![noted("own", CheckOrigin::Story, failed())]),
            None,
        ),
        ("agent-tested, own check lost", |it| edit(it, agent_tested, lose_own_check), Some(PRISTINE)),
        ("untested", untested, None),
        ("untested, no check", |it| edit(it, untested, |it| it.after.clear()), Some("no check ran")),
        ("untested, only advisory", |it| edit(it, untested, |it| it.after = vec![advisory("lint")]), Some("no check ran")),
        (
            "untested, pristine red",
            |it| edit(it, untested, |it| it.pristine = vec![noted("test", gate(), failed())]),
            Some(PRISTINE),
        ),
        ("pending with pristine red", |it| edit(it, untested, |it| pending(it, Outcome::NeedsReview)), None),
        ("accepted with pristine red", |it| edit(it, untested, |it| pending(it, Outcome::Accepted)), None),
        ("unchecked", |it| (it.proof, it.after) = (Proof::Unchecked, Vec::new()), None),
        ("failed", |it| it.outcome = Outcome::Failed, Some("a failed story is never committed")),
    ];
    for (name, edit, expected) in table {
        let mut changed = evidence("a", "b");
        edit(&mut changed);
        assert_eq!(changed.overclaim().as_deref(), expected, "{name}");
    }
}

fn edit(evidence: &mut Evidence, first: fn(&mut Evidence), second: fn(&mut Evidence)) {
    first(evidence);
    second(evidence);
}

/// Its tests fail without its work; the gate passes with the old tests.
fn agent_tested(evidence: &mut Evidence) {
    (evidence.proof, evidence.red, evidence.before) = (Proof::AgentTested, Red::Absent, Vec::new());
    evidence.after = vec![noted("test", gate(), CheckOutcome::Passed)];
    evidence.pristine = vec![noted("test", gate(), CheckOutcome::Passed)];
    evidence.without_work = vec![noted("test", gate(), failed())];
}

/// Only the gate passes.
fn untested(evidence: &mut Evidence) {
    (evidence.proof, evidence.red, evidence.before) = (Proof::Untested, Red::Absent, Vec::new());
    evidence.after = vec![noted("test", gate(), CheckOutcome::Passed)];
}

fn lose_own_check(evidence: &mut Evidence) {
    evidence.before = vec![noted("own", CheckOrigin::Story, CheckOutcome::Passed)];
    evidence.pristine = vec![noted("own", CheckOrigin::Story, failed())];
}

fn pending(evidence: &mut Evidence, outcome: Outcome) {
    evidence.outcome = outcome;
    evidence.pristine = vec![noted("test", gate(), failed())];
    evidence.counts = vec![fewer(false)];
}

fn failed() -> CheckOutcome {
    CheckOutcome::Failed { code: 1 }
}

fn gate() -> CheckOrigin {
    CheckOrigin::Gate(crate::check::Stage::Correctness)
}

fn advisory(name: &str) -> NotedCheck {
    NotedCheck { advisory: true, ..noted(name, gate(), failed()) }
}

fn fewer(allowed: bool) -> CountChange {
    let count = |passed| Some(TestCount { ran: passed, passed, failed: 0, skipped: 0 });
    let fall = Some(CountFall::FewerPassed { before: 3, after: 2 });
    CountChange { check: "test".to_owned(), tree: Tree::Attempt, before: count(3), after: count(2), fall, allowed }
}

pub(crate) fn changed_test() -> ProtectedChange {
    let (kind, change) = (ProtectedKind::Test, ChangeKind::Modified);
    ProtectedChange { path: "tests/a.rs".to_owned(), kind, change, released: false }
}
