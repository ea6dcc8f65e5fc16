//! What was seen so far. It starts empty, grows step by step, and is all that the judge knows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::TestNames;
use crate::base::id::Oid;
use crate::check::CheckRun;
use crate::done::JudgeFact;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Whoever asked does not wait for the answer any more.
    pub interrupted: bool,
    /// The pristine tree, once it was asked for.
    pub pristine: Option<BuiltTree>,
    /// The proof tree, once it was asked for.
    pub proof: Option<BuiltTree>,
    /// Results of checks, from this verification or from an earlier one with the same trees.
    pub results: BTreeMap<ResultId, CheckResult>,
    /// Own checks that do not pass with the tests and configuration from before the run: an agent wrote what they need.
    pub red_with_old_tests: Vec<String>,
    /// The required conditions, once they were asked for. One that is missing here is unknown.
    pub conditions: Option<Vec<SeenCondition>>,
    /// The answer of the second agent, once it was asked.
    pub judge: Option<JudgeFact>,
}

/// A tree that Verdone composes from two others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuiltTree {
    Built(Oid),
    Failed { why: String },
}

/// One question: this command on this tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResultId {
    pub tree: Oid,
    /// See [`super::PlannedCheck::digest`].
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    pub run: CheckRun,
    /// The names of its tests, where a report gives them.
    pub names: Option<TestNames>,
    /// At least one test ran, though the output may not say how many.
    pub some_tests_ran: bool,
}

impl From<CheckRun> for CheckResult {
    fn from(run: CheckRun) -> Self {
        Self { some_tests_ran: run.tests.is_some_and(|tests| tests.ran > 0), run, names: None }
    }
}

/// What is known of a required condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum SeenCondition {
    /// It holds, or is not needed for this story.
    Met { name: String },
    /// It does not hold, and the agent can do something about it.
    Missing { name: String, why: String, todo: String },
    /// It could not be found out, so it does not count as met.
    Unknown { name: String, why: String },
}

impl SeenCondition {
    pub fn name(&self) -> &str {
        match self {
            Self::Met { name } | Self::Missing { name, .. } | Self::Unknown { name, .. } => name,
        }
    }
}
