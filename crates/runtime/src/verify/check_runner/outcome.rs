//! Determines a check's outcome from how its process ended.

use verdone_core::base::plural::plural;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::check::{Check, CheckOutcome, TestsSeen, ZeroTests, tests_seen};
use verdone_testlog::{Report, program_not_found, report};

use super::reports::Written;
use crate::process::{Exit, check_program};

const NO_TESTS: &str = "no tests were run";

/// Why a gate that must run tests did not pass.
const NO_COUNT: &str =
    "no test count was found in its output (name its report with `junit`, or allow zero tests: zero_tests = \"ok\")";

const NO_SUMMARY: &str = "it ended without the test summary that its runner prints; do not silence its output";

/// The outcome of a run of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) outcome: CheckOutcome,
    pub(super) seen: TestsSeen,
    /// Tests that failed according to a report even though the exit code is 0; shown to people.
    pub(super) failed: Option<String>,
}

/// `written` are the test reports that the check wrote, if it should write any.
pub(super) fn judge(check: &Check, exit: Exit, output: &str, written: &Written) -> Judged {
    let Exit::Code(code) = exit else {
        return Judged { outcome: outcome(check, exit, output), seen: TestsSeen::default(), failed: None };
    };
    let (reports, trouble) = match read(written, check.terms.zero_tests) {
        Ok(reports) => (reports, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let seen = tests_seen(&check.command, code, output, &reports);
    let is_reported = !reports.is_empty() && seen.count.is_some_and(|count| count.failed > 0);
    let (outcome, failed) = match (outcome(check, exit, output), trouble) {
        // A report is trusted entirely or not at all.
        (CheckOutcome::Passed, Some(reason)) => (CheckOutcome::Unknown { reason }, None),
        (CheckOutcome::Passed, None) if is_reported => (CheckOutcome::Failed { code }, Some(failed_tests(&seen))),
        (CheckOutcome::Passed, None) => (passed(check.terms.zero_tests, &seen), None),
        (CheckOutcome::Failed { .. }, _) => (failed(check.terms.zero_tests, code, &seen), None),
        (other, _) => (other, None),
    };
    Judged { outcome, seen, failed }
}

/// What an exit code of 0 means.
fn passed(zero_tests: Option<ZeroTests>, seen: &TestsSeen) -> CheckOutcome {
    let unknown = |reason: &str| CheckOutcome::Unknown { reason: reason.to_owned() };
    match zero_tests {
        Some(ZeroTests::Fail) | None if seen.nothing_ran => unknown(NO_TESTS),
        Some(ZeroTests::Fail) | None if seen.no_summary => unknown(NO_SUMMARY),
        Some(ZeroTests::Fail) if !seen.some_ran => unknown(NO_COUNT),
        Some(ZeroTests::Fail | ZeroTests::Ok) | None => CheckOutcome::Passed,
    }
}

/// What any other exit code means: something failed, or there was nothing to run.
fn failed(zero_tests: Option<ZeroTests>, code: i32, seen: &TestsSeen) -> CheckOutcome {
    match &seen.absent {
        Some(words) => CheckOutcome::Unknown { reason: format!("what it should run does not exist: {}", sanitise_line(words)) },
        // Python's test runners use this code if no tests ran.
        None if seen.nothing_ran && code == 5 && zero_tests == Some(ZeroTests::Ok) => CheckOutcome::Passed,
        None if seen.nothing_ran => CheckOutcome::Unknown { reason: NO_TESTS.to_owned() },
        None => CheckOutcome::Failed { code },
    }
}

/// The reports, or why they cannot be trusted.
fn read(written: &Written, zero_tests: Option<ZeroTests>) -> Result<Vec<Report>, String> {
    match written {
        Written::Unasked => Ok(Vec::new()),
        // A runner without tests may not write a report.
        Written::None(_) if zero_tests == Some(ZeroTests::Ok) => Ok(Vec::new()),
        Written::None(why) | Written::Unreadable(why) => Err(why.clone()),
        Written::Texts(texts) => {
            let one = |(name, text): &(String, String)| {
                report(text).map_err(|fault| format!("the test report {name} cannot be trusted: {fault}"))
            };
            texts.iter().map(one).collect()
        }
    }
}

fn failed_tests(seen: &TestsSeen) -> String {
    let number = seen.count.map_or(0, |count| count.failed);
    let more = if number > seen.failed.len() as u64 && !seen.failed.is_empty() { ", ..." } else { "" };
    let tests = plural(usize::try_from(number).unwrap_or(usize::MAX), "test", "tests");
    format!(
        "{tests} failed according to its test report: {}{more}",
        if seen.failed.is_empty() { "no names given".to_owned() } else { seen.failed.join(", ") }
    )
}

/// The outcome by exit code. The output only tells which program is missing.
fn outcome(check: &Check, exit: Exit, output: &str) -> CheckOutcome {
    let named = |what: &str, program: Option<String>| match program.or_else(|| check_program(&check.command)) {
        Some(program) => format!("{what}: {}", sanitise_line(&program)),
        None => what.to_owned(),
    };
    match exit {
        Exit::Code(0) => CheckOutcome::Passed,
        Exit::Code(127) => {
            CheckOutcome::Unknown { reason: named("command not found (exit code 127)", program_not_found(output)) }
        }
        Exit::Code(126) => CheckOutcome::Unknown { reason: named("command not executable (exit code 126)", None) },
        Exit::Code(code) => CheckOutcome::Failed { code },
        Exit::Signal(signal) => CheckOutcome::Signalled { signal },
        Exit::Wall | Exit::Idle => CheckOutcome::TimedOut { after_ms: check.timeout.duration().as_millis() as u64 },
        Exit::Terminal => CheckOutcome::Unknown { reason: "it tried to use the terminal".to_owned() },
        Exit::Interrupted(_) => CheckOutcome::Interrupted,
    }
}
