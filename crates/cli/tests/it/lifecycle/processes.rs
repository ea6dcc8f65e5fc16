//! No process of a script outlives it or the run, and an agent cannot change a script during the run.

use serde_json::json;

use crate::lifecycle::world::{SCRIPTS, Setting, World, always};

/// Has left its session, ignores TERM, and keeps no pipe of its parent open.
const DAEMON: &str = "setsid sh -c 'trap \"\" TERM; while :; do sleep 9; done' </dev/null >/dev/null 2>&1 &";

#[test]
fn a_daemon_of_a_script_is_gone_when_the_script_is() {
    for script in SCRIPTS {
        let world = World::new(&Setting::default(), &[(script, DAEMON)]);
        world.run(0);
        assert_eq!(world.script_events(script)[0]["exit"], json!({ "code": 0 }));
        assert!(world.sandbox.survivors().is_empty(), "{script}: {:?}", world.sandbox.survivors());
    }
}

#[test]
fn a_script_that_heeds_nothing_ends_with_its_whole_family() {
    let stubborn = format!("{DAEMON}\ntrap '' TERM HUP INT; while :; do sleep 9; done");
    let setting = Setting { tables: "[hooks]\ntimeout = \"1s\"", ..Setting::default() };
    let world = World::new(&setting, &[("started", &stubborn)]);
    world.run(0);
    assert_eq!(world.script_events("started")[0]["exit"], json!({ "timed_out": { "after_ms": 1000 } }));
    assert!(world.sandbox.survivors().is_empty(), "{:?}", world.sandbox.survivors());
}

#[test]
fn a_script_in_the_background_runs_beside_the_agent_and_ends_with_the_run() {
    let text = format!("{DAEMON}\ntrap '' TERM; echo begun; : > ../tmp/begun; while :; do sleep 9; done");
    // The agent waits until the scripts are running. So the run did not wait for them; they continue until the end of the run.
    let agent = always("{ run = \"until test -f ../tmp/begun; do sleep 0.05; done\" }, { create = \"a\" }");
    for script in ["started", "next_iteration"] {
        let tables = format!("[hooks.{script}]\nbackground = true");
        let setting = Setting { agent: &agent, tables: &tables, ..Setting::default() };
        let world = World::new(&setting, &[(script, &text)]);
        world.run(0);
        let event = world.script_events(script).pop().unwrap();
        assert_eq!((&event["exit"], &event["meaning"]), (&json!("background"), &json!("go_on")));
        assert_eq!(world.kept(event["output"].as_str().unwrap()), "begun\n");
        assert!(world.sandbox.survivors().is_empty(), "{:?}", world.sandbox.survivors());
    }
}

#[test]
fn a_background_script_that_ends_early_takes_nobody_with_it() {
    let agent = always("{ run = \"until test -f ../tmp/over; do sleep 0.05; done; sleep 0.3\" }, { create = \"a\" }");
    let setting = Setting { agent: &agent, tables: "[hooks.next_iteration]\nbackground = true", ..Setting::default() };
    let world = World::new(&setting, &[("next_iteration", "trap ': > ../tmp/over' EXIT; exit 2")]);
    world.run(0);
    assert_eq!(world.commits(), 1);
}

#[test]
fn finished_is_waited_for_even_in_the_background() {
    let setting = Setting { tables: "[hooks.finished]\nbackground = true", ..Setting::default() };
    let world = World::new(&setting, &[("finished", "sleep 0.3; : > ../tmp/over; echo over > ../tmp/over")]);
    world.run(0);
    assert_eq!(world.noted("over"), "over\n");
}

#[test]
fn an_agent_cannot_change_what_a_script_does() {
    let note = "echo honest >> ../tmp/finish";
    for home in [".verdone", ".fresher"] {
        let path = format!("{home}/hooks/finished");
        let agent = always(&format!("{{ append = \"{path}\", text = \"echo evil > ../tmp/evil\\n\" }}, {{ create = \"a\" }}"));
        let setting = Setting { agent: &agent, ..Setting::default() };
        let world = World::new(&setting, &[(path.as_str(), note)]);
        world.run(0);
        assert_eq!(world.script_events("finished")[0]["exit"], json!({ "code": 0 }), "put back, and run as it was");
        assert_eq!(world.noted("finish"), "honest\n");
        assert_eq!(world.noted("evil"), "");
    }
    let agent = always(
        "{ create = \".fresher/hooks/finished\", text = \"#!/bin/sh\\n: > ../tmp/evil\\n\", executable = true }, { create = \"a\" }",
    );
    let world = World::new(&Setting { agent: &agent, ..Setting::default() }, &[]);
    world.run(0);
    assert!(world.script_events("finished").is_empty(), "a script that was planted is taken away");
    assert!(!world.sandbox.path("../tmp/evil").exists());
}
