//! Other events than the end of a turn: the end of subagents, tasks, teammates, and the session itself.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::hooks::stop_gate::{arm, stop, verdone, world};
use crate::hooks::world::{Mode, World};

pub(crate) const GATES: &str = "[[gate]]\nname = \"quick\"\ncommand = \"! test -e red\"\n[[gate]]\nname = \"slow\"\nstage = \"quality\"\ncommand = \"false\"\n";

pub(crate) fn event(world: &World, name: &str, more: &Value) -> Value {
    let mut input = json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": name });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

/// The exit code and standard error: the only way to block these events.
pub(crate) fn refused(world: &World, name: &str, more: &Value) -> (Option<i32>, String) {
    let mut command = world.command(&["hook", name]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(event(world, name, more).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

pub(crate) fn subagent(world: &World, kind: &str) -> Option<String> {
    let more = json!({ "agent_id": "a1", "agent_type": kind, "stop_hook_active": false });
    let answer = world.ask(Mode::Session, &event(world, "SubagentStop", &more))?;
    Some(answer["reason"].as_str().unwrap().to_owned())
}

#[test]
fn a_task_is_not_complete_while_open_ends_were_added_for_it() {
    let world = world(GATES, &[("old.rs", "// TODO: was there before\n")]);
    let task = json!({ "task_id": "1", "task_subject": "Write it" });
    world.write("src/a.rs", "fn a() {}\n// TODO: no such file yet\nfn b() { todo!() }\n");
    assert_eq!(refused(&world, "TaskCompleted", &task), (Some(0), String::new()), "the session is nobody's");
    arm(&world, &["Do it"]);
    let (code, said) = refused(&world, "TaskCompleted", &task);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("- src/a.rs:2 note to self") && said.contains("- src/a.rs:3 placeholder"), "{said}");
    assert!(!said.contains("old.rs") && !said.contains("no such file"), "{said}");
    assert_eq!(world.records("task_closed").len(), 1, "only the one that nobody refused");
    world.write("src/a.rs", "fn a() {}\nconst WORD: &str = \"// TODO\";\n");
    assert_eq!(refused(&world, "TaskCompleted", &task), (Some(0), String::new()));
    assert_eq!(world.records("task_closed").len(), 2);
}

#[test]
fn a_task_is_not_complete_while_debugging_was_added_for_it() {
    for (file, line) in [("a.ts", "console.log(1)\n"), ("a.py", "print(1)\n"), ("src/a.rs", "fn a() { dbg!(1); }\n")] {
        let world = world(GATES, &[]);
        arm(&world, &["Do it"]);
        world.write(file, line);
        let (code, said) = refused(&world, "TaskCompleted", &json!({ "task_id": "1", "task_subject": "Write it" }));
        assert!(code == Some(2) && said.contains(&format!("- {file}:1 debug")), "{file}: {code:?} {said}");
    }
}

#[test]
fn output_that_stays_is_wanted_in_the_end_and_an_open_end_never_is() {
    let world = world(GATES, &[]);
    arm(&world, &["Do it"]);
    let complete = |id: &str| refused(&world, "TaskCompleted", &json!({ "task_id": id, "task_subject": "Write it" })).0;
    world.write("a.py", "print(1)\n");
    assert_eq!([complete("1"), complete("1"), complete("1")], [Some(2), Some(2), Some(0)]);
    assert_eq!(complete("2"), Some(2), "another task counts for itself");
    world.write("b.py", "# TODO: more\n");
    assert!((0..5).all(|_| complete("1") == Some(2)));
}

#[test]
fn a_teammate_does_not_idle_while_its_debugging_is_left() {
    let world = world(GATES, &[]);
    arm(&world, &["Do it"]);
    world.write("a.ts", "// TODO: later\n");
    assert_eq!(refused(&world, "TeammateIdle", &json!({ "teammate_name": "t" })).0, Some(0), "that holds a task, not a teammate");
    world.write("a.ts", "console.log(1)\n");
    let (code, said) = refused(&world, "TeammateIdle", &json!({ "teammate_name": "t" }));
    assert!(code == Some(2) && said.contains("a.ts:1 debug output"), "{said}");
}

#[test]
fn subagents_of_the_loop_are_held_by_tasks_debris_and_quick_gates_and_others_are_not() {
    let world = world(GATES, &[]);
    world.write("red", "");
    assert_eq!(subagent(&world, "ralph-coder"), None, "the session is nobody's");
    arm(&world, &["Do it"]);
    for kind in ["", "general-purpose"] {
        assert_eq!(subagent(&world, kind), None, "{kind:?}");
    }
    let task = json!({ "task_id": "1", "task_subject": "Write docs", "agent_id": "a1" });
    world.ask(Mode::Session, &event(&world, "TaskCreated", &task));
    world.write("a.rs", "fn a() { dbg!(1); }\n");
    let reason = subagent(&world, "ralph-coder").unwrap();
    for part in ["The check `quick` failed", "a.rs:1 debugger", "- Write docs"] {
        assert!(reason.contains(part), "no {part:?} in {reason}");
    }
    assert!(!reason.contains("slow"), "{reason}");
    assert!(subagent(&world, "ralph-coder").is_some());
    assert_eq!(subagent(&world, "ralph-coder"), None, "three times are enough");
    // Its own work is correct now. The gate that is not quick still fails, and nothing is complete.
    let mut gone = world.event("PostToolUse", "TaskUpdate", &json!({ "taskId": "1", "status": "deleted" }));
    gone["tool_response"] = json!({});
    world.ask(Mode::Session, &gone);
    std::fs::remove_file(world.work.join("red")).unwrap();
    world.write("a.rs", "fn a() {}\n");
    assert_eq!(subagent(&world, "ralph-coder"), None);
    let last = world.records("stop").pop().unwrap();
    assert_eq!(last["cause"], "nothing_left", "{last}");
    assert!(last["reason"].as_str().unwrap().contains("the quick gate is green; stories are verified when the turn ends"));
}

#[test]
fn a_subagent_or_teammate_that_changes_files_between_its_stops_is_held_until_its_work_is_clean() {
    let world = world(GATES, &[]);
    arm(&world, &["Do it"]);
    let teammate = || refused(&world, "TeammateIdle", &json!({ "teammate_name": "t" })).0;
    for n in 0..5 {
        world.write("a.rs", &format!("fn a() {{ dbg!({n}); }}\n"));
        assert!(subagent(&world, "ralph-coder").is_some(), "stop {n}");
        assert_eq!(teammate(), Some(2), "stop {n}");
    }
    assert!(subagent(&world, "ralph-coder").is_some() && teammate() == Some(2), "the same files for the second time");
    assert_eq!((subagent(&world, "ralph-coder"), teammate()), (None, Some(0)), "and for the third time");
    let stops = world.records("stop");
    assert!(stops.iter().rev().take(2).all(|stop| stop["cause"] == "same"), "{stops:?}");
    world.write("a.rs", "fn a() { dbg!(1) }\n");
    assert!(subagent(&world, "ralph-coder").is_some() && teammate() == Some(2), "a change counts anew");
}

#[test]
fn a_subagent_or_teammate_is_held_at_most_as_often_as_a_loop() {
    let world = world(&format!("[stop]\nmax_blocks = 3\n{GATES}"), &[]);
    arm(&world, &["Do it"]);
    for n in 0..4 {
        world.write("a.rs", &format!("fn a() {{ dbg!({n}); }}\n"));
        let code = refused(&world, "TeammateIdle", &json!({ "teammate_name": "t" })).0;
        assert_eq!((subagent(&world, "ralph-coder").is_some(), code), (n < 3, Some(if n < 3 { 2 } else { 0 })), "stop {n}");
    }
    assert_eq!(world.records("stop").pop().unwrap()["cause"], "reached_limit");
}

#[test]
fn a_pause_or_mode_off_lets_subagents_tasks_and_teammates_go() {
    for (config, pause) in [("[stop]\nmode = \"off\"\n", None), ("", Some(".verdone/pause"))] {
        let world = world(&format!("{config}{GATES}"), &[]);
        arm(&world, &["Do it"]);
        world.write("a.rs", "fn a() { dbg!(1); }\n");
        pause.map(|file| world.write(file, ""));
        assert_eq!(subagent(&world, "ralph-coder"), None, "{config}");
        assert_eq!(refused(&world, "TeammateIdle", &json!({ "teammate_name": "t" })).0, Some(0), "{config}");
        assert_eq!(refused(&world, "TaskCompleted", &json!({ "task_id": "1", "task_subject": "x" })).0, Some(0), "{config}");
    }
}

#[test]
fn a_block_that_cannot_be_written_holds_by_its_exit_code() {
    let world = world(GATES, &[]);
    arm(&world, &["Do it"]);
    // Rust replaces a closed standard output with the null device before `main`. Options before `hook` take a different code path.
    for (out, front) in [("/dev/full", &[][..]), ("/dev/null", &[]), ("/dev/full", &["--no-color"])] {
        world.write("done.txt", &format!("{out} {front:?}"));
        let out = std::fs::OpenOptions::new().write(true).open(out).unwrap();
        let mut child = world.command(&[front, &["hook", "Stop"]].concat()).stdout(Stdio::from(out)).spawn().unwrap();
        let input = event(&world, "Stop", &json!({ "stop_hook_active": false }));
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("The check `slow` failed"), "{front:?}: {said}");
    }
}

#[test]
fn tasks_of_the_agents_own_list_keep_a_loop_open() {
    let world = world("[[gate]]\nname = \"quick\"\ncommand = \"true\"\n", &[]);
    arm(&world, &["Do it"]);
    let task = |id: &str| json!({ "task_id": id, "task_subject": format!("Task {id}") });
    for id in ["1", "2"] {
        world.ask(Mode::Session, &event(&world, "TaskCreated", &task(id)));
    }
    world.write("done.txt", "1\n");
    let reason = stop(&world).blocked("Tasks on your list that are not completed:\n- Task 1\n- Task 2");
    assert!(reason.contains("The task: Do it"));
    world.ask(Mode::Session, &event(&world, "TaskCompleted", &task("1")));
    let mut gone = world.event("PostToolUse", "TaskUpdate", &json!({ "taskId": "2", "status": "deleted" }));
    gone["tool_response"] = json!({});
    world.ask(Mode::Session, &gone);
    stop(&world).let_go("COMPLETE");
}

#[test]
fn a_session_that_ends_with_open_work_is_told_to_the_next_one() {
    let world = world(GATES, &[("PLAN.md", "- [ ] US-001: One\n- [ ] US-002: Two\n")]);
    arm(&world, &["--plan", "PLAN.md"]);
    assert_eq!(world.ask(Mode::Session, &event(&world, "SessionEnd", &json!({ "reason": "other" }))), None);
    assert_eq!(world.records("incomplete")[0]["story"], "US-001");
    let status = String::from_utf8(verdone(&world, &["loop", "status"]).stdout).unwrap();
    assert!(status.contains("with story US-001 open"), "{status}");
    let start = |session: &str| {
        let input = json!({ "session_id": session, "cwd": world.work, "hook_event_name": "SessionStart", "source": "startup" });
        world.ask(Mode::Session, &input).map(|answer| answer["hookSpecificOutput"]["additionalContext"].to_string())
    };
    assert!(start("s2").unwrap().contains("An earlier session with a Verdone loop ended at"));
    assert_eq!(start("s3"), None, "one session is told");
    assert!(start("s1").unwrap().contains("A Verdone loop is active here"), "a resumed session continues");
    let json: Value = serde_json::from_slice(&verdone(&world, &["loop", "status", "--json"]).stdout).unwrap();
    assert_eq!((&json["incomplete"]["story"], &json["loops"][0]["status"]), (&json!("US-001"), &json!("active")));
}
