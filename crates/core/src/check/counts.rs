//! How many tests a check ran, told from its output and from the reports that it wrote; and whether it ran any.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CommandSpec;
use crate::test_outcome::{self, TestCounts, TestState};

/// Tests of one run of a check. What the framework does not say is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCount {
    /// Passed or failed.
    pub ran: u64,
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

/// What was seen of tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestsSeen {
    pub count: Option<TestCount>,
    /// It was a test run, and no test ran to an end.
    pub nothing_ran: bool,
}

/// Reads a finished check. `reports` are the texts of its `JUnit` XML files; where there are such, they are believed before the output.
pub fn tests_seen(command: &CommandSpec, exit_code: i32, output: &str, reports: &[String]) -> TestsSeen {
    let reported: Vec<TestCounts> = reports.iter().filter_map(|text| test_outcome::junit(text)).collect();
    if !reported.is_empty() {
        let sum = |pick: fn(&TestCounts) -> Option<u64>| reported.iter().filter_map(pick).fold(0, u64::saturating_add);
        let count = counted(sum(|counts| counts.passed), sum(|counts| counts.failed), sum(|counts| counts.skipped));
        return TestsSeen { count: Some(count), nothing_ran: count.ran == 0 };
    }
    let outcome = match command {
        CommandSpec::Shell(line) => test_outcome::read_line(line, Some(exit_code), output),
        CommandSpec::Argv(words) => test_outcome::read(Some(&[words]), Some(exit_code), output),
    };
    let Some(outcome) = outcome else { return TestsSeen::default() };
    let TestCounts { passed, failed, skipped } = outcome.counts;
    let says = passed.or(failed).or(skipped).is_some();
    let count = counted(passed.unwrap_or(0), failed.unwrap_or(0), skipped.unwrap_or(0));
    TestsSeen { count: says.then_some(count), nothing_ran: outcome.state == TestState::NothingRan }
}

fn counted(passed: u64, failed: u64, skipped: u64) -> TestCount {
    TestCount { ran: passed.saturating_add(failed), passed, failed, skipped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(command: &str, output: &str) -> (Option<(u64, u64, u64)>, bool) {
        let seen = tests_seen(&CommandSpec::Shell(command.to_owned()), 0, output, &[]);
        (seen.count.map(|count| (count.ran, count.failed, count.skipped)), seen.nothing_ran)
    }

    const EMPTY_BINARY: &str =
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";

    #[test]
    fn of_a_workspace_only_the_sum_counts() {
        let full = "running 2 tests\ntest a ... ok\ntest b ... ignored\n\n\
                    test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
        let workspace = [EMPTY_BINARY, full, EMPTY_BINARY].concat();
        assert_eq!(seen("cargo test --workspace", &workspace), (Some((1, 0, 1)), false));
        assert_eq!(seen("cargo test", &[EMPTY_BINARY, EMPTY_BINARY].concat()), (Some((0, 0, 0)), true));
    }

    #[test]
    fn a_filter_that_fits_no_test_ran_none() {
        let output = EMPTY_BINARY.replace("0 filtered out", "12 filtered out");
        assert_eq!(seen("cargo test no_such_test", &output), (Some((0, 0, 0)), true));
    }

    #[test]
    fn frameworks_that_say_so_ran_nothing() {
        for (command, output) in [
            ("npx jest --passWithNoTests", "No tests found, exiting with code 0\n"),
            ("go test ./...", "?   \texample.com/a\t[no test files]\n?   \texample.com/a/b\t[no test files]\n"),
            (
                "python -m unittest",
                "\n----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nOK\n",
            ),
        ] {
            assert!(seen(command, output).1, "{command}");
        }
    }

    #[test]
    fn what_is_no_test_run_is_never_blamed_for_running_none() {
        for (command, output) in [
            ("cargo build", "   Compiling a v0.1.0\n    Finished\n"),
            ("cargo clippy", "no tests ran\n"),
            ("eslint .", ""),
            ("true", ""),
            ("cargo test --no-run", "    Finished `test` profile\n  Executable unittests src/lib.rs\n"),
            ("echo 'running 0 tests'", "running 0 tests\n"),
        ] {
            assert!(!seen(command, output).1, "{command}");
        }
    }

    #[test]
    fn reports_are_believed_before_the_output() {
        let report =
            |inner: &str| format!("<?xml version=\"1.0\"?>\n<testsuites><testsuite name=\"a\">{inner}</testsuite></testsuites>");
        let two = report("<testcase name=\"a\"/><testcase name=\"b\"><skipped/></testcase>");
        let one = report("<testcase name=\"c\"><failure message=\"x\"/></testcase>");
        let command = CommandSpec::Shell("make check".to_owned());
        let both = tests_seen(&command, 0, "", &[two, one]);
        assert_eq!(both.count, Some(TestCount { ran: 2, passed: 1, failed: 1, skipped: 1 }));
        assert!(!both.nothing_ran);
        assert!(tests_seen(&command, 0, "3 passed", &[report("")]).nothing_ran);
        let summary = "<testsuite tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"2\"/>".to_owned();
        assert_eq!(tests_seen(&command, 1, "", &[summary]).count, Some(TestCount { ran: 3, passed: 1, failed: 2, skipped: 2 }));
        assert_eq!(tests_seen(&command, 0, "", &["not XML".to_owned()]), TestsSeen::default());
    }
}
