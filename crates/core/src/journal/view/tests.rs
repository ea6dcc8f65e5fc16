use proptest::prelude::*;

use super::*;
use crate::agent::{SessionUse, TokenKinds, TurnOutcome, Usage};
use crate::check::{CheckOutcome, tests::ran};
use crate::evidence::tests::changed_test;
use crate::journal::event::{Event, Place, Rejection, SCHEMA_VERSION, TurnTests, Verified};
use crate::verify::{Doubt, Failure, Outcome, Proof, Reason, Surface, Tree, TreeIds, VerifyReport};

fn oid(name: &str) -> Oid {
    Oid::from(name)
}

fn place(story: &str, attempt: u32, turn: u32) -> Place {
    Place { story: StoryId::from(story), attempt, turn }
}

fn selected(story: &str, attempt: u32, open: usize) -> Event {
    let title = format!("Title of {story}");
    Event::StorySelected { iteration: attempt, place: place(story, attempt, 0), title, number: 1, of: 3, open }
}

fn ended(story: &str, attempt: u32, outcome: TurnOutcome) -> Event {
    let by_kind = Some(TokenKinds { input: 1, output: 2, cache_read: 3, cache_write: 4 });
    let usage = Usage { cost_usd: Some(0.5), tokens: Some(10), by_kind };
    let (prompt, output) = (None, None);
    Event::TurnEnded {
        place: place(story, attempt, 1),
        outcome,
        duration_ms: 5,
        usage,
        prompt,
        output,
        session: None,
        exit_code: None,
        allowance: None,
        claim: Some("Done.".to_owned()),
        leftovers: 1,
        tests: TurnTests::default(),
    }
}

fn report(outcome: Outcome, reasons: Vec<Reason>) -> VerifyReport {
    let empty = VerifyReport::empty(Surface::Run, None, TreeIds::of_attempt(oid("tree")));
    let runs = [(Tree::Attempt, vec![ran("true", CheckOutcome::Passed)])].into();
    let proof = (outcome != Outcome::Failed).then_some(Proof::Untested);
    VerifyReport { outcome, proof, reasons, runs, protected: vec![changed_test()], ..empty }
}

fn failed(failure: Failure) -> VerifyReport {
    report(Outcome::Failed, vec![Reason::Failure(failure)])
}

fn check_failed() -> VerifyReport {
    failed(Failure::CheckFailed { check: "true".to_owned(), said: "failed".to_owned() })
}

fn passed() -> VerifyReport {
    report(Outcome::Done, Vec::new())
}

fn verified(story: &str, attempt: u32, report: VerifyReport) -> Event {
    let restored = vec!["PLAN.md".to_owned()];
    Event::Verified(Box::new(Verified { place: place(story, attempt, 1), changed: 1, restored, report, judge: None }))
}

fn committed(story: &str, commit: &str, base: &str, proof: Proof) -> Event {
    committed_as(story, commit, base, (proof, Outcome::Done))
}

fn committed_as(story: &str, commit: &str, base: &str, (proof, outcome): (Proof, Outcome)) -> Event {
    let (place, base) = (place(story, 1, 1), Some(oid(base)));
    Event::Committed {
        place,
        commit: oid(commit),
        tree: oid("tree"),
        proof,
        outcome,
        base,
        files: 1,
        evidence: None,
        criteria: Vec::new(),
        noted: true,
    }
}

fn review_needed(story: &str, work: &str) -> Event {
    let (work, base, reasons) = (oid(work), Some(oid("c0")), vec!["one".to_owned(), "two".to_owned()]);
    Event::ReviewNeeded { place: place(story, 1, 1), work, base, proof: Proof::AgentTested, reasons }
}

fn accepted(story: &str, commit: &str) -> Event {
    Event::Accepted {
        story: StoryId::from(story),
        commit: oid(commit),
        tree: oid("tree"),
        base: Some(oid("c0")),
        proof: Proof::AgentTested,
        by: "Jo".to_owned(),
        reasons: vec!["one".to_owned()],
        evidence: "sha256:e".to_owned(),
    }
}

fn refused(story: &str) -> Event {
    Event::Refused { story: StoryId::from(story), by: "Jo".to_owned() }
}

fn kept(story: &str, attempt: u32) -> Event {
    Event::AttemptKept { place: place(story, attempt, 1), kept: oid("kept"), files: 2 }
}

fn undone(story: &str, tip: &str) -> Event {
    Event::Undone { what: "the last commit".to_owned(), story: Some(StoryId::from(story)), tip: Some(oid(tip)) }
}

fn journal(events: impl IntoIterator<Item = Event>) -> Vec<Recorded> {
    let line = |(seq, event): (u64, Event)| {
        let at = Timestamp::from_second(1_000_000 + i64::try_from(seq).unwrap()).unwrap();
        Recorded { v: SCHEMA_VERSION, seq, at, active_ms: Some((seq - 1) * 1000), event }
    };
    (1..).zip(events).map(line).collect()
}

fn view(events: impl IntoIterator<Item = Event>) -> RunView {
    RunView::from_journal(&journal(events))
}

#[test]
fn a_claim_is_false_only_if_the_agent_stopped_by_itself_and_the_checks_disagree() {
    let crashed = || TurnOutcome::Crashed { reason: "exit code 1".to_owned() };
    let doubted = || report(Outcome::Failed, vec![Reason::Doubt(Doubt::AutorunChanged { files: Vec::new() })]);
    let obstacle = || failed(Failure::CannotCommit { why: "a submodule changed".to_owned() });
    for (turn, seen, expected) in [
        (TurnOutcome::Ended, failed(Failure::NothingChanged), (1, 0)),
        (TurnOutcome::Ended, check_failed(), (0, 1)),
        (TurnOutcome::Ended, passed(), (0, 0)),
        (TurnOutcome::Ended, failed(Failure::Interrupted), (0, 0)),
        (TurnOutcome::Ended, obstacle(), (0, 0)),
        (TurnOutcome::Ended, doubted(), (0, 0)),
        (crashed(), failed(Failure::NothingChanged), (0, 0)),
        (crashed(), check_failed(), (0, 0)),
    ] {
        let view = view([selected("A", 1, 3), ended("A", 1, turn.clone()), verified("A", 1, seen.clone())]);
        let claims = view.false_claims;
        assert_eq!((claims.nothing_changed, claims.checks_failed), expected, "{turn:?} {seen:?}");
        assert_eq!(view.touched[0].false_claims(), claims.total() as usize);
    }
    let mut silent = ended("A", 1, TurnOutcome::Ended);
    if let Event::TurnEnded { claim, .. } = &mut silent {
        *claim = Some("breaking".to_owned());
    }
    let seen = view([selected("A", 1, 3), silent, verified("A", 1, check_failed())]);
    assert_eq!(seen.false_claims.total(), 0, "nothing was claimed");
    let with_commands_cut = |number: u32| {
        let mut turn = ended("A", 1, TurnOutcome::Ended);
        if let Event::TurnEnded { session, .. } = &mut turn {
            let (id, cut_commands) = ("s".to_owned(), number);
            *session = Some(SessionUse { id, fresh: None, tokens: None, window: None, compactions: 0, cut_commands });
        }
        view([selected("A", 1, 3), turn, verified("A", 1, failed(Failure::NothingChanged))]).false_claims.total()
    };
    assert_eq!((with_commands_cut(0), with_commands_cut(1)), (1, 0), "it relied on a command that Verdone ended");
}

#[test]
fn attempts_and_results_are_added_up() {
    let view = view([
        selected("A", 1, 3),
        ended("A", 1, TurnOutcome::Ended),
        verified("A", 1, check_failed()),
        Event::AttemptRejected { place: place("A", 1, 1), rejection: Rejection::ChecksFailed, reason: "why".to_owned() },
        kept("A", 1),
        selected("B", 1, 3),
        ended("B", 1, TurnOutcome::Ended),
        verified("B", 1, passed()),
        committed("B", "c1", "c0", Proof::Verified),
        selected("A", 2, 2),
        kept("A", 2),
        Event::StoryFailed { story: StoryId::from("A"), reason: "no attempts are left".to_owned() },
    ]);
    assert_eq!(view.counts, Counts { verified: 1, failed: 1, kept_attempts: 2, ..Counts::default() });
    assert_eq!((view.commits, view.open, view.done(), view.leftovers), (1, 2, 1, 2));
    assert_eq!((view.cost_usd, view.tokens), (Some(1.0), Some(20)));
    assert_eq!(view.tokens_by_kind, Some(TokenKinds { input: 2, output: 4, cache_read: 6, cache_write: 8 }));
    assert_eq!(view.restored.iter().collect::<Vec<_>>(), ["PLAN.md"]);
    assert_eq!(view.protected.iter().collect::<Vec<_>>(), ["tests/a.rs"]);
    let a = view.story(&StoryId::from("A")).unwrap();
    assert_eq!((a.attempts.len(), a.result, a.kept()), (2, Some(StoryResult::FAILED), Some(&oid("kept"))));
    assert_eq!(a.attempts[0].rejection, Some(Rejection::ChecksFailed));
    assert_eq!(view.current, None);
}

#[test]
fn an_attempt_that_did_not_count_and_its_retry_are_two() {
    let view = view([selected("A", 1, 3), kept("A", 1), selected("A", 1, 3), ended("A", 1, TurnOutcome::Ended)]);
    let attempts = &view.touched[0].attempts;
    assert_eq!(attempts.iter().map(|attempt| attempt.turns.len()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn undo_opens_the_story_again_and_its_next_commit_closes_it() {
    let mut events = vec![
        selected("A", 1, 3),
        committed("A", "c1", "c0", Proof::Verified),
        selected("B", 1, 2),
        committed("B", "c2", "c1", Proof::Untested),
        undone("B", "c1"),
    ];
    let taken = view(events.clone());
    assert_eq!((taken.counts.verified, taken.counts.untested, taken.open), (1, 0, 2));
    assert!(taken.story(&StoryId::from("B")).unwrap().undone && !taken.touched[0].undone);
    events.extend([selected("B", 2, 2), committed("B", "c3", "c1", Proof::Verified)]);
    let again = view(events);
    assert_eq!((again.counts.verified, again.open, again.touched[1].undone), (2, 1, false));
}

#[test]
fn an_undo_of_a_story_that_is_open_changes_no_count() {
    let mut events = vec![selected("A", 1, 3), committed("A", "c1", "c0", Proof::Verified), undone("A", "c0")];
    let once = view(events.clone());
    events.push(undone("A", "c0"));
    let twice = view(events);
    assert_eq!((once.open, once.counts), (3, Counts::default()));
    assert_eq!((twice.open, twice.counts), (once.open, once.counts));
}

#[test]
fn landing_says_where_the_commits_are_and_is_no_phase_of_an_ended_run() {
    let started = || Event::LandingStarted { to: oid("c1") };
    let landed = || Event::Landed { branch: "main".to_owned(), from: oid("c0"), to: oid("c1"), left: 0 };
    let refused = || Event::LandingRefused { reason: "main has moved on".to_owned() };
    let commit = || [selected("A", 1, 3), committed("A", "c1", "c0", Proof::Verified)];
    let here = |landed: Option<&str>, refused: Option<&str>| {
        let branch = landed.map(|_| "main".to_owned());
        Some(LandingView { landed: landed.map(oid), branch, refused: refused.map(str::to_owned) })
    };
    for (events, phase, landing) in [
        (vec![], Phase::Selecting, None),
        (vec![started()], Phase::Landing, None),
        (vec![started(), landed()], Phase::Selecting, here(Some("c1"), None)),
        (vec![started(), refused()], Phase::Selecting, here(None, Some("main has moved on"))),
        (vec![started(), refused(), started(), landed()], Phase::Selecting, here(Some("c1"), None)),
        (vec![started(), landed(), started(), refused()], Phase::Selecting, here(Some("c1"), Some("main has moved on"))),
    ] {
        let running = view(commit().into_iter().chain(events.clone()));
        assert_eq!((running.phase, &running.landing), (phase, &landing), "{events:?}");
        let stopped = Event::RunStopped { finish: Finish::Complete, exit_code: 0, duration_ms: 1 };
        let ended = view(commit().into_iter().chain([stopped]).chain(events.clone()));
        assert_eq!((ended.phase, ended.ended.is_some(), &ended.landing), (Phase::Stopped, true, &landing), "{events:?}");
    }
}

#[test]
fn a_resumed_run_is_not_over() {
    let stopped = Event::RunStopped { finish: Finish::Manual, exit_code: 130, duration_ms: 7 };
    let over = view([selected("A", 1, 3), stopped.clone()]);
    assert_eq!((over.phase, over.finish, over.exit_code), (Phase::Stopped, Some(Finish::Manual), Some(130)));
    assert_eq!(over.elapsed_ms(over.active_ms()), 7);
    let resumed = view([selected("A", 1, 3), stopped, selected("A", 1, 3)]);
    assert_eq!((resumed.phase, resumed.finish, resumed.ended), (Phase::Resetting, None, None));
}

#[test]
fn each_proof_and_outcome_is_counted_by_itself() {
    let each = ["A", "B", "C", "D"].into_iter().zip(Proof::ALL);
    let mut events: Vec<Event> = each.map(|(story, proof)| committed(story, story, "c0", proof)).collect();
    events.extend([review_needed("E", "kept"), accepted("E", "c5"), review_needed("F", "kept"), refused("G")]);
    let view = view(events);
    let (verified, agent_tested, untested, unchecked) = (1, 1, 1, 1);
    let (accepted, needs_review, failed, kept_attempts) = (1, 1, 1, 0);
    let counts = Counts { verified, agent_tested, untested, unchecked, accepted, needs_review, failed, kept_attempts };
    assert_eq!(view.counts, counts);
    for kind in StoryResult::KINDS {
        assert_eq!(view.with_result(Some(kind.name())).count(), 1, "{}", kind.name());
    }
}

#[test]
fn a_review_says_what_to_look_at_and_why_until_a_person_settles_it() {
    let aside = || vec![selected("A", 1, 3), kept("A", 1), review_needed("A", "kept")];
    let pending = (Proof::AgentTested, Outcome::NeedsReview);
    let stacked = || vec![selected("A", 1, 3), committed_as("A", "c1", "c0", pending), review_needed("A", "c1")];
    let story = |view: &RunView| view.story(&StoryId::from("A")).unwrap().clone();
    for (events, work, is_stacked, before) in [(aside(), "kept", false, (0, 3, 0)), (stacked(), "c1", true, (1, 2, 1))] {
        let numbers = |view: &RunView| (view.commits, view.open, view.unlanded);
        let waiting = view(events.clone());
        let review = story(&waiting).review.unwrap();
        assert_eq!((review.work, review.stacked, review.settled_by), (oid(work), is_stacked, None));
        assert_eq!(review.reasons, ["one", "two"]);
        assert_eq!((waiting.counts.needs_review, numbers(&waiting)), (1, before), "{work}");
        assert_eq!(story(&waiting).is_on_branch(), is_stacked);

        let taken = view(events.clone().into_iter().chain([accepted("A", "c9")]));
        assert_eq!((taken.counts.accepted, taken.counts.needs_review, numbers(&taken)), (1, 0, (1, 2, 1)), "{work}");
        assert_eq!(story(&taken).review.unwrap().settled_by.as_deref(), Some("Jo"));
        let commit = story(&taken).committed().and_then(|attempt| attempt.commit.clone());
        assert_eq!((commit, story(&taken).reason), (Some(oid("c9")), None));

        let refused = view(events.into_iter().chain([refused("A")]));
        let (commits, open, unlanded) = numbers(&refused);
        assert_eq!((refused.counts.failed, refused.counts.needs_review, open, unlanded), (1, 0, 3, 0), "{work}");
        assert_eq!((commits, story(&refused).reason.as_deref()), (before.0, Some("rejected by Jo")));
    }
}

#[test]
fn undo_takes_back_work_that_others_were_to_build_on() {
    let pending = (Proof::AgentTested, Outcome::NeedsReview);
    let events = [selected("A", 1, 3), committed_as("A", "c1", "c0", pending), review_needed("A", "c1"), undone("A", "c0")];
    let view = view(events);
    assert_eq!((view.open, view.unlanded, view.counts, view.tip), (3, 0, Counts::default(), Some(oid("c0"))));
    assert_eq!(view.touched[0].review, None);
}

fn any_event() -> impl Strategy<Value = Event> {
    let story = prop::sample::select(vec!["A", "B", "C"]);
    let commit = prop::sample::select(vec!["c0", "c1", "c2"]);
    (0_u8..15, story, 1_u32..3, commit.clone(), commit).prop_map(|(kind, story, attempt, one, two)| match kind {
        0 => selected(story, attempt, 2),
        1 => Event::TurnStarted { place: place(story, attempt, 1) },
        2 => ended(story, attempt, TurnOutcome::Ended),
        3 => verified(story, attempt, check_failed()),
        4 => verified(story, attempt, passed()),
        5 => committed(story, one, two, Proof::Verified),
        6 => committed(story, one, two, Proof::Unchecked),
        7 => kept(story, attempt),
        8 => Event::StoryFailed { story: StoryId::from(story), reason: String::new() },
        9 => Event::RunStopped { finish: Finish::Complete, exit_code: 0, duration_ms: 1 },
        10 => committed_as(story, one, two, (Proof::AgentTested, Outcome::NeedsReview)),
        11 => review_needed(story, one),
        12 => accepted(story, one),
        13 => refused(story),
        _ => undone(story, one),
    })
}

proptest! {
    #[test]
    fn any_order_of_events_gives_counts_that_agree_with_the_stories(events in prop::collection::vec(any_event(), 0..60)) {
        let lines = journal(events);
        let view = RunView::from_journal(&lines);
        let count = |result: StoryResult| view.with_result(Some(result.name())).count();
        let Counts { verified, agent_tested, untested, unchecked, accepted, needs_review, failed, kept_attempts: _ } = view.counts;
        let counted = [verified, agent_tested, untested, unchecked, accepted, needs_review, failed];
        prop_assert_eq!(StoryResult::KINDS.map(count), counted);
        prop_assert!(view.touched.len() <= 3);
        for story in &view.touched {
            prop_assert_eq!(view.story(&story.id), Some(story));
        }
        prop_assert!(serde_json::to_value(&view).is_ok());
    }
}

/// The possible events of an attempt, in an order that a run could write.
fn any_attempt() -> impl Strategy<Value = Vec<Event>> {
    let story = prop::sample::select(vec!["A", "B", "C"]);
    let inner = prop::collection::vec((0_u8..11, any::<bool>()), 0..12);
    (story, 1_u32..3, inner).prop_map(|(story, attempt, inner)| {
        let here = || place(story, attempt, 1);
        let event = |(kind, good): (u8, bool)| match kind {
            0 => Event::AttemptStarted { place: here(), base: Some(oid("c0")), tree: None },
            1 => Event::TurnStarted { place: here() },
            2 => ended(story, attempt, if good { TurnOutcome::Ended } else { TurnOutcome::Interrupted }),
            3 => verified(story, attempt, if good { passed() } else { check_failed() }),
            4 => Event::CommitStarted {
                place: here(),
                tree: oid("tree"),
                proof: Proof::Verified,
                outcome: Outcome::Done,
                gates: None,
                previous: None,
                criteria: Vec::new(),
            },
            5 => committed(story, "c1", "c0", if good { Proof::Verified } else { Proof::Untested }),
            6 => kept(story, attempt),
            7 => review_needed(story, if good { "c1" } else { "kept" }),
            8 => accepted(story, "c2"),
            9 => refused(story),
            _ => Event::StoryFailed { story: StoryId::from(story), reason: String::new() },
        };
        let mut events = vec![selected(story, attempt, 2)];
        events.extend(inner.into_iter().map(event));
        events.push(kept(story, attempt));
        events
    })
}

fn brief(lines: &[Recorded]) -> Option<RunView> {
    let mut brief = Brief::default();
    for line in lines {
        let mut bytes = serde_json::to_vec(line).unwrap();
        bytes.push(b'\n');
        brief.push(&bytes)?;
    }
    brief.finish()
}

proptest! {
    #[test]
    fn a_brief_view_adds_up_to_the_same(attempts in prop::collection::vec(any_attempt(), 0..12), cut in 0_usize..20) {
        let mut lines = journal(attempts.into_iter().flatten());
        lines.truncate(lines.len().saturating_sub(cut));
        let mut whole = RunView::from_journal(&lines);
        let mut brief = brief(&lines).unwrap();
        let last = whole.touched.iter().zip(&brief.touched).filter(|(_, kept)| !kept.attempts.is_empty()).count();
        prop_assert!(last <= 1, "only the last attempt is kept");
        for story in whole.touched.iter_mut().chain(&mut brief.touched) {
            (story.attempts, story.title) = (Vec::new(), String::new());
        }
        prop_assert_eq!(whole, brief);
    }
}

#[test]
fn a_brief_view_does_not_guess() {
    let events = [selected("A", 1, 3), committed("A", "c1", "c0", Proof::Verified), undone("A", "c0")];
    assert_eq!(brief(&journal(events)), None, "what an undo took back is forgotten");
    let mut odd = Brief::default();
    assert_eq!(odd.push(b"{ \"v\": 1 }\n"), None);
}
