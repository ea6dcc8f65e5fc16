//! A check is one command that Verdone runs; a gate is a named, staged check that every story must pass.

mod cache_key;
mod counts;
mod failure_excerpt;
mod gate;
pub mod lessons;
mod order;
mod stage;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::span::Span;

pub use cache_key::{CacheKey, counts_for_results};
pub use counts::{TestCount, TestsSeen, tests_seen};
pub use failure_excerpt::{excerpt, first_error};
pub use gate::{CheckOptions, Gate, GateSettings, When, ZeroTests};
pub use order::{due_checks, stages, stages_by};
pub use stage::Stage;

/// A command from the config or a plan: a string is passed to `sh -c`, a list is executed directly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a command: a string for `sh -c`, or a list of strings to execute directly")]
pub enum CommandSpec {
    Shell(String),
    Argv(Vec<String>),
}

impl CommandSpec {
    /// One line for display. Never execute it.
    pub fn display(&self) -> String {
        match self {
            Self::Shell(text) => text.clone(),
            Self::Argv(words) => words.join(" "),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Shell(text) => text.trim().is_empty(),
            Self::Argv(words) => words.first().is_none_or(|word| word.trim().is_empty()),
        }
    }
}

/// Where a check comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOrigin {
    /// The story's own check: it has to fail before the work and pass after it.
    Story,
    /// A gate, from the config or from `--check`.
    Gate(Stage),
    /// Tests that the attempt added or changed, run on the tree without its work and on its own tree.
    AgentTest,
}

/// A check, ready to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    pub name: String,
    pub origin: CheckOrigin,
    pub command: CommandSpec,
    pub timeout: Span,
    /// How the config says to run and judge it. A story's own checks use the defaults.
    #[serde(default, skip_serializing_if = "CheckOptions::are_plain")]
    pub terms: CheckOptions,
}

impl Check {
    /// A story's own check.
    pub fn own(command: CommandSpec, timeout: Span) -> Self {
        Self { name: command.display(), origin: CheckOrigin::Story, command, timeout, terms: CheckOptions::default() }
    }

    /// How an agent sees it: its command, or of a hidden check only the name.
    pub fn shown_to_agent(&self) -> String {
        if self.terms.hidden.is_some() { self.name.clone() } else { self.command.display() }
    }
}

/// How one run of a check ended. Ordered from best to worst.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    Passed,
    /// The exit code is not 126 or 127. It is 0 if a test report lists failures anyway.
    Failed {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    TimedOut {
        after_ms: u64,
    },
    /// No evidence either way: command not found, not executable, or no tests ran.
    Unknown {
        reason: String,
    },
    /// The run was stopped.
    Interrupted,
}

impl CheckOutcome {
    pub fn passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// A short description for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::Failed { code: 0 } => "exited with code 0, but its test report lists failures".to_owned(),
            Self::Failed { code } => format!("failed with exit code {code}"),
            Self::Signalled { signal } => format!("was killed by signal {signal}"),
            Self::TimedOut { after_ms } => format!("timed out after {}", Span::from_millis(*after_ms)),
            Self::Unknown { reason } => reason.clone(),
            Self::Interrupted => "was interrupted".to_owned(),
        }
    }
}

/// Evidence of one check, as observed by Verdone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    pub name: String,
    pub origin: CheckOrigin,
    pub command: CommandSpec,
    pub outcome: CheckOutcome,
    pub duration_ms: u64,
    /// SHA-256 of the complete raw output, before redaction and truncation.
    pub output_digest: String,
    /// Where the redacted output is kept, relative to the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The redacted end of the output, for feedback and reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// The redacted first error in the output of a failed check, with the lines after it, if one is recognised.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub first_error: String,
    /// The result comes from an earlier run of the same command on the same tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// It both failed and passed on the same tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// Shown and recorded, but does not fail a story.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advisory: bool,
    /// How many tests it ran, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCount>,
    /// The agent may see only its name and whether it passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

impl CheckRun {
    /// A result with only the check's own data filled in.
    pub fn pending(check: &Check) -> Self {
        Self {
            name: check.name.clone(),
            origin: check.origin.clone(),
            command: check.command.clone(),
            outcome: CheckOutcome::Interrupted,
            duration_ms: 0,
            output_digest: crate::base::id::digest(b""),
            output: None,
            tail: String::new(),
            first_error: String::new(),
            cached: false,
            flaky: false,
            advisory: check.terms.advisory,
            tests: None,
            hidden: check.terms.hidden.is_some(),
        }
    }

    /// The version that an agent may see: for a hidden check, only its name and whether it passed.
    #[must_use]
    pub fn for_agent(&self) -> Self {
        if !self.hidden {
            return self.clone();
        }
        let outcome = match self.outcome {
            CheckOutcome::Passed => CheckOutcome::Passed,
            CheckOutcome::Failed { .. }
            | CheckOutcome::Signalled { .. }
            | CheckOutcome::TimedOut { .. }
            | CheckOutcome::Unknown { .. }
            | CheckOutcome::Interrupted => CheckOutcome::Unknown { reason: "did not pass".to_owned() },
        };
        Self {
            command: CommandSpec::Shell(self.name.clone()),
            outcome,
            duration_ms: 0,
            output_digest: crate::base::id::digest(b""),
            output: None,
            tail: String::new(),
            first_error: String::new(),
            tests: None,
            ..self.clone()
        }
    }

    /// Whether it keeps a story from passing.
    pub fn blocks(&self) -> bool {
        !self.advisory && !self.outcome.passed()
    }
}

/// Whether all blocking checks passed, and there was at least one.
pub fn all_green(runs: &[CheckRun]) -> bool {
    runs.iter().any(|run| !run.advisory) && !runs.iter().any(CheckRun::blocks)
}

/// Which of these runs fail, for people: hidden checks are named like any others.
pub fn failing_sentence(runs: &[CheckRun]) -> String {
    let failed: Vec<&CheckRun> = runs.iter().filter(|run| run.blocks()).collect();
    match failed.as_slice() {
        [] => "no check failed".to_owned(),
        [one] => format!("{}: {}", one.name, one.outcome.describe()),
        [first, rest @ ..] => format!("{}: {} (and {} more)", first.name, first.outcome.describe(), rest.len()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One run of a story's own check.
    pub(crate) fn ran(command: &str, outcome: CheckOutcome) -> CheckRun {
        let check = Check::own(CommandSpec::Shell(command.to_owned()), Span::from_secs(1));
        CheckRun { outcome, ..CheckRun::pending(&check) }
    }

    /// A failed run with this first error and this end of its output.
    pub(crate) fn failed_with(first_error: &str, tail: &str) -> CheckRun {
        let (first_error, tail) = (first_error.to_owned(), tail.to_owned());
        CheckRun { tail, first_error, ..ran("make", CheckOutcome::Failed { code: 1 }) }
    }
}
