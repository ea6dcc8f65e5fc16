//! A verification requested by a user, outside runs and session loops.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::Tree;
use super::outcome::Outcome;
use super::report::VerifyReport;
use crate::base::id::Oid;
use crate::base::seal::Seal;

/// The report, with data that only this kind of verification has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    #[serde(flatten)]
    pub report: VerifyReport,
    /// The verified commits, if it was a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<CommitRange>,
    /// How the checks were confined; absent if none had to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// What the reader should know about what was compared and where it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How long the checks of each tree took in milliseconds, including setting up the workspace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub took_ms: BTreeMap<Tree, u64>,
    /// Checks that did not run because an earlier stage failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<String>,
}

/// Two commits. The work is what lies between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitRange {
    /// The base of the comparison, as the user named it.
    pub asked: String,
    /// The commit with that name. Settings and gates come from it.
    pub settings: Oid,
    /// The commit whose files are the base: the named one, or the merge base with it.
    pub base: Oid,
    pub head: Oid,
}

impl Verified {
    /// 0 if the work is done, 1 if it failed, 4 if a person has to review it.
    pub fn exit_code(&self) -> u8 {
        match self.report.outcome {
            Outcome::Done | Outcome::Accepted => 0,
            Outcome::Failed => 1,
            Outcome::NeedsReview => 4,
        }
    }
}
