//! The observations so far. Starts empty, grows step by step, and is all that the judge knows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::TestNames;
use crate::base::id::Oid;
use crate::check::CheckRun;
use crate::done::JudgeFact;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// The caller no longer waits for the answer.
    pub interrupted: bool,
    /// The pristine tree, once requested.
    pub pristine: Option<BuiltTree>,
    /// The proof tree, once requested.
    pub proof: Option<BuiltTree>,
    /// Results of checks, from this verification or from an earlier one with the same trees.
    pub results: BTreeMap<ResultId, CheckResult>,
    /// Own checks that do not pass with the tests and configuration from before the run: an agent wrote files that they need.
    pub red_with_old_tests: Vec<String>,
    /// The required conditions, once they were checked. A condition that is missing here is unknown.
    pub conditions: Option<Vec<SeenCondition>>,
    /// The answer of the second agent, once it was asked.
    pub judge: Option<JudgeFact>,
}

/// A tree that Verdone composes from base and attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuiltTree {
    Built(Oid),
    Failed { why: String },
}

/// Identifies a result: a command on a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResultId {
    pub tree: Oid,
    /// See [`super::PlannedCheck::digest`].
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    pub run: CheckRun,
    /// The names of its tests, if a report lists them.
    pub names: Option<TestNames>,
    /// At least one test ran, even if the output does not say how many.
    pub some_tests_ran: bool,
}

impl From<CheckRun> for CheckResult {
    fn from(run: CheckRun) -> Self {
        Self { some_tests_ran: run.tests.is_some_and(|tests| tests.ran > 0), run, names: None }
    }
}

/// What is known about a required condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum SeenCondition {
    /// It is met, or not needed for this story.
    Met { name: String },
    /// It is not met, and the agent can do something about it.
    Missing { name: String, why: String, todo: String },
    /// It could not be determined, so it does not count as met.
    Unknown { name: String, why: String },
}

impl SeenCondition {
    pub fn name(&self) -> &str {
        match self {
            Self::Met { name } | Self::Missing { name, .. } | Self::Unknown { name, .. } => name,
        }
    }
}
