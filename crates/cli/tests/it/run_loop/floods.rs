//! Output floods from an agent, a check and a lifecycle script: the beginning and the end are kept, memory use stays small, and the run
//! continues.

use std::path::Path;

use verdone_testkit::Output;

use crate::run_loop::signals::wait_for_file;
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, World, text};

/// Enough to fill any buffer several times, and still fast without optimisation.
const FLOOD: usize = 16_000_000;
/// How much a run's memory may grow, in kB: far less than the flood.
const MOST: u64 = 4_000;

/// Prints a beginning, a flood of one kind, and an end. Before and after the flood, it waits until the test has measured the run's memory.
fn flood(kind: &str) -> String {
    let body = match kind {
        "lines" => format!("yes 0123456789012345678901234567890123456789 | head -c {FLOOD}"),
        "one endless line" => format!("yes 0123456789012345678901234567890123456789 | tr -d \"\\\\n\" | head -c {FLOOD}"),
        "garbage" => format!("head -c {} /dev/urandom", FLOOD / 8),
        "escapes" => {
            format!("yes \"$(printf \"\\\\033]0;pwned\\\\007\\\\033[2J\\\\033[31m\\\\033[999B\\\\r\")\" | head -c {}", FLOOD / 8)
        }
        other => panic!("no such flood: {other}"),
    };
    let wait = |at: &str| format!(": > ../tmp/{at}; until test -e ../tmp/{at}-seen; do sleep 0.01; done");
    format!("echo the first line; {}; {body}; echo; echo the last line; {}", wait("begin"), wait("end"))
}

/// A run with a flood, and how much its memory grew.
fn run(world: &World, arguments: &[&str]) -> (Output, u64) {
    let run = world.start_with(arguments);
    let peaks = ["begin", "end"].map(|at| {
        wait_for_file(world, &format!("../tmp/{at}"));
        let status = std::fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        world.sandbox.write(format!("../tmp/{at}-seen"), "");
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    });
    let output = run.wait(PATIENCE);
    output.assert_code(0);
    (output, peaks[1] - peaks[0])
}

fn assert_bounded(output: &Path, (run, grown): &(Output, u64), kind: &str) {
    assert!(*grown < MOST, "{kind}: {grown} kB");
    let kept = std::fs::read(output).unwrap();
    assert!(kept.len() < 150_000, "{kind}: {} bytes", kept.len());
    let kept = String::from_utf8_lossy(&kept);
    assert!(kept.starts_with("the first line\n") && kept.ends_with("the last line\n"), "{kind}");
    assert!(kept.contains(" bytes cut ...]\n"), "{kind}");
    // On a slow machine, more may be shown: there is a limit per second.
    let readable = 2_000_000 + 500_000 * run.duration.as_secs() as usize;
    let shown = &run.stdout;
    assert!(shown.len() < readable, "{kind}: {} bytes were shown in {:?}", shown.len(), run.duration);
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!shown.contains(control), "{kind}: a control sequence reached the output");
}

fn world(plan: &str) -> World {
    World::with(plan, HONEST, &Settings { limits: "output_bytes = 100000", ..Settings::default() })
}

#[test]
fn an_agent_that_floods_does_no_harm() {
    for kind in ["lines", "one endless line", "garbage", "escapes"] {
        let world = world(ONE);
        world.sandbox.write("../tmp/agent.sh", format!("{}; echo one > a", flood(kind)));
        let run = run(&world, &["--agent-command", "exec sh ../tmp/agent.sh"]);
        assert_bounded(&world.run_dir().join(text(&world.last("turn_ended")["output"])), &run, kind);
        let shown = &run.0.stdout;
        assert!(shown.contains("\u{2502} the first line\n") && shown.contains("\u{2502} the last line\n"), "{kind}");
    }
}

#[test]
fn a_check_that_floods_does_no_harm() {
    let world = world(&ONE.replace("test -f a", "test -f a || exit 1; exec sh ../tmp/check.sh"));
    world.sandbox.write("../tmp/check.sh", flood("lines"));
    let run = run(&world, &[]);
    let check = &world.last("verified")["report"]["runs"]["attempt"][0];
    assert_bounded(&world.run_dir().join(text(&check["output"])), &run, "check");
    assert!(check["tail"].as_str().unwrap().len() < 10_000);
}

#[test]
fn a_lifecycle_script_that_floods_does_no_harm() {
    let world = world(ONE);
    world.sandbox.write_script(".verdone/hooks/started", &format!("#!/bin/sh\n{}\n", flood("lines")));
    let run = run(&world, &[]);
    let ran = world.last("script_ran");
    assert_bounded(&world.run_dir().join(text(&ran["output"])), &run, "script");
}
