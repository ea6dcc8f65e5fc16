//! The state files of other loops, as a session's loop keeps them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::hooks::stop_gate::{arm, stop, verdone, world};
use crate::hooks::world::{Mode, World};

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

#[test]
fn each_claim_and_each_question_whether_it_is_done_renews_the_phase() {
    let config = "[done]\nprofile = \"orchestrator\"\nralph_state = \"always\"\ncomplexity = 3\n";
    let world = world(&format!("{config}{GATE}"), &[("PLAN.md", "- [ ] US-001: Build it\n  - Question: Which one?\n")]);
    world.begin(Mode::Session);
    let done = || world.command(&["-C", &world.path(""), "done", "--session", "s1"]).output().unwrap();
    let claim = |name: &str| verdone(&world, &["claim", name, "--note", "because", "--session", "s1"]);
    let orchestrator = || {
        let state = state(&world, "orchestrator.json");
        (state["phase"].clone(), state["conditions"]["retrospective_done"].clone(), state["task"].clone())
    };
    assert!(!folder(&world).exists(), "no phase has ended yet");
    done();
    assert_eq!(orchestrator(), (json!("planning"), json!(false), json!("Build it")));
    claim("retrospective_done");
    assert_eq!(orchestrator(), (json!("planning"), json!(true), json!("Build it")), "the claim itself renews it");
    world.write("PLAN.md", "- [ ] US-001: Build it\n  - Question: Which one?\n  - Answer: This one.\n");
    verdone(&world, &["plan", "approve", "--yes"]);
    claim("retrospective_done");
    assert_eq!(orchestrator().0, "implementation");
    assert_eq!(state(&world, "orchestrator.json")["verified_done"], false);
}

#[test]
fn a_claim_never_changes_the_state_of_another_tool() {
    let world = world(&format!("{ALWAYS}{GATE}"), &[]);
    world.begin(Mode::Session);
    let foreign = r#"{"verified_done": false, "phase": "theirs"}"#;
    fs::create_dir_all(folder(&world)).unwrap();
    fs::write(folder(&world).join("orchestrator.json"), foreign).unwrap();
    let claim = ["-C", &world.path(""), "claim", "retrospective_done", "--note", "because", "--session", "s1"];
    let output = world.command(&claim).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("another tool owns them: orchestrator.json"), "{said}");
    assert_eq!(fs::read_to_string(folder(&world).join("orchestrator.json")).unwrap(), foreign);
}
