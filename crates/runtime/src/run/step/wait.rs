//! One short step of waiting for the agent's service. Short, so that requests and signals are handled.

use std::time::Duration;

use jiff::Timestamp;
use verdone_core::engine::run::{Input, Phase, State};
use verdone_core::journal::active::millis_between;
use verdone_core::journal::update::Reporter;

use crate::run::context::RunContext;

const MOMENT: Duration = Duration::from_millis(100);

pub fn wait(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Input {
    let (left, stops_clock) = match &state.phase {
        Phase::Waiting { why, until, .. } => (Duration::from_millis(millis_between(Timestamp::now(), *until)), why.stops_clock()),
        _ => (Duration::ZERO, false),
    };
    if stops_clock {
        context.setup.clock.pause();
    }
    std::thread::sleep(left.min(MOMENT));
    reporter.report(context.setup.clock.tick());
    context.setup.clock.go_on();
    Input::Waited { over: left <= MOMENT }
}
