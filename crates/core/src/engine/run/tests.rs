//! Invariants of the loop, tested in generated worlds: whatever the world answers to each effect, they must be true.

mod landing;
mod learning;
mod review;
mod service;
mod world;

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::check::tests::ran;
use crate::check::{CheckOrigin, CheckOutcome, Stage};
use crate::journal::event::Recorded;
use crate::verify::{Doubt, Failure, FeedbackTurn, Note, Reason, Surface, Tree, TreeIds};
use world::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_always_ends(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64), stories in 0_usize..6) {
        let (state, journal) = play(&rules, World::new(choices, stories), 5_000, None);
        let stopped = matches!(state.phase, Phase::Stopped { .. });
        prop_assert!(stopped, "phase {:?} after {} events", state.phase, journal.len());
    }

    #[test]
    fn a_replayed_journal_gives_the_same_state(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64), steps in 1_usize..200) {
        let (state, journal) = play(&rules, World::new(choices, 4), steps, None);
        let mut again = State::default();
        for recorded in &journal {
            let line = serde_json::to_string(recorded).unwrap();
            apply(&mut again, &serde_json::from_str(&line).unwrap());
        }
        prop_assert_eq!(state, again);
    }

    #[test]
    fn only_what_was_judged_done_or_is_stacked_for_review_is_committed(
        rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)
    ) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let mut begun = None;
        for (n, recorded) in journal.iter().enumerate() {
            match &recorded.event {
                Event::CommitStarted { place, tree, proof, outcome, .. } => {
                    let Event::Verified(verified) = &journal[n - 1].event else {
                        panic!("a commit without a verification before it");
                    };
                    let report = &verified.report;
                    prop_assert_eq!((place, tree, Some(*proof)), (&verified.place, &report.trees.attempt, report.proof));
                    let is_stacked = rules.on_review == OnReview::Stack && *outcome == Outcome::NeedsReview;
                    prop_assert!(*outcome == Outcome::Done || is_stacked, "{outcome}");
                    prop_assert_eq!(*outcome, report.outcome);
                    begun = Some((place.clone(), *proof, *outcome));
                }
                Event::Committed { place, proof, outcome, .. } => {
                    prop_assert_eq!(begun.take(), Some((place.clone(), *proof, *outcome)));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_rejected_attempt_is_kept_and_never_committed(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let mut rejected = None;
        for recorded in &journal {
            match &recorded.event {
                Event::AttemptRejected { place, .. } => rejected = Some(place.clone()),
                Event::AttemptKept { .. } | Event::RunStopping { .. } => rejected = None,
                Event::CommitStarted { .. } | Event::Committed { .. } | Event::TurnStarted { .. } | Event::StorySelected { .. } => {
                    prop_assert_eq!(&rejected, &None);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn after_a_stop_request_no_new_work_begins(choices in prop::collection::vec(any::<u8>(), 1..64), at in 1_usize..60) {
        let (state, journal) = play(&rules(), World::new(choices, 4), 5_000, Some(at));
        let asked = journal.iter().position(|r| matches!(r.event, Event::StopRequested { .. }));
        if let Some(asked) = asked {
            let begun = journal[asked..].iter().any(|r| matches!(r.event, Event::StorySelected { .. } | Event::TurnStarted { .. }));
            prop_assert!(!begun);
        }
        let stopped = matches!(state.phase, Phase::Stopped { .. });
        prop_assert!(stopped);
    }

    #[test]
    fn complete_is_said_only_after_a_look_at_what_was_proven_and_no_story_is_opened_again_twice(
        choices in prop::collection::vec(any::<u8>(), 1..64), every in 0_u32..3
    ) {
        let rules = Rules { regression: Regression { every, ..Regression::default() }, ..rules() };
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let (mut since, mut opened) = (0, BTreeSet::new());
        for recorded in &journal {
            match &recorded.event {
                Event::Committed { .. } => since += 1,
                Event::RegressionChecked { .. } => since = 0,
                Event::Regressed { story, again, .. } => {
                    since += 1;
                    prop_assert_eq!(*again, !opened.insert(story.clone()));
                }
                Event::StorySelected { .. } => {
                    let before = &journal[..recorded.seq as usize];
                    let twice = before.iter().any(|r| matches!(r.event, Event::Regressed { again: true, .. }));
                    prop_assert!(!twice, "no work after that");
                }
                Event::RunStopping { finish: Finish::Complete, .. } => prop_assert_eq!(since, 0),
                _ => {}
            }
        }
    }

    #[test]
    fn any_input_in_any_phase_is_answered(choices in prop::collection::vec(any::<u8>(), 1..64), steps in 0_usize..60, kind in 0_u8..12, land_each in any::<bool>()) {
        let rules = Rules { land_each, ..rules() };
        let (state, _) = play(&rules, World::new(choices.clone(), 4), steps, None);
        let effects = [Effect::Prepare, Effect::Select, Effect::Reset, Effect::RedCheck, Effect::Turn, Effect::Verify,
            Effect::Commit, Effect::Keep, Effect::Land, Effect::Finish, Effect::Regression, Effect::Reopen];
        let input = World::new(choices, 4).answer(&effects[usize::from(kind)], &state);
        let decision = decide(&state, &rules, Duration::ZERO, &input);
        // Only the script `started` needs no event to start: its phase has already begun.
        let begins = decision.effect == Some(Effect::Script(Script::Started));
        prop_assert!(!decision.events.is_empty() || decision.effect.is_none() || begins);
    }
}

#[test]
fn the_same_tree_failing_the_same_way_twice_ends_the_attempt() {
    let rules = rules();
    let mut state = State::default();
    let mut journal = Vec::new();
    let now = Duration::ZERO;
    let unchanged = || Verification { changed: 0, ..verification(failed(vec![Failure::NothingChanged])) };
    let failing = || Input::Verified(Box::new(unchanged()));
    let ended = || Input::TurnEnded(turn_report(TurnOutcome::Ended));
    let story = Choice::Story { story: StoryId::from("A"), title: "a".to_owned(), number: 1, of: 1, open: 1 };
    let inputs = [
        start(),
        Input::ScriptRan(None),
        Input::Prepared { baseline: Vec::new() },
        Input::Selected(story),
        Input::ScriptRan(None),
        ready(),
        Input::RedChecked { red: Red::Red, runs: Vec::new() },
        ended(),
        failing(),
        ended(),
        failing(),
    ];
    for input in &inputs {
        let decision = decide(&state, &rules, now, input);
        record(&mut state, &mut journal, decision.events, now);
    }
    assert_eq!(state.phase, Phase::Keeping { rejection: Rejection::NothingChanged });
}

#[test]
fn a_run_is_out_of_time_by_its_active_time_alone() {
    let mut rules = rules();
    rules.limits.total_time = crate::base::span::Span::from_secs(10);
    let story = Choice::Story { story: StoryId::from("A"), title: "a".to_owned(), number: 1, of: 1, open: 1 };
    for (active, in_time) in [(9, true), (10, false)] {
        let (mut state, mut journal) = (State::default(), Vec::new());
        for input in [start(), Input::ScriptRan(None), Input::Prepared { baseline: Vec::new() }] {
            let decision = decide(&state, &rules, Duration::from_secs(1), &input);
            record(&mut state, &mut journal, decision.events, Duration::from_secs(1));
        }
        let decision = decide(&state, &rules, Duration::from_secs(active), &Input::Selected(story.clone()));
        assert_eq!(decision.effect == Some(Effect::Script(Script::NextIteration)), in_time, "after {active} s");
    }
}
