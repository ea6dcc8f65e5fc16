//! Requests from another terminal, from the moment they are sent until they take effect.

use std::process::Stdio;

use serde_json::{Value, json};
use verdone_testkit::Output;

use crate::run_loop::world::{ONE, PATIENCE, TWO, VERDONE, World, always, text};

/// Waits in the first turn of US-001 until the test lets it continue.
const WAITS: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ say = \"waiting\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }, { create = \"a\" }]\n\
                     [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\" }]\n";
/// Never ends its turn for US-001.
const HANGS: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"half\" }, { say = \"waiting\" }, { hang = true }]\n\
                     [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\" }]\n";

fn let_go(world: &World) {
    world.sandbox.write("../tmp/go", "");
}

fn run_id(world: &World) -> String {
    text(&world.events()[0]["run"])
}

fn status(world: &World) -> String {
    let output = world.verdone(&["status"]);
    output.assert_code(0);
    output.stdout
}

fn pending(world: &World) -> Value {
    let output = world.verdone(&["status", "--json"]);
    output.assert_code(0);
    serde_json::from_str::<Value>(&output.stdout).unwrap()["pending"].clone()
}

#[track_caller]
fn assert_says(output: &Output, expected: &str) {
    output.assert_code(0);
    assert!(output.stdout.contains(expected), "{}", output.transcript());
}

#[test]
fn every_request_works_in_a_subdirectory_and_names_the_run() {
    let world = World::new(TWO, WAITS);
    std::fs::create_dir_all(world.sandbox.path("src/deep")).unwrap();
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    let id = run_id(&world);
    let below = |arguments: &[&str]| {
        let mut command = world.sandbox.command(VERDONE);
        command.args(arguments).current_dir(world.sandbox.path("src/deep")).stdin(Stdio::null());
        command
    };
    let attached = below(&["attach"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for arguments in [
        &["status"][..],
        &["pause"],
        &["resume"],
        &["note", "use tabs"],
        &["skip", "US-002"],
        &["retry", "US-002"],
        &["stop", "--after-story"],
        &["stop"],
    ] {
        let output = below(arguments).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains(&id), "{arguments:?}: {said}");
    }
    run.wait(PATIENCE).assert_code(130);
    let attached = attached.wait_with_output().unwrap();
    assert!(attached.status.success());
    assert!(String::from_utf8_lossy(&attached.stderr).contains(&id), "{}", String::from_utf8_lossy(&attached.stderr));
}

#[test]
fn a_pause_is_pending_until_the_turn_has_ended() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    assert_eq!(pending(&world), json!([]));
    world.verdone(&["pause"]).assert_code(0);
    assert_eq!(pending(&world), json!(["pause"]));
    assert!(status(&world).contains("Pending  pause after this turn"), "{}", status(&world));
    run.wait_for("Requested: pause", PATIENCE);
    assert_eq!(pending(&world), json!(["pause"]), "also once the run has recorded it");
    assert!(status(&world).contains("agent working for"), "{}", status(&world));
    let_go(&world);
    run.wait_for("Agent stopped", PATIENCE);
    assert_eq!(pending(&world), json!([]));
    assert!(status(&world).contains("paused, then checking"), "{}", status(&world));
    world.verdone(&["resume"]).assert_code(0);
    run.wait(PATIENCE).assert_code(0);
}

#[test]
fn skip_note_and_stop_are_shown_at_once_and_settled_by_the_end() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["skip", "US-001"]).assert_code(0);
    world.verdone(&["note", "use tabs"]).assert_code(0);
    world.verdone(&["stop", "--after-story"]).assert_code(0);
    let asked = json!([{ "skip": { "story": "US-001" } }, { "note": { "text": "use tabs" } }, "stop_after_story"]);
    assert_eq!(pending(&world), asked);
    let page = status(&world);
    for line in ["skip US-001 after this turn", "note for the next prompt: use tabs", "stop after this iteration"] {
        assert!(page.contains(&format!("Pending  {line}")), "{page}");
    }
    run.wait_for("Requested: stop after this story", PATIENCE);
    assert_eq!(pending(&world), asked);
    let_go(&world);
    run.wait(PATIENCE).assert_code(130);
    assert_eq!(pending(&world), json!([{ "note": { "text": "use tabs" } }]));
    assert!(status(&world).contains("Pending  note for the next run: use tabs"), "{}", status(&world));
}

#[test]
fn a_stop_is_pending_while_the_agent_uses_its_grace() {
    let steps = "{ say = \"waiting\" }, { run = \"trap '' TERM; until test -f ../tmp/go; do sleep 0.02; done\" }";
    let world = World::new(ONE, &always(steps));
    let config = world.sandbox.read(".verdone/config.toml").replace("grace = \"200ms\"", "grace = \"60s\"");
    world.sandbox.write(".verdone/config.toml", config);
    world.git(&["commit", "-qam", "more grace"]);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    assert_says(&world.verdone(&["stop", "--now"]), "is stopping");
    assert_eq!(pending(&world), json!(["stop"]));
    assert!(status(&world).contains("Pending  stop, once all processes have ended"), "{}", status(&world));
    run.wait_for("SIGINT: cleaning up, then stopping", PATIENCE);
    assert_eq!(pending(&world), json!(["stop"]), "also once the run has recorded it");
    let_go(&world);
    run.wait(PATIENCE).assert_code(130);
    assert_eq!(pending(&world), json!([]));
}

#[test]
fn a_note_that_no_turn_has_used_goes_to_the_next_run_once() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["note", "prefer tabs"]).assert_code(0);
    world.verdone(&["stop"]).assert_code(0);
    run.wait(PATIENCE).assert_code(130);
    assert!(status(&world).contains("note for the next run: prefer tabs"), "{}", status(&world));
    let_go(&world);
    world.run_with(&["--story", "US-001"], 0);
    assert!(world.prompt(1).contains("- prefer tabs\n"), "{}", world.prompt(1));
    assert_eq!(pending(&world), json!([]));
    world.run(0);
    assert!(!world.prompt(1).contains("prefer tabs"), "{}", world.prompt(1));
}

#[test]
fn a_note_survives_the_death_of_its_run() {
    let world = World::new(ONE, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["note", "recorded"]).assert_code(0);
    run.wait_for("note to the agent: recorded", PATIENCE);
    run.signal(verdone_testkit::Signal::KILL);
    run.wait(PATIENCE);
    world.sandbox.write(world.run_dir().join("inbox/09-7.json"), "{\"note\":{\"text\":\"never seen\"}}");
    let_go(&world);
    world.run(0);
    let prompt = world.prompt(1);
    assert!(prompt.contains("- recorded\n- never seen\n"), "{prompt}");
}

#[test]
fn skip_now_ends_the_turn_and_the_run_goes_on() {
    let world = World::new(TWO, HANGS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    assert_says(&world.verdone(&["skip", "US-001", "--now"]), "stops working on US-001 now");
    run.wait(PATIENCE).assert_code(4);
    assert!(world.tree_files(&world.kept()).contains(&"half".to_owned()));
    assert_eq!(text(&world.last("attempt_rejected")["reason"]), "skipped by the user");
    assert_eq!(world.subjects()[0], "feat(US-002): Write b");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn skip_now_of_another_story_leaves_the_turn_alone() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["skip", "US-002", "--now"]).assert_code(0);
    run.wait_for("Requested: skip US-002 now", PATIENCE);
    let_go(&world);
    run.wait(PATIENCE).assert_code(4);
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
}

#[test]
fn skip_now_in_a_pause_begins_nothing_more_for_the_story() {
    let world = World::new(TWO, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["pause"]).assert_code(0);
    run.wait_for("Requested: pause", PATIENCE);
    let_go(&world);
    run.wait_for("Agent stopped", PATIENCE);
    world.verdone(&["skip", "US-001", "--now"]).assert_code(0);
    run.wait_for("Requested: skip US-001 now", PATIENCE);
    world.verdone(&["resume"]).assert_code(0);
    run.wait(PATIENCE).assert_code(4);
    let verified = world.all("verified");
    assert!(verified.iter().all(|event| event["place"]["story"] == "US-002"), "{verified:?}");
    assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()));
    assert_eq!(text(&world.last("attempt_rejected")["reason"]), "skipped by the user");
    assert_eq!(world.subjects(), ["feat(US-002): Write b", "initial"]);
}

#[test]
fn a_stop_needs_only_the_signal() {
    let world = World::new(ONE, HANGS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    world.sandbox.write(world.run_dir().join("inbox"), "no folder");
    assert_says(&world.verdone(&["stop"]), "is stopping");
    run.wait(PATIENCE).assert_code(130);
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn only_a_paused_run_can_be_resumed() {
    let world = World::new(ONE, WAITS);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    let output = world.verdone(&["resume"]);
    output.assert_code(2);
    assert!(output.stderr.contains(&format!("run {} is not paused", run_id(&world))), "{}", output.transcript());
    world.verdone(&["pause"]).assert_code(0);
    assert_says(&world.verdone(&["resume"]), "continues");
    let_go(&world);
    run.wait(PATIENCE).assert_code(0);
}

#[test]
fn a_note_waits_for_the_next_run_of_its_plan() {
    let world = World::new(ONE, WAITS);
    world.sandbox.write("OTHER.md", ONE.replace("US-001", "US-002").replace("file a", "file b").replace("-f a", "-f b"));
    world.git(&["add", "OTHER.md"]);
    world.git(&["commit", "-qm", "another plan"]);
    let run = world.start_with(&["PLAN.md"]);
    run.wait_for("waiting", PATIENCE);
    world.verdone(&["note", "prefer tabs"]).assert_code(0);
    world.verdone(&["stop"]).assert_code(0);
    run.wait(PATIENCE).assert_code(130);
    let first = run_id(&world);
    let waits = |expected: bool| {
        let page = world.verdone(&["status", "--run", &first]);
        assert_eq!(page.stdout.contains("note for the next run: prefer tabs"), expected, "{}", page.transcript());
    };
    world.run_with(&["OTHER.md"], 0);
    assert!(!world.prompt(1).contains("prefer tabs"), "{}", world.prompt(1));
    waits(true);
    let_go(&world);
    world.run_with(&["PLAN.md"], 0);
    assert!(world.prompt(1).contains("- prefer tabs\n"), "{}", world.prompt(1));
    waits(false);
}
