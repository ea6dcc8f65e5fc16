//! Checks and alarms as a note keeps them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{CheckOrigin, CheckOutcome, CheckRun, CommandSpec, TestCount};
use crate::proof::AsBefore;
use crate::tamper::Alarm;

/// One check as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    pub name: String,
    pub origin: CheckOrigin,
    pub command: CommandSpec,
    pub outcome: CheckOutcome,
    pub duration_ms: u64,
    pub output_digest: String,
    /// It failed and passed on the same tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// Nothing could fail by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advisory: bool,
    /// Answered by an earlier run of it in the same run, on the same tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCount>,
}

/// A sign of tampering, as the note keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotedAlarm {
    pub kind: String,
    pub severity: String,
    pub path: String,
    pub text: String,
}

/// A story's own checks as they were, as the note keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotedAsBefore {
    /// What the attempt changed and the checks run.
    pub files: Vec<String>,
    /// The checks with these files as they were, on the work.
    pub runs: Vec<Proof>,
    /// Why that leaves the story unproven, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

impl From<&AsBefore> for NotedAsBefore {
    fn from(seen: &AsBefore) -> Self {
        Self { files: seen.files.clone(), runs: seen.runs.iter().map(Proof::from).collect(), doubt: seen.doubt() }
    }
}

impl From<&Alarm> for NotedAlarm {
    fn from(alarm: &Alarm) -> Self {
        let (kind, severity) = (alarm.kind.words().to_owned(), alarm.severity.words().to_owned());
        Self { kind, severity, path: alarm.path.clone(), text: alarm.text.clone() }
    }
}

impl NotedAsBefore {
    pub(super) fn holds(&self) -> bool {
        self.doubt.is_none() && !self.runs.is_empty() && self.runs.iter().all(|run| run.outcome.passed())
    }
}

impl From<&CheckRun> for Proof {
    fn from(run: &CheckRun) -> Self {
        Self {
            name: run.name.clone(),
            origin: run.origin.clone(),
            command: run.command.clone(),
            outcome: run.outcome.clone(),
            duration_ms: run.duration_ms,
            output_digest: run.output_digest.clone(),
            flaky: run.flaky,
            advisory: run.advisory,
            cached: run.cached,
            tests: run.tests,
        }
    }
}
