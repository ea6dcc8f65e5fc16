//! Commands that the client runs in the background: a turn is over before they are.

use serde_json::{Value, json};
use verdone_testkit::model_server::Turn;

use crate::claude::guarded::{claims, done, events_named, not_done, results, steps};
use crate::claude::world::{ONE, World};

const AGENT: &str = "[agent]\nname = \"claude\"\n";

fn in_background(command: &str) -> Turn {
    Turn::call("Bash", json!({ "command": command, "description": "A long command", "run_in_background": true }))
}

#[test]
fn a_command_in_the_background_is_denied_with_what_to_do_instead() {
    let script = steps([in_background("sleep 621; echo one > a"), Turn::write("a", "one\n"), Turn::say("Done.")]);
    let Some(world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", ONE)], script) else { return };
    done(&world);
    let denied = &results(&world, 1)[0];
    assert!(denied.is_error && denied.text.contains("background-command") && denied.text.contains("foreground"), "{denied:?}");
    assert_eq!(events_named(&world.journal(), "turn_ended")[0]["session"]["cut_commands"], Value::Null);
}

#[test]
fn what_an_agent_says_about_a_command_that_was_cut_is_no_false_claim() {
    let config = format!("{AGENT}[limits]\nattempts = 1\nturns = 1\n[policy]\noff = [\"background-command\"]\n");
    let script = steps([in_background("sleep 622; echo one > a"), Turn::say("Done. The file a is being written.")]);
    let Some(world) = World::with(&[(".verdone/config.toml", &config), ("PLAN.md", ONE)], script) else { return };
    let output = not_done(&world, 4);
    assert!(!output.stdout.contains("false claim"), "{}", output.transcript());
    assert_eq!(claims(&world), 0);
    assert_eq!(events_named(&world.journal(), "turn_ended")[0]["session"]["cut_commands"], 1);
}
