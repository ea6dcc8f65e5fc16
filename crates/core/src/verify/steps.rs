//! What to run next. A tree is used only if it can still change the answer.

use super::counts::CheckState;
use super::facts::{JobFacts, OwnCheckBefore};
use super::job::{PlannedCheck, Tree, VerifyJob};
use super::judge::{dependence, failures, judge, proof_with_notes};
use super::observed::{BuiltTree, Observed};
use super::outcome::Outcome;
use super::reason::Doubt;
use crate::base::proof::Proof;
use crate::check::stages;

/// One step of a verification. The caller performs it, adds the result to [`Observed`], and asks again.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Compose this tree ([`Tree::Pristine`] or [`Tree::Proof`]).
    Build(Tree),
    /// Run these checks, possibly in parallel. Each gets a result, even if it is interrupted.
    Run {
        tree: Tree,
        checks: Vec<PlannedCheck>,
    },
    /// Check whether the required conditions are met.
    AskConditions,
    /// Ask a second agent to refute the work.
    AskJudge,
    Done,
}

/// The next step to perform.
pub fn next_step(job: &VerifyJob, observed: &Observed) -> Step {
    let seen = JobFacts::new(job, observed);
    if seen.was_interrupted() || job.obstacle.is_some() {
        return Step::Done;
    }
    let own: Vec<PlannedCheck> = seen.own().cloned().collect();
    if let Some(step) = seen.run_missing(Tree::Base, own) {
        return step;
    }
    if job.nothing_changed() {
        return Step::Done;
    }
    let fails = |check: &PlannedCheck| check.is_required() && seen.state(Tree::Attempt, check) != CheckState::Green;
    let ends = |stage: &[PlannedCheck]| job.stop_at_failing_stage && stage.iter().any(fails);
    if let Some(step) = seen.next_stage(Tree::Attempt, &seen.checks, ends) {
        return step;
    }
    if !failures(&seen).is_empty() {
        return Step::Done;
    }
    seen.compare_with_base().or_else(|| seen.prove_by_tests()).or_else(|| seen.ask()).unwrap_or(Step::Done)
}

/// The results of the story's own checks on the base, in order.
pub fn red_check(job: &VerifyJob, observed: &Observed) -> Vec<(String, OwnCheckBefore)> {
    let seen = JobFacts::new(job, observed);
    seen.own().map(|own| (own.check.name.clone(), seen.before(own))).collect()
}

impl JobFacts<'_> {
    /// Compares counts first, because they are often already known; then the work with the protected files from before it.
    fn compare_with_base(&self) -> Option<Step> {
        if self.job.surface.is_reviewed() {
            return None;
        }
        if let Some(step) = self.run_baseline(self.required().cloned().collect()) {
            return Some(step);
        }
        let fell = |doubt: &Doubt| matches!(doubt, Doubt::CountsFell { .. });
        if !self.needs_pristine() || dependence(self).iter().any(fell) {
            return None;
        }
        match &self.observed.pristine {
            None => Some(Step::Build(Tree::Pristine)),
            Some(BuiltTree::Failed { .. }) => None,
            Some(BuiltTree::Built(_)) => {
                // One red check is enough.
                self.next_stage(Tree::Pristine, &self.pristine_checks(), |stage| {
                    stage.iter().any(|check| self.fails_on_pristine(check))
                })
            }
        }
    }

    fn run_baseline(&self, mut checks: Vec<PlannedCheck>) -> Option<Step> {
        checks.retain(|check| self.baseline(check).is_none());
        self.run_missing(Tree::Base, checks)
    }

    fn prove_by_tests(&self) -> Option<Step> {
        let is_settled = !dependence(self).is_empty() || proof_with_notes(self).0 > Proof::Untested;
        let is_skipped = self.job.surface.is_reviewed() && self.needs_pristine();
        if is_settled || is_skipped || !self.needs_proof_tree() {
            return None;
        }
        if let Some(step) = self.run_baseline(self.proof_checks()) {
            return Some(step);
        }
        match &self.observed.proof {
            None => Some(Step::Build(Tree::Proof)),
            Some(BuiltTree::Failed { .. }) => None,
            Some(BuiltTree::Built(_)) => {
                // One test is enough.
                self.next_stage(Tree::Proof, &self.proof_checks(), |_| self.shown_by_tests().is_some())
            }
        }
    }

    /// The last questions are the most expensive, so they are only asked about work that would otherwise be done.
    fn ask(&self) -> Option<Step> {
        if self.job.surface.is_reviewed() {
            return None;
        }
        let without = |conditions: bool| {
            let conditions = if conditions { Vec::new() } else { self.job.conditions.clone() };
            judge(&VerifyJob { judge: false, conditions, ..self.job.clone() }, self.observed).outcome == Outcome::Done
        };
        if !self.job.conditions.is_empty() && self.observed.conditions.is_none() {
            return without(true).then_some(Step::AskConditions);
        }
        (self.job.judge && self.observed.judge.is_none() && without(false)).then_some(Step::AskJudge)
    }

    /// The checks of the next stage that have no result on this tree, unless an earlier stage `ends` the search.
    fn next_stage(&self, tree: Tree, checks: &[PlannedCheck], ends: impl Fn(&[PlannedCheck]) -> bool) -> Option<Step> {
        for stage in stages(checks.iter().map(|check| &check.check)) {
            let is_in_stage = |check: &&PlannedCheck| stage.iter().any(|other| std::ptr::eq(*other, &raw const check.check));
            let group: Vec<PlannedCheck> = checks.iter().filter(is_in_stage).cloned().collect();
            if let Some(step) = self.run_missing(tree, group.clone()) {
                return Some(step);
            }
            if ends(&group) {
                return None;
            }
        }
        None
    }

    /// Runs those checks that have no result on a tree. Identical commands run once.
    fn run_missing(&self, tree: Tree, mut checks: Vec<PlannedCheck>) -> Option<Step> {
        self.tree(tree)?;
        checks.retain(|check| self.result(tree, check).is_none());
        let mut asked: Vec<String> = Vec::new();
        checks.retain(|check| {
            let is_new = !asked.contains(&check.digest);
            asked.push(check.digest.clone());
            is_new
        });
        (!checks.is_empty()).then_some(Step::Run { tree, checks })
    }
}
