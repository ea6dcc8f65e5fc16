//! Checks and acceptance by a person, as recorded in a note.

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
    /// It both failed and passed on the same tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// It could not fail the story.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advisory: bool,
    /// The result comes from an earlier execution in the same run, on the same tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCount>,
}

/// A person's acceptance of a story that needed a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// The person's identity in git.
    pub by: String,
    pub at: String,
    /// The reasons that the person was shown.
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
