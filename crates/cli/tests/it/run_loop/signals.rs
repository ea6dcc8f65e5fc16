//! Stopping a run from outside: orderly, without surviving processes, and with everything kept.

use verdone_testkit::Signal;

use crate::run_loop::world::{ONE, PATIENCE, World, always, text};

/// Hangs in the first attempt and does the work in the second; a marker file outside of the repository tells them apart.
pub(crate) const HANGS_ONCE: &str = "[[turn]]\nsteps = [{ create = \"half\", text = \"half done\" }, { run = \"test -f ../tmp/again || { : > ../tmp/again; echo in-the-turn; sleep 600; }\" }, { create = \"a\" }]\n";

#[test]
fn each_signal_ends_the_run_with_its_code_and_nothing_is_lost() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let world = World::new(ONE, HANGS_ONCE);
        let base = world.head();
        let run = world.start();
        run.wait_for("\u{2502} in-the-turn", PATIENCE);
        run.signal(signal);
        run.wait(PATIENCE).assert_code(code);
        world.sandbox.assert_no_survivors(PATIENCE);
        assert_eq!(world.head(), base);
        assert_eq!(world.plan(), ONE);
        world.assert_clean();
        assert_eq!(world.finish(), "manual");
        assert_eq!(world.git(&["show", &format!("{}:half", world.kept())]), "half done");

        world.run(0);
        assert_eq!(world.subjects()[0], "feat(US-001): Write a");
        assert_eq!(world.last("story_selected")["place"]["attempt"], 1, "the stopped attempt did not count");
    }
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_grace() {
    let world = World::new(ONE, &always("{ ignore_term = true }, { say = \"stubborn\" }, { hang = true }"));
    world.sandbox.write(".verdone/config.toml", world.sandbox.read(".verdone/config.toml").replace("200ms", "10m"));
    world.git(&["commit", "--quiet", "--all", "-m", "patient"]);
    let run = world.start();
    run.wait_for("stubborn", PATIENCE);
    run.signal(Signal::INT);
    run.wait_for("stopping; waiting for processes to end", PATIENCE);
    run.signal(Signal::INT);
    let output = run.wait(PATIENCE);
    output.assert_code(130);
    world.sandbox.assert_no_survivors(PATIENCE);
    world.assert_clean();
    world.sandbox.write(".verdone/script.toml", always("{ create = \"a\" }"));
    world.run(0);
    assert_eq!(world.subjects()[0], "feat(US-001): Write a", "and the next run goes on");
}

#[test]
fn an_interrupt_during_a_check_stops_the_check_and_keeps_the_attempt() {
    let plan = ONE.replace("test -f a", "test -f a || exit 1; test -f ../tmp/again || { : > ../tmp/again; sleep 600; }");
    let world = World::new(&plan, &always("{ create = \"a\" }"));
    let run = world.start();
    wait_for_file(&world, "../tmp/again");
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(130);
    world.sandbox.assert_no_survivors(PATIENCE);
    assert_eq!(world.plan(), plan);
    world.assert_clean();
    assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()));
    world.run(0);
}

#[test]
fn an_interrupt_during_a_commit_hook_makes_no_commit() {
    let world = World::new(ONE, &always("{ create = \"a\" }"));
    world.hook("pre-commit", "test -f ../tmp/again || { : > ../tmp/again; sleep 600; }");
    let run = world.start();
    wait_for_file(&world, "../tmp/again");
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(130);
    world.sandbox.assert_no_survivors(PATIENCE);
    assert_eq!(world.subjects(), ["initial"]);
    assert_eq!(world.plan(), ONE);
    world.assert_clean();
    world.run(0);
    assert_eq!(world.subjects().len(), 2);
}

#[test]
fn the_terminals_ctrl_c_reaches_the_whole_group_and_is_still_orderly() {
    let world = World::new(ONE, HANGS_ONCE);
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal_group(Signal::INT);
    run.wait(PATIENCE).assert_code(130);
    world.sandbox.assert_no_survivors(PATIENCE);
    assert_eq!(text(&world.last("attempt_rejected")["rejection"]), "stopped");
}

#[test]
fn a_second_run_is_refused_and_told_who_works() {
    let world = World::new(ONE, HANGS_ONCE);
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    let second = world.sandbox.verdone(crate::run_loop::world::VERDONE, ["run"]);
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains(&format!("process {}", run.pid())), "{}", second.stderr);
    let undo = world.verdone(&["undo"]);
    assert!(undo.stderr.contains("another run"), "{}", undo.stderr);
    run.signal(Signal::TERM);
    run.wait(PATIENCE).assert_code(143);
}

/// Polls, because there is no event for the start of a git hook.
pub(crate) fn wait_for_file(world: &World, path: &str) {
    let until = std::time::Instant::now() + PATIENCE;
    while !world.has(path) {
        assert!(std::time::Instant::now() < until, "{path} never appeared");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
