//! The machine stays awake while a run is active: a fake `systemd-inhibit` records its arguments and runs the command it is given.

use std::time::{Duration, Instant};

use verdone_testkit::{Sandbox, Signal};

use crate::run_loop::world::{HONEST, ONE, PATIENCE, World, always};

const FAKE: &str =
    "#!/bin/sh\nprintf '%s\\n' \"$*\" >>\"$HOME/inhibited\"\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\n\"$@\"\n";

fn add_fake(world: &World) {
    world.sandbox.add_script("systemd-inhibit", FAKE);
}

fn inhibited(world: &World) -> String {
    std::fs::read_to_string(world.sandbox.home().join("inhibited")).unwrap_or_default()
}

fn helpers(sandbox: &Sandbox) -> usize {
    sandbox.survivors().iter().filter(|process| process.command.contains("systemd-inhibit")).count()
}

#[track_caller]
fn wait_for_helpers(sandbox: &Sandbox, count: usize) {
    let until = Instant::now() + PATIENCE;
    while helpers(sandbox) != count {
        assert!(Instant::now() < until, "{:#?}", sandbox.survivors());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_run_holds_an_inhibitor_until_it_ends() {
    let world = World::new(
        ONE,
        &always("{ say = \"waiting\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }, { create = \"a\" }"),
    );
    add_fake(&world);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    wait_for_helpers(&world.sandbox, 1);
    assert!(inhibited(&world).starts_with("--what=idle:sleep --mode=block --who=verdone --why=run "), "{}", inhibited(&world));
    world.sandbox.write("../tmp/go", "");
    run.wait(PATIENCE).assert_code(0);
    assert_eq!(world.last("turn_ended")["leftovers"].as_u64().unwrap_or(0), 0);
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn the_inhibitor_dies_with_a_killed_run() {
    let world = World::new(ONE, &always("{ say = \"waiting\" }, { hang = true }"));
    add_fake(&world);
    let run = world.start();
    run.wait_for("waiting", PATIENCE);
    wait_for_helpers(&world.sandbox, 1);
    run.signal(Signal::KILL);
    wait_for_helpers(&world.sandbox, 0);
    run.wait(PATIENCE);
}

#[test]
fn the_machine_may_sleep_if_the_user_says_so() {
    let world = World::new(ONE, HONEST);
    add_fake(&world);
    world.run_with(&["--no-inhibit"], 0);
    assert_eq!(inhibited(&world), "");
}

#[test]
fn an_inhibitor_that_does_not_work_changes_nothing_and_doctor_says_so() {
    let world = World::new(ONE, HONEST);
    world.sandbox.add_script("systemd-inhibit", "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n");
    let doctor = world.verdone(&["doctor"]);
    let why = "a run does not keep the machine awake: systemd-inhibit does not work here (Failed to connect to bus)";
    assert!(doctor.stdout.contains(&format!("warning  sleep      {why}")), "{}", doctor.stdout);
    doctor.assert_code(0);
    let run = world.run(0);
    assert!(!format!("{}{}", run.stdout, run.stderr).contains("inhibit"), "{}", run.transcript());
    add_fake(&world);
    let doctor = world.verdone(&["doctor"]);
    assert!(doctor.stdout.contains("a run keeps the machine awake (systemd-inhibit)"), "{}", doctor.stdout);
}
