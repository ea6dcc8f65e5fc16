//! What went wrong, in a form that fits a prompt and a report.

use crate::check::CheckRun;

/// A failure as the next prompt tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// One sentence.
    pub reason: String,
    /// The checks that stand in the way: advisory ones do not.
    pub failed: Vec<CheckRun>,
    /// What the agent's own test runs showed, newest last.
    pub tests: Vec<String>,
    /// Tamper alarms that are more than worth knowing, a line each.
    pub alarms: Vec<String>,
    /// The story was done, and later work broke it: nothing was thrown away.
    pub regressed: bool,
}

impl Feedback {
    pub fn plain(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), failed: Vec::new(), tests: Vec::new(), alarms: Vec::new(), regressed: false }
    }

    /// The failing runs among these, with a sentence that names them.
    pub fn from_runs(runs: &[CheckRun]) -> Self {
        let failed: Vec<CheckRun> = runs.iter().filter(|run| run.blocks()).cloned().collect();
        Self { reason: sentence(&failed), failed, tests: Vec::new(), alarms: Vec::new(), regressed: false }
    }
}

fn sentence(failed: &[CheckRun]) -> String {
    match failed {
        [] => "no check failed".to_owned(),
        [one] => format!("{}: {}", one.name, one.outcome.words()),
        [first, rest @ ..] => format!("{}: {} (and {} more)", first.name, first.outcome.words(), rest.len()),
    }
}
