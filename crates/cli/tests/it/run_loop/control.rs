//! What a user can request from another terminal during a run.

use crate::run_loop::world::{HONEST, ONE, PATIENCE, TWO, World, always};

/// Waits in the first turn of US-001 until the test lets it continue.
const WAITS: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ say = \"waiting\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }, { create = \"a\" }]\n\
                     [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\" }]\n";

fn let_go(world: &World) {
    world.sandbox.write("../tmp/go", "");
}

#[test]
fn stop_after_story_finishes_the_story_in_work_and_begins_no_other() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["stop", "--after-story"]).assert_code(0);
    let_go(&world);
    run.wait(PATIENCE).assert_code(130);
    assert_eq!(world.finish(), "manual");
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
    assert!(!world.has("b"));
    world.run(0);
    assert_eq!(world.subjects()[0], "feat(US-002): Write b");
}

#[test]
fn stop_ends_the_turn_at_once_and_keeps_the_attempt() {
    let world = World::new(ONE, &always("{ create = \"half\" }, { say = \"waiting\" }, { hang = true }"));
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["stop"]).assert_code(0);
    run.wait(PATIENCE).assert_code(130);
    world.sandbox.assert_no_survivors(PATIENCE);
    world.assert_clean();
    assert!(world.tree_files(&world.kept()).contains(&"half".to_owned()));
}

#[test]
fn a_paused_run_begins_nothing_new_until_it_may() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["pause"]).assert_code(0);
    let_go(&world);
    run.wait_for("Requested: pause", PATIENCE);
    run.wait_for("Agent stopped", PATIENCE);
    assert!(!run.has_ended());
    assert_eq!(world.all("verified").len(), 0, "the verification waits too");
    world.verdone(&["resume"]).assert_code(0);
    run.wait(PATIENCE).assert_code(0);
    assert_eq!(world.subjects().len(), 3);
}

#[test]
fn a_paused_run_can_still_be_stopped() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["pause"]).assert_code(0);
    let_go(&world);
    run.wait_for("Requested: pause", PATIENCE);
    run.wait_for("Agent stopped", PATIENCE);
    world.verdone(&["stop"]).assert_code(0);
    run.wait(PATIENCE).assert_code(130);
    world.assert_clean();
}

#[test]
fn a_skipped_story_gets_no_further_attempt_and_a_retried_one_does() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["skip", "US-002"]).assert_code(0);
    let_go(&world);
    run.wait(PATIENCE).assert_code(4);
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
    assert_eq!(world.finish(), "blocked");

    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["skip", "US-002"]).assert_code(0);
    world.verdone(&["retry", "US-002"]).assert_code(0);
    let_go(&world);
    run.wait(PATIENCE).assert_code(0);
    assert_eq!(world.subjects()[0], "feat(US-002): Write b");
}

#[test]
fn a_note_stands_in_the_next_prompt_and_only_there() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["note", "prefer {{ tabs }}"]).assert_code(0);
    let_go(&world);
    run.wait(PATIENCE).assert_code(0);
    assert!(!world.prompt(1).contains("prefer"), "{}", world.prompt(1));
    assert!(world.prompt(2).contains("## From the user, just now\n\n- prefer {{ tabs }}\n"), "{}", world.prompt(2));
}

#[test]
fn attach_shows_the_run_and_ends_with_it() {
    let world = World::new(ONE, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    let watcher = world.sandbox.spawn(crate::run_loop::world::VERDONE, ["attach"]);
    watcher.wait_for("Story 1 of 1", PATIENCE);
    let_go(&world);
    run.wait(PATIENCE).assert_code(0);
    let seen = watcher.wait(PATIENCE);
    seen.assert_code(0);
    assert!(seen.stdout.contains("1 verified"), "{}", seen.stdout);
}

#[test]
fn without_a_run_there_is_nobody_to_ask() {
    let world = World::new(ONE, HONEST);
    for command in [
        &["stop"][..],
        &["stop", "--after-story"],
        &["pause"],
        &["resume"],
        &["skip", "X"],
        &["retry", "X"],
        &["note", "x"],
        &["attach"],
    ] {
        world.verdone(command).assert_code(2);
    }
    world.run(0);
    for command in [&["stop"][..], &["pause"], &["note", "x"], &["attach"]] {
        let output = world.verdone(command);
        output.assert_code(2);
        assert!(output.stderr.contains("no run is active here"), "{}", output.stderr);
    }
}

#[test]
fn a_slip_of_the_pen_is_not_taken_for_a_story_and_a_note_has_an_end() {
    let world = World::new(ONE, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    for command in [["skip", "us-9"], ["skip", ""], ["retry", "US-99"], ["note", " "], ["note", &"y".repeat(20_000)]] {
        world.verdone(&command).assert_code(2);
    }
    let_go(&world);
    run.wait(PATIENCE).assert_code(0);
    assert_eq!(world.all("asked").len(), 0);
}

#[test]
fn the_agent_may_not_speak_to_its_own_run() {
    let steps = format!("{{ run = \"{} pause; echo said $?\" }}, {{ create = \"a\" }}", crate::run_loop::world::VERDONE);
    let world = World::new(ONE, &always(&steps));
    let output = world.run(0);
    assert!(output.stdout.contains("said 2"), "{}", output.stdout);
    assert_eq!(world.all("asked").len(), 0);
}
