//! What is sent or done again and again, with the real client.

use verdone_testkit::model_server::{Script, Times, Turn, When};

use crate::claude::world::{ONE, World};

const CONFIG: &str = "[agent]\nname = \"claude\"\n";

#[test]
fn the_text_of_a_story_is_sent_once() {
    let plan =
        "# Plan\n\n### US-001: Write a\n\nThe file is for Xyzzy.\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n";
    let script = Script::new().on("US-001", [Turn::write("a", "one\n"), Turn::say("It is written.")]);
    let Some(world) = World::with(&[(".verdone/config.toml", CONFIG), ("PLAN.md", plan)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    let first = &world.model.turns()[0];
    let sent = format!("{}\n{}", first.system(), serde_json::to_string(first.messages()).unwrap());
    assert_eq!(sent.matches("for Xyzzy").count(), 1, "{sent}");
    assert!(sent.contains("Verdone checks every tool call"), "{sent}");
}

#[test]
fn a_model_that_is_caught_in_a_loop_is_stopped_and_told_why() {
    let config = format!("{CONFIG}[limits]\nidentical_calls = 5\n");
    let script = Script::new()
        .on("made the same call 5 times in a row", [Turn::write("a", "one\n"), Turn::say("It is written.")])
        .rule(When::default(), Times::Always, Turn::bash("echo again"));
    let Some(world) = World::with(&[(".verdone/config.toml", &config), ("PLAN.md", ONE)], script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    let journal = world.journal();
    let turns: Vec<_> = journal.iter().filter(|event| event["event"] == "turn_ended").collect();
    assert_eq!(turns.len(), 2, "{}", output.transcript());
    let looping = &turns[0]["outcome"]["looping"];
    assert_eq!((&looping["times"], &looping["call"]), (&5.into(), &"Bash: echo again".into()), "{}", turns[0]);
    assert!(world.model.turns().len() < 12, "{}", world.model.overview());
    let prompt = world.model.turns().last().unwrap().prompt();
    assert!(prompt.contains("Do not repeat a call that gives the same result"), "{prompt}");
}

#[test]
fn a_stop_hook_of_the_user_that_always_blocks_is_reported() {
    let hook = r#"{ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "echo '{\"decision\":\"block\",\"reason\":\"more\"}'" }] }] } }"#;
    let script = Script::new().on("US-001", [Turn::write("a", "one\n")]).otherwise(Turn::say("It is written."));
    let files = [(".verdone/config.toml", CONFIG), ("PLAN.md", ONE), (".claude/settings.json", hook)];
    let Some(world) = World::with(&files, script) else { return };
    let output = world.verdone(&["run"]);
    let told = output.transcript();
    assert!(told.contains("a Stop hook in your Claude Code settings blocks every attempt"), "{told}");
}
