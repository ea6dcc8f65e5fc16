//! `finished` runs however a run ends, and learns how it ended.

use verdone_testkit::Signal;

use crate::lifecycle::world::{ONE, PATIENCE, Setting, TWO, World, always};

const NOTE: (&str, &str) = ("finished", "echo \"$VERDONE_FINISH_TYPE $FRESHER_FINISH_TYPE\" >> ../tmp/finish");

#[test]
fn every_finish_type_that_needs_no_signal() {
    let nothing = always("{ say = \"nothing\" }");
    let wrong = always("{ create = \"x\" }");
    let crash = always("{ crash = 9 }");
    let slow = always("{ create = \"x\" }, { sleep = \"2s\" }");
    let cases: [(&str, i32, Setting<'_>); 8] = [
        ("complete", 0, Setting::default()),
        ("max_iterations", 3, Setting { plan: TWO, limits: "max_iterations = 1", ..Setting::default() }),
        ("no_changes", 4, Setting { agent: &nothing, limits: "no_changes = 1\nturns = 1", ..Setting::default() }),
        ("error", 1, Setting { agent: &crash, limits: "crashes = 1", ..Setting::default() }),
        ("stalled", 4, Setting { agent: &wrong, limits: "consecutive_failures = 1\nturns = 1", ..Setting::default() }),
        ("blocked", 4, Setting { agent: &wrong, limits: "attempts = 1\nturns = 1", ..Setting::default() }),
        ("blocked", 4, Setting { tables: "[[gate]]\nname = \"red\"\ncommand = \"false\"", ..Setting::default() }),
        ("timeout", 3, Setting { plan: TWO, agent: &slow, limits: "total_time = \"1s\"", ..Setting::default() }),
    ];
    for (finish, code, setting) in cases {
        let world = World::new(&setting, &[NOTE]);
        world.run(code);
        assert_eq!(world.noted("finish"), format!("{finish} {finish}\n"));
    }
}

#[test]
fn a_signal_ends_the_script_in_work_and_finished_still_runs() {
    let agent = always("{ say = \"in-work\" }, { hang = true }");
    let hang = "echo in-work; sleep 60";
    let setting = Setting { agent: &agent, ..Setting::default() };
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for scripts in [&[NOTE][..], &[NOTE, ("started", hang)], &[NOTE, ("next_iteration", hang)]] {
            let world = World::new(&setting, scripts);
            let run = world.start();
            run.wait_for("in-work", PATIENCE);
            run.signal(signal);
            run.wait(PATIENCE).assert_code(code);
            world.sandbox.assert_no_survivors(PATIENCE);
            assert_eq!(world.noted("finish"), "manual manual\n");
            assert_eq!(world.commits(), 0);
        }
    }
}

#[test]
fn a_signal_ends_a_finished_that_hangs() {
    let world = World::new(&Setting::default(), &[("finished", "echo in-work; trap '' TERM; while :; do sleep 9; done")]);
    let run = world.start();
    run.wait_for("finished: in-work", PATIENCE);
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(0);
    world.sandbox.assert_no_survivors(PATIENCE);
    assert_eq!(world.script_events("finished")[0]["exit"], "interrupted");
}

#[test]
fn finished_has_a_deadline_after_a_signal_too() {
    let agent = always("{ say = \"in-work\" }, { hang = true }");
    let setting = Setting { agent: &agent, tables: "[hooks]\ntimeout = \"1s\"", ..Setting::default() };
    let world = World::new(&setting, &[("finished", "sleep 60")]);
    let run = world.start();
    run.wait_for("in-work", PATIENCE);
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(130);
    assert_eq!(world.script_events("finished")[0]["meaning"], "error");
}

#[test]
fn a_run_that_died_is_put_in_order_without_scripts() {
    let agent = "[[turn]]\nsteps = [{ run = \"test -f ../tmp/again || { : > ../tmp/again; echo in-$(echo work); sleep 60; }\" }, { create = \"a\" }]\n";
    let setting = Setting { plan: ONE, agent, ..Setting::default() };
    let world = World::new(&setting, &[NOTE, ("started", "echo begun >> ../tmp/begun")]);
    let run = world.start();
    run.wait_for("in-work", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE);
    world.run(0);
    assert_eq!(world.noted("finish"), "complete complete\n");
    assert_eq!(world.noted("begun"), "begun\nbegun\n");
}
