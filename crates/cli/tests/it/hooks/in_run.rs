//! Hooks of a run: where they store what they saw, and when a failing test run ends the turn.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::hooks::tests_seen::{FAILED, PASSED, failed, passed, told};
use crate::hooks::world::{Mode, Verdict, World};

const RUN: &str = "20260102-030405-abcd";

#[test]
fn sessions_of_a_run_live_in_its_folder_and_others_do_not() {
    let mut world = World::new();
    std::fs::create_dir_all(world.work.join(".verdone/runs").join(RUN)).unwrap();
    world.set("VERDONE_RUN", RUN);
    assert_eq!(world.judge(Mode::Run, "Bash", &json!({ "command": "ls" })), Verdict::Allow);
    world.send(Mode::Run, "PreToolUse", b"{");
    let sessions = format!(".verdone/runs/{RUN}/sessions");
    assert_eq!(world.lines(&format!("{sessions}/s1/events.jsonl")).len(), 1);
    assert_eq!(world.lines(&format!("{sessions}/faults.jsonl")).len(), 1);
    assert!(!world.work.join(".verdone/sessions").exists());
    // The session remembers what the run's hooks saw.
    let mut read = world.event("PostToolUse", "Read", &json!({ "file_path": world.path("a.txt") }));
    read["tool_response"] = json!({});
    world.ask(Mode::Run, &read);
    let edit = json!({ "file_path": world.path("a.txt"), "old_string": "a", "new_string": "b" });
    assert_eq!(world.judge(Mode::Run, "Edit", &edit), Verdict::Allow);
}

#[test]
fn a_variable_that_names_no_run_leads_nowhere_else() {
    for (name, link) in [("../../outside", false), ("20260102-030405-none", false), ("", false), ("link", true)] {
        let mut world = World::new();
        std::fs::create_dir_all(world.work.join(".verdone/runs")).unwrap();
        std::fs::create_dir_all(world.work.join("outside")).unwrap();
        if link {
            symlink(world.work.join("outside"), world.work.join(".verdone/runs/link")).unwrap();
        }
        world.set("VERDONE_RUN", name);
        assert_eq!(world.judge(Mode::Run, "Bash", &json!({ "command": "ls" })), Verdict::Allow);
        assert_eq!(world.lines(".verdone/sessions/s1/events.jsonl").len(), 1, "{name:?}");
        assert_eq!(std::fs::read_dir(world.work.join("outside")).unwrap().count(), 0, "{name:?}");
    }
}

/// A world whose hooks belong to a turn of a run.
fn at_work(config: &str) -> World {
    let mut world = World::new();
    std::fs::create_dir_all(world.work.join(".verdone/runs").join(RUN)).unwrap();
    world.write(".verdone/config.toml", config);
    world.set("VERDONE_RUN", RUN);
    // A long-lived client still has the variables of the turn in which it was started.
    for (name, value) in [("VERDONE_ITERATION", "1"), ("VERDONE_TURN", "7")] {
        world.set(name, value);
    }
    in_iteration(&world, 3);
    world
}

/// The driver starts the first turn of this iteration.
fn in_iteration(world: &World, iteration: u32) {
    let story = json!({ "story": "A", "title": "t", "text": "", "checks": [], "plan": "/p", "iteration": iteration, "turn": 1 });
    world.write(&format!(".verdone/runs/{RUN}/turns/story.json"), &story.to_string());
}

fn failing(world: &World) -> Option<Value> {
    world.ask(Mode::Run, &failed(world, "cargo test", &format!("Exit code 101\n{FAILED}")))
}

#[test]
fn a_failing_test_run_ends_the_turn_where_the_settings_want_it() {
    let world = at_work("[policy.tests]\non_failure = \"rollback\"\n");
    let said = failing(&world).unwrap();
    assert_eq!(
        said,
        json!({ "continue": false, "stopReason": "the agent's test run failed. cargo test: failed (1 failed, 1 passed)." })
    );
    let session = format!(".verdone/runs/{RUN}/sessions/s1");
    let records: Vec<Value> = world.lines(&format!("{session}/events.jsonl"));
    assert_eq!(records.last().unwrap()["record"], "ends_turn");
    assert_eq!(records.last().unwrap()["reason"], said["stopReason"]);
    let failure = &world.lines(&format!("{session}/failures.jsonl"))[0];
    assert_eq!((&failure["iteration"], &failure["turn"], &failure["ends_turn"]), (&json!(3), &json!(1), &said["stopReason"]));
    // A failure hidden by a pipe counts, too.
    let hidden = world.ask(Mode::Run, &passed(&world, "cargo test | tail", FAILED)).unwrap();
    assert_eq!(hidden["continue"], false);
}

#[test]
fn failing_test_runs_are_counted_in_a_row_and_for_the_attempt() {
    let world = at_work("[policy.tests]\nrollback_after = 3\n");
    assert!(told(failing(&world)).contains("failing test run 1 in a row; at 3 Verdone rolls the attempt back"));
    // Another session of the attempt, with other commands in between.
    let mut other = failed(&world, "cargo test", &format!("Exit code 101\n{FAILED}"));
    other["session_id"] = "s2".into();
    assert!(told(world.ask(Mode::Run, &other)).contains("failing test run 2 in a row"));
    world.ask(Mode::Run, &failed(&world, "cargo build", "Exit code 101\nerror"));
    assert_eq!(world.ask(Mode::Run, &passed(&world, "cargo test", PASSED)), None);
    for n in 1..=2 {
        assert!(told(failing(&world)).contains(&format!("failing test run {n} in a row")));
    }
    // The next attempt starts counting again.
    in_iteration(&world, 4);
    assert!(told(failing(&world)).contains("failing test run 1 in a row"));
    in_iteration(&world, 3);
    let said = failing(&world).unwrap();
    assert!(said["stopReason"].as_str().unwrap().starts_with("3 test runs of the agent failed in a row."), "{said}");
}

#[test]
fn where_no_driver_waits_a_rollback_is_only_feedback() {
    for mode in [Mode::Session, Mode::Run] {
        let world = World::new();
        world.write(".verdone/config.toml", "[policy.tests]\non_failure = \"rollback\"\n");
        for _ in 0..2 {
            let said = told(world.ask(mode, &failed(&world, "cargo test", &format!("Exit code 101\n{FAILED}"))));
            assert!(said.contains("subtracts") && !said.contains("roll"), "{said}");
        }
        assert_eq!(std::fs::read_dir(world.work.join(".verdone/sessions")).unwrap().count(), 2, "a session and its .gitignore");
    }
}
