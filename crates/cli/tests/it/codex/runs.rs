//! Codex as the agent of a run: one process, whose commands and edits the run itself judges.

use serde_json::json;
use verdone_testkit::model_server::{Script, Turn};

use super::world::{AGENT, PATIENCE, World};
use crate::run_loop::world::{ONE, TWO};

#[test]
fn stories_are_verified_and_committed() {
    let script = Script::new()
        .on("US-001", [Turn::bash("echo one > a"), Turn::say("The file a is written.")])
        .on("US-002", [Turn::write("b", "two\n"), Turn::say("The file b is written.")]);
    let Some(world) = World::with(AGENT, &[("PLAN.md", TWO)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    assert_eq!(world.sandbox.git(["show", "HEAD:a"]), "one");
    assert_eq!(world.sandbox.git(["show", "HEAD:b"]), "two");
    let turns = world.events("turn_ended");
    assert_eq!(turns.len(), 2, "{turns:?}");
    for turn in &turns {
        assert_eq!(turn["outcome"], "ended");
        assert_eq!(turn["usage"]["tokens"], 30, "two answers of 15 tokens: {turn}");
        assert_eq!(turn["session"]["tokens"], 15, "{turn}");
        assert!(turn["session"]["window"].as_u64().unwrap() > 100_000, "{turn}");
    }
    assert_eq!(turns[0]["session"]["id"], turns[1]["session"]["id"], "one conversation");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_story_that_is_red_gets_feedback_in_the_same_session() {
    let plan = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `grep two a`\n";
    let steps = [Turn::bash("echo one > a"), Turn::say("Done."), Turn::bash("echo two > a"), Turn::say("Now it is.")];
    let script = steps.into_iter().fold(Script::new(), Script::then);
    let Some(world) = World::with(AGENT, &[("PLAN.md", plan)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    world.assert_scripted();
    let feedback = world.model.turns()[2].prompt();
    assert!(feedback.contains("grep two a") && feedback.contains("exit code 1"), "{feedback}");
    assert_eq!(world.model.turns()[2].prompts().len(), 2, "the story and the feedback stand in one conversation");
}

#[test]
fn a_denied_push_does_not_run_and_the_agent_is_told_why() {
    // The reason is a text of the user's, so the last prompt is another one from there on. Codex may ask its model once before it has it.
    let script = Script::new()
        .on("US-001", [Turn::bash("git push origin main; touch pushed"), Turn::say("I wait for the reason.")])
        .on("Denied by Verdone", [Turn::bash("echo one > a"), Turn::say("I do not push.")]);
    let Some(world) = World::with(AGENT, &[("PLAN.md", ONE)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    let asked = world.model.turns();
    assert!(asked.iter().any(|request| request.contains("Denied by Verdone's rule")), "{}", world.model.overview());
    assert_eq!(world.sandbox.git(["ls-tree", "--name-only", "HEAD", "pushed"]), "", "the command did not run");
}

#[test]
fn a_shell_that_waits_for_typed_commands_is_refused() {
    let start = Turn::call("exec_command", json!({ "cmd": "bash", "tty": true }));
    // As above.
    let script = Script::new()
        .on("US-001", [start, Turn::say("I wait for the reason.")])
        .on("would wait for typed commands", [Turn::bash("echo one > a"), Turn::say("Done.")]);
    let Some(world) = World::with(AGENT, &[("PLAN.md", ONE)], script) else { return };
    world.verdone(&["run"]).assert_code(0);
    let asked = world.model.turns();
    assert!(asked.iter().any(|request| request.contains("would wait for typed commands")), "{}", world.model.overview());
}

#[test]
fn a_claim_without_work_is_not_believed() {
    let script = Script::new().then(Turn::say("I wrote the file a. Everything is done.")).then(Turn::say("It really is done."));
    let config = format!("{AGENT}[limits]\nattempts = 1\nturns = 2\n");
    let Some(world) = World::with(&config, &[("PLAN.md", ONE)], script) else { return };
    let output = world.verdone(&["run"]);
    output.assert_code(4);
    assert!(output.stdout.contains("2 false claims"), "{}", output.transcript());
}
