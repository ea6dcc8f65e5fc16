//! Every limit ends the run with a specific finish and exit code.

use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, TWO, World, always, text};

fn world(plan: &str, script: &str, limits: &str) -> World {
    World::with(plan, script, &Settings { limits, ..Settings::default() })
}

#[test]
fn the_number_of_iterations_is_a_limit() {
    let world = World::new(TWO, HONEST);
    world.run_with(&["--max-iterations", "1"], 3);
    assert_eq!(world.finish(), "max_iterations");
    assert_eq!(world.subjects().len(), 2);
    world.run(0);
    assert_eq!(world.subjects().len(), 3);
}

#[test]
fn a_turn_that_takes_too_long_is_ended_and_the_next_is_told() {
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"x\" }, { hang = true }]\n[[turn]]\nsteps = [{ create = \"a\" }]\n";
    let world = world(ONE, script, "turn_time = \"300ms\"");
    world.run(0);
    assert!(world.all("turn_ended")[0]["outcome"].to_string().contains("timed_out"));
    assert!(world.prompt(2).contains("300ms"), "{}", world.prompt(2));
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_silent_turn_is_ended() {
    let world = world(ONE, &always("{ say = \"thinking\" }, { hang = true }"), "idle_time = \"200ms\"\nattempts = 1\nturns = 1");
    world.run(4);
    assert!(world.last("turn_ended")["outcome"].to_string().contains("idle"));
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn the_whole_run_has_a_time_that_no_turn_outlasts() {
    let world = world(ONE, &always("{ create = \"x\" }, { hang = true }"), "total_time = \"3s\"");
    world.run(3);
    assert_eq!(world.finish(), "timeout");
    assert!(world.tree_files(&world.kept()).contains(&"x".to_owned()));
    world.assert_clean();
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn failures_in_a_row_stall_the_run() {
    let world = world(TWO, &always("{ create = \"x\" }"), "turns = 1\nconsecutive_failures = 3");
    world.run(4);
    assert_eq!(world.finish(), "stalled");
    assert_eq!(world.all("story_selected").len(), 3);
}

#[test]
fn iterations_that_change_nothing_end_the_run() {
    let world = world(TWO, &always("{ claim = \"done\" }"), "turns = 1");
    world.run(4);
    assert_eq!(world.finish(), "no_changes");
    assert_eq!(world.all("story_selected").len(), 3);
}

#[test]
fn three_crashes_in_a_row_are_an_error() {
    let world = world(ONE, &always("{ create = \"x\" }, { crash = 9 }"), "");
    world.run(1);
    assert_eq!(world.finish(), "error");
    assert_eq!(world.all("turn_ended").len(), 3);
    assert!(!world.has("x"));
    world.assert_clean();
}

#[test]
fn a_crash_is_never_done_even_with_the_work_there() {
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"a\" }, { crash = 1 }]\n[[turn]]\nsteps = [{ say = \"checking\" }]\n";
    let world = world(ONE, script, "");
    world.run(0);
    assert_eq!(world.all("turn_ended").len(), 2, "the crashed turn was not taken for an answer");
}

#[test]
fn an_agent_that_cannot_be_started_ends_the_run_at_once() {
    for code in ["126", "127"] {
        let world = World::new(ONE, HONEST);
        world.run_with(&["--agent-command", &format!("echo x > x; exit {code}")], 2);
        assert_eq!(world.all("turn_ended").len(), 1, "{code}");
        assert!(!world.has("x"), "the tree is restored");
        assert_eq!(world.plan(), ONE);
        world.assert_clean();
    }
}

#[test]
fn a_flood_of_output_is_cut_and_does_no_harm() {
    let world = world(ONE, &always("{ flood = 3000000 }, { create = \"a\" }"), "output_bytes = 10000");
    world.run_with(&["--quiet"], 0);
    let output = std::fs::metadata(world.run_dir().join(text(&world.last("turn_ended")["output"]))).unwrap();
    assert!(output.len() < 20_000, "{}", output.len());
}

#[test]
fn an_agent_that_ignores_term_is_killed_and_the_run_goes_on() {
    let script =
        "[[turn]]\nturn = 1\nsteps = [{ ignore_term = true }, { hang = true }]\n[[turn]]\nsteps = [{ create = \"a\" }]\n";
    let world = world(ONE, script, "turn_time = \"300ms\"");
    world.run(0);
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn what_an_agent_leaves_running_is_ended_before_the_checks() {
    let script = always(
        "{ spawn_daemon = \"while :; do echo evil >> a; sleep 0.05; done\" }, { run = \"while ! test -s a; do sleep 0.01; done\" }",
    );
    let world = world(ONE, &script, "");
    world.run(0);
    let text = world.sandbox.read("a");
    assert_eq!(world.git(&["show", "HEAD:a"]), text.trim_end(), "nobody wrote into the committed file");
    world.assert_clean();
    world.sandbox.assert_no_survivors(PATIENCE);
}
