//! The model's service is down, refuses to work or wants money: what a run with the real client does about it.

use serde_json::Value;
use verdone_testkit::Output;
use verdone_testkit::model_server::{ApiError, Script, Stop, Times, Turn, When};

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
    assert!(output.stdout.contains("The agent's service failed 2 times"), "{}", output.transcript());
    world.sandbox.assert_no_survivors(PATIENCE);
}

/// Runs it and returns its output and the outcomes of its turns.
fn run(world: &World, code: i32) -> (Output, Vec<Value>) {
    let output = world.verdone(&["run"]);
    output.assert_code(code);
    let journal = world.journal();
    let outcomes = events(&journal, "turn_ended").into_iter().map(|event| event["outcome"].clone()).collect();
    (output, outcomes)
}

#[test]
fn an_account_without_credit_is_not_a_login_problem_and_ends_the_run_with_what_to_do() {
    let message = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.";
    let Some(world) = world("", always(ApiError::status(400).message(message))) else { return };
    let (output, outcomes) = run(&world, 3);
    assert!(outcomes.len() == 1 && outcomes[0]["billing"].is_object(), "{outcomes:?}");
    let said = &output.stdout;
    assert!(said.contains("has no credit") && said.contains("add credit to the account"), "{}", output.transcript());
    assert!(!said.contains("could not log in"), "{}", output.transcript());
}

#[test]
fn a_model_that_does_not_exist_is_asked_for_once_and_the_setting_is_named() {
    let script = always(ApiError::status(404).message("model: claude-nobody"));
    let Some(world) = world("[agent.claude]\nmodel = \"claude-nobody\"\n", script) else { return };
    let (output, outcomes) = run(&world, 2);
    assert!(outcomes.len() == 1 && outcomes[0]["unknown_model"].is_object(), "{outcomes:?}");
    assert!(output.stdout.contains("agent.claude.model"), "{}", output.transcript());
    let journal = world.journal();
    assert_eq!(events(&journal, "story_failed"), [&Value::Null; 0]);
}

#[test]
fn a_story_that_the_model_always_refuses_fails_after_two_turns_with_that_reason() {
    let script = Script::new().rule(When::default(), Times::Always, Turn::say("").stop(Stop::Refusal));
    let Some(world) = world("", script) else { return };
    let (output, outcomes) = run(&world, 4);
    assert!(outcomes.len() == 2 && outcomes.iter().all(|outcome| outcome["refused"].is_object()), "{outcomes:?}");
    let journal = world.journal();
    let failed = events(&journal, "story_failed")[0]["reason"].to_string();
    assert!(failed.contains("the model refused to work on it 2 times"), "{failed}\n{}", output.transcript());
}

#[test]
fn an_error_of_the_agent_is_printed_once() {
    let script = always(ApiError::status(400).message("an odd request"));
    let Some(world) = world("[limits]\ncrashes = 1\n", script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(1);
    let (events, _) = output.stdout.split_once("\n\n").expect("the summary comes after an empty line");
    let told: Vec<&str> = events.lines().filter(|line| line.contains("an odd request")).map(str::trim).collect();
    let begins = ["✗ Agent failed", "✗ Gave up attempt 1", "· Stopping (error)"];
    let each_once = told.len() == begins.len() && told.iter().zip(begins).all(|(line, begin)| line.starts_with(begin));
    assert!(each_once, "the output of the agent repeats it\n{}", output.transcript());
}
