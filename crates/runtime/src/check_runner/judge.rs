//! From how a check ended to what that means.

use verdone_core::check::{Check, CheckOutcome, TestCount, TestsSeen, ZeroTests, tests_seen};
use verdone_core::test_outcome::{Report, report};

use super::reports::Written;
use crate::process::{Exit, check_program};

/// Why a gate that has to run tests did not pass.
const NO_COUNT: &str =
    "no count of tests was found in its output (name its report with `junit`, or say that none is fine: zero_tests = \"ok\")";

const NO_SUMMARY: &str = "it ended without the summary of tests that its runner prints; run it without what makes it silent";

/// What a run of a check means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) outcome: CheckOutcome,
    pub(super) tests: Option<TestCount>,
    /// Tests that failed though the exit code is 0, for people.
    pub(super) failed: Option<String>,
}

/// `written` are the test reports that it wrote, where it was to write some.
pub(super) fn judge(check: &Check, exit: Exit, output: &str, written: &Written) -> Judged {
    let outcome = outcome(check, exit);
    let Exit::Code(code) = exit else { return Judged { outcome, tests: None, failed: None } };
    let (reports, trouble) = match read(written, check.terms.zero_tests) {
        Ok(reports) => (reports, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let seen = tests_seen(&check.command, code, output, &reports);
    let tests = seen.count;
    if !outcome.passed() {
        return Judged { outcome, tests, failed: None };
    }
    let unknown = |reason: String| Judged { outcome: CheckOutcome::Unknown { reason }, tests, failed: None };
    match (trouble, check.terms.zero_tests) {
        // A report is believed as a whole or not at all.
        (Some(why), _) => unknown(why),
        (None, _) if !reports.is_empty() && tests.is_some_and(|tests| tests.failed > 0) => {
            Judged { outcome: CheckOutcome::Failed { code }, tests, failed: Some(failed(&seen)) }
        }
        (None, Some(ZeroTests::Fail) | None) if seen.nothing_ran => unknown("no tests were run".to_owned()),
        (None, Some(ZeroTests::Fail) | None) if seen.no_summary => unknown(NO_SUMMARY.to_owned()),
        (None, Some(ZeroTests::Fail)) if !seen.some_ran => unknown(NO_COUNT.to_owned()),
        (None, Some(ZeroTests::Fail | ZeroTests::Ok) | None) => Judged { outcome, tests, failed: None },
    }
}

/// The reports, or why they cannot be believed.
fn read(written: &Written, zero_tests: Option<ZeroTests>) -> Result<Vec<Report>, String> {
    match written {
        Written::Unasked => Ok(Vec::new()),
        // A runner without tests may write none.
        Written::None(_) if zero_tests == Some(ZeroTests::Ok) => Ok(Vec::new()),
        Written::None(why) | Written::Unreadable(why) => Err(why.clone()),
        Written::Texts(texts) => {
            let one = |(name, text): &(String, String)| {
                report(text).map_err(|fault| format!("the test report {name} cannot be believed: {fault}"))
            };
            texts.iter().map(one).collect()
        }
    }
}

fn failed(seen: &TestsSeen) -> String {
    let number = seen.count.map_or(0, |count| count.failed);
    let more = if number > seen.failed.len() as u64 && !seen.failed.is_empty() { ", ..." } else { "" };
    let tests = if number == 1 { "test" } else { "tests" };
    format!(
        "{number} {tests} failed by its test report: {}{more}",
        if seen.failed.is_empty() { "it names none".to_owned() } else { seen.failed.join(", ") }
    )
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
            Some(ZeroTests::Fail) | None => {
                CheckOutcome::Unknown { reason: "no tests were collected (pytest exit code 5)".to_owned() }
            }
            Some(ZeroTests::Ok) => CheckOutcome::Passed,
        },
        Exit::Code(code) => CheckOutcome::Failed { code },
        Exit::Signal(signal) => CheckOutcome::Signalled { signal },
        Exit::Wall | Exit::Idle => CheckOutcome::TimedOut { after_ms: check.timeout.duration().as_millis() as u64 },
        Exit::Terminal => CheckOutcome::Unknown { reason: "it wanted to use the terminal".to_owned() },
        Exit::Interrupted(_) => CheckOutcome::Interrupted,
    }
}
