//! Feedback for an agent: which tests failed and where, in a few lines.

use super::failures::cut;
use super::{TestFailure, TestOutcome, TestState};
use crate::sanitise::sanitise_line;

const MOST: usize = 10;

/// A few lines that say what failed and where; bounded however long the output was.
pub fn describe_outcome(outcome: &TestOutcome) -> String {
    let framework = outcome.framework.map_or("Tests", super::Framework::name);
    let counts = counts(outcome);
    let mut text = match outcome.state {
        TestState::Passed => format!("{framework}: passed{counts}."),
        TestState::NothingRan => format!("{framework}: no test ran{counts}."),
        TestState::Failed => format!("{framework}: failed{counts}."),
        TestState::Broken => format!("{framework}: broke before the tests could run{counts}."),
    };
    if outcome.hidden {
        text.push_str(" The exit code was still 0: a pipe or a later command hid the failure.");
    }
    if let Some(reason) = &outcome.reason {
        text.push_str(&format!("\nReason: {}", sanitise_line(&cut(reason, 200))));
    }
    for failure in outcome.failures.iter().take(MOST) {
        text.push_str(&format!("\n- {}", line(failure)));
    }
    if outcome.failures.len() > MOST {
        text.push_str(&format!("\n- and {} more", outcome.failures.len() - MOST));
    }
    text
}

fn counts(outcome: &TestOutcome) -> String {
    let counts = &outcome.counts;
    let parts: Vec<String> = [(counts.failed, "failed"), (counts.passed, "passed"), (counts.skipped, "skipped")]
        .into_iter()
        .filter_map(|(count, word)| count.filter(|count| *count > 0).map(|count| format!("{count} {word}")))
        .collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

fn line(failure: &TestFailure) -> String {
    let mut text = cut(&failure.name, 160);
    if let Some(file) = failure.file.as_ref().filter(|file| !failure.name.contains(file.as_str()) || failure.line.is_some()) {
        text.push_str(&format!(" ({}", cut(file, 120)));
        if let Some(line) = failure.line {
            text.push_str(&format!(":{line}"));
        }
        text.push(')');
    }
    if !failure.message.is_empty() {
        text.push_str(&format!(": {}", cut(&failure.message, 120)));
    }
    sanitise_line(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{Framework, TestCounts};
    use super::*;

    #[test]
    fn a_summary_names_tests_and_places_and_stays_short() {
        let failure = |n: usize| TestFailure {
            name: format!("adds {n}"),
            file: Some("src/a.test.js".to_owned()),
            line: Some(3),
            message: "expected 2\u{1b}[31m to be 3".to_owned(),
        };
        let mut outcome = TestOutcome {
            framework: Some(Framework::Jest),
            state: TestState::Failed,
            counts: TestCounts { passed: Some(4), failed: Some(1), skipped: Some(0) },
            failures: vec![failure(1)],
            reason: None,
            hidden: true,
        };
        assert_eq!(
            describe_outcome(&outcome),
            "Jest: failed (1 failed, 4 passed). The exit code was still 0: a pipe or a later command hid the failure.\n\
             - adds 1 (src/a.test.js:3): expected 2 to be 3"
        );
        outcome.failures = (0..200).map(failure).collect();
        outcome.failures[0].name = "x".repeat(100_000);
        let text = describe_outcome(&outcome);
        assert!(text.ends_with("- and 190 more") && text.len() < 4000, "{text}");
    }

    #[test]
    fn a_run_without_tests_says_so() {
        let outcome = TestOutcome {
            framework: None,
            state: TestState::NothingRan,
            counts: TestCounts::default(),
            failures: Vec::new(),
            reason: None,
            hidden: false,
        };
        assert_eq!(describe_outcome(&outcome), "Tests: no test ran.");
    }
}
