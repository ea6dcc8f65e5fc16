//! Input that Verdone cannot judge: guards of a run deny it in the format of the event, all others are silent, and the fault is recorded.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::hooks::world::{MODES, Mode, World, finish};

const GUARDS: [&str; 3] = ["PreToolUse", "PermissionRequest", "ConfigChange"];
const OBSERVERS: [&str; 4] = ["PostToolUse", "Stop", "SessionStart", "UserPromptSubmit"];

fn good(world: &World, event: &str) -> Value {
    let mut input = world.event(event, "Bash", &json!({ "command": "ls" }));
    input["source"] = "startup".into();
    input["prompt"] = "go on".into();
    input
}

/// The same call in unusable forms.
fn broken(world: &World, event: &str) -> Vec<(&'static str, Vec<u8>)> {
    let input = good(world, event);
    let text = input.to_string();
    let with = |from: &str, to: &[u8]| {
        let at = text.find(from).unwrap() + from.len();
        [&text.as_bytes()[..at], to, &text.as_bytes()[at..]].concat()
    };
    let mut without_session = input.clone();
    without_session.as_object_mut().unwrap().remove("session_id");
    let mut cases = vec![
        ("bad JSON", with("{", b"nope ")),
        ("truncated", text.as_bytes()[..text.len() - 2].to_vec()),
        ("invalid UTF-8", with("\"session_id\":\"", b"\xff")),
        ("a NUL byte", with("\"session_id\":\"", b"\0")),
        ("10 MB", with("\"session_id\":\"", &vec![b'x'; 10_000_000])),
        ("a missing field", without_session.to_string().into_bytes()),
        ("nothing", Vec::new()),
        ("no object", b"7".to_vec()),
    ];
    if event != "ConfigChange" && GUARDS.contains(&event) {
        for (name, tool, given) in [
            ("no input of the tool", "Bash", Value::Null),
            ("no command", "Bash", json!({ "cmdd": "git push" })),
            ("no path", "Edit", json!({ "old_string": "a" })),
            ("a command that is no text", "Bash", json!({ "command": 7 })),
        ] {
            let mut input = input.clone();
            input["tool_name"] = tool.into();
            input["tool_input"] = given;
            cases.push((name, input.to_string().into_bytes()));
        }
    }
    cases
}

#[track_caller]
fn is_denial(said: Option<&Value>, what: &str) {
    let said = said.unwrap_or_else(|| panic!("{what}: silent")).to_string();
    assert!(said.contains("fault in Verdone") && said.contains("faults.jsonl"), "{what}: {said}");
    assert!(said.contains("\"deny\"") || said.contains("\"block\""), "{what}: {said}");
}

fn faults(world: &World) -> usize {
    world.lines(".verdone/sessions/faults.jsonl").len()
}

#[test]
fn input_that_cannot_be_read_is_denied_in_a_run_and_recorded_everywhere() {
    let world = World::new();
    for event in GUARDS.into_iter().chain(OBSERVERS) {
        for (case, bytes) in broken(&world, event) {
            for mode in MODES {
                let what = format!("{event}, {case}, {mode:?}");
                let before = faults(&world);
                let said = world.send(mode, event, &bytes);
                if mode == Mode::Run && GUARDS.contains(&event) {
                    is_denial(said.as_ref(), &what);
                } else {
                    assert_eq!(said, None, "{what}");
                }
                assert_eq!(faults(&world), before + 1, "{what}: not recorded");
            }
        }
    }
}

#[test]
fn the_event_is_told_from_broken_input_too() {
    let world = World::new();
    for (event, denies) in [("PreToolUse", true), ("PermissionRequest", true), ("PostToolBatch", false), ("Stop", false)] {
        let mut child = world.command(&["hook", "--run"]).spawn().unwrap();
        let text = format!("{{\"session_id\":\"s\",\"hook_event_name\":\"{event}\",");
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert_eq!(finish(child, event).is_some(), denies, "{event}");
    }
}

#[test]
fn broken_files_are_denied_in_a_run_and_left_alone_in_a_session() {
    type Break = fn(&World);
    let breaks: [(&str, Break); 5] = [
        ("sessions is a file", |world| drop(world.write(".verdone/sessions", "x"))),
        ("the session is a file", |world| drop(world.write(".verdone/sessions/s1", "x"))),
        ("events is a folder", |world| drop(world.write(".verdone/sessions/s1/events.jsonl/x", ""))),
        ("the config is broken", |world| drop(world.write(".verdone/config.toml", "[policy]\nof = []\n"))),
        ("the config is a folder", |world| drop(world.write(".verdone/config.toml/x", ""))),
    ];
    for (case, damage) in breaks {
        let world = World::new();
        damage(&world);
        for event in GUARDS.into_iter().chain(OBSERVERS) {
            for mode in MODES {
                let what = format!("{event}, {case}, {mode:?}");
                let said = world.ask(mode, &good(&world, event));
                if mode == Mode::Run && GUARDS.contains(&event) {
                    is_denial(said.as_ref(), &what);
                } else {
                    assert_eq!(said, None, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_memory_that_cannot_be_asked_denies_an_edit_in_a_run() {
    let world = World::new();
    world.write(".verdone/sessions/s1/known", "x");
    let edit =
        world.event("PreToolUse", "Edit", &json!({ "file_path": world.path("a.txt"), "old_string": "", "new_string": "" }));
    is_denial(world.ask(Mode::Run, &edit).as_ref(), "edit");
    assert_eq!(world.ask(Mode::Session, &edit), None);
}

#[test]
fn a_pipe_or_link_among_the_session_files_is_neither_waited_for_nor_written_through() {
    let world = World::new();
    fs::create_dir_all(world.work.join(".verdone/sessions/s1")).unwrap();
    let events = world.work.join(".verdone/sessions/s1/events.jsonl");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &events, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    is_denial(world.ask(Mode::Run, &good(&world, "PreToolUse")).as_ref(), "pipe");
    let faults = world.read(".verdone/sessions/faults.jsonl");
    assert!(faults.contains("the session's files") && !faults.contains("no answer within"), "it waited: {faults}");
    fs::remove_file(&events).unwrap();
    std::os::unix::fs::symlink(world.work.join("a.txt"), &events).unwrap();
    is_denial(world.ask(Mode::Run, &good(&world, "PreToolUse")).as_ref(), "link");
    assert_eq!(world.read("a.txt"), "hello\nworld\n");
}

#[test]
fn a_panic_denies_in_a_run() {
    let mut world = World::new();
    world.set("VERDONE_FAULT", "hook-panic");
    for event in GUARDS {
        is_denial(world.ask(Mode::Run, &good(&world, event)).as_ref(), event);
        assert_eq!(world.ask(Mode::Session, &good(&world, event)), None, "{event}");
    }
    for event in OBSERVERS {
        assert_eq!(world.ask(Mode::Run, &good(&world, event)), None, "{event}");
    }
    assert!(world.read(".verdone/sessions/faults.jsonl").contains("panicked"));
}

#[test]
fn a_config_can_make_a_session_fail_closed_too() {
    let world = World::new();
    world.write(".verdone/config.toml", "[policy]\non_failure = \"deny\"\n");
    is_denial(world.send(Mode::Session, "PreToolUse", b"{ broken").as_ref(), "session");
    assert_eq!(world.send(Mode::Session, "Stop", b"{ broken"), None);
}

#[test]
fn an_open_pipe_keeps_nobody_waiting_and_an_endless_one_ends_at_the_deadline() {
    let world = World::new();
    let whole = good(&world, "PreToolUse").to_string();
    let half = &whole.as_bytes()[..whole.len() - 2];
    let open = |mode: Mode, event: &str, bytes: &[u8]| {
        let mut child = world.start(mode, event);
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(bytes).unwrap();
        pipe.flush().unwrap();
        (child, pipe)
    };
    let (child, pipe) = open(Mode::Run, "PreToolUse", whole.as_bytes());
    let said = finish(child, "PreToolUse").unwrap();
    // At the deadline it would have denied.
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "allow");
    drop(pipe);
    // All four in parallel: each waits for the deadline.
    let guard = open(Mode::Run, "PreToolUse", half);
    let session = open(Mode::Session, "PreToolUse", half);
    let observer = open(Mode::Run, "Stop", half);
    is_denial(finish(guard.0, "PreToolUse").as_ref(), "deadline");
    assert_eq!(finish(session.0, "PreToolUse"), None);
    assert_eq!(finish(observer.0, "Stop"), None);
}

#[test]
fn hostile_session_ids_stay_inside_their_folder() {
    let world = World::new();
    let long = "../".repeat(3_000);
    for id in ["../x", "", ".", "..", "/etc/x", "a\0b", "a\nb", long.as_str()] {
        let mut input = good(&world, "PreToolUse");
        input["session_id"] = id.into();
        let said = world.ask(Mode::Run, &input).unwrap();
        assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "allow", "{id:?}");
    }
    let home: Vec<_> = fs::read_dir(world.work.join(".verdone")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(home, ["sessions"]);
    // Eight sessions and the file that makes git ignore them.
    assert_eq!(fs::read_dir(world.work.join(".verdone/sessions")).unwrap().count(), 9);
}

#[test]
fn wrong_arguments_deny_in_a_run() {
    let world = World::new();
    let ask = |arguments: &[&str]| {
        let mut child = world.command(arguments).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(good(&world, "PreToolUse").to_string().as_bytes());
        finish(child, "PreToolUse")
    };
    is_denial(ask(&["hook", "PreToolUse", "--run", "x"]).as_ref(), "a word too many");
    is_denial(ask(&["hook", "--run", "--rnu"]).as_ref(), "an unknown option");
    assert_eq!(ask(&["hook", "PreToolUse", "x"]), None);
}

#[test]
fn a_denial_that_cannot_be_written_blocks_by_its_exit_code_in_a_run() {
    let world = World::new();
    let ended = |arguments: &[&str], event: &str, command: &str, out: &str| {
        let mut input = good(&world, event);
        input["tool_input"] = json!({ "command": command });
        let out = fs::OpenOptions::new().write(true).open(out).unwrap();
        let mut child = world.command(arguments).stdout(Stdio::from(out)).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(input.to_string().as_bytes());
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // Rust replaces a closed standard output with the null device before `main`.
    for out in ["/dev/full", "/dev/null"] {
        for event in ["PreToolUse", "PermissionRequest"] {
            let (code, reason) = ended(&["hook", event, "--run"], event, "git push", out);
            assert!(code == Some(2) && reason.contains("git-push"), "{event} {out}: {code:?} {reason}");
            let allowed = ended(&["hook", event, "--run"], event, "ls", out);
            assert_eq!(allowed, (Some(0), String::new()), "{event} {out}");
        }
        let told = ended(&["hook", "PostToolUse", "--run"], "PostToolUse", "git push", out);
        assert_eq!(told, (Some(0), String::new()), "{out}");
        let own = ended(&["hook", "PreToolUse"], "PreToolUse", "git push", out);
        assert_eq!(own, (Some(0), String::new()), "{out}");
    }
}

#[test]
fn an_input_about_another_event_than_the_guard_was_started_for_is_denied_in_a_run() {
    let world = World::new();
    for (asked, given) in [("PreToolUse", "pretooluse"), ("PreToolUse", "Stop"), ("PermissionRequest", "PermissionRequested")] {
        let mut input = good(&world, asked);
        input["hook_event_name"] = given.into();
        for bytes in [input.to_string(), format!("{}!", &input.to_string()[..60])] {
            let before = faults(&world);
            is_denial(world.send(Mode::Run, asked, bytes.as_bytes()).as_ref(), given);
            assert_eq!(world.send(Mode::Session, asked, bytes.as_bytes()), None, "{given}");
            assert_eq!(faults(&world), before + 2, "{given}");
        }
    }
}

#[test]
fn a_folder_of_a_session_that_is_a_link_is_not_written_through() {
    type Link = fn(&World) -> std::path::PathBuf;
    let links: [(&str, Link); 3] = [
        ("the sessions", |world| world.work.join(".verdone/sessions")),
        ("the session", |world| world.work.join(".verdone/sessions/s1")),
        ("its memory", |world| world.work.join(".verdone/sessions/s1/known")),
    ];
    for (case, link) in links {
        let world = World::new();
        let (link, elsewhere) = (link(&world), world.root.join("elsewhere"));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        let read = world.event("PreToolUse", "Read", &json!({ "file_path": world.path("a.txt") }));
        is_denial(world.ask(Mode::Run, &read).as_ref(), case);
        assert_eq!(world.ask(Mode::Session, &read), None, "{case}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{case}");
    }
}
