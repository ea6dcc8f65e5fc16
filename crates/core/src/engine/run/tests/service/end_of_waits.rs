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
