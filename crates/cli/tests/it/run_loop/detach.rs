//! A run in the background, and the way back to it.

use verdone_testkit::{Running, Signal};

use crate::run_loop::world::{ONE, PATIENCE, VERDONE, World, always, text};

/// Says something, waits until the test lets it continue, and says something else.
const STEPS: &str = "{ say = \"waiting\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }, { say = \"continuing\" }, { create = \"a\" }";

fn let_go(world: &World) {
    world.sandbox.write("../tmp/go", "");
}

fn attach(world: &World) -> Running {
    world.sandbox.spawn(VERDONE, ["attach"])
}

#[test]
fn a_detached_run_is_started_watched_left_and_watched_again() {
    let world = World::new(ONE, &always(STEPS));
    let started = world.sandbox.verdone(VERDONE, ["run", "--detach"]);
    started.assert_code(0);
    let id = text(&world.events()[0]["run"]);
    assert!(started.stdout.starts_with(&format!("Run {id} is running in the background.\n")), "{}", started.transcript());
    for command in ["verdone attach", "verdone status", "verdone stop"] {
        assert!(started.stdout.contains(command), "{}", started.stdout);
    }

    let watcher = attach(&world);
    watcher.wait_for("waiting", PATIENCE);
    watcher.signal(Signal::INT);
    let left = watcher.wait(PATIENCE);
    left.assert_code(0);
    assert!(left.stderr.contains(&format!("Run {id} continues.")), "{}", left.transcript());
    assert_eq!(world.all("stop_requested").len(), 0);

    let watcher = attach(&world);
    watcher.wait_for("waiting", PATIENCE);
    let_go(&world);
    let seen = watcher.wait(PATIENCE);
    seen.assert_code(0);
    let at = |words: &str| seen.stdout.find(words).unwrap_or_else(|| panic!("no {words:?} in {}", seen.stdout));
    assert!(at("waiting") < at("continuing") && at("continuing") < at("Agent stopped"), "{}", seen.stdout);
    assert!(seen.stdout.contains("1 verified"), "{}", seen.stdout);
    assert_eq!(world.finish(), "complete");
    assert!(!world.run_dir().join("live").exists(), "nobody watches a run that has ended");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_detached_run_has_a_session_without_a_terminal_and_can_be_stopped() {
    let world = World::new(ONE, &always(STEPS));
    world.sandbox.verdone(VERDONE, ["run", "--detach"]).assert_code(0);
    let watcher = attach(&world);
    watcher.wait_for("waiting", PATIENCE);
    let background = world.sandbox.survivors().into_iter().find(|process| process.command.contains("--detached")).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", background.pid)).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!(fields[3], background.pid.to_string(), "the leader of a session: {stat}");
    assert_eq!(fields[4], "0", "no terminal: {stat}");
    world.verdone(&["stop"]).assert_code(0);
    watcher.wait(PATIENCE).assert_code(0);
    assert_eq!(world.finish(), "manual");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_run_that_cannot_start_says_why_and_ends_with_its_code() {
    let world = World::new(ONE, &always(STEPS));
    let refused = world.sandbox.verdone(VERDONE, ["run", "--detach", "--story", "US-999"]);
    let expected = world.sandbox.verdone(VERDONE, ["run", "--story", "US-999"]);
    refused.assert_code(2);
    assert_eq!(refused.stdout, "");
    assert_eq!(refused.stderr, expected.stderr);
    assert!(refused.stderr.contains("US-999"), "{}", refused.stderr);
}

#[test]
fn a_detached_run_that_dies_leaves_its_messages_and_status_names_them() {
    let world = World::new(ONE, &always(STEPS));
    let fault = "VERDONE_FAULT=fail=ENOSPC@journal-append:3+";
    world.sandbox.run("env", [fault, VERDONE, "run", "--detach"]).assert_code(0);
    world.sandbox.assert_no_survivors(PATIENCE);
    let file = world.run_dir().join("output.txt");
    let messages = std::fs::read_to_string(&file).unwrap();
    assert!(messages.contains("error: ") && messages.contains("No space left"), "{messages}");
    let status = world.verdone(&["status"]);
    assert!(status.stderr.contains(&format!("its last messages are in {}", file.display())), "{}", status.transcript());
}
