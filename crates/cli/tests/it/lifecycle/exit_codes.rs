//! Each script with every way to end, and every way to fail to run.

use serde_json::{Value, json};

use crate::lifecycle::world::{SCRIPTS, Setting, World};

/// How the script under test is set up, and the expected event.
struct Case {
    text: &'static str,
    timeout: &'static str,
    exit: Value,
}

fn case(text: &'static str, exit: Value) -> Case {
    Case { text, timeout: "30s", exit }
}

/// Finish type, exit code, meaning, commits.
type Expected = (&'static str, i32, &'static str, usize);

/// Runs one combination. `finished` always records how the run ended.
#[track_caller]
fn check(script: &str, case: &Case, behavior: &str, expected: Expected) {
    let tables = format!("[hooks]\ntimeout = \"{}\"\nfail_behavior = \"{behavior}\"\n", case.timeout);
    let setting = Setting { tables: &tables, ..Setting::default() };
    let noting = "echo \"$VERDONE_FINISH_TYPE\" >> ../tmp/finish";
    let text = if script == "finished" { format!("{noting}\n{}", case.text) } else { case.text.to_owned() };
    let mut scripts = vec![(script, text.as_str())];
    if script != "finished" {
        scripts.push(("finished", noting));
    }
    let world = World::new(&setting, &scripts);
    let (finish, code, meaning, commits) = expected;
    let words = format!("{script}: {} with {behavior}", case.text);
    let output = world.sandbox.verdone(crate::lifecycle::world::VERDONE, ["run"]);
    assert_eq!(output.code, code, "{words}\n{}", output.transcript());
    assert_eq!(world.noted("finish"), format!("{finish}\n"), "{words}");
    let events = world.events();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!(count("committed"), commits, "{words}");
    assert!(events.iter().any(|event| event["event"] == "run_stopping" && event["finish"] == finish), "{words}");
    let events: Vec<_> = events.iter().filter(|event| event["event"] == "script_ran" && event["script"] == script).collect();
    assert!(!events.is_empty(), "{words}");
    for event in &events {
        assert_eq!((&event["exit"], &event["meaning"]), (&case.exit, &json!(meaning)), "{words}");
    }
    let times = if meaning == "skip" { 20 } else { 1 };
    assert_eq!(events.len(), times, "{words}");
    world.sandbox.assert_no_survivors(crate::lifecycle::world::PATIENCE);
}

const DONE: Expected = ("complete", 0, "go_on", 1);

fn ended_with(meaning: &'static str) -> Expected {
    ("complete", 0, meaning, 1)
}

fn aborted(commits: usize) -> Expected {
    ("hook_abort", 4, "abort", commits)
}

/// 0, 1 and 2 mean the same for every `fail_behavior`; it applies to all other results.
fn check_all(script: &str, one: Expected, two: Expected, failed: Expected) {
    for behavior in ["continue", "abort"] {
        check(script, &case("exit 0", json!({ "code": 0 })), behavior, DONE);
    }
    check(script, &case("exit 1", json!({ "code": 1 })), "abort", one);
    check(script, &case("exit 2", json!({ "code": 2 })), "continue", two);
    let failures = [
        case("exit 3", json!({ "code": 3 })),
        case("exit 124", json!({ "code": 124 })),
        case("kill -9 $$", json!({ "signal": 9 })),
        Case {
            text: "trap '' TERM; while :; do sleep 9; done",
            timeout: "1s",
            exit: json!({ "timed_out": { "after_ms": 1000 } }),
        },
    ];
    // Most of the time is spent waiting for a timeout.
    std::thread::scope(|scope| {
        for failure in &failures {
            scope.spawn(move || check(script, failure, "continue", ended_with("error")));
            scope.spawn(move || check(script, failure, "abort", failed));
        }
    });
}

#[test]
fn started_warns_aborts_or_fails() {
    check_all("started", ended_with("warning"), aborted(0), aborted(0));
}

#[test]
fn next_iteration_skips_aborts_or_fails() {
    check_all("next_iteration", ("stalled", 4, "skip", 0), aborted(0), aborted(0));
}

#[test]
fn post_iteration_warns_aborts_or_fails() {
    check_all("post_iteration", ended_with("warning"), aborted(1), aborted(1));
}

#[test]
fn finished_can_only_tell() {
    check_all("finished", ended_with("warning"), ended_with("error"), ended_with("error"));
}

#[test]
fn a_skipped_iteration_counts_and_the_story_is_tried_again() {
    let skip_once = "echo \"$VERDONE_ITERATION\" >> ../tmp/iterations; [ \"$VERDONE_ITERATION\" -gt 1 ] || exit 1";
    let world = World::new(&Setting::default(), &[("next_iteration", skip_once)]);
    world.run(0);
    assert_eq!(world.noted("iterations"), "1\n2\n");
    assert_eq!(world.all("iteration_skipped").len(), 1);
    assert_eq!(world.commits(), 1);

    let setting = Setting { limits: "max_iterations = 1", ..Setting::default() };
    let world = World::new(&setting, &[("next_iteration", "exit 1")]);
    world.run(3);
    assert_eq!(world.finish(), "max_iterations");
}

/// Every script records that it ran; returns those that did.
fn ran(tables: &str, variables: &[(&str, &str)], forbidden: &str) -> Vec<String> {
    let setting = Setting { tables, ..Setting::default() };
    let scripts: Vec<_> = SCRIPTS.iter().map(|name| (*name, format!("echo {name} >> ../tmp/ran"))).collect();
    let scripts: Vec<_> = scripts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut world = World::new(&setting, &scripts);
    for (name, value) in variables {
        world.sandbox.set(name, value);
    }
    world.run(0);
    assert!(world.script_events(forbidden).is_empty());
    world.noted("ran").lines().map(str::to_owned).collect()
}

#[test]
fn scripts_run_in_their_order_unless_switched_off() {
    assert_eq!(ran("", &[], "none"), SCRIPTS);
    assert!(ran("[hooks]\nenabled = false", &[], "started").is_empty());
    for prefix in ["VERDONE", "FRESHER"] {
        assert!(ran("", &[(&format!("{prefix}_HOOKS_ENABLED"), "false")], "started").is_empty());
    }
    for script in SCRIPTS {
        let others: Vec<_> = SCRIPTS.into_iter().filter(|other| *other != script).collect();
        assert_eq!(ran(&format!("[hooks.{script}]\nenabled = false"), &[], script), others);
        for prefix in ["VERDONE", "FRESHER"] {
            let variable = format!("{prefix}_HOOK_{}_ENABLED", script.to_uppercase());
            assert_eq!(ran("", &[(&variable, "false")], script), others, "{variable}");
        }
    }
    // The environment has the last word, and Verdone's variable wins.
    assert_eq!(ran("[hooks]\nenabled = false", &[("FRESHER_HOOKS_ENABLED", "true")], "none"), SCRIPTS);
    assert_eq!(ran("", &[("FRESHER_HOOKS_ENABLED", "false"), ("VERDONE_HOOKS_ENABLED", "true")], "none"), SCRIPTS);
}

#[test]
fn a_script_that_cannot_be_run_is_a_warning() {
    let world = World::new(&Setting::default(), &[]);
    for script in SCRIPTS {
        world.sandbox.write(format!(".verdone/hooks/{script}"), "#!/bin/sh\n: > ../tmp/evil\n");
    }
    let doctor = world.sandbox.verdone(crate::lifecycle::world::VERDONE, ["doctor"]);
    doctor.assert_code(0);
    let output = world.run(0);
    for script in SCRIPTS {
        assert!(doctor.stdout.contains(&format!("{script} cannot be run: it is not executable")), "{}", doctor.stdout);
        let events = world.script_events(script);
        assert_eq!(events[0]["exit"], json!({ "not_runnable": { "reason": "it is not executable" } }));
        assert_eq!(events[0]["meaning"], "warning");
        assert!(output.stdout.contains(&format!("Script {script}: cannot be run: it is not executable")), "{}", output.stdout);
    }
    assert_eq!(world.noted("evil"), "");
}

#[test]
fn a_missing_interpreter_is_a_warning_and_a_missing_first_line_means_the_shell() {
    let world = World::new(&Setting::default(), &[]);
    world.sandbox.write_script(".verdone/hooks/started", "#!/no/such/shell\n");
    world.sandbox.write_script(".verdone/hooks/finished", "# no interpreter is named\necho shell > ../tmp/finish\n");
    world.run(0);
    assert_eq!(world.script_events("started")[0]["meaning"], "warning");
    assert_eq!(world.script_events("finished")[0]["exit"], json!({ "code": 0 }));
    assert_eq!(world.noted("finish"), "shell\n");
}

#[test]
fn a_bad_switch_is_refused_by_name() {
    for (name, value) in [
        ("FRESHER_HOOKS_ENABLED", "maybe"),
        ("VERDONE_HOOK_TIMEOUT", "30s"),
        ("FRESHER_HOOK_FAIL_BEHAVIOR", "explode"),
        ("VERDONE_HOOK_POST_ITERATION_ENABLED", "2"),
    ] {
        let mut world = World::new(&Setting::default(), &[]);
        world.sandbox.set(name, value);
        let output = world.run(2);
        assert!(output.stderr.contains(&format!("{name}: \"{value}\" is not")), "{}", output.stderr);
    }
}

#[test]
fn the_environment_sets_timeout_and_fail_behavior() {
    let mut world = World::new(&Setting::default(), &[("started", "sleep 60")]);
    world.sandbox.set("FRESHER_HOOK_TIMEOUT", "1");
    world.sandbox.set("FRESHER_HOOK_FAIL_BEHAVIOR", "abort");
    world.run(4);
    assert_eq!(world.finish(), "hook_abort");
    assert_eq!(world.script_events("started")[0]["exit"], json!({ "timed_out": { "after_ms": 1000 } }));
}
