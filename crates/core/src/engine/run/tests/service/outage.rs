//! A service that is down for minutes or hours.

use super::*;
use crate::journal::event::WaitCause;

/// The settings that nobody changed.
fn by_default(limits: &mut Limits) {
    limits.api_errors = Limits::default().api_errors;
}

#[test]
fn an_outage_is_waited_out_for_as_long_as_the_time_of_the_run_allows() {
    let mut bench = Bench::with(by_default);
    let mut waits = 0;
    while bench.effect == Some(Effect::Turn) {
        bench.turn(overloaded(), 0.0);
        let wait = bench.waits_for();
        assert!(wait <= SignedDuration::from_mins(4), "{wait}");
        bench.now += wait.unsigned_abs();
        waits += 1;
        bench.give(Input::Waited { over: true });
    }
    assert!(waits > 12 * 60 / 4, "{waits} waits in 12 hours");
    assert!(bench.now >= Limits::default().total_time.duration());
    assert_eq!(bench.effect, Some(Effect::Keep));
    bench.ends(Finish::Timeout, 3);
}

#[test]
fn without_a_time_limit_an_outage_is_waited_out_for_ever_and_a_signal_ends_it() {
    let mut bench = Bench::with(|limits| {
        by_default(limits);
        limits.total_time = Span::from_secs(0);
    });
    for day in 0..1_000 {
        bench.turn(overloaded(), 0.0);
        bench.now = Duration::from_hours(24 * day);
        assert_eq!(bench.give(Input::Waited { over: true }), Some(&Effect::Turn));
    }
    bench.turn(overloaded(), 0.0);
    bench.give(Input::Signal(StopSignal::Sigint));
    bench.give(Input::Waited { over: false });
    bench.ends(Finish::Manual, 130);
}

#[test]
fn the_time_of_an_outage_counts_and_the_time_of_a_usage_limit_does_not() {
    for (why, counted) in [(WaitCause::ServiceError, 60_000), (WaitCause::UsageLimit, 0)] {
        let bench = Bench::with(|_| {});
        let (mut state, mut view) = (bench.state.clone(), RunView::from_journal(&bench.journal));
        let place = bench.attempt().place.clone();
        let begin = Timestamp::from_second(LATER).unwrap();
        let until = Timestamp::from_second(LATER + 60).unwrap();
        let wait = Event::WaitStarted { place: place.clone(), why, reason: String::new(), until, ahead: false };
        let mut active = Vec::new();
        for (at, event) in [(begin, wait), (until, Event::WaitEnded { place })] {
            let recorded = Recorded { v: 1, seq: 0, at, active_ms: None, event };
            apply(&mut state, &recorded);
            view.apply(&recorded);
            active.push((state.active.ms(), view.active_ms()));
        }
        assert_eq!((active[1].0 - active[0].0, active[1].1 - active[0].1), (counted, counted), "{why:?}");
    }
}

#[test]
fn surfaces_know_how_often_the_service_has_failed_in_a_row() {
    let mut bench = Bench::with(|limits| limits.turns = 9);
    let errors = |bench: &Bench| RunView::from_journal(&bench.journal).waiting.unwrap().errors;
    for expected in [1, 2, 3] {
        bench.turn(overloaded(), 0.0);
        assert_eq!(errors(&bench), expected);
        bench.give(Input::Waited { over: true });
    }
    bench.turn(limit_until(Some(3)), 0.0);
    assert_eq!(errors(&bench), 0);
    bench.give(Input::Waited { over: true });
    bench.turn(TurnOutcome::Ended, 0.0);
    bench.verify(RED);
    bench.turn(overloaded(), 0.0);
    assert_eq!(errors(&bench), 1, "a turn that works ends the outage");
}
