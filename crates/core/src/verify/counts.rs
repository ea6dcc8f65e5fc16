//! What one result means, and whether a check still runs the tests that it ran on the base.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::{Baseline, Tree};
use super::observed::CheckResult;
use crate::base::plural::plural;
use crate::check::{CheckOutcome, CheckRun, TestCount};

pub use verdone_testlog::TestNames;

/// How many names a sentence lists, and how many a report keeps.
const NAMED: usize = 3;
const KEPT: usize = 50;

/// The meaning of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    Green,
    Red,
    /// No evidence either way: not found, not executable, no tests, timed out.
    Unknown,
    Interrupted,
    NotRun,
}

impl CheckState {
    /// A counted failure fails a check, whatever its exit code is.
    pub fn from_run(run: &CheckRun) -> Self {
        match run.outcome {
            CheckOutcome::Passed if counted_failures(run) > 0 => Self::Red,
            CheckOutcome::Passed => Self::Green,
            CheckOutcome::Failed { code: 126 | 127 } | CheckOutcome::TimedOut { .. } | CheckOutcome::Unknown { .. } => {
                Self::Unknown
            }
            CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. } => Self::Red,
            CheckOutcome::Interrupted => Self::Interrupted,
        }
    }

    /// How a check ended, in words that agree with its state.
    pub fn describe(run: &CheckRun) -> String {
        match counted_failures(run) {
            failed if failed > 0 && run.outcome.passed() => format!("exited with code 0, but counts {failed} failed"),
            _ => run.outcome.describe(),
        }
    }

    /// The same for the red check, where a pass without any tests is unknown too.
    pub fn from_red_check(run: &CheckRun) -> Self {
        match Self::from_run(run) {
            Self::Green if run.tests.is_some_and(|tests| tests.ran == 0) => Self::Unknown,
            state => state,
        }
    }
}

fn counted_failures(run: &CheckRun) -> u64 {
    run.tests.map_or(0, |tests| tests.failed)
}

/// The tests of one check on the base and on another tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountChange {
    pub check: String,
    pub tree: Tree,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<TestCount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<TestCount>,
    /// How the counts fell, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fall: Option<CountFall>,
    /// The story's scope names changed test files, so counts may fall.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fall", rename_all = "kebab-case")]
pub enum CountFall {
    FewerPassed {
        before: u64,
        after: u64,
    },
    /// The output counted tests on the base, but no longer does.
    Vanished {
        before: u64,
    },
    /// Tests failed on the base, and no more tests pass now than then: they were skipped or removed.
    NotFixed {
        failed: u64,
    },
    /// Tests that passed on the base are now skipped.
    NowSkipped {
        tests: Vec<String>,
    },
}

impl fmt::Display for CountFall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewerPassed { before, after } => write!(f, "{} passed before the work, now {after}", tests(*before)),
            Self::Vanished { before } => write!(f, "{} ran before the work, and its output counts none now", tests(*before)),
            Self::NotFixed { failed } => {
                write!(f, "{} failed before the work, and no additional test passes now", tests(*failed))
            }
            Self::NowSkipped { tests } => write!(f, "tests that passed before the work are skipped now: {}", list(tests)),
        }
    }
}

/// Whether fewer tests support the work than before. Without counts on the base there is nothing to compare.
pub(super) fn compare(before: &Baseline, after: &CheckResult) -> Option<CountFall> {
    let old = before.tests?;
    let Some(new) = after.run.tests else {
        // Some runners only count failures, and merely say that the rest passed.
        let is_gone = old.passed > 0 || (old.ran > 0 && !after.some_tests_ran);
        return is_gone.then_some(CountFall::Vanished { before: old.ran });
    };
    if new.passed < old.passed {
        return Some(CountFall::FewerPassed { before: old.passed, after: new.passed });
    }
    if old.failed > 0 && new.passed == old.passed {
        return Some(CountFall::NotFixed { failed: old.failed });
    }
    // A missing name means nothing: tests are renamed and merged, and doctests are named by their line.
    let (old, new) = (before.names.as_ref()?, after.names.as_ref()?);
    let tests: Vec<String> = old.passed.intersection(&new.skipped).take(KEPT).cloned().collect();
    (!tests.is_empty()).then_some(CountFall::NowSkipped { tests })
}

fn tests(number: u64) -> String {
    plural(usize::try_from(number).unwrap_or(usize::MAX), "test", "tests")
}

/// The first few names, for a sentence.
pub(super) fn list(names: &[String]) -> String {
    let first = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
