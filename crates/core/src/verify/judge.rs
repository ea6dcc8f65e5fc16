//! The judgement: proof and outcome of everything that Verdone verifies are decided here and nowhere else.

use std::collections::BTreeMap;

use super::counts::CheckState;
use super::criteria::criteria;
use super::feedback::feedback;
use super::job::{Tree, VerifyJob};
use super::observed::{BuiltTree, Observed, SeenCondition};
use super::outcome::Outcome;
use super::proof::Proof;
use super::reason::{Reason, Weight};
use super::report::{TreeIds, VerifyReport};
use super::seen::{OwnBefore, Seen};
use crate::check::CheckRun;
use crate::done::JudgeFact;

/// Judges what was seen. Whatever is missing there counts as not run, and never as passed.
pub fn judge(job: &VerifyJob, observed: &Observed) -> VerifyReport {
    let seen = Seen::new(job, observed);
    let mut reasons = failures(&seen);
    let mut proof = None;
    if reasons.is_empty() {
        let (proven, because) = proven(&seen);
        proof = Some(proven);
        reasons = doubts(&seen, proven);
        reasons.extend(because);
    }
    let outcome = outcome(job, &reasons);
    let wants_feedback = outcome == Outcome::Failed && job.surface.has_agent() && !seen.was_interrupted();
    VerifyReport {
        surface: job.surface,
        story: job.story.as_ref().map(|story| story.id.clone()),
        outcome,
        proof,
        feedback: wants_feedback.then(|| feedback(&seen, &reasons)),
        reasons,
        trees: TreeIds {
            base: job.base.clone(),
            attempt: job.attempt.clone(),
            pristine: seen.tree(Tree::Pristine).cloned(),
            proof: seen.tree(Tree::Proof).cloned(),
        },
        runs: runs(&seen),
        hidden: seen.checks.iter().filter(|check| check.hidden).map(|check| check.check.name.clone()).collect(),
        counts: seen.count_changes(),
        protected: job.protected.clone(),
        autorun: job.autorun.clone(),
        criteria: criteria(&seen, proof),
        conditions: observed.conditions.clone().unwrap_or_default(),
        judge: observed.judge.clone(),
    }
}

fn outcome(job: &VerifyJob, reasons: &[Reason]) -> Outcome {
    let is_review = |reason: &&Reason| reason.weight() == Weight::Review;
    if reasons.iter().any(|reason| reason.weight() == Weight::Fails) {
        return Outcome::Failed;
    }
    if job.surface.is_reviewed() {
        return Outcome::Accepted;
    }
    let mut doubts = reasons.iter().filter(is_review).peekable();
    if doubts.peek().is_none() {
        return Outcome::Done;
    }
    // A turn is not spent on what is out of the agent's hands.
    let agent_can_help = doubts.any(|reason| reason.advice().is_some());
    if job.can_give_feedback() && agent_can_help { Outcome::Failed } else { Outcome::NeedsReview }
}

/// Why the attempt itself does not pass.
pub(super) fn failures(seen: &Seen<'_>) -> Vec<Reason> {
    let job = seen.job;
    if seen.was_interrupted() {
        return vec![Reason::Interrupted];
    }
    if job.nothing_changed() {
        return vec![Reason::NothingChanged];
    }
    let mut reasons = red_on_attempt(seen);
    if job.surface.is_reviewed() {
        return reasons;
    }
    let files = job.out_of_scope();
    if !files.is_empty() {
        reasons.push(Reason::OutOfScope { files });
    }
    for condition in seen.observed.conditions.iter().flatten().filter(|seen| job.conditions.iter().any(|name| name == seen.name())) {
        match condition.clone() {
            SeenCondition::Missing { name, why, todo } => reasons.push(Reason::ConditionMissing { name, why, todo }),
            SeenCondition::Met { .. } | SeenCondition::Unknown { .. } => {}
        }
    }
    reasons
}

fn red_on_attempt(seen: &Seen<'_>) -> Vec<Reason> {
    let problem = |check: &super::PlannedCheck| {
        let (name, said) = (check.check.name.clone(), seen.words(Tree::Attempt, check));
        match seen.state(Tree::Attempt, check) {
            CheckState::Green => None,
            CheckState::Red => Some(Reason::CheckFailed { check: name, said }),
            CheckState::Unknown => Some(Reason::CheckUnknown { check: name, said }),
            CheckState::Interrupted | CheckState::NotRun => Some(Reason::CheckNotRun { check: name }),
        }
    };
    let mut found: Vec<Reason> = seen.required().filter_map(problem).collect();
    // Where a check fails, those of later stages are not run on purpose: they explain nothing.
    if found.iter().any(|reason| !matches!(reason, Reason::CheckNotRun { .. })) {
        found.retain(|reason| !matches!(reason, Reason::CheckNotRun { .. }));
    }
    found
}

/// Why the result depends on changed tests or configuration.
pub(super) fn dependence(seen: &Seen<'_>) -> Vec<Reason> {
    if seen.job.surface.is_reviewed() {
        return Vec::new();
    }
    let falls = seen.count_changes().into_iter().filter(|change| !change.allowed);
    let mut reasons: Vec<Reason> =
        falls.filter_map(|seen| seen.fall.map(|change| Reason::CountsFell { check: seen.check, tree: seen.tree, change })).collect();
    if !seen.needs_pristine() {
        return reasons;
    }
    if let Some(BuiltTree::Failed { why }) = &seen.observed.pristine {
        reasons.push(Reason::PristineTreeFailed { why: why.clone() });
        return reasons;
    }
    let mut red = Vec::new();
    let mut not_run = Vec::new();
    for check in seen.pristine_checks() {
        let name = check.check.name.clone();
        match seen.state(Tree::Pristine, &check) {
            CheckState::Green => {}
            CheckState::Red | CheckState::Unknown => {
                let (said, files) = (seen.words(Tree::Pristine, &check), seen.job.unreleased());
                red.push(Reason::PristineFailed { check: name, said, files });
            }
            CheckState::Interrupted | CheckState::NotRun => not_run.push(Reason::PristineNotRun { check: name }),
        }
    }
    // Once one check is red there, or counts fell, the others are not run on purpose.
    if red.is_empty() && reasons.is_empty() {
        red = not_run;
    }
    red.extend(reasons);
    red
}

/// Why a person has to look at work that passes.
fn doubts(seen: &Seen<'_>, proof: Proof) -> Vec<Reason> {
    let job = seen.job;
    if job.surface.is_reviewed() {
        return Vec::new();
    }
    let mut reasons = dependence(seen);
    let files: Vec<String> = job.autorun.iter().filter(|change| !change.released).map(|change| change.path.clone()).collect();
    if !files.is_empty() {
        reasons.push(Reason::AutorunChanged { files });
    }
    let minimum = job.required_proof();
    // Where the result depends on changed tests, that is the reason, and a missing proof only follows from it.
    if proof < minimum && reasons.is_empty() {
        reasons.push(Reason::BelowMinimum { proof, minimum });
    }
    // The remaining questions are only asked about work that has no other problem.
    if reasons.is_empty() {
        reasons.extend(open_conditions(seen));
        reasons.extend(refutation(seen).filter(|_| reasons.is_empty() || seen.observed.judge.is_some()));
    }
    reasons
}

fn open_conditions(seen: &Seen<'_>) -> Vec<Reason> {
    let state = |name: &String| seen.observed.conditions.iter().flatten().find(|condition| condition.name() == name);
    let mut reasons = Vec::new();
    for name in &seen.job.conditions {
        let why = match state(name) {
            Some(SeenCondition::Met { .. } | SeenCondition::Missing { .. }) => continue,
            Some(SeenCondition::Unknown { why, .. }) => why.clone(),
            None => "it was not asked for".to_owned(),
        };
        reasons.push(Reason::ConditionUnknown { name: name.clone(), why });
    }
    reasons
}

fn refutation(seen: &Seen<'_>) -> Option<Reason> {
    match &seen.observed.judge {
        Some(JudgeFact::Refuted { findings }) => Some(Reason::JudgeRefuted { findings: findings.clone() }),
        Some(JudgeFact::Holds) => None,
        Some(JudgeFact::Unknown { why }) if seen.job.judge => Some(Reason::JudgeUnknown { why: why.clone() }),
        Some(JudgeFact::Off) | None if seen.job.judge => Some(Reason::JudgeUnknown { why: "it was not asked".to_owned() }),
        Some(JudgeFact::Unknown { .. } | JudgeFact::Off) | None => None,
    }
}

/// How well work is proven whose checks all pass, and why so.
pub(super) fn proven(seen: &Seen<'_>) -> (Proof, Vec<Reason>) {
    let job = seen.job;
    if seen.required().next().is_none() {
        return (Proof::Unchecked, vec![Reason::NoCheck]);
    }
    let mut reasons: Vec<Reason> = flaky(seen).collect();
    if !dependence(seen).is_empty() {
        return (Proof::Untested, reasons);
    }
    if job.surface.is_reviewed() && seen.needs_pristine() {
        reasons.push(Reason::PristineSkipped { files: job.unreleased() });
        return (Proof::Untested, reasons);
    }
    let limits = limits(seen);
    let own = own_check(seen);
    let (mut proof, because) = match &own {
        Reason::OwnCheckRedThenGreen { .. } if limits.is_empty() => (Proof::Verified, vec![own]),
        _ => match seen.shown_by_tests() {
            Some(check) => {
                let (check, files) = (check.check.name.clone(), job.brought_tests());
                (Proof::AgentTested, [vec![Reason::TestsRedThenGreen { check, files }], limits].concat())
            }
            None => (Proof::Untested, [limits, vec![own, seen.not_shown_because()]].concat()),
        },
    };
    reasons.extend(because);
    if let Some(at_most) = job.at_most.filter(|at_most| proof > *at_most) {
        proof = at_most;
        reasons.push(Reason::ProofLimited { at_most });
    }
    (proof, reasons)
}

/// Why the work is agent-tested at best.
fn limits(seen: &Seen<'_>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let files = seen.job.released();
    if !files.is_empty() {
        reasons.push(Reason::ScopeNamesProtected { files });
    }
    let lowered = seen.count_changes().into_iter().filter(|change| change.tree == Tree::Attempt);
    reasons.extend(lowered.filter_map(|seen| seen.fall.map(|change| Reason::CountsLowered { check: seen.check, change })));
    for own in seen.own() {
        let check = own.check.name.clone();
        match seen.before(own) {
            OwnBefore::Unknown { why } => reasons.push(Reason::OwnCheckUnknownBefore { check, why }),
            OwnBefore::Missing { file } => reasons.push(Reason::OwnCheckMissingBefore { check, file }),
            OwnBefore::Red | OwnBefore::Green | OwnBefore::NotRun => {}
        }
    }
    reasons
}

/// The best that one of the story's own checks showed. It passes now, or there would be no proof at all.
fn own_check(seen: &Seen<'_>) -> Reason {
    let red = seen.own().find(|own| own.is_required() && seen.before(own) == OwnBefore::Red);
    let Some(check) = red.or_else(|| seen.own().next()) else { return Reason::NoOwnCheck };
    let name = check.check.name.clone();
    match seen.before(check) {
        OwnBefore::Red => Reason::OwnCheckRedThenGreen { check: name },
        OwnBefore::Green => Reason::OwnCheckGreenBefore { check: name },
        OwnBefore::Unknown { why } => Reason::OwnCheckUnknownBefore { check: name, why },
        OwnBefore::Missing { file } => Reason::OwnCheckMissingBefore { check: name, file },
        OwnBefore::NotRun => Reason::OwnCheckNotRunBefore { check: name },
    }
}

fn flaky<'s>(seen: &'s Seen<'_>) -> impl Iterator<Item = Reason> + use<'s> {
    let is_flaky = |check: &&super::PlannedCheck| seen.result(Tree::Attempt, check).is_some_and(|result| result.run.flaky);
    seen.checks.iter().filter(is_flaky).map(|check| Reason::Flaky { check: check.check.name.clone() })
}

fn runs(seen: &Seen<'_>) -> BTreeMap<Tree, Vec<CheckRun>> {
    let of = |tree: Tree| -> Vec<CheckRun> {
        let run = |check: &super::PlannedCheck| {
            let result = seen.result(tree, check)?;
            let (name, origin) = (check.check.name.clone(), check.check.origin.clone());
            Some(CheckRun { name, origin, advisory: check.check.terms.advisory, ..result.run.clone() })
        };
        seen.checks.iter().filter_map(run).collect()
    };
    let trees = [Tree::Base, Tree::Attempt, Tree::Pristine, Tree::Proof];
    trees.into_iter().map(|tree| (tree, of(tree))).filter(|(_, runs)| !runs.is_empty()).collect()
}
