//! Sessions without a loop that have the state file of an orchestrator, and what is checked in sessions that have neither.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use verdone_testkit::PATIENCE;

use crate::hooks::stop_gate::{Said, arm, name_the_author, stop, stop_with, world};
use crate::hooks::stop_others::{GATES, refused, subagent};
use crate::hooks::world::{Mode, World};

const GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"! grep -q broken done.txt\"\n";

fn orchestrator(world: &World, state: &Value) {
    let folder = world.root.join(".ralph/state/s1");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("orchestrator.json"), state.to_string()).unwrap();
}

fn commit(world: &World) {
    let name = ["-c", "user.name=dev", "-c", "user.email=dev@example.org"];
    world.git(&["add", "."]);
    world.git(&[&name[..], &["commit", "--quiet", "-m", "work"]].concat());
}

fn teammate(world: &World) -> Option<i32> {
    refused(world, "TeammateIdle", &json!({ "teammate_name": "t" })).0
}

fn task(world: &World) -> Option<i32> {
    refused(world, "TaskCompleted", &json!({ "task_id": "1", "task_subject": "x" })).0
}

#[test]
fn an_orchestrators_word_does_not_let_uncommitted_or_failing_work_go() {
    let world = world(GATE, &[]);
    orchestrator(&world, &json!({ "verified_done": true, "phase": "complete" }));
    world.write("done.txt", "broken\n");
    world.write("one", "");
    let reason = stop(&world).blocked("There are uncommitted changes: done.txt, one.");
    assert!(reason.contains("The check `tests` failed"), "{reason}");
    assert_eq!(stop_with(&world, "s1", &json!({ "stop_hook_active": true })), Said::Nothing, "held once for each prompt");
    commit(&world);
    let reason = stop(&world).blocked("The check `tests` failed");
    assert!(!reason.contains("uncommitted"), "{reason}");
    world.write("done.txt", "1\n");
    let reason = stop(&world).blocked("There are uncommitted changes: done.txt.");
    assert!(!reason.contains("failed"), "{reason}");
    commit(&world);
    assert_eq!(stop(&world), Said::Nothing);
    let causes: Vec<Value> = world.records("stop").into_iter().map(|stop| stop["cause"].clone()).collect();
    assert_eq!(causes, ["check_failed", "held_once", "check_failed", "uncommitted", "checked"]);
    orchestrator(&world, &json!({ "verified_done": false, "phase": "review" }));
    stop(&world).blocked("phase \"review\" is not done");
}

#[test]
fn an_orchestrators_session_waits_for_slow_gates_although_it_is_held_only_once() {
    let world = world("[stop]\nwait = \"100ms\"\n[[gate]]\nname = \"slow\"\ncommand = \"sleep 1; false\"\n", &[]);
    orchestrator(&world, &json!({ "verified_done": true }));
    stop(&world).blocked("Verdone is still verifying your work");
    let until = Instant::now() + PATIENCE;
    let reason = loop {
        match stop_with(&world, "s1", &json!({ "stop_hook_active": true })) {
            Said::Block(reason) if reason.contains("still verifying") => assert!(Instant::now() < until, "no result"),
            said => break said.blocked("The check `slow` failed"),
        }
    };
    assert!(!reason.contains("uncommitted"), "{reason}");
    assert_eq!(stop_with(&world, "s1", &json!({ "stop_hook_active": true })), Said::Nothing);
}

#[test]
fn what_verdone_wrote_or_was_told_to_ignore_holds_nothing() {
    for (config, state) in [
        (GATE.to_owned(), json!({ "verified_done": true, "written_by": "verdone" })),
        (format!("[done]\nralph_state = \"never\"\n{GATE}"), json!({ "verified_done": true })),
    ] {
        let world = world(&config, &[]);
        orchestrator(&world, &state);
        world.write("done.txt", "broken\n");
        world.write("a.ts", "debugger;\n");
        assert_eq!((stop(&world), teammate(&world), task(&world)), (Said::Nothing, Some(0), Some(0)), "{config}");
    }
}

#[test]
fn an_orchestrators_team_is_checked_without_a_loop() {
    let world = world(GATES, &[]);
    world.write("red", "");
    world.write("a.ts", "debugger;\n");
    assert_eq!((subagent(&world, "ralph-coder"), teammate(&world), task(&world)), (None, Some(0), Some(0)), "it has none yet");
    orchestrator(&world, &json!({ "verified_done": false }));
    assert_eq!((teammate(&world), task(&world)), (Some(2), Some(2)));
    let reason = subagent(&world, "ralph-coder").unwrap();
    for part in ["CONTINUATION: the work is not done yet.", "The check `quick` failed", "a.ts:1 debugger"] {
        assert!(reason.contains(part), "no {part:?} in {reason}");
    }
    assert!(!reason.contains("slow"), "{reason}");
    assert_eq!(subagent(&world, "general-purpose"), None);
    fs::remove_file(world.work.join("red")).unwrap();
    fs::remove_file(world.work.join("a.ts")).unwrap();
    assert_eq!((subagent(&world, "ralph-coder"), teammate(&world), task(&world)), (None, Some(0), Some(0)));
}

#[test]
fn teams_are_checked_in_every_session_or_only_in_loops_if_the_settings_say_so() {
    let always = world(&format!("[stop]\nteam_gates = \"always\"\n{GATES}"), &[]);
    always.write("a.ts", "debugger;\n");
    assert_eq!((teammate(&always), task(&always)), (Some(2), Some(2)));
    assert!(subagent(&always, "ralph-coder").is_some());
    assert_eq!(stop(&always), Said::Nothing, "the turn itself may end");
    let only_loops = world(&format!("[stop]\nteam_gates = \"loop\"\n{GATES}"), &[]);
    orchestrator(&only_loops, &json!({ "verified_done": false }));
    only_loops.write("a.ts", "debugger;\n");
    assert_eq!((teammate(&only_loops), task(&only_loops), subagent(&only_loops, "ralph-coder")), (Some(0), Some(0), None));
    arm(&only_loops, &["Do it"]);
    assert_eq!((teammate(&only_loops), task(&only_loops)), (Some(2), Some(2)));
}

#[test]
fn lines_that_a_session_committed_count_as_added() {
    let mut world = world(&format!("[stop]\nteam_gates = \"always\"\n{GATES}"), &[("old.ts", "debugger;\n")]);
    name_the_author(&mut world);
    world.begin(Mode::Session);
    assert_eq!(task(&world), Some(0));
    world.write("a.ts", "debugger;\n");
    commit(&world);
    let (code, said) = refused(&world, "TaskCompleted", &json!({ "task_id": "1", "task_subject": "x" }));
    assert!(code == Some(2) && said.contains("a.ts:1 debugger") && !said.contains("old.ts"), "{said}");
}
