//! How many tests a check ran, if any, according to its output and its report files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CommandSpec;
use verdone_testlog::{MissingOutput, Report, SomeRan, TestCounts, TestNames};

/// How many names of failed tests to list.
const MOST_NAMES: usize = 10;

/// Test counts of one check run. Numbers that the framework does not report are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCount {
    /// Passed or failed.
    pub ran: u64,
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

/// What is known about the tests of a check run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestsSeen {
    pub count: Option<TestCount>,
    /// The names of all tests, if they are listed.
    pub names: Option<TestNames>,
    /// It was a test run, but no test completed.
    pub nothing_ran: bool,
    /// The runner always prints a summary, but exited with 0 without one.
    pub no_summary: bool,
    /// At least one test completed.
    pub some_ran: bool,
    /// The first tests that failed according to a report, regardless of the exit code.
    pub failed: Vec<String>,
    /// The runner's message about tests it could not find, if that was the only reason for the failure.
    pub absent: Option<String>,
}

/// Reads a finished check. `reports` are its `JUnit` XML files; if there are any, they take precedence over the output.
pub fn tests_seen(command: &CommandSpec, exit_code: i32, output: &str, reports: &[Report]) -> TestsSeen {
    if !reports.is_empty() {
        return reported(reports);
    }
    let commands = match command {
        CommandSpec::Shell(line) => verdone_testlog::simple_commands(line),
        CommandSpec::Argv(words) => vec![words.clone()],
    };
    let seen_whole = match command {
        CommandSpec::Shell(line) => verdone_testlog::is_seen_whole(line),
        CommandSpec::Argv(_) => true,
    };
    if exit_code == 0 && seen_whole {
        match verdone_testlog::missing_from(&commands, output) {
            MissingOutput::Nothing => {}
            MissingOutput::Summary => return TestsSeen { no_summary: true, ..TestsSeen::default() },
            MissingOutput::Tests => return TestsSeen { nothing_ran: true, ..TestsSeen::default() },
        }
    }
    let tally = verdone_testlog::tally(&commands, output);
    let is_told = tally.some == SomeRan::No && (exit_code == 0 || verdone_testlog::may_be_code_of_tests(&commands));
    let is_none = is_told || verdone_testlog::is_code_of_no_tests(&commands, exit_code);
    let mut seen = TestsSeen {
        count: tally.counts.map(counted_by),
        names: tally.names,
        nothing_ran: is_none && tally.some != SomeRan::Yes,
        some_ran: tally.some == SomeRan::Yes,
        ..TestsSeen::default()
    };
    let may_lack = exit_code != 0 && seen.count.is_none_or(|count| count.failed == 0) && (tally.missing > 0 || !seen.some_ran);
    if may_lack {
        seen.absent = verdone_testlog::absent(&commands, output, tally.missing > 0);
    }
    // A pipe or a later command may hide a failure that no summary counts.
    let may_hide = exit_code == 0 && seen.count.is_none_or(|count| count.failed == 0);
    let outcome = may_hide.then(|| verdone_testlog::read(&commands, Some(exit_code), output)).flatten();
    if let Some(hidden) = outcome.filter(|outcome| outcome.hidden) {
        let TestCount { passed, failed, skipped, .. } = counted_by(hidden.counts);
        seen = TestsSeen { count: Some(counted(passed, failed.max(1), skipped)), some_ran: true, ..TestsSeen::default() };
    }
    seen
}

fn reported(reports: &[Report]) -> TestsSeen {
    let count = counted_by(reports.iter().map(|report| report.counts).fold(TestCounts::default(), TestCounts::plus));
    let failed = reports.iter().flat_map(|report| &report.failures).map(|failure| failure.name.clone());
    TestsSeen {
        count: Some(count),
        names: TestNames::joined(reports.iter().map(|report| report.names.as_ref())),
        nothing_ran: count.ran == 0,
        no_summary: false,
        some_ran: count.ran > 0,
        failed: failed.take(MOST_NAMES).collect(),
        absent: None,
    }
}

fn counted_by(TestCounts { passed, failed, skipped }: TestCounts) -> TestCount {
    counted(passed.unwrap_or(0), failed.unwrap_or(0), skipped.unwrap_or(0))
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
    fn a_wrapper_that_ran_no_test_is_told_by_the_summaries_in_its_output() {
        let pytest = "===== test session starts =====\ncollected 0 items\n\n===== no tests ran in 0.01s =====\n";
        let ran = EMPTY_BINARY.replace("0 passed", "2 passed");
        for (command, output, none) in [
            ("make test", EMPTY_BINARY.to_owned(), true),
            ("npm test", "No tests found, exiting with code 0\n".to_owned(), true),
            ("./scripts/test", pytest.to_owned(), true),
            ("./ci", pytest.to_owned(), true),
            ("sh scripts/all.sh", "Test Suites: 0 total\nTests:       0 total\n".to_owned(), true),
            ("./ci", [pytest, &ran, EMPTY_BINARY].concat(), false),
            ("make test", [&ran, pytest].concat(), false),
            ("cargo test && pytest", [&ran, pytest].concat(), false),
            ("cargo test && pytest", [EMPTY_BINARY, pytest].concat(), true),
            ("./ci", "all done\n".to_owned(), false),
            ("cat report.txt", pytest.to_owned(), false),
        ] {
            assert_eq!(seen(command, &output).1, none, "{command}: {output}");
        }
    }

    #[test]
    fn a_test_that_ran_is_seen_in_any_output_that_can_be_read() {
        let some = |command: &str, output: &str| tests_seen(&CommandSpec::Shell(command.to_owned()), 0, output, &[]).some_ran;
        assert!(some("./ci", "12 tests passed\n") && some("python3 all.py", "Ran 3 tests in 0.001s\n\nOK\n"));
        assert!(some("go test ./...", "ok  \texample.com/a\t0.003s\n"), "go counts only when asked to");
        assert!(some("mytool", "# TOTAL: 4\n# PASS:  4\n"));
        assert!(!some("./ci", "all done\n") && !some("cargo test", EMPTY_BINARY) && !some("true", ""));
        assert!(
            !some("cargo test", &[EMPTY_BINARY, "12 tests passed\n"].concat()),
            "what a test printed is no summary of cargo's"
        );
    }

    #[test]
    fn a_runner_that_says_nothing_is_not_believed_unless_its_words_went_elsewhere() {
        let of = |command: CommandSpec, code: i32| tests_seen(&command, code, "", &[]);
        let shell = |line: &str| of(CommandSpec::Shell(line.to_owned()), 0);
        let words = ["python3", "-m", "unittest"].map(str::to_owned).to_vec();
        assert!(shell("python3 -m unittest").no_summary && of(CommandSpec::Argv(words.clone()), 0).no_summary);
        assert!(!of(CommandSpec::Argv(words), 1).no_summary, "the exit code says enough");
        assert!(!shell("python3 -m unittest 2> log").no_summary && !shell("true").no_summary);
    }

    #[test]
    fn a_failing_run_without_tests_proves_nothing_unless_something_else_failed() {
        let none = "\nno tests ran in 0.01s\n";
        let of = |line: &str, code: i32| tests_seen(&CommandSpec::Shell(line.to_owned()), code, none, &[]).nothing_ran;
        assert!(of("pytest -q", 5) && of("make test", 2) && of("ruff check . && pytest -q", 5) && of("./ci.sh", 5));
        assert!(of("pytest -q && ruff check .", 5), "pytest ended it");
        assert!(!of("pytest -q; ruff check .", 1), "ruff ended it");
    }

    #[test]
    fn reports_are_believed_before_the_output() {
        let report = |inner: &str| {
            let text = format!("<?xml version=\"1.0\"?>\n<testsuites><testsuite name=\"a\">{inner}</testsuite></testsuites>");
            verdone_testlog::report(&text).unwrap()
        };
        let two = report("<testcase name=\"a\"/><testcase name=\"b\"><skipped/></testcase>");
        let one = report("<testcase name=\"c\"><failure message=\"x\"/></testcase>");
        let command = CommandSpec::Shell("make check".to_owned());
        let both = tests_seen(&command, 0, "", &[two, one]);
        assert_eq!(both.count, Some(TestCount { ran: 2, passed: 1, failed: 1, skipped: 1 }));
        assert!(!both.nothing_ran && both.some_ran);
        assert_eq!(both.failed, ["c"]);
        assert!(tests_seen(&command, 0, "3 passed", &[report("")]).nothing_ran);
    }
}
