//! Everything that a turn or a check leaves running is ended, but no other process; a killed run takes its agent with it.

use std::time::{Duration, Instant};

use verdone_testkit::Signal;

use crate::run_loop::signals::{HANGS_ONCE, wait_for_file};
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, World};

/// A word that no other process on the machine has in its command line.
fn word(what: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("3600.{}{:03}{what}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Live processes with this word in their command line, inside or outside the sandbox.
fn with_word(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| String::from_utf8(std::fs::read(entry.path().join("cmdline")).ok()?).ok());
    lines.filter(|line| line.contains(word)).map(|line| line.replace('\0', " ")).collect()
}

fn wait_until_gone(word: &str, patience: Duration) {
    let until = Instant::now() + patience;
    while !with_word(word).is_empty() {
        assert!(Instant::now() < until, "still there: {:?}", with_word(word));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every kind of process that an agent may leave running. `sleep` accepts any number of seconds with a fraction.
fn litter(word: &str) -> String {
    format!(
        "sleep {word}1 >/dev/null 2>&1 &\n\
         setsid sleep {word}2 >/dev/null 2>&1 &\n\
         (setsid sh -c 'sleep {word}3 & exit 0' >/dev/null 2>&1 &)\n\
         env -i sleep {word}4 &\n\
         (setsid env -i sh -c 'sleep {word}5 & exit 0' >/dev/null 2>&1 &)\n\
         sh -c \"trap '' TERM HUP INT; while :; do sleep {word}6; done\" &\n\
         setsid sh -c \"trap '' TERM; kill -STOP \\$\\$; sleep {word}7\" &\n\
         sleep {word}8 & kill -STOP $!\n\
         sh -c 'sleep 0 & exec sleep {word}9' &\n\
         i=0; while [ $i -lt 200 ]; do sleep {word}0 >/dev/null 2>&1 & i=$((i+1)); done\n"
    )
}

#[test]
fn whatever_a_turn_leaves_running_is_ended_before_the_checks_and_the_users_own_is_not() {
    let (theirs, users) = (word("1"), word("2"));
    // The check itself tests that no process of the turn is alive while it runs.
    let look = format!(
        "test -f a && for p in /proc/[0-9]*/cmdline; do tr \"\\\\0\" \" \" < $p; done 2>/dev/null | grep -v grep | grep -q 'sleep {theirs}' && exit 1; test -f a"
    );
    let world = World::new(&ONE.replace("test -f a", &look), HONEST);
    world.sandbox.write("../tmp/agent.sh", format!("{}echo one > a\n", litter(&theirs)));
    // The same name, in the same folder, by the same user.
    let of_the_user = world.sandbox.spawn("/bin/sh", ["-c", &format!("sleep {users}; true")]);
    while with_word(&users).is_empty() {
        std::thread::yield_now();
    }
    let output = world.run_with(&["--agent-command", "sh ../tmp/agent.sh"], 0);
    assert!(with_word(&theirs).is_empty(), "{:?}", with_word(&theirs));
    assert!(!of_the_user.has_ended(), "the user's own process was touched\n{}", output.transcript());
}

#[test]
fn what_a_check_leaves_running_is_ended_too() {
    let mark = word("");
    let plan = ONE.replace("test -f a", &format!("(setsid sleep {mark} >/dev/null 2>&1 &); test -f a"));
    let world = World::new(&plan, HONEST);
    world.run(0);
    assert!(with_word(&mark).is_empty());
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn killed_in_a_turn_the_agent_and_all_it_started_is_gone_without_another_start() {
    let mark = word("");
    let world = World::new(ONE, HONEST);
    world.sandbox.write("../tmp/agent.sh", format!("{}echo half > half\necho in-the-turn\nwait\n", litter(&mark)));
    let run = world.sandbox.spawn(crate::run_loop::world::VERDONE, ["run", "--agent-command", "sh ../tmp/agent.sh"]);
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    world.sandbox.assert_no_survivors(PATIENCE);
    // Even a process that has left its session, parent and environment: all of them are in the workspace's pid namespace.
    wait_until_gone(&mark, PATIENCE);

    // And its unfinished work is in no commit.
    world.run(0);
    assert_eq!(world.tree_files("HEAD").iter().filter(|file| *file == "half").count(), 0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
}

#[test]
fn killed_in_a_check_the_check_is_gone_without_another_start() {
    let plan = ONE.replace("test -f a", "test -f a || exit 1; : > ../tmp/checking; sleep 600");
    let world = World::new(&plan, HONEST);
    let run = world.start();
    wait_for_file(&world, "../tmp/checking");
    run.signal(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn killed_together_with_its_group_the_agent_is_gone_all_the_same() {
    let world = World::new(ONE, HANGS_ONCE);
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    run.signal_group(Signal::KILL);
    run.wait(PATIENCE).assert_code(-9);
    world.sandbox.assert_no_survivors(PATIENCE);
    world.run(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
}

#[test]
fn an_interrupt_to_the_loop_alone_ends_it_and_a_deaf_agent_within_seconds() {
    let script = "[[turn]]\nsteps = [{ ignore_term = true }, { say = \"deaf\" }, { hang = true }]\n";
    let world = World::with(ONE, script, &Settings::default());
    let run = world.start();
    run.wait_for("deaf", PATIENCE);
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(130);
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn the_watchdog_goes_when_the_run_ends() {
    let world = World::new(ONE, HANGS_ONCE);
    // The grace period is on its command line, and this value is unique.
    let grace = format!("{}", 1_000_000 + std::process::id());
    let settings = world.sandbox.read(".verdone/config.toml").replace("200ms", &format!("{grace}ms"));
    world.sandbox.write(".verdone/config.toml", settings);
    let run = world.start();
    run.wait_for("\u{2502} in-the-turn", PATIENCE);
    assert_eq!(with_word(&grace).len(), 1, "{:?}", with_word(&grace));
    run.signal(Signal::TERM);
    run.wait(PATIENCE).assert_code(143);
    wait_until_gone(&grace, PATIENCE);
}
