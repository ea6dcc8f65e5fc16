//! The results of the agent's test runs are reported and recorded.

use serde_json::{Value, json};

use crate::hooks::world::{Mode, World};

pub(crate) const FAILED: &str = "running 2 tests\ntest adds ... ok\ntest subtracts ... FAILED\n\nfailures:\n\n---- subtracts stdout ----\n\
                      thread 'subtracts' panicked at src/lib.rs:9:5:\nassertion failed\n\nfailures:\n    subtracts\n\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
pub(crate) const PASSED: &str = "running 1 test\ntest adds ... ok\n\n\
                      test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

pub(crate) fn failed(world: &World, command: &str, error: &str) -> Value {
    let mut event = world.event("PostToolUseFailure", "Bash", &json!({ "command": command }));
    event["error"] = error.into();
    event
}

pub(crate) fn passed(world: &World, command: &str, stdout: &str) -> Value {
    let mut event = world.event("PostToolUse", "Bash", &json!({ "command": command }));
    event["tool_response"] = json!({ "stdout": stdout, "stderr": "", "interrupted": false });
    event
}

pub(crate) fn told(said: Option<Value>) -> String {
    said.map(|said| said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()).unwrap_or_default()
}

#[test]
fn a_failing_test_run_is_fed_back_and_kept() {
    let world = World::new();
    let said = told(world.ask(Mode::Run, &failed(&world, "cargo test", &format!("Exit code 101\n{FAILED}"))));
    assert!(said.starts_with("cargo test: failed (1 failed, 1 passed).") && said.contains("subtracts"), "{said}");
    assert!(said.contains("Verdone runs the checks itself"), "{said}");
    let session = told(world.ask(Mode::Session, &failed(&world, "cargo test", &format!("Exit code 101\n{FAILED}"))));
    assert!(session.contains("subtracts") && !session.contains("Verdone runs"), "{session}");
    let kept = world.lines(".verdone/sessions/s1/failures.jsonl");
    assert_eq!(kept.len(), 2);
    assert!(kept[0]["summary"].as_str().unwrap().contains("subtracts"));
    let outcomes: Vec<_> =
        world.lines(".verdone/sessions/s1/events.jsonl").into_iter().filter(|line| line["record"] == "tests").collect();
    assert_eq!(
        (&outcomes[0]["outcome"]["framework"], &outcomes[0]["outcome"]["state"]),
        (&json!("cargo_test"), &json!("failed"))
    );
}

#[test]
fn a_failure_that_a_pipe_hid_is_told_too() {
    let world = World::new();
    let said = told(world.ask(Mode::Run, &passed(&world, "cargo test 2>&1 | tail -20", FAILED)));
    assert!(said.contains("hid the failure") && said.contains("subtracts"), "{said}");
}

#[test]
fn passing_tests_and_other_commands_say_nothing() {
    let world = World::new();
    for event in [
        passed(&world, "cargo test", PASSED),
        passed(&world, "cat log.txt", FAILED),
        passed(&world, "echo 'cargo test'", FAILED),
        failed(&world, "grep FAILED log.txt", "Exit code 1"),
        failed(&world, "cargo build", "Exit code 101\nerror: could not compile"),
    ] {
        assert_eq!(world.ask(Mode::Run, &event), None, "{event}");
    }
    let mut interrupted = failed(&world, "cargo test", &format!("Exit code 130\n{FAILED}"));
    interrupted["is_interrupt"] = true.into();
    assert_eq!(world.ask(Mode::Run, &interrupted), None);
    assert_eq!(world.read(".verdone/sessions/s1/failures.jsonl"), "");
}
