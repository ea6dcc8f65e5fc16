//! Read before Edit.

use serde_json::{Value, json};

use crate::hooks::world::{MODES, Mode, Verdict, World};

const RULE: &str = "read-before-edit";

fn edit(path: &str) -> Value {
    json!({ "file_path": path, "old_string": "hello", "new_string": "HELLO" })
}

fn did(world: &World, tool: &str, input: &Value) {
    let mut event = world.event("PostToolUse", tool, input);
    event["tool_response"] = json!({});
    assert_eq!(world.ask(Mode::Run, &event), None);
}

#[test]
fn an_existing_file_is_read_before_it_is_changed() {
    for mode in MODES {
        let fine = if mode == Mode::Run { Verdict::Allow } else { Verdict::Silent };
        let world = World::new();
        let path = world.path("a.txt");
        world.judge(mode, "Edit", &edit(&path)).denied_by(RULE);
        world.judge(mode, "Write", &json!({ "file_path": path, "content": "x" })).denied_by(RULE);
        assert_eq!(world.judge(mode, "Write", &json!({ "file_path": world.path("new.txt"), "content": "x" })), fine);
        did(&world, "Read", &json!({ "file_path": path }));
        assert_eq!(world.judge(mode, "Edit", &edit(&path)), fine);
        // A different path to the same file counts as the same file.
        assert_eq!(world.judge(mode, "Edit", &edit(&format!("{}/../project/./a.txt", world.work.display()))), fine);
        // Another session has not read it.
        let mut other = world.event("PreToolUse", "Edit", &edit(&path));
        other["session_id"] = "s2".into();
        assert!(world.ask(mode, &other).unwrap().to_string().contains(RULE));
    }
}

#[test]
fn permission_requests_get_the_same_verdict() {
    let world = World::new();
    let request = world.event("PermissionRequest", "Edit", &edit(&world.path("a.txt")));
    assert!(world.ask(Mode::Run, &request).unwrap().to_string().contains(RULE));
    did(&world, "Read", &json!({ "file_path": world.path("a.txt") }));
    assert_eq!(world.ask(Mode::Run, &request).unwrap()["hookSpecificOutput"]["decision"]["behavior"], "allow");
    assert_eq!(world.ask(Mode::Session, &request), None);
}

#[test]
fn files_that_commands_read_or_the_session_wrote_are_known() {
    for (tool, input) in [
        ("Bash", json!({ "command": "cd . && cat a.txt | head -3" })),
        ("Bash", json!({ "command": "sed -n 1,20p a.txt" })),
        ("Bash", json!({ "command": "echo x >> a.txt" })),
        ("Write", json!({ "file_path": "a.txt", "content": "x" })),
    ] {
        let world = World::new();
        did(&world, tool, &input);
        assert_eq!(world.judge(Mode::Run, "Edit", &edit(&world.path("a.txt"))), Verdict::Allow, "{input}");
    }
    for (tool, input) in [
        ("Bash", json!({ "command": "echo cat a.txt" })),
        ("Bash", json!({ "command": "ls a.txt" })),
        ("Read", json!({ "file_path": "b.txt" })),
    ] {
        let world = World::new();
        did(&world, tool, &input);
        world.judge(Mode::Run, "Edit", &edit(&world.path("a.txt"))).denied_by(RULE);
    }
}

#[test]
fn a_failed_read_is_no_read_and_compaction_forgets_nothing() {
    let world = World::new();
    let path = world.path("a.txt");
    let mut failed = world.event("PostToolUseFailure", "Read", &json!({ "file_path": path }));
    failed["error"] = "File is too large".into();
    world.ask(Mode::Run, &failed);
    world.judge(Mode::Run, "Edit", &edit(&path)).denied_by(RULE);
    did(&world, "Read", &json!({ "file_path": path }));
    for source in ["compact", "resume"] {
        let start = json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": "SessionStart", "source": source });
        world.ask(Mode::Run, &start);
        assert_eq!(world.judge(Mode::Run, "Edit", &edit(&path)), Verdict::Allow, "{source}");
    }
}

#[test]
fn a_file_that_is_being_read_may_be_changed_in_the_same_message() {
    let world = World::new();
    let path = world.path("a.txt");
    // Hooks of one message run in parallel: the edit is judged before the read has ended.
    assert_eq!(world.judge(Mode::Run, "Read", &json!({ "file_path": path })), Verdict::Allow);
    assert_eq!(world.judge(Mode::Run, "Edit", &edit(&path)), Verdict::Allow);
    let mut failed = world.event("PostToolUseFailure", "Read", &json!({ "file_path": path }));
    failed["error"] = "File is too large".into();
    world.ask(Mode::Run, &failed);
    world.judge(Mode::Run, "Edit", &edit(&path)).denied_by(RULE);
    // A denied read does not count.
    world.write(".verdone/config.toml", "[policy.tools]\nRead = \"deny\"\n");
    assert!(matches!(world.judge(Mode::Run, "Read", &json!({ "file_path": path })), Verdict::Deny(_)));
    world.judge(Mode::Run, "Edit", &edit(&path)).denied_by(RULE);
}

#[test]
fn the_rule_can_be_switched_off() {
    let world = World::new();
    world.write(".verdone/config.toml", "[policy]\noff = [\"read-before-edit\"]\n");
    assert_eq!(world.judge(Mode::Run, "Edit", &edit(&world.path("a.txt"))), Verdict::Allow);
}
