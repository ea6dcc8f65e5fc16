//! A run that is killed between two stories or has used up its iterations, and the session that the next run continues.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use verdone_testkit::Signal;
use verdone_testkit::model_server::{Script, Turn, Usage};

use crate::claude::trouble::wait_for_file;
use crate::claude::world::{PATIENCE, World};

const PLAN: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n\n\
    ### US-002: Write b\n\n- [ ] Write the file b\n  - Depends on: US-001\n  - Verification: `sh check.sh`\n";
/// Fails, shows that it is running, and waits for permission to end.
const CHECK: &str = "test ! -f b || exit 0\n: > ../tmp/checking\nuntil test -f ../tmp/go; do sleep 0.02; done\nexit 1\n";
const FIRST: &str = "# Story US-001";
const SECOND: &str = "# Story US-002";

/// A run that was killed after the first story was committed and before the second had a turn; also returns that run's session.
fn killed_between_stories(settings: &str, last: Turn) -> Option<(World, Value)> {
    let config = format!("[agent]\nname = \"claude\"\n\n[agent.claude]\n{settings}");
    let files = [(".verdone/config.toml", config.as_str()), ("PLAN.md", PLAN), ("check.sh", CHECK)];
    let script =
        Script::new().on(FIRST, [Turn::write("a", "one\n"), last]).on(SECOND, [Turn::write("b", "two\n"), Turn::say("Done.")]);
    let world = World::with(&files, script)?;
    let run = world.start(&["run"]);
    wait_for_file(&world, "../tmp/checking");
    run.signal(Signal::KILL);
    run.wait(PATIENCE);
    world.sandbox.assert_no_survivors(PATIENCE);
    world.sandbox.write("../tmp/go", "");
    let turn = turns(&world).remove(0);
    Some((world, turn))
}

/// The turns of the latest run.
fn turns(world: &World) -> Vec<Value> {
    world.journal().into_iter().filter(|event| event["event"] == "turn_ended").collect()
}

/// Asserts that the next run completes the second story at its first attempt; returns its only turn and the output.
#[track_caller]
fn goes_on(world: &World) -> (Value, String) {
    let output = world.verdone(&["run"]);
    output.assert_code(0);
    world.assert_scripted();
    let mut turns = turns(world);
    assert_eq!(turns.len(), 1, "{turns:?}");
    let turn = turns.remove(0);
    let place = &turn["place"];
    assert_eq!((&place["story"], &place["attempt"], &place["turn"]), (&"US-002".into(), &1.into(), &1.into()), "{turn}");
    assert_eq!(world.subjects().len(), 3, "{:?}", world.subjects());
    (turn, output.transcript())
}

/// Whether the model saw the conversation about the first story when it was asked about the second.
fn knows_the_first(world: &World) -> bool {
    let asked = world.model.turns();
    asked.iter().find(|request| request.prompt().contains(SECOND)).unwrap().contains(FIRST)
}

/// The folder of session locks.
fn locks(world: &World) -> PathBuf {
    world.sandbox.path(".git/verdone-sessions")
}

#[test]
fn a_run_that_was_killed_between_two_stories_goes_on_in_its_session() {
    let Some((world, first)) = killed_between_stories("", Turn::say("It is written.")) else { return };
    let (second, told) = goes_on(&world);
    let id = first["session"]["id"].as_str().unwrap();
    assert_eq!(second["session"]["id"], id, "{told}");
    assert!(second["session"]["fresh"].is_null() && told.contains(&format!("resumed session {id} of the last run")), "{told}");
    assert!(knows_the_first(&world));
    // The client's own total may include the cost of the dead run.
    let cost = |turn: &Value| turn["usage"]["cost_usd"].as_f64().unwrap();
    assert!(cost(&second) > 0.0 && cost(&second) < cost(&first) * 1.5, "{first}\n{second}");
    assert_eq!(fs::read_dir(locks(&world)).unwrap().count(), 0, "nobody has it any more");
}

#[test]
fn a_session_whose_context_was_full_is_not_resumed() {
    let full = Usage { input: 70_000, cache_read: 0, cache_creation: 0, output: 50 };
    let last = Turn::say("It is written.").usage(full);
    let Some((world, first)) = killed_between_stories("context_limit = 60000\n", last) else { return };
    let (second, told) = goes_on(&world);
    assert_ne!(first["session"]["id"], second["session"]["id"]);
    assert!(second["session"]["fresh"].as_str().unwrap().contains("the limit is 60000"), "{second}\n{told}");
    assert!(!knows_the_first(&world));
}

#[test]
fn a_session_that_the_client_has_lost_is_replaced_by_a_fresh_one_at_no_cost() {
    for settings in ["", "hooks = \"exec\"\n"] {
        let Some((world, first)) = killed_between_stories(settings, Turn::say("It is written.")) else { return };
        fs::remove_dir_all(world.sandbox.home().join(".claude/projects")).unwrap();
        let (second, told) = goes_on(&world);
        let id = first["session"]["id"].as_str().unwrap();
        assert_ne!(second["session"]["id"], id, "{told}");
        let why = format!("session {id} cannot be resumed: No conversation found with session ID");
        assert!(second["session"]["fresh"].as_str().unwrap().starts_with(&why), "{second}");
        assert!(told.contains(&why) && told.contains("; started a new session"), "{told}");
        assert!(!knows_the_first(&world));
    }
}

#[test]
fn a_session_that_another_process_works_with_is_left_to_it() {
    let Some((world, first)) = killed_between_stories("hooks = \"exec\"\n", Turn::say("It is written.")) else { return };
    let id = first["session"]["id"].as_str().unwrap();
    let held = fs::File::options().write(true).open(locks(&world).join(id)).expect("a killed run leaves its lock's file");
    held.lock().unwrap();
    let (second, told) = goes_on(&world);
    assert_ne!(second["session"]["id"], id);
    assert!(told.contains(&format!("session {id} cannot be resumed: another process is using it")), "{told}");
}

#[test]
fn a_run_after_the_last_iteration_of_another_goes_on_in_its_session() {
    let plan = PLAN.replace("`sh check.sh`", "`test -f b`");
    let config = "[agent]\nname = \"claude\"\n";
    let script = || Script::new().on(FIRST, [Turn::write("a", "one\n"), Turn::say("Done.")]);
    let script = || script().on(SECOND, [Turn::write("b", "two\n"), Turn::say("Done.")]);
    let files = [(".verdone/config.toml", config), ("PLAN.md", plan.as_str())];
    let Some(world) = World::with(&files, script()) else { return };
    world.verdone(&["run", "--max-iterations", "1"]).assert_code(3);
    let first = turns(&world).remove(0);
    let (second, told) = goes_on(&world);
    let id = first["session"]["id"].as_str().unwrap();
    assert_eq!(second["session"]["id"], id, "{told}");
    assert!(told.contains(&format!("resumed session {id} of the last run")) && knows_the_first(&world), "{told}");
}
