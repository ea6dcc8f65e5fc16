//! The model's service is down, refuses to work or wants money: what a run with the real client does about it.

use serde_json::Value;
use verdone_testkit::model_server::{ApiError, Script, Times, When};

use crate::claude::world::{ONE, PATIENCE, World};

/// The client gives up immediately, so that Verdone has to wait.
const IMPATIENT: &str = "[agent.claude.env]\nCLAUDE_CODE_MAX_RETRIES = \"0\"\n";

fn world(settings: &str, script: Script) -> Option<World> {
    let config = format!("[agent]\nname = \"claude\"\n\n{IMPATIENT}\n{settings}");
    World::with(&[(".verdone/config.toml", &config), ("PLAN.md", ONE)], script)
}

fn always(answer: ApiError) -> Script {
    Script::new().rule(When::default(), Times::Always, answer)
}

fn events<'a>(journal: &'a [Value], name: &str) -> Vec<&'a Value> {
    journal.iter().filter(|event| event["event"] == name).collect()
}

#[test]
fn a_service_that_stays_down_is_tried_again_until_the_time_of_the_run_is_up() {
    let Some(world) = world("[limits]\ntotal_time = \"12s\"\n", always(ApiError::status(529))) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(3);
    let journal = world.journal();
    assert!(events(&journal, "wait_started").len() >= 2, "{}", output.transcript());
    let end = events(&journal, "run_stopped")[0];
    assert_eq!(end["finish"], "timeout", "{}", output.transcript());
    assert!(end["duration_ms"].as_u64() >= Some(12_000), "the waits are part of the time: {end}");
    assert_eq!(events(&journal, "story_failed"), [&Value::Null; 0]);
    assert!(output.stdout.contains("The agent's service failed 2 times in a row"), "{}", output.transcript());
    world.sandbox.assert_no_survivors(PATIENCE);
}
