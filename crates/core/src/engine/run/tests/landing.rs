//! Landing after each commit: it follows the commit, ends the iteration, and a failure costs neither the run nor the commit.

use verdone_plan::ReviewState;

use super::*;

/// A run whose first story was just committed, and the decision that follows.
fn committed(land_each: bool) -> (Rules, State, Vec<Recorded>, Decision) {
    let rules = Rules { land_each, ..rules() };
    let (mut state, mut journal) = (State::default(), Vec::new());
    let story = Choice::Story { story: StoryId::from("A"), title: "a".to_owned(), number: 1, of: 2, open: 2 };
    let inputs = [
        start(),
        Input::ScriptRan(None),
        Input::Prepared { baseline: Vec::new() },
        Input::Selected(story),
        Input::ScriptRan(None),
        ready(),
        Input::RedChecked { red: Red::Red, runs: Vec::new() },
        Input::TurnEnded(turn_report(TurnOutcome::Ended)),
        Input::Verified(Box::new(verification(done(Proof::Verified)))),
    ];
    for input in &inputs {
        let decision = decide(&state, &rules, Duration::ZERO, input);
        record(&mut state, &mut journal, decision.events, Duration::ZERO);
    }
    let commit = Input::Committed { commit: Oid::from("c"), tree: Oid::from("t"), files: 1, evidence: None, noted: true };
    let decision = decide(&state, &rules, Duration::ZERO, &commit);
    record(&mut state, &mut journal, decision.events.clone(), Duration::ZERO);
    (rules, state, journal, decision)
}

#[test]
fn a_commit_is_landed_at_once_only_where_the_rules_say_so() {
    let (_, state, _, decision) = committed(true);
    assert_eq!((decision.effect, &state.phase), (Some(Effect::Land), &Phase::Landing));
    assert!(matches!(&decision.events[..], [Event::Committed { .. }, Event::LandingStarted { to }] if *to == Oid::from("c")));
    let (_, state, _, decision) = committed(false);
    assert_eq!((decision.effect, &state.phase), (Some(Effect::Script(Script::PostIteration)), &Phase::Selecting));
}

#[test]
fn the_iteration_ends_after_the_landing_whatever_came_of_it() {
    let failed = Input::Failed { message: "disk full".to_owned() };
    for (input, event) in [
        (Input::Landed(Box::new(landed())), landed()),
        (Input::Landed(Box::new(landing_refused("main has moved on"))), landing_refused("main has moved on")),
        (failed, landing_refused("disk full")),
    ] {
        let (rules, mut state, mut journal, _) = committed(true);
        let decision = decide(&state, &rules, Duration::ZERO, &input);
        assert_eq!(decision.events, [event]);
        assert_eq!(decision.effect, Some(Effect::Script(Script::PostIteration)), "{input:?}");
        record(&mut state, &mut journal, decision.events, Duration::ZERO);
        assert_eq!((&state.phase, state.commits, &state.fatal), (&Phase::Selecting, 1, &None), "{input:?}");
        assert_eq!(state.results.get(&StoryId::from("A")), Some(&StoryResult::done(Proof::Verified)));
        let next = decide(&state, &rules, Duration::ZERO, &Input::ScriptRan(None));
        assert_eq!(next.effect, Some(Effect::Select));
    }
}

#[test]
fn a_stop_during_a_landing_waits_for_its_end() {
    for input in [Input::Landed(Box::new(landed())), Input::Failed { message: "disk full".to_owned() }] {
        let (rules, mut state, mut journal, _) = committed(true);
        let decision = decide(&state, &rules, Duration::ZERO, &Input::Signal(StopSignal::Sigterm));
        assert_eq!(decision.effect, None);
        record(&mut state, &mut journal, decision.events, Duration::ZERO);
        let decision = decide(&state, &rules, Duration::ZERO, &input);
        assert_eq!(decision.effect, Some(Effect::Finish), "{input:?}");
        assert!(matches!(decision.events.last(), Some(Event::RunStopping { finish: Finish::Manual, .. })));
    }
}

#[test]
fn a_landing_after_the_end_does_not_start_the_run_again() {
    let (_, mut state, mut journal, _) = committed(false);
    let stopped = Event::RunStopped { finish: Finish::Complete, exit_code: 0, duration_ms: 1 };
    record(&mut state, &mut journal, vec![stopped], Duration::ZERO);
    for event in [Event::LandingStarted { to: Oid::from("c") }, landing_refused("why"), landed()] {
        record(&mut state, &mut journal, vec![event], Duration::ZERO);
        assert_eq!(state.phase, Phase::Stopped { finish: Finish::Complete, exit_code: 0 });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_commit_lands_right_after_it_unless_a_story_below_it_waits_for_a_person(
        rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)
    ) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let mut state = State::default();
        for (at, recorded) in journal.iter().enumerate() {
            let is_held_up = state.progress.review.values().any(|waiting| *waiting == ReviewState::Stacked);
            match &recorded.event {
                Event::Committed { outcome, .. } => {
                    let starts = matches!(journal[at + 1].event, Event::LandingStarted { .. });
                    prop_assert_eq!(starts, rules.land_each && *outcome == Outcome::Done && !is_held_up);
                }
                Event::LandingStarted { .. } => {
                    let ends = matches!(journal[at + 1].event, Event::Landed { .. } | Event::LandingRefused { .. });
                    prop_assert!(ends, "{:?}", journal[at + 1]);
                }
                _ => {}
            }
            apply(&mut state, recorded);
        }
    }
}
