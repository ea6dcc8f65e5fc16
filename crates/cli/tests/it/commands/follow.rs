//! `verdone log --follow` next to a run, and commands that examine a run in progress.

use std::fs;

use verdone_testkit::{PATIENCE, Signal};

use crate::commands::stage::{compare, slow_project, start, verdone};

#[test]
fn following_a_run_ends_when_the_run_ends() {
    let (sandbox, word) = slow_project();
    let run = start(&sandbox, &["run"]);
    run.wait_for("Waiting for the word.", PATIENCE);
    let log = start(&sandbox, &["log", "--follow"]);
    log.wait_for("Turn started", PATIENCE);
    let status = verdone(&sandbox, &["status"]);
    assert!(status.stdout.contains("State    agent working for"), "{}", status.transcript());
    assert_eq!(status.stderr, "");
    let second = verdone(&sandbox, &["run"]);
    fs::write(word, "").unwrap();
    run.wait(PATIENCE).assert_code(0);
    let log = log.wait(PATIENCE);
    log.assert_code(0);
    compare("log-follow", &sandbox, &[log]);
    compare("run-locked", &sandbox, &[second]);
}

#[test]
fn following_a_run_that_died_ends_too() {
    let (sandbox, _) = slow_project();
    let run = start(&sandbox, &["run"]);
    run.wait_for("Waiting for the word.", PATIENCE);
    run.signal(Signal::KILL);
    run.wait(PATIENCE);
    let outputs = [verdone(&sandbox, &["log", "--follow"]), verdone(&sandbox, &["status"])];
    compare("log-follow-died", &sandbox, &outputs);
}
