//! Claude Code as the agent of a run: one process, whose tool calls the run itself judges.

use serde_json::Value;
use verdone_testkit::model_server::{Script, Turn};

use crate::claude::world::{ONE, PATIENCE, World};

const AGENT: &str = "[agent]\nname = \"claude\"\n";

fn world(script: Script) -> Option<World> {
    World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", ONE)], script)
}

fn events<'a>(journal: &'a [Value], name: &str) -> Vec<&'a Value> {
    journal.iter().filter(|event| event["event"] == name).collect()
}

#[test]
fn a_story_is_done_in_one_turn() {
    let script = Script::new().on("US-001", [Turn::write("a", "one\n"), Turn::say("The file a is written.")]);
    let Some(world) = world(script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "one");
    let journal = world.journal();
    let turn = events(&journal, "turn_ended")[0];
    assert!(turn["session"]["id"].is_string() && turn["session"]["tokens"].is_u64(), "{turn}");
    world.sandbox.assert_no_survivors(PATIENCE);
}
