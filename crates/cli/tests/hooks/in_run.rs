//! Hooks of a run: where their sessions keep what they saw.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::world::{Mode, Verdict, World};

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
    // What the run's hooks have seen is the session's memory.
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
