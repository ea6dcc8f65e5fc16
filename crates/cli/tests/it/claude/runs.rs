//! Whole runs with the real client.

use verdone_testkit::Signal;
use verdone_testkit::model_server::{Script, Stall, Turn};

use crate::claude::world::{ONE, PATIENCE, World};

/// The client as an ordinary command.
const AGENT: &str = "[agent.command]\nrun = [\"claude\", \"-p\", \"--permission-mode\", \"acceptEdits\"]\n";

fn world(script: Script) -> Option<World> {
    World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", ONE)], script)
}

#[test]
fn a_story_is_done_by_the_client_as_a_plain_command() {
    let script = Script::new().on("US-001", [Turn::write("a", "one\n"), Turn::say("The file a is written.")]);
    let Some(world) = world(script) else { return };
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    assert_eq!(world.subjects().len(), 2, "{:?}", world.subjects());
    assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "one");
    assert!(world.journal().iter().any(|event| event["event"] == "run_stopped"));
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_run_that_is_ended_while_the_model_thinks_leaves_no_client_behind() {
    let script = Script::new().on("US-001", [Turn::say("Never.").stall(Stall::UntilReleased)]);
    let Some(world) = world(script) else { return };
    let running = world.start(&["run"]);
    world.model.wait_for_stall(PATIENCE);
    running.signal(Signal::TERM);
    running.wait(PATIENCE).assert_code(143);
    world.sandbox.assert_no_survivors(PATIENCE);
    assert!(!world.has("a"));
}
