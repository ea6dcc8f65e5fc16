//! API errors as the real client passes them on, which a driver has to understand.

use serde_json::json;
use verdone_testkit::Claude;
use verdone_testkit::model_server::{ApiError, Fault, Script, Stop, Times, Turn, When};

use crate::claude::world::World;

#[test]
fn an_overload_and_a_broken_stream_are_tried_again() {
    let script = Script::new()
        .then(ApiError::status(529))
        .then(Turn::say("Half of an answer").fault(Fault::Drop))
        .then(Turn::say("At last."));
    let Some(world) = World::new(script) else { return };
    let told = world.prompt("{}", "Try");
    told.output.assert_code(0);
    assert_eq!(told.result()["result"], "At last.");
    assert!(!told.events_of("system", "api_retry").is_empty(), "{}", told.output.transcript());
}

#[test]
fn a_refused_key_ends_the_turn_with_the_status_of_the_api() {
    let script = Script::new().rule(When::default(), Times::Always, ApiError::status(403).message("not for you"));
    let Some(world) = World::new(script) else { return };
    let told = world.prompt("{}", "Try");
    told.output.assert_code(1);
    let result = told.result();
    assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(403)), "{result}");
}

#[test]
fn a_used_up_subscription_is_told_with_the_time_of_its_reset() {
    let script = Script::new().rule(When::default(), Times::Always, ApiError::usage_limit(3600));
    let Some(mut world) = World::new(script) else { return };
    Claude::subscribe(&mut world.sandbox);
    let told = world.prompt("{}", "Try");
    told.output.assert_code(1);
    let events = told.events();
    let limit = events.iter().find(|event| event["type"] == "rate_limit_event");
    let limit = &limit.unwrap_or_else(|| panic!("no limit told\n{}", told.output.transcript()))["rate_limit_info"];
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let resets = limit["resetsAt"].as_u64().unwrap();
    assert!(limit["status"] == "rejected" && (now + 3000..=now + 3600).contains(&resets), "{limit}");
}

#[test]
fn a_refusal_is_an_error_of_the_turn() {
    let script = Script::new().rule(When::default(), Times::Always, Turn::say("").stop(Stop::Refusal));
    let Some(world) = World::new(script) else { return };
    let told = world.prompt("{}", "Try");
    told.output.assert_code(1);
    assert_eq!(told.result()["stop_reason"], "refusal");
}
