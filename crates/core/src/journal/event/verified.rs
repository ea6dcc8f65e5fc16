//! A verification, as recorded in the journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Place;
use crate::base::id::Oid;
use crate::check::CheckRun;
use crate::done::JudgeRecord;
use crate::verify::{Failure, Outcome, Reason, Surface, Tree, TreeIds, VerifyReport};

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "OnDisk")]
#[schemars(!from)]
pub struct Verified {
    pub place: Place,
    /// Number of files that differ from the base.
    pub changed: u32,
    /// Files that the agent may not change (the plan, `.verdone/`). Its edits of them are not part of the tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    pub report: VerifyReport,
    /// The answer of a second agent that was asked to refute the work, and its cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
}

impl Verified {
    /// The checks on the attempt's own tree.
    pub fn runs(&self) -> &[CheckRun] {
        self.report.runs_on(Tree::Attempt)
    }

    /// The cost of the judge.
    pub fn cost_usd(&self) -> Option<f64> {
        self.judge.as_ref().and_then(|judge| judge.usage.cost_usd).filter(|cost| cost.is_finite())
    }
}

/// A line of any version. Versions before the engine wrote their outcome and the runs on the attempt's tree next to the place.
#[derive(Deserialize)]
struct OnDisk {
    place: Place,
    changed: u32,
    #[serde(default)]
    restored: Vec<String>,
    #[serde(default)]
    report: Option<VerifyReport>,
    #[serde(default)]
    judge: Option<JudgeRecord>,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    tree: Option<Oid>,
    #[serde(default)]
    runs: Vec<CheckRun>,
    #[serde(default)]
    reason: Option<String>,
}

impl From<OnDisk> for Verified {
    fn from(line: OnDisk) -> Self {
        let OnDisk { place, changed, restored, report, judge, outcome, tree, runs, reason } = line;
        let report = report.unwrap_or_else(|| older(&place, &outcome, tree, runs, reason));
        Self { place, changed, restored, report, judge }
    }
}

fn older(place: &Place, outcome: &str, tree: Option<Oid>, runs: Vec<CheckRun>, reason: Option<String>) -> VerifyReport {
    let passed = outcome == "passed";
    let failed = |run: &CheckRun| Failure::CheckFailed { check: run.name.clone(), said: run.outcome.describe() };
    let failures = match (outcome, reason) {
        ("passed", _) => Vec::new(),
        ("nothing_changed", _) => vec![Failure::NothingChanged],
        ("interrupted", _) => vec![Failure::Interrupted],
        (_, Some(why)) => vec![Failure::CannotCommit { why }],
        (_, None) => runs.iter().filter(|run| run.blocks()).map(failed).collect(),
    };
    VerifyReport {
        outcome: if passed { Outcome::Done } else { Outcome::Failed },
        // The commit event says how well it was proven.
        proof: None,
        reasons: failures.into_iter().map(Reason::Failure).collect(),
        runs: [(Tree::Attempt, runs)].into(),
        ..VerifyReport::empty(
            Surface::Run,
            Some(place.story.clone()),
            TreeIds::of_attempt(tree.unwrap_or_else(|| Oid(String::new()))),
        )
    }
}
