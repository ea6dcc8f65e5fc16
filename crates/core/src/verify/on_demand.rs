//! A verification that somebody asked for, outside of runs and session loops.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::Tree;
use super::outcome::Outcome;
use super::report::VerifyReport;
use crate::base::id::Oid;
use crate::base::seal::Seal;

/// The judgement, with what belongs to this verification alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    #[serde(flatten)]
    pub report: VerifyReport,
    /// Present where commits were verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<CommitRange>,
    /// How the checks were confined; absent where none had to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// What the reader should know about what was compared and where it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How long the checks of each tree took, in milliseconds, its workspace included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub took_ms: BTreeMap<Tree, u64>,
    /// Checks that were not run, because an earlier stage failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<String>,
}

/// Two commits: the work is what lies between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitRange {
    /// What the work is compared with, as it was named.
    pub asked: String,
    /// The commit with that name. Settings and gates come from there.
    pub settings: Oid,
    /// The commit whose files are the base: the named one, or where the work branched off from it.
    pub base: Oid,
    pub head: Oid,
}

impl Verified {
    /// 0 where the work is done, 1 where it failed, 4 where a person has to look at it.
    pub fn exit_code(&self) -> u8 {
        match self.report.outcome {
            Outcome::Done | Outcome::Accepted => 0,
            Outcome::Failed => 1,
            Outcome::NeedsReview => 4,
        }
    }
}
