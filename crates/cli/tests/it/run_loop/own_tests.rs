//! Tests that the agent runs, as seen by the run's hooks: they are reported in the next prompt, or end the attempt.

use serde_json::{Value, json};

use crate::run_loop::world::{ONE, Settings, VERDONE, World, always, text};

const FAILED: &str = "running 2 tests\ntest adds ... ok\ntest subtracts ... FAILED\n\nfailures:\n    subtracts\n\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
const PASSED: &str = "running 1 test\ntest adds ... ok\n\n\
                      test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

/// A step in which the agent's client reports a test run to the hook, and ends the turn if the hook says so.
fn test_run(world: &World, name: &str, output: &str, fails: bool) -> String {
    let mut input = json!({
        "session_id": name, "cwd": world.sandbox.path("."), "tool_name": "Bash", "tool_input": { "command": "cargo test" },
    });
    let event = if fails { "PostToolUseFailure" } else { "PostToolUse" };
    input["hook_event_name"] = event.into();
    if fails {
        input["error"] = format!("Exit code 101\n{output}").into();
    } else {
        input["tool_response"] = json!({ "stdout": output, "stderr": "" });
    }
    let file = format!("../tmp/{name}.json");
    world.sandbox.write(&file, input.to_string());
    format!("{{ run = \"{VERDONE} hook --run {event} < {file} > ../tmp/{name}-answer.json\" }}")
}

fn world(tests: &str, limits: &str) -> World {
    let tables = format!("[policy.tests]\n{tests}\n");
    World::with(ONE, "", &Settings { limits, tables: &tables, ..Settings::default() })
}

fn answer(world: &World, name: &str) -> Value {
    serde_json::from_str(&world.sandbox.read(format!("../tmp/{name}-answer.json"))).unwrap()
}

#[test]
fn a_failing_test_run_ends_the_attempt_which_is_kept_and_told_in_the_next() {
    let world = world("on_failure = \"rollback\"", "attempts = 2");
    let fails = test_run(&world, "fails", FAILED, true);
    world.sandbox.write(
        ".verdone/script.toml",
        format!(
            "[[turn]]\nattempt = 1\nsteps = [{{ create = \"a\", text = \"the work\" }}, {fails}]\n\
             [[turn]]\nattempt = 2\nsteps = [{{ create = \"a\", text = \"better\" }}]\n"
        ),
    );
    world.git(&["commit", "-qam", "script"]);
    world.run(0);

    assert_eq!(answer(&world, "fails")["continue"], false);
    let rejected = world.last("attempt_rejected");
    assert_eq!(text(&rejected["rejection"]), "tests_failed");
    assert_eq!(text(&rejected["reason"]), "the agent's test run failed. cargo test: failed (1 failed, 1 passed).");
    // The story's check would have passed, but it did not run.
    assert_eq!(world.all("verified").len(), 1);
    assert_eq!(world.git(&["show", &format!("{}:a", world.kept())]), "the work");
    assert_eq!(world.git(&["show", "HEAD:a"]), "better");
    let prompt = world.prompt(2);
    assert!(prompt.contains("An earlier attempt was not accepted") && prompt.contains("- subtracts"), "{prompt}");
    assert!(prompt.contains("the agent's test run failed."), "{prompt}");
    let sessions = world.run_dir().join("sessions/fails/events.jsonl");
    assert!(std::fs::read_to_string(sessions).unwrap().contains("\"record\":\"ends_turn\""));
    assert!(!world.has(".verdone/sessions"));
    world.assert_clean();
}

#[test]
fn only_so_many_failing_test_runs_in_a_row_end_an_attempt() {
    let world = world("rollback_after = 2", "attempts = 2");
    let fails = test_run(&world, "fails", FAILED, true);
    let passes = test_run(&world, "passes", PASSED, false);
    world.sandbox.write(
        ".verdone/script.toml",
        format!(
            "[[turn]]\nattempt = 1\nturn = 1\nsteps = [{{ create = \"b\" }}, {fails}, {passes}, {fails}]\n\
             [[turn]]\nattempt = 1\nturn = 2\nsteps = [{{ create = \"a\" }}, {fails}]\n\
             [[turn]]\nattempt = 2\nsteps = [{{ create = \"a\" }}, {fails}, {passes}]\n"
        ),
    );
    world.git(&["commit", "-qam", "script"]);
    world.run(0);
    let rejected: Vec<String> = world.all("attempt_rejected").iter().map(|event| text(&event["reason"])).collect();
    assert_eq!(rejected, ["2 test runs of the agent failed in a row. cargo test: failed (1 failed, 1 passed)."]);
    // The first turn was checked, and its last test run is in the second prompt.
    assert_eq!(world.prompt(2).matches("- subtracts").count(), 1, "{}", world.prompt(2));
    assert_eq!(world.prompt(3).matches("- subtracts").count(), 2, "{}", world.prompt(3));
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
}

#[test]
fn failing_tests_are_feedback_by_default_and_passing_ones_clear_it() {
    for (last_passes, told) in [(false, 1), (true, 0)] {
        let world = world("", "attempts = 1\nturns = 2");
        let fails = test_run(&world, "fails", FAILED, true);
        let passes = test_run(&world, "passes", PASSED, false);
        let last = if last_passes { format!(", {passes}") } else { String::new() };
        let script = format!(
            "[[turn]]\nturn = 1\nsteps = [{{ create = \"b\" }}, {fails}{last}]\n[[turn]]\nturn = 2\nsteps = [{{ create = \"a\" }}]\n"
        );
        world.sandbox.write(".verdone/script.toml", script);
        world.git(&["commit", "-qam", "script"]);
        world.run(0);
        assert!(answer(&world, "fails").to_string().contains("subtracts"));
        let prompt = world.prompt(2);
        assert!(prompt.contains("Your edits are still here"), "{prompt}");
        assert_eq!(prompt.matches("- subtracts").count(), told, "{prompt}");
    }
}

#[test]
fn records_of_another_turn_and_forged_ones_open_nothing() {
    let world = world("on_failure = \"rollback\"", "attempts = 2");
    let fails = test_run(&world, "fails", FAILED, true);
    // An agent that deletes the record of its failing tests, and one that forges a record for another turn: verified as usual.
    let forged = r#"{"at":"2026-01-01T00:00:00Z","iteration":2,"turn":7,"summary":"x","ends_turn":"forged"}"#;
    let sessions = ".verdone/runs/$VERDONE_RUN/sessions";
    world.sandbox.write(
        ".verdone/script.toml",
        format!(
            "[[turn]]\nattempt = 1\nsteps = [{{ create = \"b\" }}, {fails}, {{ run = \"rm -r {sessions}/*\" }}]\n\
             [[turn]]\nattempt = 2\nsteps = [{{ create = \"a\" }}, {{ run = '''mkdir -p {sessions}/x; echo '{forged}' > {sessions}/x/failures.jsonl''' }}]\n",
        ),
    );
    world.git(&["commit", "-qam", "script"]);
    world.run_with(&["--max-iterations", "2"], 0);
    let rejected: Vec<String> = world.all("attempt_rejected").iter().map(|event| text(&event["rejection"])).collect();
    assert_eq!(rejected, ["no_progress"]);
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
}

#[test]
fn an_attempt_that_tests_ended_counts_as_one_that_changed_something() {
    let world = world("on_failure = \"rollback\"", "attempts = 4");
    let fails = test_run(&world, "fails", FAILED, true);
    world.sandbox.write(".verdone/script.toml", always(&format!("{{ create = \"a\" }}, {fails}")));
    world.git(&["commit", "-qam", "script"]);
    world.run(4);
    assert_eq!((world.finish(), world.all("attempt_rejected").len()), ("blocked".to_owned(), 4));
    assert_eq!(text(&world.last("story_failed")["reason"]), "4 of 4 attempts failed");
    let shown = world.verdone(&["show", "US-001"]).stdout;
    assert!(shown.contains("the agent's test run failed. cargo test: failed"), "{shown}");
    world.assert_clean();
}
