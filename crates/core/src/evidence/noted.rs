//! Checks and a person's word as a note keeps them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{CheckOrigin, CheckOutcome, CheckRun, CommandSpec, TestCount};

/// One check as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotedCheck {
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

/// A person's word for a story that needed a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// Who, as git knows them.
    pub by: String,
    pub at: String,
    /// What they were shown.
    pub reasons: Vec<String>,
}

impl From<&CheckRun> for NotedCheck {
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
