//! What was green before the work proves nothing, and what was red before the work is not the agent's fault.

use crate::run_loop::world::{HONEST, ONE, Settings, World, always, text};

#[test]
fn a_check_that_was_green_before_makes_the_story_untested() {
    let world = World::new(&ONE.replace("test -f a", "true"), HONEST);
    let output = world.run(0);
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "untested");
    assert!(output.stdout.contains("untested"), "{}", output.stdout);
}

#[test]
fn accept_takes_an_already_true_story_without_a_turn() {
    let settings = Settings { top: "red_check = \"accept\"", ..Settings::default() };
    let world = World::with(&ONE.replace("test -f a", "true"), HONEST, &settings);
    world.run(0);
    assert_eq!(world.all("turn_started").len(), 0);
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md");
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "untested");
}

#[test]
fn refuse_blocks_such_a_story() {
    let settings = Settings { top: "red_check = \"refuse\"", ..Settings::default() };
    let world = World::with(&ONE.replace("test -f a", "true"), HONEST, &settings);
    world.run(4);
    assert_eq!(world.all("turn_started").len(), 0);
    assert_eq!(world.all("story_selected").len(), 1, "it is not tried again");
    assert_eq!(world.subjects(), ["initial"]);
}

#[test]
fn a_check_that_could_not_run_before_is_no_red_proof() {
    let plan = ONE.replace("test -f a", "bin/check-it");
    let world = World::new(&plan, &always("{ create = \"bin/check-it\", text = \"#!/bin/sh\\nexit 0\\n\", executable = true }"));
    world.run(0);
    assert_eq!(text(&world.last("red_checked")["red"]), "unknown");
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "untested");
}

#[test]
fn a_check_that_still_cannot_run_is_never_a_pass() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world = World::with(&ONE.replace("test -f a", "bin/check-it"), HONEST, &settings);
    world.run(4);
    assert_eq!(world.subjects(), ["initial"]);
}

#[test]
fn a_red_gate_before_any_work_stops_the_run_unless_told() {
    let world = World::new(ONE, &always("{ create = \"a\" }, { create = \"g\" }"));
    let gate = "test -f g || { echo the-gate-is-red; exit 1; }";
    let output = world.run_with(&["--check", gate], 4);
    assert!(output.stdout.contains("--red-baseline"), "{}", output.stdout);
    assert_eq!(world.all("story_selected").len(), 0);
    world.run_with(&["--check", gate, "--red-baseline"], 0);
    assert!(world.prompt(1).contains("\nthe-gate-is-red"), "{}", world.prompt(1));
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified");
}
