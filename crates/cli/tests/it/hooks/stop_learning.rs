//! What keeps blocking sessions becomes a lesson for the next ones, unless the user overrides it.

use serde_json::json;

use crate::hooks::stop_gate::{Said, stop_with, verdone, world};
use crate::hooks::world::{Mode, World};

const GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"sh check.sh\"\n";
const FILE: &str = ".verdone/guardrails.md";
const LINE: &str = "- Sessions stopped before this check passed: `tests`\n";

fn begin_loop(world: &World, session: &str) {
    verdone(world, &["loop", "start", "--session", session, "Build it"]);
}

/// A Stop whose gate fails on other files than before.
#[track_caller]
fn blocked(world: &World, session: &str, round: u32) {
    world.write("done.txt", "broken\n");
    world.write("more.txt", &format!("{session} {round}"));
    stop_with(world, session, &json!({})).blocked("The check `tests` failed");
}

fn greeting(world: &World, session: &str) -> String {
    let event = json!({ "session_id": session, "cwd": world.work, "hook_event_name": "SessionStart", "source": "startup" });
    world.ask(Mode::Session, &event).map(|answer| answer.to_string()).unwrap_or_default()
}

/// The page without its line breaks.
fn page(world: &World) -> String {
    let page = String::from_utf8(verdone(world, &["guardrails"]).stdout).unwrap();
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_cause_that_blocked_three_times_across_sessions_becomes_a_lesson() {
    let world = world(GATE, &[(FILE, "Mine.\n")]);
    begin_loop(&world, "s1");
    blocked(&world, "s1", 1);
    blocked(&world, "s1", 2);
    assert_eq!(world.read(FILE), "Mine.\n");
    assert!(!greeting(&world, "new-1").contains("Sessions stopped"));
    complete(&world, "s1");

    begin_loop(&world, "s2");
    blocked(&world, "s2", 1);
    assert_eq!(world.read(FILE), format!("Mine.\n{LINE}"));
    assert!(greeting(&world, "new-2").contains(LINE.trim_end()), "{}", greeting(&world, "new-2"));
    let page = page(&world);
    assert!(page.contains("from the Stop gate: 3 blocks in 2 sessions; not used yet"), "{page}");
}

#[test]
fn a_cause_that_the_user_overrides_is_dropped_and_does_not_come_back() {
    for by_pause in [true, false] {
        let world = world(GATE, &[]);
        for session in ["s1", "s2", "s3"] {
            begin_loop(&world, session);
            blocked(&world, session, 1);
        }
        assert_eq!(world.read(FILE), LINE);
        if by_pause {
            world.write(".verdone/pause", "");
            assert!(!matches!(stop_with(&world, "s3", &json!({})), Said::Block(_)));
            std::fs::remove_file(world.work.join(".verdone/pause")).unwrap();
        } else {
            verdone(&world, &["loop", "stop", "--session", "s3"]);
        }
        assert_eq!(world.read(FILE), "", "by pause: {by_pause}");
        for session in ["s4", "s5", "s6"] {
            begin_loop(&world, session);
            blocked(&world, session, 1);
        }
        assert_eq!(world.read(FILE), "");
        let page = page(&world);
        assert!(page.contains("you overrode it, it does not return"), "{page}");
    }
}

/// The work of the session passes.
#[track_caller]
fn complete(world: &World, session: &str) {
    world.write("done.txt", "1\n");
    stop_with(world, session, &json!({})).let_go("COMPLETE");
}
