//! From how a check ended to what that means.

use verdone_core::check::{Check, CheckOutcome, TestCount, ZeroTests, tests_seen};

use crate::process::{Exit, check_program};

/// The outcome of a check, and its tests. `reports` are the test reports that it wrote, where it was to write some.
pub(super) fn judge(check: &Check, exit: Exit, output: &str, reports: &[String]) -> (CheckOutcome, Option<TestCount>) {
    let outcome = outcome(check, exit);
    let Exit::Code(code) = exit else { return (outcome, None) };
    let seen = tests_seen(&check.command, code, output, reports);
    let unknown = |reason: String| (CheckOutcome::Unknown { reason }, seen.count);
    match (&outcome, check.terms.zero_tests, &check.terms.junit) {
        (CheckOutcome::Passed, ZeroTests::Fail, Some(junit)) if reports.is_empty() => {
            unknown(format!("no test report was written: {junit}"))
        }
        (CheckOutcome::Passed, ZeroTests::Fail, _) if seen.nothing_ran => unknown("no tests were run".to_owned()),
        (_, ZeroTests::Fail | ZeroTests::Ok, _) => (outcome, seen.count),
    }
}

fn outcome(check: &Check, exit: Exit) -> CheckOutcome {
    let named = |what: &str| match check_program(&check.command) {
        Some(program) => format!("{what}: {program}"),
        None => what.to_owned(),
    };
    match exit {
        Exit::Code(0) => CheckOutcome::Passed,
        Exit::Code(127) => CheckOutcome::Unknown { reason: named("command not found (exit code 127)") },
        Exit::Code(126) => CheckOutcome::Unknown { reason: named("command not executable (exit code 126)") },
        // The exit code that pytest reserves for this.
        Exit::Code(5) if check.command.display().contains("pytest") => match check.terms.zero_tests {
            ZeroTests::Fail => CheckOutcome::Unknown { reason: "no tests were collected (pytest exit code 5)".to_owned() },
            ZeroTests::Ok => CheckOutcome::Passed,
        },
        Exit::Code(code) => CheckOutcome::Failed { code },
        Exit::Signal(signal) => CheckOutcome::Signalled { signal },
        Exit::Wall | Exit::Idle => CheckOutcome::TimedOut { after_ms: check.timeout.duration().as_millis() as u64 },
        Exit::Terminal => CheckOutcome::Unknown { reason: "it wanted to use the terminal".to_owned() },
        Exit::Interrupted(_) => CheckOutcome::Interrupted,
    }
}
