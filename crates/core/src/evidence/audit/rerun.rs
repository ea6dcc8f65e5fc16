//! Results of running a story's checks again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Audit, Audited, Problem, Remark};
use crate::base::id::Oid;
use crate::verify::{Outcome, Proof, Reason, VerifyReport};

/// A check that was run again, or was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rerun {
    pub name: String,
    pub command: String,
    pub outcome: RerunOutcome,
    /// How it ended, as text.
    pub text: String,
    pub duration_ms: u64,
}

/// Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RerunOutcome {
    Passed,
    /// It failed first and passed when retried on the same files.
    Flaky,
    /// The command is not from this project's config, and the user did not allow it.
    NotAllowed,
    /// The audit was stopped.
    Interrupted,
    Failed,
}

/// The engine's current judgement of a story's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejudged {
    pub outcome: Outcome,
    pub proof: Option<Proof>,
    /// Why the result is not better.
    pub why: String,
}

impl From<&VerifyReport> for Rejudged {
    fn from(report: &VerifyReport) -> Self {
        let problems = report.problems();
        let notes =
            || report.reasons.iter().filter(|reason| matches!(reason, Reason::Note(_))).map(ToString::to_string).collect();
        let why: Vec<String> = if problems.is_empty() { notes() } else { problems };
        Self { outcome: report.outcome, proof: report.proof, why: why.join("; ") }
    }
}

impl Audited {
    /// A proof that is weaker now than its evidence says. Comparable only if all of its checks ran again.
    fn weaker(&self, reruns: &[Rerun], now: &Rejudged) -> Option<Problem> {
        let all_pass = reruns.iter().all(|run| match run.outcome {
            RerunOutcome::Passed | RerunOutcome::Flaky => true,
            RerunOutcome::NotAllowed | RerunOutcome::Interrupted | RerunOutcome::Failed => false,
        });
        let was = self.proof.filter(|_| all_pass)?;
        let is_weaker = now.outcome == Outcome::NeedsReview || now.proof.is_none_or(|proof| proof < was);
        let why = now.why.clone();
        is_weaker.then_some(Problem::WeakerNow { was, now: now.proof, why })
    }
}

impl Audit {
    /// Records the results of a rerun. `now` is `None` if the proof could not be compared.
    pub fn rerun(&mut self, commit: &Oid, reruns: Vec<Rerun>, now: Option<&Rejudged>) {
        let Some(story) = self.stories.iter_mut().find(|story| story.commit == *commit) else { return };
        let advisory = |name: &str| story.checks.iter().any(|proof| proof.advisory && proof.name == name);
        for run in &reruns {
            match run.outcome {
                RerunOutcome::Failed if advisory(&run.name) => {
                    story.remarks.push(Remark::AdvisoryFails { name: run.name.clone() }.finding());
                }
                RerunOutcome::Failed => {
                    let (name, text) = (run.name.clone(), run.text.clone());
                    story.problems.push(Problem::FailsNow { name, text }.finding());
                }
                RerunOutcome::Flaky => story.remarks.push(Remark::FlakyNow { name: run.name.clone() }.finding()),
                RerunOutcome::NotAllowed => story.remarks.push(Remark::NotAllowed { command: run.command.clone() }.finding()),
                RerunOutcome::Passed | RerunOutcome::Interrupted => {}
            }
        }
        let left: Vec<String> =
            reruns.iter().filter(|run| run.outcome == RerunOutcome::Interrupted).map(|run| run.name.clone()).collect();
        if !left.is_empty() {
            self.interrupted = true;
            story.remarks.push(Remark::NotRunAgain { names: left }.finding());
        }
        if let Some(problem) = now.and_then(|now| story.weaker(&reruns, now)) {
            story.problems.push(problem.finding());
        }
        story.reruns = reruns;
        self.decide();
    }
}
