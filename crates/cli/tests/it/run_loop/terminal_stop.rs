//! Ctrl-Z, `fg`, `&` and a terminal that disappears.

use std::time::{Duration, Instant};

use verdone_testkit::{Signal, Tmux};

use crate::run_loop::clocks::assert_less;
use crate::run_loop::signals::wait_for_file;
use crate::run_loop::world::{ONE, PATIENCE, Settings, VERDONE, World, always};

/// Says that it is working, and waits for permission to continue.
const WAITS: &str = "[[turn]]\nsteps = [{ create = \"half\" }, { say = \"at work\" }, { run = \"until test -f ../tmp/go; do sleep 0.02; done\" }, { create = \"a\" }]\n";
/// More than a busy machine needs, less than the stops below.
const LIMITS: &str = "turn_time = \"10s\"\nidle_time = \"10s\"";
const STOP: Duration = Duration::from_secs(12);

fn world() -> World {
    World::with(ONE, WAITS, &Settings { limits: LIMITS, ..Settings::default() })
}

/// The states of all processes of the run except its watchdog, which stays awake.
fn states(world: &World) -> Vec<(String, char)> {
    let state = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit_once(") ")?.1.chars().next();
    let ours = world.sandbox.survivors().into_iter().filter(|process| !process.command.contains(" watchdog "));
    ours.filter_map(|process| Some((process.command, state(process.pid)?))).collect()
}

/// Whether the program, its agent and the agent's shell are stopped. A process waiting for a child that was stopped before its exec shows
/// as D, and cannot continue either.
fn all_stopped(states: &[(String, char)]) -> bool {
    let any = states.iter().any(|(_, state)| *state == 'T');
    any && states.len() >= 3 && states.iter().all(|(_, state)| ['T', 'D'].contains(state))
}

/// Polls, because there is no event for a stopped process.
fn wait_until_stopped(world: &World) {
    let until = Instant::now() + PATIENCE;
    loop {
        let states = states(world);
        if all_stopped(&states) {
            return;
        }
        assert!(Instant::now() < until, "still running: {states:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// If the turn had timed out, another one would follow. `wall` is at least the duration of the whole run, including the stop.
fn assert_stop_did_not_count(world: &World, wall: Duration) {
    assert_eq!(world.all("turn_ended").len(), 1);
    for event in ["turn_ended", "run_stopped"] {
        assert_less(&world.last(event), wall, STOP);
    }
}

#[test]
fn a_stop_by_the_terminal_stops_everything_and_no_limit_is_spent() {
    let world = world();
    let begin = Instant::now();
    let run = world.start();
    run.wait_for("at work", PATIENCE);
    run.signal(Signal::TSTP);
    wait_until_stopped(&world);
    std::thread::sleep(STOP);
    assert!(all_stopped(&states(&world)), "{:?}", states(&world));
    run.signal(Signal::CONT);
    world.sandbox.write("../tmp/go", "");
    run.wait(PATIENCE).assert_code(0);
    assert_stop_did_not_count(&world, begin.elapsed());
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_stopped_run_that_is_told_to_end_ends_in_order() {
    let world = world();
    let run = world.start();
    run.wait_for("at work", PATIENCE);
    run.signal(Signal::TSTP);
    wait_until_stopped(&world);
    // As `kill %1` does.
    run.signal(Signal::TERM);
    run.signal(Signal::CONT);
    run.wait(PATIENCE).assert_code(143);
    world.sandbox.assert_no_survivors(PATIENCE);
    world.assert_clean();
    assert!(world.tree_files(&world.kept()).contains(&"half".to_owned()));
}

#[test]
fn a_stop_takes_nothing_from_the_time_of_a_commit_hook() {
    let settings = Settings { tables: "[commit]\ntimeout = \"10s\"", ..Settings::default() };
    let world = World::with(ONE, &always("{ create = \"a\" }"), &settings);
    world.hook("pre-commit", ": > ../tmp/in-the-hook; until test -f ../tmp/end; do sleep 0.02; done");
    let run = world.start();
    wait_for_file(&world, "../tmp/in-the-hook");
    run.signal(Signal::TSTP);
    let wait_for_state = |stopped: bool| {
        let until = Instant::now() + PATIENCE;
        while !states(&world).iter().any(|(command, state)| command.ends_with("verdone run") && (*state == 'T') == stopped) {
            assert!(Instant::now() < until, "never {stopped}: {:?}", states(&world));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_for_state(true);
    std::thread::sleep(STOP);
    run.signal(Signal::CONT);
    wait_for_state(false);
    // There is no event for a deadline that has not passed; one that has passed is noticed immediately.
    std::thread::sleep(Duration::from_secs(2));
    world.sandbox.write("../tmp/end", "");
    run.wait(PATIENCE).assert_code(0);
    assert_eq!(world.all("commit_refused").len(), 0, "the hook had all the time that it may take");
}

fn shell(world: &World) -> Tmux<'_> {
    Tmux::start(&world.sandbox, 100, 30, ["bash", "--norc", "-i"])
}

#[test]
fn ctrl_z_gives_the_shell_back_and_fg_goes_on() {
    let world = world();
    let terminal = shell(&world);
    let begin = Instant::now();
    terminal.send_keys(&[&format!("{VERDONE} run; echo \"ended with $?\""), "Enter"]);
    terminal.wait_for("\u{2502} at work", PATIENCE);
    terminal.send_keys(&["C-z"]);
    terminal.wait_for("Stopped", PATIENCE);
    std::thread::sleep(STOP);
    terminal.send_keys(&["clear; echo the shell is \"back\"; fg", "Enter"]);
    terminal.wait_for("the shell is back", PATIENCE);
    terminal.wait_for("story 1 of 1", PATIENCE);
    world.sandbox.write("../tmp/go", "");
    terminal.wait_for("Finished: complete", PATIENCE);
    assert_eq!(world.subjects()[0], "feat(US-001): Write a");
    assert_stop_did_not_count(&world, begin.elapsed());
}

#[test]
fn a_run_in_the_background_of_a_shell_completes_even_if_it_may_not_write() {
    for modes in ["-tostop", "tostop"] {
        let world = world();
        world.sandbox.write("../tmp/go", "");
        let terminal = shell(&world);
        terminal.send_keys(&[&format!("stty {modes}; {VERDONE} run & wait; echo \"ended with $?\""), "Enter"]);
        terminal.wait_for("ended with 0", PATIENCE);
        assert_eq!(world.subjects()[0], "feat(US-001): Write a", "{modes}");
        let screen = terminal.capture_all();
        assert_eq!(screen.contains("1 verified"), modes == "-tostop", "{screen}");
        assert!(!screen.contains('\u{2591}'), "no live line in the background: {screen}");
    }
}

#[test]
fn a_terminal_that_is_closed_ends_the_run_in_order() {
    let world = World::new(ONE, WAITS);
    let terminal = Tmux::start(&world.sandbox, 80, 24, [VERDONE, "run"]);
    terminal.wait_for("\u{2502} at work", PATIENCE);
    drop(terminal);
    world.sandbox.assert_no_survivors(PATIENCE);
    assert_eq!(world.last("run_stopped")["exit_code"], 129);
    assert_eq!(world.finish(), "manual");
    world.assert_clean();
    assert_eq!(world.plan(), ONE);
    assert!(world.tree_files(&world.kept()).contains(&"half".to_owned()));
    world.sandbox.write("../tmp/go", "");
    world.run(0);
}
