//! Describes what went wrong, for prompts and reports.

use crate::check::{CheckRun, failing_sentence};
use crate::verify::VerifyReport;

/// A failure, as described in the next prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// One sentence.
    pub reason: String,
    /// The blocking checks that failed, without advisory ones.
    pub failed: Vec<CheckRun>,
    /// Results of the agent's own test runs, newest last.
    pub tests: Vec<String>,
    /// What to do about it, one line each.
    pub advice: Vec<String>,
    /// The story was done, and later work broke it. No work was discarded.
    pub regressed: bool,
}

impl Feedback {
    pub fn plain(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), failed: Vec::new(), tests: Vec::new(), advice: Vec::new(), regressed: false }
    }

    /// A verification's feedback for the agent. For a hidden check, it gives only the name and that it did not pass.
    pub fn from_report(report: &VerifyReport) -> Self {
        let Some(told) = &report.feedback else { return Self::plain(report.problems_for_agent().join("\n")) };
        let failed = told.checks.iter().filter_map(|check| {
            let run = report.runs_on(check.tree).iter().find(|run| run.name == check.name)?;
            let hidden = run.hidden || report.is_hidden(&check.name);
            Some(CheckRun { tail: check.tail.clone(), hidden, ..run.clone() }.for_agent())
        });
        let (reason, advice) = (told.problems.join("\n"), told.advice.clone());
        Self { failed: failed.collect(), advice, ..Self::plain(reason) }
    }

    /// The failing runs among these, with a sentence that names them.
    pub fn from_runs(runs: &[CheckRun]) -> Self {
        let failed: Vec<CheckRun> = runs.iter().filter(|run| run.blocks()).map(CheckRun::for_agent).collect();
        Self { failed: failed.clone(), ..Self::plain(failing_sentence(&failed)) }
    }
}
