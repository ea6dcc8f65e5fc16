//! Known check results for the current work tree, without running checks: from the session's Stop gate, or else from the gate cache.

use std::path::PathBuf;

use verdone_core::check::{Check, CheckRun};
use verdone_core::verify::{Outcome, Tree};
use verdone_plan::Story;

use super::{Checked, ConditionRequest};
use crate::project::find_git_top;
use crate::project::plan_file::PlanFile;
use crate::session;
use crate::verify::on_demand;

/// An earlier verification of exactly the same tree.
#[derive(Debug)]
pub(super) struct EarlierVerification {
    runs: Vec<CheckRun>,
    passed: bool,
    gates_only: bool,
}

impl EarlierVerification {
    pub(super) fn checked(&self) -> Checked<'_> {
        Checked { runs: &self.runs, passed: self.passed, gates_only: self.gates_only }
    }
}

/// `None` if no verification of this tree is known. Errors count as unknown.
pub(super) fn find(
    ask: &ConditionRequest<'_>,
    plan: Option<&PlanFile>,
    story: Option<&Story>,
    own: &[Check],
    gates: &[Check],
) -> Option<EarlierVerification> {
    let whole: Vec<Check> = own.iter().chain(gates).cloned().collect();
    if whole.is_empty() {
        return None;
    }
    let ours = plan.map(PlanFile::protected_paths).unwrap_or_default();
    let by_cache = |story: Option<&Story>| by_cache(ask, story);
    let gates_only = |known: EarlierVerification| EarlierVerification { gates_only: !own.is_empty(), ..known };
    by_stop_gate(ask, &ours, &whole).or_else(|| by_cache(story)).or_else(|| {
        if own.is_empty() { None } else { by_stop_gate(ask, &ours, gates).or_else(|| by_cache(None)).map(gates_only) }
    })
}

/// `None` if the loop did not run all of these checks.
fn by_stop_gate(ask: &ConditionRequest<'_>, ours: &[PathBuf], checks: &[Check]) -> Option<EarlierVerification> {
    let top = find_git_top(ask.root).ok()?;
    let (runs, passed) = session::seen_before(ask.root, &top, ask.session, ours)?;
    let ran = |check: &&Check| runs.iter().any(|run| run.origin == check.origin && run.command == check.command);
    let due = checks.iter().filter(|check| check.terms.when.is_always());
    (due.clone().count() > 0 && due.clone().all(|check| ran(&check))).then_some(EarlierVerification {
        runs,
        passed,
        gates_only: false,
    })
}

fn by_cache(ask: &ConditionRequest<'_>, story: Option<&Story>) -> Option<EarlierVerification> {
    let question = on_demand::CheckoutRequest {
        root: ask.root.to_owned(),
        story: story.map(|story| story.id.clone()),
        stage: None,
        use_cache: true,
    };
    let report = on_demand::cached(&question).ok()??;
    Some(EarlierVerification {
        runs: report.runs_on(Tree::Attempt).to_vec(),
        passed: report.outcome == Outcome::Done,
        gates_only: false,
    })
}
