//! A machine without the client, or without the release binary: runs these tests in a child process that looks in the wrong place.

use std::process::{Command, Output};

/// Any test that needs the client.
const TEST: &str = "claude::hooks::nothing_is_written_when_there_is_no_hook_at_all";

fn without_client(may_skip: bool) -> Output {
    alone(TEST, may_skip).env("VERDONE_CLAUDE", "/nowhere/claude").output().unwrap()
}

/// Runs one test in a separate process.
fn alone(test: &str, may_skip: bool) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env_remove("VERDONE_NO_SKIP");
    if !may_skip {
        command.env("VERDONE_NO_SKIP", "1");
    }
    command
}

#[test]
fn a_test_without_its_client_says_that_it_is_skipped_and_why() {
    let output = without_client(true);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, format!("SKIPPED {TEST}: VERDONE_CLAUDE names /nowhere/claude, which is no program\n"));
    assert!(output.status.success());
}

#[test]
fn a_test_without_its_client_fails_where_nothing_may_be_skipped() {
    let output = without_client(false);
    assert_eq!(output.status.code(), Some(101));
    assert!(String::from_utf8_lossy(&output.stdout).contains("would be skipped: VERDONE_CLAUDE names"));
}

#[test]
fn a_test_of_the_debug_binary_fails_where_nothing_may_be_skipped() {
    // It needs the program but no client.
    let test = "claude::demo::a_demo_without_the_client_is_refused_before_anything_is_asked";
    let without = alone(test, false).env_remove("VERDONE_RELEASE").output().unwrap();
    assert_eq!(without.status.code(), Some(101));
    assert!(String::from_utf8_lossy(&without.stdout).contains("VERDONE_RELEASE is not set"));
    let wrong = alone(test, true).env("VERDONE_RELEASE", "/nowhere/verdone").output().unwrap();
    assert_eq!(wrong.status.code(), Some(101));
    assert!(String::from_utf8_lossy(&wrong.stdout).contains("VERDONE_RELEASE names /nowhere/verdone, which is no program"));
}
