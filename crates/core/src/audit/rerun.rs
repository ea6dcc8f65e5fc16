//! What running a story's checks again has shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Audit, Problem, Remark};
use crate::id::Oid;

/// A check that was run again, or was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rerun {
    pub name: String,
    pub command: String,
    pub outcome: RerunOutcome,
    /// How it ended, in words.
    pub text: String,
    pub duration_ms: u64,
}

/// Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RerunOutcome {
    Passed,
    /// It failed, and passed when it was run once more on the same checkout.
    Flaky,
    /// Not this project's command, and nobody allowed it.
    NotAllowed,
    /// The audit was stopped.
    Interrupted,
    Failed,
}

impl Audit {
    /// Takes in what running a story's checks again has shown.
    pub fn rerun(&mut self, commit: &Oid, reruns: Vec<Rerun>) {
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
        story.reruns = reruns;
        self.settle();
    }
}
