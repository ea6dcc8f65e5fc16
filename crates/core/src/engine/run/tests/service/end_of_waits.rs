//! How a wait for the service ends.

use super::*;

#[test]
fn money_that_is_spent_when_a_story_is_done_keeps_the_story_and_begins_no_other() {
    let mut bench = Bench::with(|limits| limits.cost_usd = Usd::try_from(1.0).unwrap());
    bench.turn(TurnOutcome::Ended, 1.5);
    bench.verify(CheckOutcome::Passed);
    bench.ends(Finish::Budget, 3);
    assert_eq!((bench.state.commits, bench.state.results.len()), (1, 1));
}

#[test]
fn work_that_the_agents_own_cap_cut_short_is_looked_at_before_the_run_ends() {
    let cut = || TurnOutcome::Budget { reason: "Reached maximum budget".to_owned() };
    for (found, commits) in [(CheckOutcome::Passed, 1), (RED, 0)] {
        let mut bench = Bench::with(|_| {});
        bench.turn(cut(), 0.1);
        bench.verify(found);
        bench.ends(Finish::Budget, 3);
        assert_eq!(bench.state.commits, commits);
    }
}

#[test]
fn an_agent_that_cannot_log_in_is_a_fault_of_the_setup() {
    let mut bench = Bench::with(|_| {});
    bench.turn(TurnOutcome::Auth { reason: "no key".to_owned() }, 0.0);
    assert_eq!(bench.effect, Some(Effect::Keep));
    bench.ends(Finish::Error, 2);
}

#[test]
fn an_account_without_credit_ends_the_run_as_a_limit_and_an_unknown_model_as_a_fault_of_the_setup() {
    let reason = || "why; what to do".to_owned();
    for (outcome, finish, code) in [
        (TurnOutcome::Billing { reason: reason() }, Finish::Budget, 3),
        (TurnOutcome::UnknownModel { reason: reason() }, Finish::Error, 2),
    ] {
        let mut bench = Bench::with(|_| {});
        bench.turn(outcome, 0.0);
        assert_eq!(bench.effect, Some(Effect::Keep), "asking again would not help");
        assert!(bench.reason().ends_with("why; what to do"), "{}", bench.reason());
        bench.ends(finish, code);
        assert_eq!(bench.journal.iter().filter(|line| matches!(line.event, Event::TurnStarted { .. })).count(), 1);
    }
}

#[test]
fn a_story_that_the_model_refuses_twice_fails_with_that_reason() {
    let refused = || TurnOutcome::Refused { reason: "I cannot help with that".to_owned() };
    let mut bench = Bench::with(|_| {});
    bench.turn(refused(), 0.0);
    assert_eq!(bench.effect, Some(Effect::Turn), "it may have been a misunderstanding");
    bench.turn(TurnOutcome::Ended, 0.0);
    bench.verify(RED);
    bench.turn(refused(), 0.0);
    assert_eq!(bench.effect, Some(Effect::Keep), "turns between two refusals do not count");
    bench.until(&Effect::Select);
    let story = StoryId::from("A");
    assert_eq!(bench.state.progress.failed[&story], "the model refused to work on it 2 times: I cannot help with that");
    assert!(bench.state.fatal.is_none(), "the run continues with other stories");
    bench.give(Input::Asked(Request::Retry { story }));
    assert!(bench.state.refusals.is_empty(), "the user may want to try again");
}

#[test]
fn a_turn_that_was_caught_in_a_loop_is_followed_by_one_that_is_told_so() {
    let looping = || TurnOutcome::Looping { call: "Bash: make".to_owned(), times: 20 };
    let mut bench = Bench::with(|limits| limits.turns = 2);
    bench.turn(looping(), 0.0);
    assert_eq!((bench.effect.clone(), bench.attempt().place.turn), (Some(Effect::Turn), 2));
    let told = bench.attempt().feedback.clone().unwrap();
    assert_eq!(told.reason, "the last turn made the same call 20 times in a row and was stopped: Bash: make");
    assert!(told.advice[0].starts_with("Do not repeat a call"), "{told:?}");
    bench.turn(looping(), 0.0);
    bench.until(&Effect::Select);
    assert_eq!(bench.state.progress.attempts[&StoryId::from("A")], 1, "it counts as an attempt");
}
