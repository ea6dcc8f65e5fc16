//! Trouble with the model's service.

use verdone_testkit::Signal;
use verdone_testkit::model_server::{ApiError, Script, Stall, Times, Turn, When};

use super::world::{AGENT, PATIENCE, World};
use crate::run_loop::world::ONE;

fn done() -> [Turn; 2] {
    [Turn::bash("echo one > a"), Turn::say("Done.")]
}

#[test]
fn a_usage_limit_is_waited_for_until_it_resets() {
    let script = done().into_iter().fold(Script::new().then(ApiError::usage_limit(3)), Script::then);
    let Some(world) = World::with(AGENT, &[("PLAN.md", ONE)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    let turns = world.events("turn_ended");
    assert!(turns[0]["outcome"]["usage_limit"]["resets_at"].is_string(), "{turns:?}");
    assert_eq!(turns.last().unwrap()["outcome"], "ended");
    assert!(!world.events("wait_started").is_empty());
}

#[test]
fn an_outage_is_waited_out() {
    // The client itself tries twice.
    let script = Script::new().rule(When::default(), Times::N(2), ApiError::status(503).message("down"));
    let script = done().into_iter().fold(script, Script::then);
    let Some(world) = World::with(AGENT, &[("PLAN.md", ONE)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    let turns = world.events("turn_ended");
    assert_eq!(turns[0]["outcome"]["api_error"]["retryable"], true, "{turns:?}");
    assert_eq!(turns.last().unwrap()["outcome"], "ended");
}

#[test]
fn a_refused_key_ends_the_run_with_advice() {
    let script = Script::new().rule(When::default(), Times::Always, ApiError::status(401).message("bad key"));
    let Some(world) = World::with(AGENT, &[("PLAN.md", ONE)], script) else { return };
    let output = world.verdone(&["run"]);
    assert_ne!(output.code, 0, "{}", output.transcript());
    assert!(output.transcript().contains("codex login"), "{}", output.transcript());
}

#[test]
fn a_run_that_is_ended_while_the_model_thinks_leaves_no_client_behind() {
    let script = Script::new().then(Turn::say("Never.").stall(Stall::UntilReleased));
    let Some(world) = World::with(AGENT, &[("PLAN.md", ONE)], script) else { return };
    let running = world.start(&["run"]);
    world.model.wait_for_stall(PATIENCE);
    running.signal(Signal::TERM);
    running.wait(PATIENCE).assert_code(143);
    world.sandbox.assert_no_survivors(PATIENCE);
}
