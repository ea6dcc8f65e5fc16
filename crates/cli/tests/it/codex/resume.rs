//! A run that is killed between two stories, and the session that the next run continues.

use verdone_testkit::Signal;
use verdone_testkit::model_server::{Script, Turn};

use super::world::{AGENT, PATIENCE, World};
use crate::claude::trouble::wait_until;

const PLAN: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n\n\
    ### US-002: Write b\n\n- [ ] Write the file b\n  - Depends on: US-001\n  - Verification: `sh check.sh`\n";
/// Fails, shows that it is running, and waits for permission to end.
const CHECK: &str = "test ! -f b || exit 0\n: > ../tmp/checking\nuntil test -f ../tmp/go; do sleep 0.02; done\nexit 1\n";
const FIRST: &str = "# Story US-001";
const SECOND: &str = "# Story US-002";

#[test]
fn a_run_that_was_killed_between_two_stories_continues_its_session() {
    let script = Script::new()
        .on(FIRST, [Turn::bash("echo one > a"), Turn::say("It is written.")])
        .on(SECOND, [Turn::bash("echo two > b"), Turn::say("Done.")]);
    let Some(world) = World::with(AGENT, &[("PLAN.md", PLAN), ("check.sh", CHECK)], script) else { return };
    let run = world.start(&["run"]);
    wait_until("the check", || world.sandbox.path("../tmp/checking").exists());
    run.signal(Signal::KILL);
    run.wait(PATIENCE);
    world.sandbox.assert_no_survivors(PATIENCE);
    world.sandbox.write("../tmp/go", "");
    let first = world.events("turn_ended").remove(0);

    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    assert!(output.transcript().contains("resumed session"), "{}", output.transcript());
    let turns = world.events("turn_ended");
    assert_eq!(turns[0]["session"]["id"], first["session"]["id"]);
    let asked = world.model.turns();
    let second = asked.iter().find(|request| request.prompt().contains(SECOND)).unwrap();
    assert!(second.contains(FIRST), "the model sees the conversation about the first story");
    assert_eq!(turns[0]["usage"]["tokens"], 30, "only the new tokens count: {turns:?}");
}
