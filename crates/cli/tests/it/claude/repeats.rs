//! What is sent or done again and again, with the real client.

use verdone_testkit::model_server::{Script, Turn};

use crate::claude::world::World;

const CONFIG: &str = "[agent]\nname = \"claude\"\n";

#[test]
fn the_text_of_a_story_is_sent_once() {
    let plan = "# Plan\n\n### US-001: Write a\n\nThe file is for Xyzzy.\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n";
    let script = Script::new().on("US-001", [Turn::write("a", "one\n"), Turn::say("It is written.")]);
    let Some(world) = World::with(&[(".verdone/config.toml", CONFIG), ("PLAN.md", plan)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    let first = &world.model.turns()[0];
    let sent = format!("{}\n{}", first.system(), serde_json::to_string(first.messages()).unwrap());
    assert_eq!(sent.matches("for Xyzzy").count(), 1, "{sent}");
    assert!(sent.contains("Verdone checks every tool call"), "{sent}");
}
