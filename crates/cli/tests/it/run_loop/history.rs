//! Earlier runs: their list, and the commands that look back at one of them.

use serde_json::Value;
use verdone_testkit::Output;

use crate::run_loop::world::{HONEST, TWO, World};

/// A run that does all the work, then one that finds nothing to do.
fn two_runs() -> World {
    let world = World::new(TWO, HONEST);
    world.run(0);
    world.run(0);
    world
}

fn ids(world: &World) -> Vec<String> {
    let listed: Value = serde_json::from_str(&world.verdone(&["runs", "--json"]).stdout).unwrap();
    listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_says(output: &Output, words: &str) {
    output.assert_code(0);
    assert!(output.stdout.contains(words), "{}", output.transcript());
}

#[test]
fn runs_are_listed_newest_first_with_their_results() {
    let world = two_runs();
    let page = world.verdone(&["runs"]);
    page.assert_code(0);
    let lines: Vec<&str> = page.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", page.stdout);
    assert_eq!((lines[1], lines[3]), ("  no story was worked on", "  2 verified; 2 commits, landed"));
    let ids = ids(&world);
    assert!(lines[0].starts_with(&ids[0]) && lines[2].starts_with(&ids[1]) && ids[0] > ids[1], "{}", page.stdout);
    let one = world.verdone(&["runs", "--limit", "1"]);
    assert!(one.stderr.contains("1 older; list them with --limit 2"), "{}", one.transcript());
}

#[test]
fn a_run_without_work_hides_no_earlier_one() {
    let world = two_runs();
    assert_says(&world.verdone(&["show"]), "US-002 Write b");
    assert_says(&world.verdone(&["show", "us-2"]), "US-002");
    assert_says(&world.verdone(&["report"]), "US-001");
    assert_says(&world.verdone(&["undo", "--list"]), "US-002");
}

#[test]
fn a_command_looks_at_the_run_that_is_named() {
    let world = two_runs();
    let ids = ids(&world);
    for name in ["last-1", &ids[1], &ids[1][ids[1].len() - 4..]] {
        assert_says(&world.verdone(&["status", "--run", name]), "2 verified");
        assert_says(&world.verdone(&["log", "--run", name]), "US-001");
        assert_says(&world.verdone(&["show", "--run", name]), &ids[1]);
    }
    let unknown = world.verdone(&["show", "--run", "nothing"]);
    unknown.assert_code(2);
    assert!(unknown.stderr.contains("no such run here") && unknown.stderr.contains("verdone runs"), "{}", unknown.stderr);
    assert_says(&world.verdone(&["show", "--run", "last"]), "no story was worked on");
}

#[test]
fn one_story_is_undone_if_nothing_unlanded_came_after_it() {
    let world = two_runs();
    assert_says(&world.verdone(&["undo", "US-1"]), "US-001 (reverted by ");
    assert!(!world.has("a") && world.has("b"));
    let again = world.verdone(&["undo", "US-001"]);
    again.assert_code(2);
    assert!(again.stderr.contains("no commit of US-001 can be undone"), "{}", again.stderr);
    assert_eq!(world.verdone(&["undo", "--list"]).stdout.lines().count(), 1);
    assert_says(&world.verdone(&["undo"]), "US-002 (reverted by ");
}

#[test]
fn an_unlanded_story_in_the_middle_is_not_undone() {
    let world = crate::run_loop::land::world(TWO, HONEST, "ask");
    world.run(0);
    let refused = world.verdone(&["undo", "US-001"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("other stories of the run were committed after it: US-002"), "{}", refused.stderr);
}
