//! The state files of other loops, as a session's loop keeps them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::hooks::stop_gate::{arm, stop, verdone, world};
use crate::hooks::world::World;

const GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"! grep -q broken done.txt\"\n";
const ALWAYS: &str = "[done]\nralph_state = \"always\"\n";

fn folder(world: &World) -> PathBuf {
    world.root.join(".ralph/state/s1")
}

fn state(world: &World, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder(world).join(name)).unwrap()).unwrap()
}

#[test]
fn a_loop_keeps_the_state_of_its_work_from_stop_to_stop() {
    let world = world(&format!("{ALWAYS}{GATE}"), &[]);
    arm(&world, &["Fix it", "--max-iterations", "7"]);
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The check `tests` failed");
    let found = state(&world, "loop.json");
    let part = |name: &str| found[name].clone();
    assert_eq!([part("task"), part("iteration"), part("max_iterations")], [json!("Fix it"), json!(1), json!(7)]);
    assert_eq!([part("validation_result"), part("verified_done")], [json!("failed"), json!(false)]);
    assert!(part("last_error").as_str().unwrap().contains("the check `tests` failed"), "{found}");
    assert_eq!(state(&world, "quality-gate.json")["last_result"], "failed");
    let orchestrator = state(&world, "orchestrator.json");
    assert_eq!(
        (&orchestrator["verified_done"], &orchestrator["conditions"]["correctness_passed"]),
        (&json!(false), &json!(false))
    );
    world.write("more.txt", "1\n");
    stop(&world).blocked("The check `tests` failed");
    assert_eq!(state(&world, "loop.json")["iteration"], 2);
    world.command(&["-C", &world.path(""), "done", "--session", "s1"]).output().unwrap();
    let found = state(&world, "loop.json");
    assert_eq!((&found["iteration"], &found["max_iterations"]), (&json!(2), &json!(7)), "`verdone done` knows the loop");
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE");
    let found = state(&world, "loop.json");
    assert_eq!((&found["verified_done"], &found["validation_result"]), (&json!(true), &json!("passed")));
    assert_eq!(state(&world, "quality-gate.json")["last_result"], "passed");
    assert_eq!(state(&world, "orchestrator.json")["verified_done"], true);
}

#[test]
fn the_state_is_written_only_where_its_folder_is_or_the_settings_say_so() {
    for (config, there, written) in
        [("", false, false), ("", true, true), (ALWAYS, false, true), ("[done]\nralph_state = \"never\"\n", true, false)]
    {
        let world = world(&format!("{config}{GATE}"), &[]);
        if there {
            fs::create_dir_all(world.root.join(".ralph/state")).unwrap();
        }
        arm(&world, &["Fix it"]);
        world.write("done.txt", "broken\n");
        stop(&world).blocked("The check `tests` failed");
        assert_eq!(folder(&world).join("loop.json").exists(), written, "{config} {there}");
        assert_eq!(folder(&world).join("orchestrator.json").exists(), written, "{config} {there}");
    }
}

#[test]
fn a_stopped_loop_leaves_no_file_that_says_it_is_active() {
    let world = world(&format!("{ALWAYS}{GATE}"), &[]);
    arm(&world, &["Fix it"]);
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The check `tests` failed");
    assert!(folder(&world).join("loop.json").exists());
    verdone(&world, &["loop", "stop", "--session", "s1"]);
    assert!(!folder(&world).join("loop.json").exists());
}
