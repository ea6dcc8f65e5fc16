//! `[[after_tool]]`: the user's own commands, and every way they can fail.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use verdone_testkit::PATIENCE;

use crate::hooks::tests_seen::told;
use crate::hooks::world::{MODES, Mode, World};

fn after(world: &World, tool: &str, input: &Value) -> String {
    said_to(world, Mode::Run, tool, input)
}

fn said_to(world: &World, mode: Mode, tool: &str, input: &Value) -> String {
    let mut event = world.event("PostToolUse", tool, input);
    event["tool_response"] = json!({ "stdout": "", "stderr": "" });
    told(world.ask(mode, &event))
}

fn with(config: &str) -> World {
    let mut world = World::new();
    world.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    world.write(".verdone/config.toml", config);
    world
}

#[test]
fn a_formatter_runs_on_the_file_and_is_silent_where_it_succeeds() {
    for (mode, run) in MODES.into_iter().zip([
        "\"tr a-z A-Z < \\\"$VERDONE_FILE\\\" > up && cat up > \\\"$1\\\"\"",
        "['sh', '-c', 'echo HELLO > \"$0\"; echo done', '{file}']",
    ]) {
        let world = with(&format!("[[after_tool]]\ntools = [\"Edit\", \"Write\"]\npaths = [\"**/*.txt\"]\nrun = {run}\n"));
        // A name that a shell would split or expand.
        let path = world.write("it's a $(touch pwned) file.txt", "hello\n");
        assert_eq!(said_to(&world, mode, "Write", &json!({ "file_path": path, "content": "hello\n" })), "");
        assert_eq!(world.read("it's a $(touch pwned) file.txt"), "HELLO\n");
        assert!(!world.work.join("pwned").exists());
        assert_eq!(said_to(&world, mode, "Write", &json!({ "file_path": world.write("b.md", "x"), "content": "x" })), "");
        assert_eq!(said_to(&world, mode, "Bash", &json!({ "command": "echo > a.txt" })), "");
        assert_eq!((world.read("b.md"), world.read("a.txt")), ("x".to_owned(), "hello\nworld\n".to_owned()));
        let records = world.lines(".verdone/sessions/s1/events.jsonl");
        let ran: Vec<_> = records.iter().filter(|record| record["record"] == "after_tool").collect();
        assert_eq!((ran.len(), &ran[0]["failed"], &ran[0]["outcome"]), (1, &json!(false), &json!("it succeeded")));
    }
}

#[test]
fn a_failure_is_told_and_success_where_it_is_asked_for() {
    let mut world = with(
        "[[after_tool]]\nrun = 'echo \"bad indent, token $API_TOKEN\"; printf \"\\033[31mred\" >&2; exit 3'\n\
         [[after_tool]]\nrun = \"echo formatted\"\nfeedback = \"always\"\n[[after_tool]]\nrun = \"true\"\nfeedback = \"always\"\n\
         [[after_tool]]\ntools = [\"Ba*\"]\nrun = \"echo after $VERDONE_TOOL $VERDONE_FILE; exit 1\"\n",
    );
    world.set("API_TOKEN", "s3cr3t-value-of-a-token");
    let said = after(&world, "Edit", &json!({ "file_path": "a.txt", "old_string": "a", "new_string": "b" }));
    let path = world.path("a.txt");
    assert!(said.contains(&format!("ran after Edit ({path}): it failed with exit code 3. It said:\nbad indent")), "{said}");
    assert!(said.contains("it succeeded. It said:\nformatted") && !said.contains("`true`"), "{said}");
    assert!(!said.contains("s3cr3t") && !said.contains('\u{1b}'), "{said}");
    let said = after(&world, "Bash", &json!({ "command": "ls" }));
    assert!(said.ends_with("ran after Bash: it failed with exit code 1. It said:\nafter Bash"), "{said}");
    // A failed tool has changed nothing.
    let mut failed = world.event("PostToolUseFailure", "Edit", &json!({ "file_path": "a.txt" }));
    failed["error"] = "no match".into();
    assert_eq!(world.ask(Mode::Run, &failed), None);
}

#[test]
fn a_command_that_hangs_floods_or_is_missing_is_ended_and_told() {
    let began = Instant::now();
    let world = with(
        "[[after_tool]]\nrun = \"sleep 600 & sleep 600\"\ntimeout = \"300ms\"\n\
         [[after_tool]]\nrun = \"yes\"\ntimeout = \"300ms\"\n\
         [[after_tool]]\nrun = [\"no-such-formatter\", \"{file}\"]\n\
         [[after_tool]]\nrun = \"echo the last; exit 1\"\n",
    );
    let said = after(&world, "Write", &json!({ "file_path": "a.txt", "content": "" }));
    assert_eq!(said.matches("it timed out after 300ms").count(), 2, "{said}");
    assert!(said.contains("could not be started") && said.contains("no-such-formatter"), "{said}");
    assert!(said.contains("the last") && said.len() < 9_000, "{said}");
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn what_a_command_leaves_running_is_ended_with_it() {
    let world = with(
        "[[after_tool]]\nrun = \"setsid sh -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1 & until test -s pid; do :; done\"\n",
    );
    assert_eq!(after(&world, "Write", &json!({ "file_path": "a.txt", "content": "" })), "");
    let pid = world.read("pid");
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "{pid}");
}

#[test]
fn a_slow_command_does_not_meet_the_deadline_of_the_judge() {
    let world = with("[[after_tool]]\nrun = \"sleep 6; echo slow; exit 1\"\n");
    let said = after(&world, "Write", &json!({ "file_path": "a.txt", "content": "" }));
    assert!(said.contains("slow"), "{said}");
    assert_eq!(world.read(".verdone/sessions/faults.jsonl"), "");
}

#[test]
fn a_hook_that_is_asked_to_end_takes_its_command_with_it() {
    let world = with("[[after_tool]]\nrun = \"echo $$ > pid; exec sleep 600\"\ntimeout = \"50s\"\n");
    let mut event = world.event("PostToolUse", "Write", &json!({ "file_path": "a.txt", "content": "" }));
    event["tool_response"] = json!({});
    let mut child = world.start(Mode::Run, "PostToolUse");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), event.to_string().as_bytes()).unwrap();
    let began = Instant::now();
    while !fs::read_to_string(world.work.join("pid")).is_ok_and(|text| text.ends_with('\n')) {
        assert!(began.elapsed() < PATIENCE, "the command was not started");
        std::thread::yield_now();
    }
    let pid = i32::try_from(child.id()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::TERM).unwrap();
    child.wait().unwrap();
    let command = world.read("pid");
    assert!(!std::path::Path::new("/proc").join(command.trim()).exists(), "{command}");
}
