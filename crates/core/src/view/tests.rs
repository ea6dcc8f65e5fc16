use proptest::prelude::*;

use super::*;
use crate::agent::{TurnOutcome, Usage};
use crate::event::{Event, Place, Rejection, SCHEMA_VERSION, TurnTests, VerifyOutcome};

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
    let usage = Usage { cost_usd: Some(0.5), tokens: Some(10) };
    let (prompt, output) = (None, None);
    Event::TurnEnded {
        place: place(story, attempt, 1),
        outcome,
        duration_ms: 5,
        usage,
        prompt,
        output,
        session: None,
        allowance: None,
        claim: None,
        leftovers: 1,
        tests: TurnTests::default(),
    }
}

fn verified(story: &str, attempt: u32, outcome: VerifyOutcome) -> Event {
    let restored = vec!["PLAN.md".to_owned()];
    let (tree, runs) = (None, Vec::new());
    Event::Verified {
        place: place(story, attempt, 1),
        outcome,
        tree,
        changed: 1,
        runs,
        reason: None,
        restored,
        alarms: Vec::new(),
        agent_test: None,
        as_before: None,
        judge: None,
    }
}

fn committed(story: &str, commit: &str, base: &str, verdict: Proof) -> Event {
    let (place, base) = (place(story, 1, 1), Some(oid(base)));
    Event::Committed {
        place,
        commit: oid(commit),
        tree: oid("tree"),
        verdict,
        base,
        files: 1,
        evidence: None,
        criteria: Vec::new(),
        noted: true,
    }
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
    for (turn, seen, expected) in [
        (TurnOutcome::Ended, VerifyOutcome::NothingChanged, (1, 0)),
        (TurnOutcome::Ended, VerifyOutcome::Failed, (0, 1)),
        (TurnOutcome::Ended, VerifyOutcome::Passed, (0, 0)),
        (TurnOutcome::Ended, VerifyOutcome::Interrupted, (0, 0)),
        (TurnOutcome::Ended, VerifyOutcome::Refused, (0, 0)),
        (crashed(), VerifyOutcome::NothingChanged, (0, 0)),
        (crashed(), VerifyOutcome::Failed, (0, 0)),
    ] {
        let view = view([selected("A", 1, 3), ended("A", 1, turn.clone()), verified("A", 1, seen.clone())]);
        let claims = view.false_claims;
        assert_eq!((claims.nothing_changed, claims.checks_failed), expected, "{turn:?} {seen:?}");
        assert_eq!(view.touched[0].false_claims(), claims.total() as usize);
    }
}

#[test]
fn attempts_and_verdicts_are_added_up() {
    let view = view([
        selected("A", 1, 3),
        ended("A", 1, TurnOutcome::Ended),
        verified("A", 1, VerifyOutcome::Failed),
        Event::AttemptRejected { place: place("A", 1, 1), rejection: Rejection::ChecksFailed, reason: "why".to_owned() },
        kept("A", 1),
        selected("B", 1, 3),
        ended("B", 1, TurnOutcome::Ended),
        verified("B", 1, VerifyOutcome::Passed),
        committed("B", "c1", "c0", Proof::Verified),
        selected("A", 2, 2),
        kept("A", 2),
        Event::StoryFailed { story: StoryId::from("A"), reason: "no attempts are left".to_owned() },
    ]);
    assert_eq!(view.counts, Counts { verified: 1, failed: 1, kept_attempts: 2, ..Counts::default() });
    assert_eq!((view.commits, view.open, view.done(), view.leftovers), (1, 2, 1, 2));
    assert_eq!((view.cost_usd, view.tokens), (Some(1.0), Some(20)));
    assert_eq!(view.restored.iter().collect::<Vec<_>>(), ["PLAN.md"]);
    let a = view.story(&StoryId::from("A")).unwrap();
    assert_eq!((a.attempts.len(), a.verdict, a.kept()), (2, Some(Proof::Failed), Some(&oid("kept"))));
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
    assert_eq!((taken.counts.verified, taken.counts.unproven, taken.open), (1, 0, 2));
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
    let landed = || Event::Landed { branch: "main".to_owned(), from: oid("c0"), to: oid("c1") };
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

fn any_event() -> impl Strategy<Value = Event> {
    let story = prop::sample::select(vec!["A", "B", "C"]);
    let commit = prop::sample::select(vec!["c0", "c1", "c2"]);
    (0_u8..11, story, 1_u32..3, commit.clone(), commit).prop_map(|(kind, story, attempt, one, two)| match kind {
        0 => selected(story, attempt, 2),
        1 => Event::TurnStarted { place: place(story, attempt, 1) },
        2 => ended(story, attempt, TurnOutcome::Ended),
        3 => verified(story, attempt, VerifyOutcome::Failed),
        4 => verified(story, attempt, VerifyOutcome::Passed),
        5 => committed(story, one, two, Proof::Verified),
        6 => committed(story, one, two, Proof::Unchecked),
        7 => kept(story, attempt),
        8 => Event::StoryFailed { story: StoryId::from(story), reason: String::new() },
        9 => Event::RunStopped { finish: Finish::Complete, exit_code: 0, duration_ms: 1 },
        _ => undone(story, one),
    })
}

proptest! {
    #[test]
    fn any_order_of_events_gives_counts_that_agree_with_the_stories(events in prop::collection::vec(any_event(), 0..60)) {
        let lines = journal(events);
        let view = RunView::from_journal(&lines);
        let count = |verdict| view.with_verdict(Some(verdict)).count();
        prop_assert_eq!(view.counts.verified, count(Proof::Verified));
        prop_assert_eq!(view.counts.unverified, count(Proof::Unchecked));
        prop_assert_eq!(view.counts.failed, count(Proof::Failed));
        prop_assert!(view.touched.len() <= 3);
        for story in &view.touched {
            prop_assert_eq!(view.story(&story.id), Some(story));
        }
        prop_assert!(serde_json::to_value(&view).is_ok());
    }
}

/// What an attempt can consist of, in an order that a run could write.
fn any_attempt() -> impl Strategy<Value = Vec<Event>> {
    let story = prop::sample::select(vec!["A", "B", "C"]);
    let inner = prop::collection::vec((0_u8..8, any::<bool>()), 0..12);
    (story, 1_u32..3, inner).prop_map(|(story, attempt, inner)| {
        let here = || place(story, attempt, 1);
        let event = |(kind, good): (u8, bool)| match kind {
            0 => Event::AttemptStarted { place: here(), base: Some(oid("c0")) },
            1 => Event::TurnStarted { place: here() },
            2 => ended(story, attempt, if good { TurnOutcome::Ended } else { TurnOutcome::Interrupted }),
            3 => verified(story, attempt, if good { VerifyOutcome::Passed } else { VerifyOutcome::Failed }),
            4 => Event::CommitStarted {
                place: here(),
                tree: oid("tree"),
                verdict: Proof::Verified,
                gates: None,
                previous: None,
                criteria: Vec::new(),
            },
            5 => committed(story, "c1", "c0", if good { Proof::Verified } else { Proof::Untested }),
            6 => kept(story, attempt),
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
