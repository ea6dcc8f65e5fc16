//! The result of verifying a turn: written by the process that verified, read by the hook that answers.

use serde::{Deserialize, Serialize};

use super::{BlockCause, Open, Work};
use crate::check::CheckRun;
use crate::engine::run::Feedback;
use crate::verify::{Failure, Reason, Tree, VerifyReport};

/// A finding about one tree and one version of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Identifies the finding.
    pub at: String,
    /// The key of the question that it answers.
    pub asked: String,
    /// The key of the same question after the plan was marked and the story committed.
    pub after: String,
    /// The tree, in the form that the gate compares.
    pub tree: String,
    pub work: Work,
    /// What the agent and the user should know, whatever the decision is.
    pub notes: Vec<String>,
    /// It stays true as long as the files are the same. Other findings are renewed once the agent has been told.
    pub stands: bool,
    /// The last verification, if there was one.
    pub report: Option<Box<VerifyReport>>,
}

impl Finding {
    pub fn answers(&self, question: &str) -> bool {
        self.asked == question || self.after == question
    }
}

impl Open {
    /// Adds why a story is not done.
    pub fn add_verify_report(&mut self, report: &VerifyReport) {
        let feedback = Feedback::from_report(report);
        let is_doubted = report.is_doubted();
        self.failed.extend(feedback.failed.into_iter().map(|run| if is_doubted { with_old_files(run) } else { run }));
        self.advice.extend(feedback.advice);
        let is_shown = |reason: &Reason| reason.failing_check().is_some() && !is_doubted;
        let told = report.reasons.iter().filter(|reason| !matches!(reason, Reason::Note(_)) && !is_shown(reason));
        self.missing.extend(told.map(|reason| (cause_of(reason), reason.for_agent(|name| report.is_hidden(name)))));
    }
}

/// A check that passes on the current files, but not with the protected files from before the work.
fn with_old_files(run: CheckRun) -> CheckRun {
    CheckRun { name: format!("{}, with the files from before the work", run.name), ..run }
}

/// Whether a report stays true as long as the files are the same. A doubt is reported once, and a condition can be met without changes.
pub fn stands(report: &VerifyReport) -> bool {
    report.reasons.iter().all(|reason| match reason {
        Reason::Failure(failure) => match failure {
            Failure::CheckFailed { .. }
            | Failure::CheckUnknown { .. }
            | Failure::CheckNotRun { .. }
            | Failure::NothingChanged
            | Failure::CannotCommit { .. }
            | Failure::OutOfScope { .. } => true,
            Failure::Interrupted | Failure::ConditionMissing { .. } => false,
        },
        Reason::Doubt(_) => false,
        Reason::Note(_) => true,
    })
}

fn cause_of(reason: &Reason) -> BlockCause {
    match reason {
        Reason::Failure(failure) => match failure {
            Failure::CheckFailed { .. }
            | Failure::CheckUnknown { .. }
            | Failure::CheckNotRun { .. }
            | Failure::Interrupted
            | Failure::CannotCommit { .. } => BlockCause::CheckFailed,
            Failure::NothingChanged => BlockCause::NothingChanged,
            Failure::OutOfScope { .. } => BlockCause::OutOfScope,
            Failure::ConditionMissing { .. } => BlockCause::Condition,
        },
        Reason::Doubt(_) | Reason::Note(_) => BlockCause::Doubt,
    }
}

/// The checks that ran on the tree itself, and whether nothing failed. For others that ask about the same tree.
pub fn seen_on_tree(finding: &Finding) -> Option<(&[CheckRun], bool)> {
    let report = finding.report.as_deref()?;
    let fails = report.reasons.iter().any(|reason| matches!(reason, Reason::Failure(_)));
    Some((report.runs_on(Tree::Attempt), !fails))
}
