//! Work that passes but needs a review: kept or stacked, never paid for twice, and never called complete.

use verdone_plan::ReviewState;

use super::*;
use crate::verify::{Observed, VerifyJob, judge};

/// A run whose first story has had one turn.
struct Bench {
    rules: Rules,
    state: State,
    journal: Vec<Recorded>,
}

impl Bench {
    fn new(on_review: OnReview) -> Self {
        let rules = Rules { on_review, ..rules() };
        let mut bench = Self { rules, state: State::default(), journal: Vec::new() };
        let story = Choice::Story { story: StoryId::from("A"), title: "a".to_owned(), number: 1, of: 2, open: 2 };
        for input in [
            start(),
            Input::ScriptRan(None),
            Input::Prepared { baseline: Vec::new() },
            Input::Selected(story),
            Input::ScriptRan(None),
            ready(),
            Input::RedChecked { red: Red::Red, runs: Vec::new() },
            turn_ended(),
        ] {
            bench.give(&input);
        }
        bench
    }

    fn give(&mut self, input: &Input) -> Option<Effect> {
        let decision = decide(&self.state, &self.rules, Duration::ZERO, input);
        record(&mut self.state, &mut self.journal, decision.events, Duration::ZERO);
        decision.effect
    }

    fn verify(&mut self, report: VerifyReport) -> Option<Effect> {
        self.give(&Input::Verified(Box::new(verification(report))))
    }

    fn has(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.journal.iter().any(|recorded| wanted(&recorded.event))
    }
}

fn turn_ended() -> Input {
    Input::TurnEnded(turn_report(TurnOutcome::Ended))
}

fn committed() -> Input {
    Input::Committed { commit: Oid::from("c"), tree: Oid::from("t"), files: 1, evidence: None, noted: true }
}

fn needs_review() -> VerifyReport {
    report(Outcome::NeedsReview, Some(Proof::AgentTested), vec![Reason::Doubt(unclear()), Reason::Note(Note::NoOwnCheck)])
}

const AWAITED: StoryResult = StoryResult { outcome: Outcome::NeedsReview, proof: Some(Proof::AgentTested) };

#[test]
fn set_aside_it_is_kept_under_a_ref_with_its_reasons_and_spends_no_attempt() {
    let mut bench = Bench::new(OnReview::Continue);
    assert_eq!(bench.verify(needs_review()), Some(Effect::Keep));
    assert_eq!(bench.state.phase, Phase::Keeping { rejection: Rejection::NeedsReview });
    let next = bench.give(&Input::Kept { kept: Oid::from("k"), files: 2 });
    assert_eq!(next, Some(Effect::Script(Script::PostIteration)));
    let Some(Event::ReviewNeeded { work, base, proof, reasons, .. }) = bench.journal.last().map(|last| &last.event) else {
        panic!("{:?}", bench.journal.last());
    };
    assert_eq!((work, base.as_ref(), *proof), (&Oid::from("k"), Some(&Oid::from("base")), Proof::AgentTested));
    assert_eq!(reasons, &["the judge gave no clear answer: it gave no answer"], "notes are no reason for a review");
    let story = StoryId::from("A");
    assert_eq!(bench.state.progress.review.get(&story), Some(&ReviewState::Aside));
    assert_eq!((bench.state.results[&story], bench.state.progress.attempts.len()), (AWAITED, 0));
    assert_eq!((bench.state.consecutive_failures, bench.state.last_failures.len(), &bench.state.fatal), (0, 0, &None));
    let last = bench.state.last_iteration.as_ref().unwrap();
    assert_eq!((last.result, last.exit_code), (Some(AWAITED), 0), "lifecycle scripts learn of it");
    assert_eq!(bench.give(&Input::ScriptRan(None)), Some(Effect::Select), "other stories go on");
}

#[test]
fn stacked_it_is_committed_as_needing_a_review_and_never_landed_at_once() {
    let mut bench = Bench::new(OnReview::Stack);
    bench.rules.land_each = true;
    assert_eq!(bench.verify(needs_review()), Some(Effect::Commit));
    assert_eq!(bench.give(&committed()), Some(Effect::Script(Script::PostIteration)));
    let [.., committed, review] = bench.journal.as_slice() else { panic!("{:?}", bench.journal) };
    assert!(matches!(committed.event, Event::Committed { outcome: Outcome::NeedsReview, proof: Proof::AgentTested, .. }));
    assert!(matches!(&review.event, Event::ReviewNeeded { work, .. } if *work == Oid::from("c")));
    assert_eq!(bench.state.progress.review.get(&StoryId::from("A")), Some(&ReviewState::Stacked));
    assert_eq!((bench.state.commits, bench.state.results[&StoryId::from("A")]), (1, AWAITED));
    assert!(!bench.has(|event| matches!(event, Event::LandingStarted { .. })));
}

#[test]
fn with_stop_the_run_ends_as_blocked() {
    let mut bench = Bench::new(OnReview::Stop);
    bench.verify(needs_review());
    bench.give(&Input::Kept { kept: Oid::from("k"), files: 1 });
    assert_eq!(bench.give(&Input::ScriptRan(None)), Some(Effect::Finish));
    bench.give(&Input::Finished { landed: None, script: None });
    assert_eq!(bench.state.phase, Phase::Stopped { finish: Finish::Blocked, exit_code: 4 });
    assert!(bench.has(|event| matches!(event, Event::RunStopping { reason, .. } if reason == "A needs a review")));
}

#[test]
fn a_plan_without_an_open_story_is_not_complete_while_one_waits() {
    for regression in [Regression::default(), Regression { at_end: false, ..Regression::default() }] {
        let mut bench = Bench::new(OnReview::Stack);
        bench.rules.regression = regression;
        bench.verify(needs_review());
        bench.give(&committed());
        bench.give(&Input::ScriptRan(None));
        if bench.give(&Input::Selected(Choice::AllDone)) == Some(Effect::Regression) {
            bench.give(&Input::Regressed(RegressionReport { held: 1, ..RegressionReport::default() }));
        }
        assert_eq!(bench.state.phase, Phase::Stopping { finish: Finish::Blocked });
        assert!(
            bench
                .has(|event| matches!(event, Event::RunStopping { reason, .. } if reason == "1 story is left for you to review"))
        );
    }
}

#[test]
fn stacked_work_that_later_work_broke_is_open_again_and_nothing_is_left_to_review() {
    let mut bench = Bench::new(OnReview::Stack);
    bench.verify(needs_review());
    bench.give(&committed());
    bench.give(&Input::ScriptRan(None));
    assert_eq!(bench.give(&Input::Selected(Choice::AllDone)), Some(Effect::Regression));
    let broken = vec![(StoryId::from("A"), vec![ran("true", CheckOutcome::Failed { code: 1 })])];
    let next = bench.give(&Input::Regressed(RegressionReport { broken, ..RegressionReport::default() }));
    assert_eq!(next, Some(Effect::Reopen));
    assert!(bench.state.progress.review.is_empty() && bench.state.results.is_empty());
}

#[test]
fn what_a_person_says_settles_it() {
    let waiting = || {
        let mut bench = Bench::new(OnReview::Continue);
        bench.verify(needs_review());
        bench.give(&Input::Kept { kept: Oid::from("k"), files: 1 });
        bench
    };
    let story = StoryId::from("A");
    let mut bench = waiting();
    let accepted = Event::Accepted {
        story: story.clone(),
        commit: Oid::from("c2"),
        tree: Oid::from("t"),
        base: None,
        proof: Proof::Untested,
        by: "Jo".to_owned(),
        reasons: Vec::new(),
        evidence: "sha256:e2".to_owned(),
    };
    record(&mut bench.state, &mut bench.journal, vec![accepted], Duration::ZERO);
    let taken = StoryResult { outcome: Outcome::Accepted, proof: Some(Proof::Untested) };
    assert_eq!((bench.state.progress.review.len(), bench.state.results[&story]), (0, taken));
    assert_eq!(bench.state.evidence.as_deref(), Some("sha256:e2"), "the next evidence names this one");

    let mut bench = waiting();
    record(
        &mut bench.state,
        &mut bench.journal,
        vec![Event::Refused { story: story.clone(), by: "Jo".to_owned() }],
        Duration::ZERO,
    );
    assert_eq!((bench.state.progress.review.len(), bench.state.results[&story]), (0, StoryResult::FAILED));
    assert_eq!(bench.state.progress.failed[&story], "rejected by Jo");
}

#[test]
fn the_agent_has_one_turn_for_a_doubt_and_then_a_person_has_to_look() {
    let doubted = |bench: &Bench| {
        let attempt = bench.state.attempt.as_ref().unwrap();
        let job = judged_job(attempt.feedback_turn(&bench.rules.limits));
        judge(&job, &Observed::default())
    };
    let mut bench = Bench::new(OnReview::Continue);
    let first = doubted(&bench);
    assert_eq!((first.outcome, first.is_doubted()), (Outcome::Failed, true));
    assert_eq!(bench.verify(first), Some(Effect::Turn));
    let told = bench.state.attempt.as_ref().unwrap().feedback.clone().unwrap();
    assert_eq!(told.reason, "the story is unchecked, but at least untested is required");
    assert_eq!(told.advice, ["Add a test that fails without your change."]);
    bench.give(&turn_ended());
    let second = doubted(&bench);
    assert_eq!(second.outcome, Outcome::NeedsReview);
    assert_eq!(bench.verify(second), Some(Effect::Keep));
    assert_eq!(bench.state.phase, Phase::Keeping { rejection: Rejection::NeedsReview });

    // If no turn is left, there is no feedback turn to wait for.
    let mut bench = Bench::new(OnReview::Continue);
    bench.rules.limits.turns = 1;
    let only = doubted(&bench);
    assert_eq!(bench.verify(only), Some(Effect::Keep));
    assert_eq!(bench.state.phase, Phase::Keeping { rejection: Rejection::NeedsReview });
}

/// Work without any checks, although the minimum requires that gates pass.
fn judged_job(feedback: FeedbackTurn) -> VerifyJob {
    VerifyJob {
        surface: Surface::Run,
        story: None,
        gates: Vec::new(),
        base: Some(Oid::from("base")),
        attempt: Oid::from("t"),
        changed: Some(vec!["src/a.rs".to_owned()]),
        obstacle: None,
        protected: Vec::new(),
        others: Vec::new(),
        autorun: Vec::new(),
        minimum: Proof::Untested,
        at_most: None,
        enforce_scope: false,
        allow_unchanged: false,
        stop_at_failing_stage: true,
        feedback,
        judge: false,
        conditions: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_review_never_spends_an_attempt(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let (mut state, mut before) = (State::default(), None);
        for (at, recorded) in journal.iter().enumerate() {
            if let Event::AttemptRejected { rejection: Rejection::NeedsReview, .. } = recorded.event {
                before = Some((state.progress.attempts.clone(), state.last_failures.clone()));
            }
            apply(&mut state, recorded);
            if let (Event::AttemptKept { .. }, Some(before)) = (&recorded.event, before.take_if(|_| matches!(recorded.event, Event::AttemptKept { .. }))) {
                prop_assert_eq!((state.progress.attempts.clone(), state.last_failures.clone()), before);
                let follows = matches!(journal[at + 1].event, Event::ReviewNeeded { .. });
                prop_assert!(follows, "{:?}", journal[at + 1]);
            }
            if let Event::StorySelected { place, .. } = &recorded.event {
                prop_assert!(!state.progress.review.contains_key(&place.story), "no attempt at what waits for a person");
            }
        }
    }

    #[test]
    fn complete_is_never_said_while_a_review_waits_and_with_stop_nothing_follows_one(
        rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)
    ) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let (mut state, mut needed) = (State::default(), false);
        for recorded in &journal {
            match &recorded.event {
                Event::ReviewNeeded { .. } => needed = true,
                Event::StorySelected { .. } | Event::CommitStarted { .. } => {
                    prop_assert!(!(needed && rules.on_review == OnReview::Stop));
                }
                Event::RunStopping { finish, .. } => {
                    prop_assert!(*finish != Finish::Complete || state.progress.review.is_empty());
                }
                _ => {}
            }
            apply(&mut state, recorded);
        }
    }

    #[test]
    fn an_attempt_has_at_most_one_turn_of_feedback_for_doubts(
        rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)
    ) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let mut told = 0;
        for recorded in &journal {
            match &recorded.event {
                Event::StorySelected { .. } => told = 0,
                Event::Verified(verified) if verified.report.is_doubted() && verified.report.outcome == Outcome::Failed => told += 1,
                _ => {}
            }
            prop_assert!(told <= 1);
        }
    }
}
