//! Wall clock jumps, and a run that is frozen from outside: neither affects limits or durations.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use verdone_testkit::Signal;

use crate::run_loop::world::{ONE, PATIENCE, Settings, TWO, World, text};

/// Each story waits for its own file.
const WAITS: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ say = \"waiting for one\" }, { run = \"until test -f ../tmp/one; do sleep 0.02; done\" }, { create = \"a\" }]\n\
                     [[turn]]\nstory = \"US-002\"\nsteps = [{ say = \"waiting for two\" }, { run = \"until test -f ../tmp/two; do sleep 0.02; done\" }, { create = \"b\" }]\n";

/// Far below the jumps in these tests, far above the duration of the runs.
const TOTAL: &str = "total_time = \"10m\"\nturn_time = \"9m\"\nidle_time = \"8m\"";

fn faketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().flatten().map(|entry| entry.path().join("faketime"));
    let mut places = folders.chain([PathBuf::from("/usr/lib/faketime")]).map(|folder| folder.join("libfaketimeMT.so.1"));
    places.find(|path| path.exists()).expect("these tests need libfaketime: ./scripts/test installs it")
}

/// A world in which every process has an adjustable wall clock and the kernel's real monotonic clock.
fn with_a_clock_to_set(plan: &str, script: &str, limits: &str) -> World {
    let mut world = World::with(plan, script, &Settings { limits, ..Settings::default() });
    world.sandbox.set("LD_PRELOAD", faketime());
    world.sandbox.set("FAKETIME_TIMESTAMP_FILE", world.sandbox.root().join("clock"));
    for name in ["FAKETIME_NO_CACHE", "DONT_FAKE_MONOTONIC", "FAKETIME_DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"] {
        world.sandbox.set(name, "1");
    }
    set(&world, "+0");
    world
}

fn set(world: &World, offset: &str) {
    world.sandbox.write("../clock", format!("{offset}\n"));
}

#[test]
fn a_wall_clock_that_jumps_forth_and_back_changes_no_limit_and_no_duration() {
    let world = with_a_clock_to_set(TWO, WAITS, TOTAL);
    let run = world.start();
    run.wait_for("waiting for one", PATIENCE);
    set(&world, "+5h");
    let during = world.verdone(&["status"]);
    world.sandbox.write("../tmp/one", "");
    run.wait_for("waiting for two", PATIENCE);
    set(&world, "-3d");
    let behind = world.verdone(&["status"]);
    world.sandbox.write("../tmp/two", "");
    let output = run.wait(PATIENCE);
    output.assert_code(0);
    during.assert_code(0);
    behind.assert_code(0);

    let events = world.events();
    let days: Vec<String> = events.iter().map(|event| text(&event["at"])[..10].to_owned()).collect();
    assert!(days.first() > days.last(), "the clock was really set back: {days:?}");
    let active: Vec<u64> = events.iter().map(|event| event["active_ms"].as_u64().unwrap()).collect();
    assert!(active.is_sorted(), "{active:?}");
    let limit = Duration::from_mins(2).as_millis() as u64;
    for event in world.all("turn_ended").iter().chain(&world.all("run_stopped")) {
        assert!(event["duration_ms"].as_u64().unwrap() < limit, "{event}");
    }
    let pages = ["status", "report", "log"].map(|page| world.verdone(&[page]).assert_code(0).stdout.clone());
    for page in pages.iter().chain([&output.stdout, &behind.stdout]) {
        let hours = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).strip_suffix(['h', 'd']).map(str::to_owned);
        let is_long = |word: &str| hours(word).is_some_and(|count| count.len() < 4 && count.parse::<u32>().is_ok());
        assert!(!page.split_whitespace().any(is_long), "{page}");
    }
}

#[test]
fn a_run_begun_after_the_clock_was_set_back_is_still_the_latest() {
    let world = with_a_clock_to_set(TWO, WAITS, TOTAL);
    for (word, offset, code) in [("one", "+0", 3), ("two", "-3d", 0)] {
        set(&world, offset);
        world.sandbox.write(format!("../tmp/{word}"), "");
        world.run_with(&["--max-iterations", "1"], code);
    }
    assert_eq!(world.finish(), "complete", "the second run is the one that is looked at");
    assert_eq!(
        std::fs::read_dir(world.sandbox.path(".verdone/runs")).unwrap().flatten().filter(|e| e.path().is_dir()).count(),
        2
    );
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.subjects()[..2], ["revert: US-002", "feat(US-002): Write b"], "and what it did is what is undone");
}

/// Asserts that the duration is much less than the wall time: a slow machine makes both longer, but only the standstill makes them differ.
#[track_caller]
pub(crate) fn assert_less(event: &Value, wall: Duration, standstill: Duration) {
    let counted = Duration::from_millis(event["duration_ms"].as_u64().unwrap());
    assert!(
        counted < wall.checked_sub(standstill / 2).unwrap(),
        "{counted:?} of {wall:?} with a stop of {standstill:?}: {event}"
    );
}

#[test]
fn a_run_that_was_frozen_from_outside_has_lost_no_time() {
    let limits = "turn_time = \"10s\"\nidle_time = \"10s\"";
    let frozen = Duration::from_secs(12);
    let world = World::with(ONE, WAITS, &Settings { limits, ..Settings::default() });
    let begin = Instant::now();
    let run = world.start();
    run.wait_for("waiting for one", PATIENCE);
    run.signal(Signal::STOP);
    // There is no event to wait for: this is the time that must not count.
    std::thread::sleep(frozen);
    run.signal(Signal::CONT);
    world.sandbox.write("../tmp/one", "");
    run.wait(PATIENCE).assert_code(0);
    assert_eq!(world.all("turn_ended").len(), 1);
    assert_less(&world.last("turn_ended"), begin.elapsed(), frozen);
}

#[test]
fn no_time_goes_by_in_a_pause() {
    let world = World::with(TWO, WAITS, &Settings { limits: "total_time = \"15s\"", ..Settings::default() });
    let (begin, pause) = (Instant::now(), Duration::from_secs(17));
    let run = world.start();
    run.wait_for("waiting for one", PATIENCE);
    world.verdone(&["pause"]).assert_code(0);
    world.sandbox.write("../tmp/one", "");
    run.wait_for("Requested: pause", PATIENCE);
    run.wait_for("Agent stopped", PATIENCE);
    std::thread::sleep(pause);
    world.verdone(&["resume"]).assert_code(0);
    world.sandbox.write("../tmp/two", "");
    run.wait(PATIENCE).assert_code(0);
    assert_less(&world.last("run_stopped"), begin.elapsed(), pause);
}
