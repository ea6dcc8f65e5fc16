//! A machine without the client: these tests in a process of their own that looks for it in the wrong place.

use std::process::{Command, Output};

/// Any test that needs the client.
const TEST: &str = "hooks::nothing_is_written_when_there_is_no_hook_at_all";

fn without_client(may_skip: bool) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST]).env("VERDONE_CLAUDE", "/nowhere/claude").env_remove("VERDONE_NO_SKIP");
    if !may_skip {
        command.env("VERDONE_NO_SKIP", "1");
    }
    command.output().unwrap()
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
