//! How long one turn of a session with a loop may take.

use std::fs;

use serde_json::json;

use crate::hooks::stop_gate::{arm, kept, stop, world};
use crate::hooks::world::{Mode, Verdict, World};

const GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"false\"\n";

fn prompt(world: &World) {
    let input = json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": "UserPromptSubmit", "prompt": "Do it" });
    assert_eq!(world.ask(Mode::Session, &input), None);
}

fn read(world: &World) -> Verdict {
    world.judge(Mode::Session, "Read", &json!({ "file_path": world.path("README.md") }))
}

#[test]
fn after_the_time_of_a_turn_tools_are_denied_until_the_next_turn() {
    let world = world(&format!("[stop]\nturn_time = \"1h\"\n{GATE}"), &[]);
    arm(&world, &["Do it"]);
    assert_eq!(read(&world), Verdict::Silent, "no turn has begun");
    prompt(&world);
    assert_eq!(read(&world), Verdict::Silent);
    let end_time = || fs::write(kept(&world, "turn-deadline"), "1").unwrap();
    end_time();
    let Verdict::Deny(reason) = read(&world) else { panic!("not denied") };
    assert!(reason.contains("`turn_time` in [stop]"), "{reason}");
    let denied = world.records("decided").pop().unwrap();
    assert_eq!((&denied["verdict"], &denied["rule"]), (&json!("deny"), &json!("turn_time")));
    world.write("done.txt", "1\n");
    stop(&world).blocked("The check `tests` failed");
    assert_eq!(read(&world), Verdict::Silent, "the next turn has its own time");
    end_time();
    prompt(&world);
    assert_eq!(read(&world), Verdict::Silent, "and so has a turn that the user begins");
    end_time();
    world.write(".verdone/config.toml", GATE);
    assert!(matches!(read(&world), Verdict::Deny(_)), "settings are fixed when the loop starts");
}

#[test]
fn without_a_limit_or_a_loop_no_turn_has_a_deadline() {
    for (config, loops) in [(GATE.to_owned(), true), (format!("[stop]\nturn_time = \"1h\"\n{GATE}"), false)] {
        let world = world(&config, &[]);
        if loops {
            arm(&world, &["Do it"]);
        }
        prompt(&world);
        assert_eq!(read(&world), Verdict::Silent);
        assert!(!loops || !kept(&world, "turn-deadline").exists());
    }
}
